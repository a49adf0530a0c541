"""A message becomes the record that its queue's mapping asks for. Design 3.3

Most mappings ask for the body, the whole header table and the stream's own partition; they take
the short way. What the messages of a stream have in common is made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from zlib import crc32

from msgspec.structs import astuple

from bridge.core.catalogue import Catalogue, Queue
from bridge.core.header_rules import VALUE_ERROR, HeaderRule, compile_rules
from bridge.core.mapping import COMMON, OwnHeaders, Traces, common_headers
from bridge.core.mapping_rules import QueueMapping
from bridge.core.murmur2 import partition_of
from bridge.core.ports import Headers, Record
from bridge.core.readings import Reading, Readings, read, wanted_of
from bridge.core.streams import StreamKey, stream_key
from bridge.core.trace_context import TRACEPARENT, TRACESTATE
from bridge.core.values import value_of
from bridge.model.cache import Cache, text_size
from bridge.model.message import Message

_CACHE: Final = 100_000  # streams come from outside: bounded, in bytes too
_CACHE_BYTES: Final = 64 << 20
_STREAM: Final = 2048  # bytes of what is kept for a stream, beside names and headers
_LARGEST: Final = 64 << 10  # bytes of headers that are kept for the next message

# A key that the message has at once; the others look into its headers or its body.
_KEYS: Final[dict[str, Callable[[Message], bytes | None]]] = {
    "message_id": lambda m: m.id.encode(),
    "correlation_id": lambda m: m.correlation_id,
    "label": lambda m: m.label.encode("utf-8", "surrogatepass"),
    "source": lambda m: str(m.source).encode(),
    "none": lambda _: None,
}


class _Recipe:
    """What a mapping asks for, worked out once."""

    __slots__ = ("by_key", "by_sent", "is_plain", "key", "path", "rule", "value")

    def __init__(self, mapping: QueueMapping) -> None:
        self.key = str(mapping.key)
        self.path = mapping.key.json_path
        self.value = mapping.value
        self.rule: HeaderRule | None = compile_rules(mapping.headers, mapping.value)
        self.by_sent = mapping.timestamp == "sent"
        self.by_key = mapping.order == "key"
        self.is_plain = (
            self.key == "stream"
            and self.value == "body"
            and self.rule is None
            and not self.by_sent
            and not self.by_key
            and not mapping.depends_on_message
        )


class _Stream:
    """What is the same for every message of a stream, or was for the last one."""

    __slots__ = ("crc", "headers", "key", "kind", "own", "queue", "recipe", "sequence", "size")

    def __init__(self, message: Message, queue: Queue, traces: Traces) -> None:
        source, destination = stream_key(message)
        self.key = f"{source}/{destination}".encode("utf-8", "surrogatepass")
        self.crc = crc32(self.key)  # picks the partition
        self.headers: Headers = {}
        self.size = 0  # of the headers
        self.kind: tuple[object, ...] = ()  # `headers` are for messages like this
        self.sequence = -1
        self.own = OwnHeaders(traces)
        self.queue = queue
        self.recipe = _Recipe(queue.mapping)


class Common(NamedTuple):
    """What the records of a stream share."""

    key: bytes
    partition: int
    headers: Headers
    own: OwnHeaders


class Mapper:
    """Makes records for the queues of a catalogue."""

    def __init__(self, catalogue: Catalogue, traces: Traces = Traces.PASSED) -> None:
        self._catalogue, self._traces = catalogue, traces
        self._streams: Cache[StreamKey, _Stream] = Cache(_CACHE, _CACHE_BYTES)
        self.readings: Readings = {}  # bodies that were read before their messages are decided

    @property
    def cached_bytes(self) -> int:
        return self._streams.size

    def record(self, message: Message, queue: Queue, text: str = "") -> Record:
        """`text` is the message's id, if it is at hand."""
        stream = self._stream(message, queue)
        headers = self._headers(stream, message)
        stream.own.add(headers, message, text or message.id)
        if not stream.recipe.is_plain:
            return self._tailored(message, queue, stream, headers)
        return Record(
            queue.topic,
            message.body,
            stream.key,
            headers,
            stream.crc % queue.partitions,  # a stream lies in one partition (DM-36)
            message.arrived_ms,
        )

    def common(self, message: Message, queue: Queue) -> Common | None:
        """What the records of all messages like this one share; None if each is looked at."""
        stream = self._stream(message, queue)
        if not stream.recipe.is_plain:
            return None
        headers = self._headers(stream, message)
        return Common(stream.key, stream.crc % queue.partitions, headers, stream.own)

    def _tailored(self, message: Message, queue: Queue, stream: _Stream, table: Headers) -> Record:
        recipe = stream.recipe
        timestamp = message.arrived_ms
        if recipe.by_sent and message.sent_time:
            # Never ahead of arrival: brokers refuse a time in the future.
            timestamp = min(message.sent_time * 1000, message.arrived_ms)
            table["msmq.arrived"] = b"%d" % message.arrived_ms
        # They are no property of the message: no rule and no envelope has them.
        trace = {name: table.pop(name) for name in (TRACEPARENT, TRACESTATE) if name in table}
        reading = self._reading(message, recipe)
        value, why = value_of(message, recipe.value, queue.name, table, reading)
        if why:
            table[VALUE_ERROR] = why.encode()
        headers = table if recipe.rule is None else recipe.rule(table)
        key = _key(recipe.key, message, stream, table, headers, reading)
        if trace:
            headers = trace | headers  # what the mapping makes stays
        topic, partitions = queue.topic, queue.partitions
        if not topic:
            topic = queue.topic_of(message.label, message.source)
            limits = self._catalogue.limits_of(topic)
            partitions = 1 if limits is None else limits.partitions
        partition = stream.crc % partitions
        if recipe.by_key and key is not None:
            partition = partition_of(key, partitions)
        return Record(topic, value, key, headers, partition, timestamp)

    def _reading(self, message: Message, recipe: _Recipe) -> Reading | None:
        wanted = wanted_of(message, recipe.value, recipe.path)
        if wanted is None:
            return None
        known = self.readings.get(wanted) if self.readings else None
        return known or read(wanted)

    def _headers(self, stream: _Stream, message: Message) -> Headers:
        tx = message.transaction
        sequence = -1 if tx is None else tx.sequence_id
        kind = astuple(message)[COMMON]
        if tx is not None and tx.stream is not None:  # the key does not tell
            kind += (message.source, message.destination)
        if kind != stream.kind or sequence != stream.sequence:
            name = stream.queue.name.encode("utf-8", "surrogatepass")
            headers = common_headers(message) | {"msmq.queue": name}
            size = sum(map(len, headers.values()))
            if size > _LARGEST:
                return headers
            self._streams.resize(size - stream.size)
            stream.headers, stream.size = headers, size
            stream.kind, stream.sequence = kind, sequence
        return stream.headers.copy()

    def _stream(self, message: Message, queue: Queue) -> _Stream:
        key = stream_key(message)
        stream = self._streams.get(key)
        if stream is None or stream.queue is not queue:
            stream = _Stream(message, queue, self._traces)
            self._streams.keep(key, stream, _STREAM + text_size(*key[1:]) + len(stream.key))
        return stream


def _key(
    kind: str,
    message: Message,
    stream: _Stream,
    table: Headers,
    headers: Headers,
    reading: Reading | None,
) -> bytes | None:
    """`header:` means a property by its name in the table, or a header that the mapping made."""
    if kind == "stream":
        return stream.key
    if simple := _KEYS.get(kind):
        return simple(message)
    where, _, name = kind.partition(":")
    if where == "header":
        return table.get(name, headers.get(name))
    return None if reading is None else reading.key
