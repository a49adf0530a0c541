"""Metrics, and the lines about sessions and refusals that go with them.

Label values are bounded: what a stranger can invent ends as `other`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bridge.adapters.logs import fields
from bridge.model.verdict import OTHER_QUEUE_MANAGER

# When a counter began: twice as many lines, and nobody asks.
disable_created_metrics()  # type: ignore[no-untyped-call]
_log = logging.getLogger(__name__)
PREFIX: Final = "msmq_bridge_"
MAX_LABEL_VALUES: Final = 200
MAX_LABEL: Final = 249  # characters, as a topic may have
MAX_QUEUES: Final = 100  # retained ones that have a gauge of their own
OTHER: Final = "other"
Depth = tuple[str, int, int]  # a queue, its messages and their bytes
TRANSPORTS: Final = ("binary", "http", "https")
LOST: Final = "LOST"
MAX_WARNED: Final = 1_000  # addresses whose refusal was logged once
# A sender that is refused for them comes again every few seconds, for days.
_ONCE: Final = frozenset((OTHER_QUEUE_MANAGER.reason,))

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TOLD: Final = (
    *("transport", "peer", "queue_manager", "user", "messages", "bytes", "seconds", "reason"),
)
_MESSAGES: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a connection when it is over."""

    transport: str  # binary, http, https, rpc
    peer: str
    queue_manager: str = ""  # GUID, if it said one
    user: str = ""
    messages: int = 0  # or requests, or calls
    bytes: int = 0
    began: float = 0.0  # Unix seconds
    seconds: float = 0.0
    reason: str = ""
    was_open: bool = True  # else a stranger that said nothing of use


class Telemetry:
    """Every metric of one appliance, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(PREFIX + name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(PREFIX + name, text, labels, buckets=buckets, registry=registry)

        self._opened = counter("sessions_opened", "Sessions that were opened.")
        self._closed = counter("sessions_closed", "Sessions that ended, by reason.", "reason")
        self._messages = counter(
            "messages", "Messages by verdict and transport.", "verdict", "class", "transport"
        )
        self._records = counter("records", "Records committed to Kafka.", "topic")
        self._transactions = counter("transactions", "Kafka transactions by result.", "result")
        self._bytes = counter("bytes_received", "Bytes read from senders.")
        self._forwards = counter("forwards", "Messages for other hosts, by how it ended.", "result")
        self._refusals = counter("refusals", "Connections and messages turned away.", "reason")
        self._rpc_calls = counter("rpc_calls", "Remote calls, by how they ended.", "result")

        self._removals = counter(
            "retained_removals", "Messages that left a retained queue, by reason.", "reason"
        )
        self.retained: Callable[[], Iterable[Depth]] = tuple  # told by whoever keeps them
        self.head_seconds: Callable[[str], float | None] = lambda _queue: None
        registry.register(_Depths(self))
        ProcessCollector(namespace=PREFIX.rstrip("_"), registry=registry)

        self.build_info = gauge("build_info", "Always 1; the label says what runs.", "version")
        self.ready = gauge("ready", "1 while /readyz says yes.")
        self.kafka_up = gauge("kafka_up", "1 while Kafka answers.")
        self.jammed = gauge("jammed", "1 while senders are not read: Kafka is away or behind.")
        self.sessions = gauge("sessions", "Binary connections that are open.")
        self.http_connections = gauge("http_connections", "HTTP connections that are open.")
        self.rpc_connections = gauge("rpc_connections", "Connections of remote readers.")
        self.streams = gauge("streams", "Streams whose cursor is known.")
        self.cloned_guids = gauge("cloned_guids", "GUIDs with sessions from several addresses.")
        self.pending_messages = gauge("pending_messages", "Messages taken, not yet committed.")
        self.pending_bytes = gauge("pending_bytes", "And their size.")
        self.oldest_pending = gauge("oldest_pending_seconds", "How long the oldest waits.")
        self.waiting_acks = gauge("waiting_acks", "Acks and receipts that no peer has taken yet.")
        self.waiting_ack_bytes = gauge("waiting_ack_bytes", "And their size.")
        self.ack_destinations = gauge("ack_destinations", "Peers and URLs that they wait for.")
        self.stream_receipts = gauge("stream_receipts", "Receipts of HTTP streams that wait.")
        self.stream_receipt_bytes = gauge("stream_receipt_bytes", "And their size.")
        self.dials = gauge("dials", "Connections to peers that are being opened.")
        self.known_peers = gauge("known_peers", "Queue managers whose address is remembered.")
        self.invisible_records = gauge(
            "invisible_records", "Records behind the last stable offsets: not seen by consumers."
        )
        self.hanging_partitions = gauge(
            "hanging_partitions", "Partitions whose last stable offset stands still."
        )
        self.reject_bytes = gauge("reject_bytes", "Refused messages kept whole in this minute.")
        self.rejects_without_body = gauge(
            "rejects_without_body", "Rejects whose body was left out since the start."
        )
        self.stream_bytes = gauge("stream_bytes", "What is kept of streams, in bytes.")
        self.waiting_streams = gauge("waiting_streams", "Streams that wait for adoption.")
        self.waiting_stream_bytes = gauge("waiting_stream_bytes", "What is kept of them.")
        self.seen_ids = gauge("seen_ids", "Ids of plain messages that are remembered.")
        self.made_topics = gauge("made_topics", "Topics that messages named since the start.")
        self.cache_bytes = gauge("cache_bytes", "What is remembered of names and streams.")
        self.waiting_forwards = gauge("waiting_forwards", "Messages that wait for other hosts.")
        self.waiting_forward_bytes = gauge("waiting_forward_bytes", "And their size.")
        self.leading = gauge("leading", "0 while it is the standby.")
        self.view_lag = gauge("view_lag_records", "Records that a local view has not read.", "view")
        self.data_free = gauge("data_free_bytes", "Room on the disk of the data folder.")
        self.data_size = gauge("data_size_bytes", "Size of that disk.")

        self.commit_seconds = histogram("commit_seconds", "Begin to end of a commit.", _SECONDS)
        self.batch_messages = histogram("batch_messages", "Messages per transaction.", _MESSAGES)
        acks = histogram("ack_seconds", "Arrival to ack, by batch.", _SECONDS, "transport")
        self.ack_seconds = {name: acks.labels(name) for name in TRANSPORTS}

        # From the start at 0: an alert sees no rise in what was not there before.
        for counted, values in (
            (self._transactions, ("committed", "unknown")),
            (self._forwards, ("taken", "refused", "expired")),
            (self._rpc_calls, ("answered", "fault", "cancelled", "failed")),
            (self._removals, (LOST,)),
        ):
            for value in values:
                counted.labels(value)

        self._topics, self._reasons, self._classes = _Bounded(), _Bounded(), _Bounded()
        self._warned = _Lately()
        self.on_session: Callable[[SessionFacts], None] = lambda _facts: None

    def session_opened(self) -> None:
        self._opened.inc()
        self.sessions.inc()

    def session_closed(self, reason: str) -> None:
        self._closed.labels(self._reasons(reason)).inc()
        self.sessions.dec()

    def message(
        self, verdict: str, message_class: str = "", count: int = 1, transport: str = "binary"
    ) -> None:
        """`verdict` is one of ours; `message_class` the name of the nack, if there is one;
        `transport`: binary, http, https."""
        self._messages.labels(verdict, self._classes(message_class), transport).inc(count)

    def keep_topic(self, topic: str) -> None:
        """It has its own name among the labels, however many topics there are."""
        self._records.labels(self._topics(topic))

    def records(self, topic: str, count: int) -> None:
        self._records.labels(self._topics(topic)).inc(count)

    def forward(self, result: str) -> None:
        """`result`: taken, refused, expired."""
        self._forwards.labels(result).inc()

    def removal(self, reason: str, is_lost: bool = False) -> None:
        """`reason`: the name of a message class; LOST: Kafka has its record no more."""
        self._removals.labels(LOST if is_lost else reason).inc()

    def transaction(self, result: str, *, messages: int, seconds: float) -> None:
        """`result`: committed, aborted, unknown."""
        self._transactions.labels(result).inc()
        self.batch_messages.observe(messages)
        self.commit_seconds.observe(seconds)

    def record_counts(self) -> dict[str, float]:
        """Records committed so far, by topic."""
        return {
            sample.labels["topic"]: sample.value
            for metric in self._records.collect()
            for sample in metric.samples
            if sample.name.endswith("_total")
        }

    def bytes_received(self, count: int) -> None:
        self._bytes.inc(count)

    def refusal(self, reason: str, count: int = 1) -> None:
        self._refusals.labels(self._reasons(reason)).inc(count)

    def refused(
        self, reason: str, peer: str, detail: str = "", transport: str = "", **more: object
    ) -> None:
        """A refusal, and the line that names it; of some reasons one line for each address."""
        self.refusal(reason)
        told = fields(reason=reason, peer=peer, transport=transport, detail=detail, **more)
        is_known = reason in _ONCE and not self._warned.is_new((reason, peer.rpartition(":")[0]))
        _log.log(logging.DEBUG if is_known else logging.WARNING, "refused", extra=told)

    def session_began(self, transport: str, peer: str, **more: object) -> None:
        _log.info("session opened", extra=fields(transport=transport, peer=peer, **more))

    def session_over(self, facts: SessionFacts) -> None:
        """One line for each; those of strangers only for who wants to see them."""
        level = logging.INFO if facts.was_open else logging.DEBUG
        if _log.isEnabledFor(level):
            told = {name: getattr(facts, name) for name in _TOLD}
            told["seconds"] = round(facts.seconds, 3)
            _log.log(level, "session closed", extra=fields(**told))
        self.on_session(facts)

    def rpc_call(self, result: str) -> None:
        """`result`: answered, fault, cancelled, failed."""
        self._rpc_calls.labels(result).inc()

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The body of /metrics and its content type."""
        encode: Callable[[CollectorRegistry], bytes]
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _Depths(Collector):
    """Looked up when somebody asks: the deepest queues by name, the rest in one sum."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def collect(self) -> Iterator[Metric]:
        depths = sorted(self._telemetry.retained(), key=lambda depth: (-depth[1], depth[0]))
        messages = GaugeMetricFamily(
            f"{PREFIX}retained_messages", "Messages that wait for readers.", labels=["queue"]
        )
        size = GaugeMetricFamily(f"{PREFIX}retained_bytes", "And their size.", labels=["queue"])
        head = GaugeMetricFamily(
            f"{PREFIX}retained_head_seconds", "How long the next one waits.", labels=["queue"]
        )
        named, rest = depths[:MAX_QUEUES], depths[MAX_QUEUES:]
        if rest:
            named.append((OTHER, sum(d[1] for d in rest), sum(d[2] for d in rest)))
        for queue, count, total in named:
            label = queue.encode("utf-8", "replace").decode()[:MAX_LABEL]
            messages.add_metric([label], count)
            size.add_metric([label], total)
            if (waits := self._telemetry.head_seconds(queue)) is not None:
                head.add_metric([label], waits)
        yield messages
        yield size
        yield head


class _Lately:
    """What was met lately; the oldest is forgotten at the bound."""

    def __init__(self) -> None:
        self._met: dict[Hashable, None] = {}

    def is_new(self, key: Hashable) -> bool:
        if key in self._met:
            return False
        self._met[key] = None
        if len(self._met) > MAX_WARNED:
            del self._met[next(iter(self._met))]
        return True


class _Bounded:
    """The first values keep their name."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= MAX_LABEL_VALUES or len(value) > MAX_LABEL:
            return OTHER
        self._known.add(value)
        return value
