"""What a consumer of the topics sees: committed records only, from the first to the last."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from confluent_kafka import Message

from tests.outside.rawsender import soon
from tests.support import kafka


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: Sequence[tuple[str, bytes]]

    @property
    def header(self) -> Mapping[str, bytes]:
        return dict(self.headers)

    def mentions(self, text: str) -> bool:
        """In key, value or headers, in whatever format they are."""
        parts = [self.key or b"", self.value, *(value for _, value in self.headers)]
        return any(text.lower().encode() in part.lower() for part in parts)


def create_topics(bootstrap: str, topics: Sequence[str], partitions: int = 4) -> None:
    for topic in topics:
        kafka.create_topic(bootstrap, topic, partitions)


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """Every committed record there is now, by partition and offset."""
    return [record_of(message) for message in kafka.read_topic(bootstrap, topic)]


def record_of(message: Message) -> Record:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Record(
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=_bytes(message.key()),
        value=_bytes(message.value()) or b"",
        headers=_headers(message.headers()),
    )


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _headers(headers: object) -> list[tuple[str, bytes]]:
    if not isinstance(headers, list):
        return []
    return [(str(name), _bytes(value) or b"") for name, value in headers]


def of_source(records: Sequence[Record], source: UUID) -> list[Record]:
    return [record for record in records if record.header.get("msmq.source") == text(source)]


def text(guid: UUID) -> bytes:
    return str(guid).encode()


def identity(source: UUID, message_id: int) -> bytes:
    return f"{source}\\{message_id}".encode()


def until(
    read: Callable[[], list[Record]], enough: Callable[[list[Record]], bool], seconds: float = 20
) -> list[Record]:
    """Read again until it is enough; for effects no ack tells us about (express messages)."""
    deadline = soon(seconds)
    while True:
        records = read()
        if enough(records) or soon(0) > deadline:
            return records
