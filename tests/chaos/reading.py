"""What Kafka has: the ends of its partitions now and then, and at the end all that is committed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tests.chaos.history import Landed, Probe, digest_of, is_intact

Place = tuple[str, int]
TIMEOUT_S: Final = 30.0
BATCH: Final = 500


class HangingError(Exception):
    """Records that a consumer of committed ones never gets to: their transaction has no end."""


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,  # it outlives brokers
        }
    )


def _ends(consumer: Consumer, topics: Sequence[str]) -> dict[Place, int]:
    ends: dict[Place, int] = {}
    known = consumer.list_topics(timeout=TIMEOUT_S).topics
    for topic in topics:
        for number in known[topic].partitions if topic in known else ():
            partition = TopicPartition(topic, number)
            found = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
            assert found is not None, f"nobody tells the end of {topic}/{number}"
            ends[topic, number] = int(found[1])
    return ends


def probe(bootstrap: str, topics: Sequence[str]) -> Probe:
    """A broker that stood still for long has no leaders for a moment: it is asked again."""
    consumer = _consumer(bootstrap, "read_uncommitted")
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while True:
            at = time.monotonic()  # before the question
            try:
                return Probe(at, _ends(consumer, topics))
            except KafkaException:
                if at > deadline:
                    raise
                time.sleep(0.1)
    finally:
        consumer.close()


def read_committed(bootstrap: str, topics: Sequence[str]) -> Iterator[Message]:
    """All that is there now. Raises HangingError when that cannot be read to its end.

    A reader of committed records is told an end that lies before an open transaction, so another
    one is asked: what hangs must not look as if it were not there.
    """
    goal = dict(probe(bootstrap, topics).ends)
    consumer = _consumer(bootstrap, "read_committed")
    try:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in goal])
        deadline = time.monotonic() + TIMEOUT_S
        while goal:
            messages = consumer.consume(BATCH, 0.1)  # waits for all of them, or so long
            if messages:
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise HangingError(f"not read to the end: {goal}")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    place = str(message.topic()), int(message.partition() or 0)
                    if int(message.offset() or 0) >= goal.get(place, 0):
                        goal.pop(place, None)
    finally:
        consumer.close()


def headers_of(message: Message) -> Mapping[str, bytes]:
    pairs: Any = message.headers() or []
    return {key: value or b"" for key, value in pairs}


def landed(bootstrap: str, topics: Sequence[str]) -> Iterator[Landed]:
    for message in read_committed(bootstrap, topics):
        identity = headers_of(message).get("msmq.id", b"").decode()
        body = bytes(message.value() or b"")
        yield Landed(
            topic=str(message.topic()),
            partition=int(message.partition() or 0),
            offset=int(message.offset() or 0),
            identity=identity,
            digest=digest_of(body),
            intact=is_its_body(identity, body),
        )


def identities(bootstrap: str, topics: Sequence[str]) -> list[str]:
    """Of all committed records, in no order."""
    found = (headers_of(message) for message in read_committed(bootstrap, topics))
    return [headers.get("msmq.id", b"").decode() for headers in found]


def is_its_body(identity: str, body: bytes) -> bool:
    guid, _, ordinal = identity.partition("\\")
    try:
        return is_intact(body, UUID(guid).bytes_le, int(ordinal))
    except ValueError:
        return False


class Rejected(NamedTuple):
    identity: str
    reason: str
    is_strange: bool  # not the body that the sender of this name gave to a message

    def __str__(self) -> str:
        return f"rejected {self.identity}: {self.reason}"


def rejected(bootstrap: str, topic: str) -> list[Rejected]:
    """No honest message should be refused; if it is, this says why it is missing elsewhere."""
    found: list[Rejected] = []
    for message in read_committed(bootstrap, [topic]):
        headers = headers_of(message)
        identity = headers.get("msmq.id", b"?").decode()
        reason = headers.get("__connect.errors.exception.message", b"?").decode()
        is_strange = not is_its_body(identity, bytes(message.value() or b""))
        found.append(Rejected(identity, reason, is_strange))
    return found
