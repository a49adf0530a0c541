"""Plays a bad week: the sender's journal has messages that never arrived, the topic has copies.

    python examples/migration-week/week.py JOURNAL [--lose 3] [--double 2]

The journal is written from the records of the topic, with some more messages that nobody ever sent
to us; then some records are written to the topic once more, as a careless tool would.
"""

import argparse
import json
from pathlib import Path

from confluent_kafka import Producer
from msgspec.structs import replace

from bridge.adapters.config_files import load_config
from bridge.adapters.kafka.reader import read_to_end
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url
from bridge.core.mapping import message_from_record
from bridge.core.message_data import as_json, data_of
from bridge.core.ports import Record

TOPIC, QUEUE = "orders", "private$\\orders"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("journal", type=Path)
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("bridge.yaml"))
    parser.add_argument("--lose", type=int, default=3)
    parser.add_argument("--double", type=int, default=2)
    given = parser.parse_args()
    status = get_json(find_admin_url(load_config(given.config)), "/api/status")
    settings = {"bootstrap.servers": status["kafka"]["bootstrap.servers"]}
    partitions = Producer(settings).list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    found = [message for n in partitions for message in read_to_end(settings, TOPIC, n)]
    records = [Record(TOPIC, m.value() or b"", m.key(), dict(m.headers() or ())) for m in found]
    messages = sorted(map(message_from_record, records), key=lambda message: message.ordinal)
    first, last = messages[0], messages[-1]
    for n in range(1, given.lose + 1):
        tx = replace(last.transaction, number=last.transaction.number + n)
        tx = replace(tx, previous=tx.number - 1)
        lost = replace(last, ordinal=last.ordinal + n, transaction=tx, body=b"lost %d" % n)
        messages.append(replace(lost, label=f"lost {n}", sent_time=first.sent_time, wire=b""))
    lines = [json.dumps(as_json(data_of(message, f"{QUEUE};journal"))) for message in messages]
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    given.journal.write_text("\n".join(lines) + "\n")
    careless = Producer(settings)
    for message in found[: given.double]:
        careless.produce(
            TOPIC, message.value(), message.key(), message.partition(), headers=message.headers()
        )
    careless.flush(10)
    print(f"{len(messages)} in the journal, {given.lose} lost, {given.double} doubled")


if __name__ == "__main__":
    main()
