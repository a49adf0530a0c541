"""W3C Trace Context, version 00, in the three places where a sender can put it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.admission import Policy
from bridge.core.mapping import message_from_record
from bridge.core.mapping_headers import HeaderRules
from bridge.core.shard import Shard
from bridge.core.trace_context import TraceContext, context_of, continued
from bridge.model.message import Kind, Message
from bridge.wire.srmp.convert import message_from_request
from bridge.wire.srmp.request import read_request
from tests.core.messages import PLAIN, catalogue, plain, queue, shard, step
from tests.vectors.srmp import V5_ENVELOPE

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"  # W3C Trace Context 3.2.2
STATE = b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"  # 3.3.1
LINES = b"traceparent: " + PARENT
NSERVICEBUS = (
    b'<?xml version="1.0"?>\r\n<ArrayOfHeaderInfo xmlns:xsi="http://www.w3.org/2001/XMLSchema">'
    b"<HeaderInfo><Key>NServiceBus.MessageId</Key><Value>d5b0</Value></HeaderInfo>\r\n"
    b"<HeaderInfo>\r\n  <Key>traceparent</Key>\r\n  <Value>%s</Value></HeaderInfo>"
    b"<HeaderInfo><Key>tracestate</Key><Value>%s</Value></HeaderInfo></ArrayOfHeaderInfo>"
)
SOAP = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"><se:Header>'
    '<w:traceparent xmlns:w="urn:any">%s</w:traceparent><tracestate>%s</tracestate>'
    "</se:Header><se:Body>%s</se:Body></se:Envelope>"
)


def found(extension: bytes = b"", soap: str = "") -> TraceContext | None:
    return context_of(plain(1, extension=extension, soap=soap))


@pytest.mark.parametrize(
    "extension",
    [LINES, LINES + b"\r\n", LINES + b"\n", LINES + b"\n\nthe application's own", LINES + b"\0\0"],
)
def test_lines_at_the_start_of_the_extension(extension: bytes) -> None:
    assert found(extension) == TraceContext(PARENT)


@pytest.mark.parametrize("end", [b"", b"\r\n", b"\nmore", b"\0"])
def test_lines_with_a_state(end: bytes) -> None:
    assert found(LINES + b"\r\ntracestate: " + STATE + end) == TraceContext(PARENT, STATE)


def test_headers_of_nservicebus() -> None:
    assert found(NSERVICEBUS % (PARENT, STATE)) == TraceContext(PARENT, STATE)


def test_elements_of_the_soap_header() -> None:
    soap = SOAP % (PARENT.decode(), STATE.decode(), "")
    assert found(soap=soap) == TraceContext(PARENT, STATE)


def test_in_the_envelope_of_a_request() -> None:  # srmp.md V5: what Windows sent, and one more
    element = b"<traceparent xmlns='urn:any'>" + PARENT + b"</traceparent></se:Header>"
    envelope = V5_ENVELOPE.replace(b"</se:Header>", element)
    assert envelope != V5_ENVELOPE
    message = message_from_request(read_request("text/xml", envelope))
    assert context_of(message) == TraceContext(PARENT)


def test_the_extension_comes_first() -> None:
    soap = SOAP % (PARENT.decode().replace("0af7", "1111"), "", "")
    assert found(LINES, soap) == TraceContext(PARENT)


BAD_PARENTS = [
    b"01" + PARENT[2:],  # a version that we do not know
    PARENT.upper(),
    b"00-" + b"0" * 32 + PARENT[35:],
    PARENT[:36] + b"0" * 16 + PARENT[52:],
    PARENT[:-1],
    PARENT + b"0",
    PARENT.replace(b"-", b"_"),
]


@pytest.mark.parametrize("parent", BAD_PARENTS)
def test_what_is_not_to_the_letter_is_not_taken(parent: bytes) -> None:
    assert found(b"traceparent: " + parent + b"\r\n") is None
    assert found(NSERVICEBUS % (parent, STATE)) is None
    assert found(soap=SOAP % (parent.decode(), "", "")) is None


@pytest.mark.parametrize(
    "extension",
    [
        b"",
        b" " + LINES,
        b"Traceparent: " + PARENT,
        b"x\ntraceparent: " + PARENT,
        LINES + b" ",
        NSERVICEBUS.replace(b"ArrayOf", b"") % (PARENT, STATE),
        b"<ArrayOfHeaderInfo>" + b" " * 70_000 + NSERVICEBUS % (PARENT, STATE),
    ],
)
def test_another_form_is_no_form(extension: bytes) -> None:
    assert found(extension) is None


@pytest.mark.parametrize(
    "soap",
    [
        SOAP % ("", "", f"<traceparent>{PARENT.decode()}</traceparent>"),  # in the body
        SOAP.replace("<w:trace", "<!-- <w:trace") % (PARENT.decode(), "", "-->"),
        f"<Header><![CDATA[<traceparent>{PARENT.decode()}</traceparent>]]></Header>",
        f"<Header traceparent='{PARENT.decode()}'/>",
    ],
)
def test_what_only_looks_like_an_element(soap: str) -> None:
    assert found(soap=soap) is None


@pytest.mark.parametrize(
    "state",
    [
        b"no-value",
        b"a=1,a=2",
        b"A=1",
        b"a=" + b"x" * 600,
        b",".join(b"k%d=1" % n for n in range(33)),
        b"a=1,,b=2",
    ],
)
def test_a_state_that_breaks_the_rules_is_left_out(state: bytes) -> None:  # W3C 3.3.1
    assert found(LINES + b"\ntracestate: " + state) == TraceContext(PARENT)


@pytest.mark.parametrize("state", ["a=&amp;", "", "a=1<b/>", " a=1"])
def test_a_state_in_xml_that_breaks_the_rules(state: str) -> None:
    parent = TraceContext(PARENT)
    assert found(soap=SOAP % (PARENT.decode(), state, "")) == parent
    assert found(NSERVICEBUS % (PARENT, state.encode())) == parent


def test_its_parts() -> None:
    context = TraceContext(PARENT)
    assert f"{context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{context.span_id:016x}" == "b7ad6b7169203331"
    assert context.sampled
    assert not TraceContext(PARENT[:-1] + b"0").sampled


@given(st.text(max_size=60).filter(str.isprintable))
def test_the_continuation_is_ours_and_always_the_same(message_id: str) -> None:
    context = TraceContext(PARENT, STATE)
    ours = continued(context, message_id)
    assert ours == continued(context, message_id)
    assert (ours.trace_id, ours.state) == (context.trace_id, STATE)
    assert ours.span_id not in (0, context.span_id)
    assert re.fullmatch(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-01", ours.parent)


@given(st.binary(max_size=300), st.text(max_size=300))
def test_anything_else_is_harmless(extension: bytes, soap: str) -> None:
    assert found(extension, soap) is None


# -- in records -------------------------------------------------------------------------------


def record_headers(of: Shard, message: Message) -> dict[str, bytes]:
    of.admit([message])
    return of.take_unit(0)[1].records[0].headers


def tracing() -> Shard:
    return Shard(catalogue(), Policy(continues_traces=True))


def test_a_record_has_what_its_sender_put_in() -> None:
    headers = record_headers(shard(), plain(1, extension=LINES + b"\ntracestate: " + STATE))
    assert (headers["traceparent"], headers["tracestate"]) == (PARENT, STATE)
    assert headers["msmq.extension"].startswith(LINES)  # DM-3: as it was
    assert "traceparent" not in record_headers(shard(), plain(1, extension=b"something else"))


def test_with_traces_a_record_has_ours_and_a_repeated_one_the_same() -> None:
    message = step(1, extension=LINES)
    first = record_headers(tracing(), message)
    again = record_headers(tracing(), message)
    assert first == again
    assert first["traceparent"] == continued(TraceContext(PARENT), message.id).parent != PARENT


def test_it_is_no_property_of_the_message() -> None:  # DM-35
    of = shard()
    message = plain(1, extension=LINES)
    of.admit([message])
    assert message_from_record(of.take_unit(0)[1].records[0]) == message


def test_the_short_way_has_it_too() -> None:
    short = plain(1, extension=LINES, kind=Kind(), wire=b"packet")
    assert record_headers(shard(), short)["traceparent"] == PARENT
    ours = continued(TraceContext(PARENT), short.id).parent
    assert record_headers(tracing(), short)["traceparent"] == ours


@pytest.mark.parametrize("value", ["body", "envelope"])
def test_no_rule_of_a_mapping_and_no_envelope_has_it(value: str) -> None:
    name = PLAIN.partition("\\")[2]
    rules = HeaderRules(include="none", add={"tracestate": "the mapping's own"})
    of = shard(queue(name, transactional=False, headers=rules, value=value))
    of.admit([plain(1, extension=LINES + b"\ntracestate: " + STATE)])
    (record,) = of.take_unit(0)[1].records
    assert record.headers == {"traceparent": PARENT, "tracestate": b"the mapping's own"}
    assert b'"traceparent"' not in record.value
