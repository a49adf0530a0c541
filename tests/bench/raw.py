"""What Kafka can do: a plain transactional producer with the very records that the bridge makes.

The load generators' packets and requests go through the bridge's own reader and mapper once,
beforehand; what is timed is `produce` and `commit_transaction` alone, with the bridge's producer
settings.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge.adapters.config_files import kafka_properties, load_config
from bridge.adapters.kafka.client import CALL_TIMEOUT_S, producer
from bridge.adapters.mapping_files import load_mappings
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.core.mapper import Mapper
from bridge.core.ports import Record
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.wire.binary.packet import PacketReader
from bridge.wire.srmp.convert import message_from_request
from bridge.wire.srmp.request import read_whole_request
from tests.bench.figures import micros
from tests.bench.packets import KINDS, make_block
from tests.bench.posts import KINDS as HTTP_KINDS
from tests.bench.posts import Posts

PER_TRANSACTION = 2000
STREAMS = 64
MADE_BYTES = 16 << 20  # records that are made beforehand, then sent again and again
PARTITIONS = 4


def messages(queue: str, kind: str, size: int, each: int) -> Iterator[Message]:
    """The first messages of as many senders as the bridge will have."""
    now = time.time()
    for _ in range(STREAMS):
        if kind in HTTP_KINDS:
            yield from _posted(queue, kind, size, each, now)
            continue
        block = make_block(queue, kind, each, size, uuid.uuid4().bytes_le, int(now))
        read = PacketReader().feed_open(bytes(block.data), "127.0.0.1", int(now * 1000))
        for run in read:
            assert isinstance(run, list)
            yield from run


def _posted(queue: str, kind: str, size: int, each: int, now: float) -> Iterator[Message]:
    posts = Posts(queue, kind, size, uuid.uuid4(), int(now), "http://127.0.0.1/msmq/q")
    for number in range(1, each + 1):
        _, request = read_whole_request(bytes(posts.request(number)))
        yield message_from_request(request, peer="127.0.0.1", arrived_ms=int(now * 1000))


def records(config: Path, queue: str, kind: str, size: int) -> list[Record]:
    """In turn from each stream, as a transaction of the bridge has them."""
    settings = load_config(config)
    mappings = load_mappings(settings.mappings, reserved=f"{settings.topic_prefix}.")
    limits = dict.fromkeys(mappings.topics(), TopicLimits(PARTITIONS))
    catalogue = Catalogue.of(Guid.random(), mappings, limits, "")
    mapper = Mapper(catalogue)
    each = max(1, min(PER_TRANSACTION, MADE_BYTES // size) // STREAMS)
    made = []
    for message in messages(queue, kind, size, each):
        found = catalogue.find(message.destination)
        assert found is not None, message.destination
        made.append(mapper.record(message, found))
    return made


def produce(config: Path, topic: str, made: list[Record], count: int) -> dict[str, float]:
    settings = kafka_properties(load_config(config))
    client = producer(settings, f"raw-{topic}")
    client.init_transactions(CALL_TIMEOUT_S)
    source = itertools.cycle(made)
    for measured in (PER_TRANSACTION, count):  # once to warm up
        started, cpu = time.monotonic(), time.process_time()
        for _ in range(0, measured, PER_TRANSACTION):
            client.begin_transaction()
            for r in itertools.islice(source, PER_TRANSACTION):
                headers: Any = r.headers
                partition = -1 if r.partition is None else r.partition
                client.produce(
                    topic, r.value, r.key, partition, headers=headers, timestamp=r.timestamp_ms
                )
            client.commit_transaction(CALL_TIMEOUT_S)
        seconds, spent = time.monotonic() - started, time.process_time() - cpu
    return {
        "messages": count,
        "seconds": seconds,
        "per_second": count / seconds,
        "cpu_us": micros(spent, count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--kind", choices=(*KINDS, *HTTP_KINDS), required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="a multiple of 2000")
    given = parser.parse_args()
    made = records(given.config, given.queue, given.kind, given.size)
    print(json.dumps(produce(given.config, given.topic, made, given.count)))


if __name__ == "__main__":
    main()
