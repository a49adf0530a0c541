"""`headers:` of a mapping: design 3.3; CloudEvents 1.0, Kafka protocol binding 3.2."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.header_rules import compile_rules, warnings
from bridge.core.mapping import headers_of
from bridge.core.mapping_headers import HEADERS, HeaderRules
from bridge.core.ports import Headers
from bridge.model.message import Message
from tests.core.messages import messages, plain

BASE: Headers = {
    "msmq.v": b"1",
    "msmq.id": b"11111111-2222-3333-4444-555555555555\\1",
    "msmq.source": b"11111111-2222-3333-4444-555555555555",
    "msmq.queue": b"private$\\orders",
    "msmq.sent": b"1700000000",
    "msmq.label": b"hello",
}


def apply(headers: Headers = BASE, value: str = "body", **rules: Any) -> Headers:
    rule = compile_rules(HeaderRules(**rules), value)
    assert rule is not None
    before = dict(headers)
    made = rule(headers)
    assert headers == before  # the table is shared by the messages of a stream
    return made


def test_default_rules_cost_nothing() -> None:
    assert compile_rules(HeaderRules()) is None


@given(messages)
def test_every_header_of_a_message_is_known(message: Message) -> None:
    assert headers_of(message).keys() <= HEADERS


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ({"include": "none"}, set()),
        ({"include": ("msmq.label", "msmq.id")}, {"msmq.label", "msmq.id"}),
        ({"exclude": ("msmq.label", "msmq.v")}, BASE.keys() - {"msmq.label", "msmq.v"}),
        ({"include": ("msmq.label",), "rename": {"msmq.label": "title"}}, {"title"}),
        ({"include": ("msmq.label",), "prefix": "mq-"}, {"mq-label"}),
        ({"include": ("msmq.label",), "prefix": ""}, {"label"}),
        ({"include": "none", "add": {"env": "prod"}}, {"env"}),
    ],
)
def test_which_names_a_record_has(rules: dict[str, Any], names: set[str]) -> None:
    assert apply(**rules).keys() == names


def test_rename_then_prefix_then_add() -> None:
    made = apply(
        include=("msmq.label", "msmq.id"),
        rename={"msmq.label": "title"},
        prefix="mq.",
        add={"env": "Größe"},
    )
    assert made == {"title": b"hello", "mq.id": BASE["msmq.id"], "env": "Größe".encode()}


def test_why_a_value_is_not_what_was_asked_for() -> None:
    failed = BASE | {"msmq.value-error": b"not-text"}
    assert apply(failed, include="none") == {"msmq.value-error": b"not-text"}
    assert apply(failed, include="none", prefix="mq.") == {"mq.value-error": b"not-text"}
    assert "msmq.value-error" not in apply(failed, exclude=("msmq.value-error",))


EVENT = {
    "ce_specversion": b"1.0",
    "ce_id": b"11111111-2222-3333-4444-555555555555\\1",
    "ce_source": b"/msmq/11111111-2222-3333-4444-555555555555",
    "ce_type": b"com.microsoft.msmq.message",
    "ce_subject": b"private$\\orders",
    "ce_time": b"2023-11-14T22:13:20Z",
    "content-type": b"application/octet-stream",
}


def test_a_cloud_event() -> None:
    assert apply(cloudevents=True) == BASE | EVENT
    assert apply(include="none", cloudevents=True) == EVENT  # it needs no other header
    assert urlsplit(EVENT["ce_source"].decode()).path == EVENT["ce_source"].decode()


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        ("body", b"application/octet-stream"),
        ("text", b"text/plain; charset=utf-8"),
        ("json", b"application/json"),
        ("envelope", b"application/json"),
    ],
)
def test_the_content_type_says_what_the_value_is(value: str, content_type: bytes) -> None:
    assert apply(value=value, cloudevents=True)["content-type"] == content_type
    failed = BASE | {"msmq.value-error": b"not-text"}
    found = apply(failed, value=value, cloudevents=True)["content-type"]
    assert found == b"application/octet-stream"


def test_what_the_mapping_says_of_an_event_stays() -> None:
    made = apply(
        cloudevents=True, add={"ce_type": "com.example.order"}, rename={"msmq.label": "ce_subject"}
    )
    assert (made["ce_type"], made["ce_subject"]) == (b"com.example.order", b"hello")


def test_an_event_without_a_time() -> None:
    silent = {name: data for name, data in BASE.items() if name != "msmq.sent"}
    assert "ce_time" not in apply(silent, cloudevents=True)


@pytest.mark.parametrize(
    ("rules", "lost"),
    [
        ({}, []),
        ({"exclude": ("msmq.label",)}, []),
        ({"cloudevents": True, "add": {"env": "prod"}}, []),
        ({"exclude": ("msmq.queue",)}, ["parity without the header msmq.queue"]),
        ({"rename": {"msmq.id": "id"}}, ["header msmq.id", "again without the header msmq.id"]),
        ({"prefix": "mq."}, ["header msmq.id, msmq.queue", "msmq.id, msmq.source, msmq.dest"]),
        ({"include": "none"}, ["header msmq.id, msmq.queue", "msmq.transport"]),
    ],
)
def test_what_the_user_should_know(rules: dict[str, Any], lost: list[str]) -> None:
    found = warnings(HeaderRules(**rules))
    assert len(found) == len(lost)
    assert all(part in line for part, line in zip(lost, found, strict=True))


@given(messages, st.sampled_from(["all", "none"]), st.booleans())
def test_any_message_fits_any_rule(message: Message, include: Any, cloudevents: bool) -> None:
    rules = HeaderRules(include=include, cloudevents=cloudevents, add={"env": "prod"})
    rule = compile_rules(rules)
    assert rule is not None
    made = rule(headers_of(message))
    assert made["env"] == b"prod"
    assert ("ce_id" in made) == cloudevents
    assert ("msmq.id" in made) == (include == "all")


def test_headers_of_a_real_message() -> None:
    made = apply(headers_of(plain()), cloudevents=True, include="none")
    assert made["ce_id"] == EVENT["ce_id"]
