"""Metrics and the log. Label values are bounded: what a stranger can invent ends as `other`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX: Final = "msmq_bridge_"
MAX_LABEL_VALUES: Final = 200
MAX_QUEUES: Final = 100  # retained ones that have a gauge of their own
OTHER: Final = "other"
Depth = tuple[str, int, int]  # a queue, its messages and their bytes

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MESSAGES: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


class Telemetry:
    """Every metric of one appliance, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(PREFIX + name, text, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(PREFIX + name, text, buckets=buckets, registry=registry)

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
        registry.register(_Depths(self))

        self.sessions = gauge("sessions", "Sessions that are open.")
        self.streams = gauge("streams", "Streams whose cursor is known.")
        self.pending_messages = gauge("pending_messages", "Messages taken, not yet committed.")
        self.waiting_forwards = gauge("waiting_forwards", "Messages that wait for other hosts.")
        self.waiting_forward_bytes = gauge("waiting_forward_bytes", "And their size.")
        self.rpc_connections = gauge("rpc_connections", "Connections of remote readers.")
        self.kafka_up = gauge("kafka_up", "1 while Kafka takes transactions.")
        self.leading = gauge("leading", "0 while it is the standby.")

        self.commit_seconds = histogram("commit_seconds", "Begin to end of a commit.", _SECONDS)
        self.batch_messages = histogram("batch_messages", "Messages per transaction.", _MESSAGES)
        self.ack_seconds = histogram("ack_seconds", "Arrival of a message to its ack.", _SECONDS)

        self._topics, self._reasons, self._classes = _Bounded(), _Bounded(), _Bounded()

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

    def records(self, topic: str, count: int) -> None:
        self._records.labels(self._topics(topic)).inc(count)

    def forward(self, result: str) -> None:
        """`result`: taken, refused, expired."""
        self._forwards.labels(result).inc()

    def removal(self, reason: str, is_lost: bool = False) -> None:
        """`reason`: the name of a message class; LOST: Kafka has its record no more."""
        self._removals.labels("LOST" if is_lost else reason).inc()

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
        named, rest = depths[:MAX_QUEUES], depths[MAX_QUEUES:]
        if rest:
            named.append((OTHER, sum(d[1] for d in rest), sum(d[2] for d in rest)))
        for queue, count, total in named:
            label = queue.encode("utf-8", "replace").decode()
            messages.add_metric([label], count)
            size.add_metric([label], total)
        yield messages
        yield size


class _Bounded:
    """The first values keep their name."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= MAX_LABEL_VALUES or len(value) > 249:
            return OTHER
        self._known.add(value)
        return value


def setup_logging(level: str = "INFO") -> None:
    """To stderr, one fact per line; stdout belongs to the commands' output."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h.formatter, _OneLine)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


class _OneLine(logging.Formatter):
    """A peer's text cannot begin a line of its own; the traceback of a bug may."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        text = super().formatMessage(record)
        if text.isprintable():
            return text
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
