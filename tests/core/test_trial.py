"""A trial decides as a shard does; it only forgets everything before it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.admission import Policy
from bridge.core.chunks import join
from bridge.core.mapping_rules import Defaults, JournalTopic, Mappings, QueueMapping, QueuePath
from bridge.core.mapping_words import Topic
from bridge.core.trial import Assumed, Trial, readable
from bridge.model.message import Message
from bridge.model.verdict import Outcome
from tests.core.messages import LOCAL, ORDERS, OTHER, PLAIN, messages, plain, step

MAPPINGS = Mappings(
    queues=(
        QueueMapping(
            queue=QueuePath("private$\\orders"),
            transactional=True,
            journal=JournalTopic("orders.journal"),
        ),
        QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("by.{label}")),
    )
)


def test_a_message_from_the_middle_of_a_stream() -> None:
    fate = Trial(MAPPINGS).run(step(42))
    assert fate.accepted
    assert fate.queue == "private$\\orders"
    assert [record.topic for record in fate.records] == ["orders"]
    assert [record.topic for record in fate.journal] == ["orders.journal"]
    assert fate.refused == ""


def test_each_message_comes_as_if_it_were_the_first() -> None:
    trial = Trial(MAPPINGS)
    assert all(trial.run(message).accepted for message in (step(3), step(3), plain(), plain()))


def test_a_topic_that_the_message_names_has_the_assumed_partitions() -> None:
    trial = Trial(MAPPINGS, assumed=Assumed(partitions=1000))
    records = [trial.run(plain(label=label)).records[0] for label in ("a", "b")]
    assert [record.topic for record in records] == ["by.a", "by.b"]
    assert {record.partition for record in records} != {0}


def test_refusals() -> None:
    trial = Trial(MAPPINGS, local=LOCAL, policy=Policy(quota_kb=1))
    cases = {
        "NACK_NOT_TRANSACTIONAL_Q": step(1, destination=PLAIN),
        "NACK_NOT_TRANSACTIONAL_MSG": plain(destination=ORDERS),
        "NACK_HOP_COUNT_EXCEEDED": plain(destination_qm=OTHER, hops=0x1D),
        "NACK_REACH_QUEUE_TIMEOUT": plain(sent_time=1),
        "BUSY": plain(body=bytes(2000)),
    }
    for name, message in cases.items():
        fate = trial.run(message)
        assert (fate.refused, fate.records, fate.journal) == (name, (), ())
        assert fate.verdict.reason


def test_without_an_id_of_ours_every_message_is_for_us() -> None:
    assert Trial(MAPPINGS).run(plain(destination_qm=OTHER)).accepted
    assert Trial(MAPPINGS, local=LOCAL).run(plain(destination_qm=LOCAL)).accepted


def test_a_body_that_is_too_large() -> None:
    for oversize, count in (("reject", 0), ("chunk", 3), ("claim-check", 1)):
        mapping = QueueMapping(queue=QueuePath("private$\\plain"), oversize=oversize)  # type: ignore[arg-type]
        trial = Trial(Mappings(queues=(mapping,)), assumed=Assumed(max_bytes=4000))
        fate = trial.run(plain(body=b"x" * 10_000))
        assert len(fate.records) == count
        assert len(fate.claims) == (oversize == "claim-check")
        if oversize == "chunk":
            assert join(fate.records).value == b"x" * 10_000


def test_a_queue_that_is_made_for_its_first_message() -> None:
    trial = Trial(Mappings(defaults=Defaults(unknown="auto-create")), reserved="own.")
    assert trial.run(plain()).records[0].topic == "plain"


@given(messages, st.integers(0, 0xFFFFFFFF))
@settings(max_examples=50)
def test_any_message_has_a_fate(message: Message, arrived: int) -> None:
    mappings = Mappings(defaults=Defaults(unknown="auto-create"))
    fate = Trial(mappings).run(replace(message, arrived_ms=arrived * 1000))
    assert fate.accepted is (fate.verdict.outcome is Outcome.ACCEPTED) is bool(fate.records)


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", ""), (b"a\r\n\tb", "a\r\n\tb"), (b"\xc3\xa4", "\u00e4"), (b"\x1b[31m", "0x1b5b33316d")],
)
def test_readable(data: bytes, text: str) -> None:
    assert readable(data) == text


@given(st.binary())
def test_hex_where_it_is_no_text(data: bytes) -> None:
    text = readable(data)
    assert text.encode() == data or bytes.fromhex(text[2:]) == data
