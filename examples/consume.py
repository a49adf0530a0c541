"""Look at the records that MSMQ messages became: `python examples/consume.py demo`.

A consumer has to read committed records only, as here: what an aborted transaction left in the
topic never happened.
"""

import argparse
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from bridge.adapters.config_files import load_config
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topic")
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("run.yaml"))
    parser.add_argument("--last", type=int, default=5, help="how many records to show")
    given = parser.parse_args()
    status = get_json(find_admin_url(load_config(given.config)), "/api/status")
    consumer = Consumer(
        {
            "bootstrap.servers": status["kafka"]["bootstrap.servers"],
            "group.id": "consume-example",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(given.topic, timeout=10).topics[given.topic].partitions
    consumer.assign([TopicPartition(given.topic, number, 0) for number in partitions])
    records, ended = [], set()
    while len(ended) < len(partitions):
        for message in consumer.consume(1000, timeout=1):
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    records.sort(key=lambda message: (message.timestamp()[1], message.offset()))
    for message in records[-given.last :]:
        headers = dict(message.headers())
        place = f"{message.topic()}-{message.partition()}@{message.offset()}"
        print(place, headers["msmq.id"].decode(), message.value()[:60])
        for name, value in sorted(headers.items()):
            print("    ", name, "=", value[:60])
    print(f"{len(records)} records in {given.topic}")


if __name__ == "__main__":
    main()
