"""Journals, dead letters, rejects: records beside the one that a message becomes."""

import pytest

from bridge.core.admission import OVER_QUOTA, UNKNOWN_QUEUE
from bridge.core.copies import (
    bounded,
    dead_letter,
    diverted,
    is_whole,
    journal_record,
    reject_record,
)
from bridge.core.mapping import headers_of, size_of
from bridge.core.mapping_rules import HeaderRules
from bridge.core.ports import Record
from tests.core.messages import plain, queue

TAKEN = 8 << 20  # max.message.bytes of our own topics


def test_a_journal_has_its_own_number_of_partitions() -> None:  # DM-30
    one = queue("private$\\plain", journal="plain.journal", journal_partitions=2)
    record = Record(topic="plain", value=b"x", headers={}, partition=5)
    copy = journal_record(record, one)
    assert (copy.topic, copy.partition, copy.value) == ("plain.journal", 1, b"x")


def test_a_reject_says_what_where_and_why() -> None:  # design D6
    record = reject_record(plain(body=b"hi"), None, UNKNOWN_QUEUE, b"ADMISSION")
    assert (record.value, record.headers["msmq.outcome"]) == (b"hi", b"32768")
    assert record.headers["__connect.errors.exception.class.name"] == b"NACK_BAD_DST_Q"
    assert record.headers["__connect.errors.exception.message"] == b"unknown-queue"
    assert record.headers["__connect.errors.stage"] == b"ADMISSION"


def test_a_dead_letter_says_what_it_died_of() -> None:  # DM-12
    message = plain(body=b"hi", arrived_ms=7)
    letter = dead_letter(message, OVER_QUOTA, "dead")
    assert (letter.topic, letter.value, letter.timestamp_ms) == ("dead", b"hi", 7)
    assert letter.headers == headers_of(message) | {"msmq.outcome": b"32771"}


def test_no_record_is_too_large_for_our_topics() -> None:
    """The packet without its body has all of them, so it is what is kept."""
    message = plain(body=bytes(4 << 20), wire=bytes(2 << 20), extension=bytes(2 << 20))
    record = Record(topic="", value=message.body, headers=headers_of(message))
    assert size_of(record) > TAKEN
    assert size_of(bounded(record, message)) < TAKEN
    assert "msmq.wire" in record.headers
    assert "msmq.extension" not in record.headers


@pytest.mark.parametrize(
    "rules",
    [
        HeaderRules(include=()),
        HeaderRules(exclude=("msmq.wire",)),
        HeaderRules(rename={"msmq.label": "title"}),
        HeaderRules(prefix="x."),
    ],
)
def test_a_copy_that_readers_can_have_is_whole(rules: HeaderRules) -> None:
    assert is_whole(queue("a"))
    assert is_whole(queue("a", headers=HeaderRules(add={"env": "prod"})))
    assert not is_whole(queue("a", headers=rules))
    assert not is_whole(queue("a", value="text"))


def test_what_cannot_be_made_small_is_cut() -> None:
    large = Record(topic="journal", value=b"x" * (8 << 20), headers={"h": b"y" * 9000})
    cut = diverted(large, OVER_QUOTA)
    assert size_of(cut) <= 7 << 20
    assert cut.headers["msmq.cut"] == b"%d" % (8 << 20)
    assert "h" not in cut.headers
    assert large.value.startswith(cut.value)
