"""Spans as an exporter gets them, and as a collector on loopback does."""

import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from bridge.adapters.otel import MOST, Otel, _traces_url
from bridge.adapters.telemetry import SessionFacts
from bridge.config import OtelConfig
from bridge.core.trace_context import TraceContext, continued
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, DUPLICATE, Outcome, Verdict
from tests.adapters.test_intake import World, play
from tests.core.messages import plain

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LINES = b"traceparent: " + PARENT
SESSION = SessionFacts(
    transport="binary",
    peer="10.0.0.1:5",
    queue_manager="11111111-2222-3333-4444-555555555555",
    messages=3,
    bytes=900,
    began=1_700_000_000.0,
    seconds=2.5,
    reason="idle",
)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def otel(exporter: InMemorySpanExporter) -> Otel:
    return Otel(SimpleSpanProcessor(exporter), instance="_msmq-bridge")


def spans(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def batch(otel: Otel, *decided: tuple[Message, Verdict], result: str = "committed") -> None:
    otel.batch(
        result,
        decided,
        shard="1",
        messages=len(decided),
        records=len(decided),
        began_ns=time.time_ns() - 5_000_000,
    )


def test_a_transaction_links_to_the_messages_that_have_a_parent(
    otel: Otel, exporter: InMemorySpanExporter
) -> None:
    traced = plain(1, extension=LINES)
    batch(otel, (traced, ACCEPTED), (plain(2), ACCEPTED))
    found = spans(exporter)
    (commit,), (receive,) = found["commit"], found["receive"]
    ours = continued(TraceContext(PARENT), traced.id)
    assert receive.context is not None
    assert (receive.context.trace_id, receive.context.span_id) == (ours.trace_id, ours.span_id)
    assert receive.parent is not None
    assert f"{receive.parent.span_id:016x}" == "b7ad6b7169203331"
    assert receive.parent.is_remote
    assert receive.attributes is not None
    assert receive.attributes["messaging.message.id"] == traced.id
    assert "plain 1" not in str(dict(receive.attributes))  # no body
    assert [link.context for link in commit.links] == [receive.context]
    assert commit.kind is SpanKind.PRODUCER
    assert commit.attributes is not None
    assert commit.attributes["messaging.batch.message_count"] == 2
    assert commit.start_time is not None
    assert commit.end_time is not None
    assert commit.end_time - commit.start_time >= 5_000_000


def test_a_refused_message_is_an_error(otel: Otel, exporter: InMemorySpanExporter) -> None:
    batch(otel, (plain(1, extension=LINES), Verdict(Outcome.REJECTED, 0x8000, "unknown-queue")))
    (receive,) = spans(exporter)["receive"]
    assert receive.status.status_code is StatusCode.ERROR
    assert receive.status.description == "unknown-queue"


def test_what_is_told_once_is_not_told_again(otel: Otel, exporter: InMemorySpanExporter) -> None:
    traced = plain(1, extension=LINES)
    batch(otel, (traced, DUPLICATE))
    batch(otel, (traced, ACCEPTED), result="unknown")  # it is decided again
    batch(otel, (plain(2, extension=LINES[:-1] + b"0"), ACCEPTED))  # nobody wants this trace
    found = spans(exporter)
    assert list(found) == ["commit"]
    assert [c.status.status_code for c in found["commit"]] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]


def test_their_number_is_bounded(otel: Otel, exporter: InMemorySpanExporter) -> None:
    batch(otel, *[(plain(n, extension=LINES), ACCEPTED) for n in range(1, 500)])
    found = spans(exporter)
    assert len(found["receive"]) == len(found["commit"][0].links) == MOST


def test_a_session_has_its_figures(otel: Otel, exporter: InMemorySpanExporter) -> None:
    otel.session(SESSION)
    otel.session(SessionFacts(transport="http", peer="x", was_open=False))
    (span,) = spans(exporter)["session"]
    assert (span.start_time, span.end_time) == (1_700_000_000 * 10**9, 1_700_000_002_500_000_000)
    assert span.attributes is not None
    assert span.attributes["msmq.messages"] == 3
    assert span.attributes["msmq.reason"] == "idle"
    assert span.resource.attributes["service.name"] == "msmq-bridge"
    assert span.resource.attributes["service.instance.id"] == "_msmq-bridge"


def test_a_ratio_of_nothing(exporter: InMemorySpanExporter) -> None:
    otel = Otel(SimpleSpanProcessor(exporter), ratio=0.0)
    otel.session(SESSION)
    batch(otel, (plain(1, extension=LINES), ACCEPTED))
    assert list(spans(exporter)) == ["receive"]  # its sender has decided that


def test_who_we_are_by_the_environment(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "bridge-east")
    Otel(SimpleSpanProcessor(exporter)).session(SESSION)
    (span,) = spans(exporter)["session"]
    assert span.resource.attributes["service.name"] == "bridge-east"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("https://h/otlp/v1/traces", "https://h/otlp/v1/traces"),
    ],
)
def test_the_url_of_a_collector(endpoint: str, url: str) -> None:
    assert _traces_url(endpoint) == url


# -- on the pump ------------------------------------------------------------------------------


def test_each_transaction_of_a_shard_once(otel: Otel, exporter: InMemorySpanExporter) -> None:
    async def scene(world: World) -> None:
        world.pump.tracing = otel
        world.submit(plain(1, extension=LINES), plain(2))
        await world.drain()
        world.submit(plain(1, extension=LINES))  # sent again
        await world.drain()

    play(scene)
    found = spans(exporter)
    assert (len(found["commit"]), len(found["receive"])) == (2, 1)


def test_a_fault_in_tracing_holds_up_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Otel):
        def __init__(self) -> None:
            pass

        def batch(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError("no")

    async def scene(world: World) -> None:
        world.pump.tracing = Broken()
        world.submit(plain(1))
        await world.drain()

    assert play(scene).outcomes == [["accepted"]]
    assert "a transaction was not traced" in caplog.text


# -- a collector ------------------------------------------------------------------------------


class Collector(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_collector_gets_them_over_otlp(collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    otel = Otel.over_http(OtelConfig(endpoint=endpoint), "east")
    half = "DIRECT=OS:h\\private$\\\ud800"  # lawful in a name, not in UTF-8
    batch(otel, (plain(1, extension=LINES, destination=half), ACCEPTED))
    otel.session(SESSION)
    otel.close()  # sends what is left
    (path, request), *_ = collector.requests
    assert path == "/v1/traces"
    (spans_,) = request.resource_spans
    assert {a.key: a.value.string_value for a in spans_.resource.attributes}[
        "service.instance.id"
    ] == "east"
    found = {span.name: span for scope in spans_.scope_spans for span in scope.spans}
    assert set(found) == {"commit", "receive", "session"}
    assert found["receive"].trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert found["receive"].parent_span_id.hex() == "b7ad6b7169203331"
    assert found["commit"].links[0].span_id == found["receive"].span_id
