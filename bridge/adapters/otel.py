"""Spans for OpenTelemetry: one per session, one per transaction, one per message that has a parent.

A message whose sender put a sampled trace context in gets a span that follows it. Its id is made
from the message (`core.trace_context`), and its record carries it; so consumers go on with the
same trace, and a record that is made again is the same. The transaction's span links to them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from bridge.adapters.telemetry import SessionFacts
from bridge.config import OtelConfig
from bridge.core.trace_context import TraceContext, context_of, continued
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict

NAME: Final = "msmq-bridge"
MOST: Final = 128  # message spans, and links, of one transaction; as many as the SDK keeps
EXPORT_S: Final = 5.0
_PATH: Final = "/v1/traces"
_REFUSED: Final = (Outcome.REJECTED, Outcome.EXPIRED)
_AGAIN: Final = (Outcome.DUPLICATE, Outcome.BUSY, Outcome.OUT_OF_ORDER)  # told once, not here


class Otel:
    """`Tracing` on the SDK."""

    def __init__(
        self, processor: SpanProcessor, ratio: float | None = None, instance: str = ""
    ) -> None:
        sampler = None if ratio is None else ParentBased(TraceIdRatioBased(ratio))
        self._processor = processor
        self._provider = TracerProvider(
            resource=_resource(instance), sampler=sampler, shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(NAME)
        self._scope = InstrumentationScope(NAME)

    @classmethod
    def over_http(cls, config: OtelConfig, instance: str) -> Otel:
        """OTLP. What the file does not say the SDK takes from OTEL_*."""
        endpoint = None if config.endpoint is None else _traces_url(config.endpoint)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S)
        return cls(BatchSpanProcessor(exporter), config.ratio, instance)

    def batch(
        self,
        result: str,
        decided: Iterable[tuple[Message, Verdict]],
        *,
        shard: str,
        messages: int,
        records: int,
        began_ns: int,
    ) -> None:
        ended_ns = time.time_ns()
        made: list[SpanContext] = []
        if result == "committed":  # else they are decided again
            made = [self._message(*one, ended_ns) for one in islice(_sampled(decided), MOST)]
        span = self._tracer.start_span(
            "commit",
            kind=SpanKind.PRODUCER,
            links=[Link(context) for context in made],
            start_time=began_ns,
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "send",
                "messaging.batch.message_count": messages,
                "msmq.records": records,
                "msmq.shard": shard,
                "msmq.result": result,
            },
        )
        if result != "committed":
            span.set_status(StatusCode.ERROR, result)
        span.end(ended_ns)

    def _message(
        self, message: Message, verdict: Verdict, context: TraceContext, ended_ns: int
    ) -> SpanContext:
        ours = _context(continued(context, message.id), is_remote=False)
        attributes: dict[str, str | int] = {
            "messaging.system": "msmq",
            "messaging.operation.type": "receive",
            "messaging.message.id": message.id,
            "messaging.destination.name": _clean(message.destination)[:300],
            "messaging.message.body.size": len(message.body),
            "network.peer.address": message.peer,
            "msmq.transport": message.transport,
            "msmq.verdict": str(verdict.outcome),
        }
        is_refused = verdict.outcome in _REFUSED
        self._processor.on_end(
            ReadableSpan(
                "receive",
                context=ours,
                parent=_context(context, is_remote=True),
                resource=self._provider.resource,
                attributes=attributes,
                kind=SpanKind.CONSUMER,
                status=Status(StatusCode.ERROR, verdict.reason) if is_refused else Status(),
                start_time=min(message.arrived_ms * 1_000_000, ended_ns),
                end_time=ended_ns,
                instrumentation_scope=self._scope,
            )
        )
        return ours

    def session(self, facts: SessionFacts) -> None:
        if not facts.was_open:
            return
        began_ns = int(facts.began * 1e9)
        span = self._tracer.start_span(
            "session",
            kind=SpanKind.SERVER,
            start_time=began_ns,
            attributes={
                "msmq.transport": facts.transport,
                "network.peer.address": facts.peer,
                "msmq.queue_manager": facts.queue_manager,
                "msmq.messages": facts.messages,
                "msmq.bytes": facts.bytes,
                "msmq.reason": facts.reason,
            },
        )
        span.end(began_ns + int(facts.seconds * 1e9))

    def close(self) -> None:
        self._provider.shutdown()


def _clean(text: str) -> str:
    """Half a surrogate pair is lawful in a name, not in OTLP."""
    return text.encode("utf-8", "replace").decode()


def _sampled(
    decided: Iterable[tuple[Message, Verdict]],
) -> Iterator[tuple[Message, Verdict, TraceContext]]:
    for message, verdict in decided:
        if (message.extension or message.soap) and verdict.outcome not in _AGAIN:
            context = context_of(message)
            if context is not None and context.sampled:
                yield message, verdict, context


def _context(context: TraceContext, *, is_remote: bool) -> SpanContext:
    return SpanContext(context.trace_id, context.span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _resource(instance: str) -> Resource:
    """Who we are, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say so."""
    ours = {SERVICE_NAME: NAME, "service.instance.id": instance}
    told = OTELResourceDetector().detect().attributes
    return Resource.create({name: ours[name] for name in ours if name not in told})


def _traces_url(endpoint: str) -> str:
    """A base URL, as OTEL_EXPORTER_OTLP_ENDPOINT is, or the whole one."""
    return endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH
