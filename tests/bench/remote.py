"""One reader of a retained queue, in a process of its own: remote read, or Kafka's own consumer.

    python -m tests.bench.remote --way scan|receive|consume …

`scan` peeks at every message, `receive` takes them out (a Start and an End for each, as many in
flight as `--window`), at PKT_PRIVACY with NTLM. `consume` reads the records of the same messages.
What is timed starts with the connection and ends with the last message.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.sync_reader import RemoteReader
from tests.bench.figures import micros

USER, PASSWORD = "ann", "secret"
WAYS = ("scan", "receive", "consume")


def scan(reader: RemoteReader, queue: str, count: int, window: int) -> int:
    return sum(
        len(read.message.body) > 0 for read in reader.scan(queue, limit=count, window=window)
    )


def receive(reader: RemoteReader, queue: str, count: int, window: int) -> int:
    found = 0
    for batch in reader.receive(queue, limit=count, window=window):
        found += len(batch.reads)
        batch.confirm()
    return found


def consume(bootstrap: str, topic: str, count: int) -> int:
    """The records as any application gets them: one poll each."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain-consumer",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found = 0
        while found < count:
            message = consumer.poll(30)
            if message is None:
                raise RuntimeError(f"{found} of {count} records")
            if error := message.error():
                raise KafkaException(error)
            found += bool(message.value()) and bool(message.headers())
        return found
    finally:
        consumer.close()


def measured(read: Callable[[], int]) -> dict[str, Any]:
    started, cpu = time.monotonic(), time.process_time()
    found = read()
    seconds, spent = time.monotonic() - started, time.process_time() - cpu
    return {
        "messages": found,
        "seconds": seconds,
        "per_second": found / seconds,
        "cpu_us": micros(spent, found) if found else 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--address", default="", help="host:port of remote read")
    parser.add_argument("--queue", default="")
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--topic", default="")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--window", type=int, default=256)
    given = parser.parse_args()
    if given.way == "consume":
        told = measured(lambda: consume(given.bootstrap, given.topic, given.count))
    else:
        host, _, port = given.address.rpartition(":")
        place = Place(host=host, port=int(port), credentials=Credentials(USER, PASSWORD))
        way = scan if given.way == "scan" else receive
        with RemoteReader(place) as reader:
            told = measured(lambda: way(reader, given.queue, given.count, given.window))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
