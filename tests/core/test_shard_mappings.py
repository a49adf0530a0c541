"""Decisions that depend on the mapping: topics that a message names, records that are too large.

Design 3.3, D6, D7. What is refused is refused for good: a record that Kafka does not take would
come again with every attempt and hold up its shard for ever.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import chunks
from bridge.core.admission import Policy
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits
from bridge.core.mapping import message_from_record, size_of
from bridge.core.mapping_rules import (
    Claims,
    Defaults,
    HeaderRules,
    JournalTopic,
    Key,
    Mappings,
    QueueMapping,
    QueuePath,
    Topic,
)
from bridge.core.ports import Record, Unit
from bridge.core.shard import Shard
from bridge.model.classes import MessageClass
from bridge.model.message import Message
from bridge.model.verdict import Verdict
from tests.core.messages import LOCAL, SENDER, plain, step

SMALL = 10_000
LARGE = 1_000_000
BODY = bytes(range(256)) * 200  # 51,200 bytes
TO_NOWHERE = "DIRECT=OS:bridge01\\private$\\nowhere"


def shard(
    *mappings: QueueMapping, defaults: Defaults | None = None, **limits: TopicLimits
) -> tuple[Shard, Catalogue]:
    rules = Mappings(queues=mappings, defaults=defaults or Defaults())
    known = {name.replace("_", "-"): fact for name, fact in limits.items()}
    catalogue = Catalogue.of(LOCAL, rules, known, "_msmq-bridge.")
    return Shard(catalogue, Policy(deadletter_topic="dead")), catalogue


def to_plain(topic: str = "p", name: str = "private$\\plain", **settings: Any) -> QueueMapping:
    return QueueMapping(queue=QueuePath(name), topic=Topic(topic), **settings)


def decide(made: Shard, *several: Message) -> tuple[list[Verdict], Unit]:
    assert made.unknown_topics(several) == set()
    verdicts = made.admit(several)
    return verdicts, made.take_unit(1)[1]


def limits_hold(unit: Unit, limits: dict[str, int]) -> None:
    for record in unit.records:
        assert size_of(record) <= limits[record.topic], record.topic


# -- too large ------------------------------------------------------------------------------


def test_chunks_in_place_of_one_record() -> None:
    mapping = to_plain(oversize="chunk", headers=HeaderRules(exclude=("msmq.id",)))
    made, _ = shard(mapping, p=TopicLimits(8, SMALL))
    [verdict], unit = decide(made, plain(7, body=BODY, label="L"))
    assert verdict.outcome == "accepted"
    limits_hold(unit, {"p": SMALL})
    assert len(unit.records) > 5
    assert {r.headers[chunks.ID] for r in unit.records} == {f"{SENDER}\\7".encode()}
    assert len({(r.topic, r.partition, r.key, r.timestamp_ms) for r in unit.records}) == 1
    whole = chunks.join(unit.records)
    assert whole.value == BODY
    assert whole.headers["msmq.label"] == b"L"
    assert len(msgspec.json.decode(unit.audit[0])) == 1  # one message, one verdict
    assert unit.claims == []


def test_what_fits_is_left_alone() -> None:
    made, _ = shard(to_plain(oversize="chunk"), p=TopicLimits(8, SMALL))
    message = plain(1, body=bytes(SMALL - 2000))
    _, unit = decide(made, message)
    [record] = unit.records
    assert message_from_record(record) == message


def test_a_stream_stays_in_order_around_its_chunks() -> None:  # DM-36
    mapping = to_plain("o", "private$\\orders", transactional=True, oversize="chunk")
    made, _ = shard(mapping, o=TopicLimits(8, SMALL))
    verdicts, unit = decide(made, step(1), step(2, body=BODY), step(3))
    assert [v.outcome for v in verdicts] == ["accepted"] * 3
    assert len({r.partition for r in unit.records}) == 1
    first, *middle, last = unit.records
    assert (first.value, chunks.join(middle).value, last.value) == (b"step 1", BODY, b"step 3")


def test_a_claim_in_place_of_the_value() -> None:
    mapping = to_plain(oversize="claim-check", claims=Claims("s3://bodies/msmq"))
    made, _ = shard(mapping, p=TopicLimits(8, SMALL))
    verdicts, unit = decide(made, plain(1, body=BODY), plain(2), plain(3, body=BODY))
    assert [v.outcome for v in verdicts] == ["accepted"] * 3
    limits_hold(unit, {"p": SMALL})
    assert [claim.store for claim in unit.claims] == ["s3://bodies/msmq"] * 2
    assert {claim.data for claim in unit.claims} == {BODY}
    assert len({claim.name for claim in unit.claims}) == 1  # by its content
    first, second, third = unit.records
    assert second.value == b"plain 2"
    for record in (first, third):
        assert chunks.redeem(record, BODY).value == BODY
        assert record.headers[chunks.CLAIM_PATH].decode() == unit.claims[0].name
    assert made.take_unit(2)[1].claims == []  # told once


def test_the_value_that_was_asked_for_is_checked_in() -> None:
    """Not the body: who redeems the claim gets what the mapping promised."""
    mapping = to_plain(oversize="claim-check", value="json")
    made, _ = shard(mapping, p=TopicLimits(8, SMALL))
    _, unit = decide(made, plain(1, body=("x" * 40_000).encode("utf-16-le"), body_type=8))
    assert unit.claims[0].data == b'"' + b"x" * 40_000 + b'"'


@pytest.mark.parametrize("oversize", ["reject", "chunk", "claim-check"])
def test_headers_that_do_not_fit_are_refused(oversize: str) -> None:
    made, _ = shard(to_plain(oversize=oversize), p=TopicLimits(8, SMALL))
    [verdict], unit = decide(made, plain(1, extension=BODY, wire=BODY))
    assert (verdict.outcome, verdict.message_class) == (
        "rejected",
        MessageClass.NACK_Q_EXCEED_QUOTA,
    )
    assert (unit.records, unit.claims) == ([], [])
    assert unit.rejects[0].headers["__connect.errors.exception.message"] == (
        b"larger-than-the-topic-takes"
    )


@pytest.mark.parametrize("oversize", ["reject", "chunk", "claim-check"])
def test_a_large_key_counts_too(oversize: str) -> None:
    """A key out of the body doubles it. Every chunk and every claim has the key."""
    mapping = to_plain(oversize=oversize, key=Key("json:$.k"))
    made, _ = shard(mapping, p=TopicLimits(8, LARGE))
    body = msgspec.json.encode({"k": "x" * 600_000})
    [verdict], unit = decide(made, plain(1, body=body, wire=bytes(200)))
    limits_hold(unit, {"p": LARGE})
    assert verdict.outcome == ("rejected" if oversize == "reject" else "accepted")


@pytest.mark.parametrize("key", ["stream", "label", "message_id", "header:msmq.extension"])
@given(data=st.data())
def test_no_record_is_ever_too_large(key: str, data: st.DataObject) -> None:
    """The short cut that spares the counting never lets one through."""
    oversize = data.draw(st.sampled_from(("reject", "chunk", "claim-check")))
    mapping = to_plain("p", "private$\\*", oversize=oversize, key=Key(key))
    made, _ = shard(mapping, p=TopicLimits(8, SMALL))
    extension = bytes(data.draw(st.integers(0, SMALL)))
    body = bytes(data.draw(st.integers(0, 3 * SMALL)))
    name = data.draw(st.text("\u4e2d", min_size=1, max_size=124))
    label = data.draw(st.text("\u4e2d", max_size=249))
    host = data.draw(st.text("\u4e2d", min_size=1, max_size=256))
    destination = f"DIRECT=OS:{host}\\private$\\{name}"
    wire = bytes(len((destination + label).encode("utf-16-le")) + len(extension) + 100)
    message = plain(
        1, body=body, extension=extension, label=label, destination=destination, wire=wire
    )
    [verdict], unit = decide(made, message)
    limits_hold(unit, {"p": SMALL})
    assert bool(unit.records) == (verdict.outcome == "accepted")


# -- journals -------------------------------------------------------------------------------


@pytest.mark.parametrize("oversize", ["chunk", "claim-check"])
def test_the_journal_has_a_copy_of_all_that_was_made(oversize: str) -> None:  # DM-30
    mapping = to_plain(oversize=oversize, journal=JournalTopic("j"))
    made, _ = shard(mapping, p=TopicLimits(8, SMALL), j=TopicLimits(3, SMALL))
    _, unit = decide(made, plain(1, body=BODY), plain(2))

    def of(topic: str) -> list[Record]:
        return [record for record in unit.records if record.topic == topic]

    assert [(r.value, r.headers, r.key) for r in of("p")] == [
        (r.value, r.headers, r.key) for r in of("j")
    ]
    assert all(0 <= (r.partition or 0) < 3 for r in of("j"))
    assert len(unit.claims) == (oversize == "claim-check")  # stored once


@pytest.mark.parametrize("oversize", ["reject", "chunk", "claim-check"])
@pytest.mark.parametrize(
    ("name", "topic", "journal"),
    [
        ("private$\\plain", "p", "j"),
        ("private$\\*", "p", "j"),
        ("private$\\plain", "p-{label}", "j"),
        ("private$\\*", "p-{label}", "j"),
        ("private$\\*", "{queue}", "j"),
        ("private$\\*", "p", "j-{queue}"),
        ("private$\\*", "{queue}", "j-{queue}"),
    ],
)
def test_a_journal_that_takes_less_than_its_topic(
    name: str, topic: str, journal: str, oversize: str
) -> None:
    """The smaller of the two counts: the journal gets the same records."""
    large, small = TopicLimits(8, LARGE), TopicLimits(3, SMALL)
    mapping = to_plain(topic, name, oversize=oversize, journal=JournalTopic(journal))
    made, _ = shard(mapping, p=large, plain=large, p_no_label=large, j=small, j_plain=small)
    [verdict], unit = decide(made, plain(1, body=BODY, wire=b"w"))
    limits_hold(
        unit, {"p": LARGE, "plain": LARGE, "p-no-label": LARGE, "j": SMALL, "j-plain": SMALL}
    )
    assert verdict.outcome == ("rejected" if oversize == "reject" else "accepted")


# -- topics that a message names ------------------------------------------------------------


def test_a_topic_that_cannot_be_made_is_a_verdict() -> None:
    made, catalogue = shard(to_plain("p-{label}"), p_a=TopicLimits(4))
    assert made.unknown_topics([plain(1, label="a"), plain(2, label="b")]) == {"p-b"}
    catalogue.learn("p-b", TopicLimits(UNKNOWN))
    verdicts, unit = decide(made, plain(1, label="a"), plain(2, label="b"))
    assert [v.outcome for v in verdicts] == ["accepted", "rejected"]
    assert verdicts[1].message_class == MessageClass.NACK_BAD_DST_Q
    assert verdicts[1].reason == "topic-cannot-be-made"
    assert [r.topic for r in unit.records] == ["p-a"]
    assert len(unit.rejects) == 1


def test_a_stream_goes_on_after_a_topic_that_cannot_be_made() -> None:  # DM-9
    made, catalogue = shard(to_plain("o-{label}", "private$\\orders", transactional=True))
    catalogue.learn("o-a", TopicLimits(2))
    catalogue.learn("o-b", TopicLimits(UNKNOWN))
    verdicts, unit = decide(
        made, step(1, label="a"), step(2, label="b"), step(3, label="a"), step(2, label="b")
    )
    assert [v.outcome for v in verdicts] == ["accepted", "rejected", "accepted", "duplicate"]
    assert [r.value for r in unit.records] == [b"step 1", b"step 3"]


@pytest.mark.parametrize(
    "message",
    [
        plain(1, destination=TO_NOWHERE),
        plain(1, destination_qm=SENDER, label="new"),  # of another queue manager
        step(1, destination=plain().destination, label="new"),  # transactional to a plain queue
        plain(1, encrypted=True, label="new"),
    ],
)
def test_nobody_makes_a_topic_for_what_is_refused(message: Message) -> None:
    made, _ = shard(to_plain("p-{label}"))
    assert made.unknown_topics([message]) == set()
    [verdict], unit = decide(made, message)
    assert (verdict.outcome in ("rejected", "busy"), unit.records) == (True, [])


def test_both_topics_are_asked_for_at_once() -> None:
    mapping = to_plain("{queue}-{label}", "private$\\*", journal=JournalTopic("j-{queue}"))
    made, catalogue = shard(mapping)
    assert made.unknown_topics([plain(1, label="a")]) == {"plain-a", "j-plain"}
    catalogue.learn("plain-a", TopicLimits(1))
    assert made.unknown_topics([plain(1, label="a")]) == {"j-plain"}
    catalogue.learn("j-plain", TopicLimits(1))
    _, unit = decide(made, plain(1, label="a"))
    assert [r.topic for r in unit.records] == ["plain-a", "j-plain"]


def test_auto_create_takes_both_kinds() -> None:  # defaults: unknown
    made, catalogue = shard(defaults=Defaults(unknown="auto-create"))
    first = plain(1, destination=TO_NOWHERE), step(1, destination=TO_NOWHERE)
    assert made.unknown_topics(first) == {"nowhere"}
    catalogue.learn("nowhere", TopicLimits(4))
    verdicts, unit = decide(made, *first)
    assert [v.outcome for v in verdicts] == ["accepted", "accepted"]
    assert {r.headers["msmq.queue"] for r in unit.records} == {b"private$\\nowhere"}


def test_new_mappings_count_from_the_next_message_on() -> None:  # hot reload
    made, _ = shard(to_plain("p", key=Key("none")), p=TopicLimits(4))
    made.admit([plain(1)])
    _, other = shard(to_plain("q", value="json"), q=TopicLimits(4))
    made.use(other)
    verdicts = made.admit([plain(2), plain(1)])
    assert [v.outcome for v in verdicts] == ["accepted", "duplicate"]  # what was decided stays
    records = made.take_unit(1)[1].records
    assert [(r.topic, r.value, r.key is None) for r in records] == [
        ("p", b"plain 1", True),
        ("q", b'"plain 2"', False),
    ]


def test_streams_survive_new_mappings() -> None:  # QB-81: the cursor is the sender's
    mapping = to_plain("o", "private$\\orders", transactional=True)
    made, _ = shard(mapping, o=TopicLimits(4))
    made.admit([step(1), step(2)])
    _, other = shard(to_plain("x", "private$\\o*", transactional=True), x=TopicLimits(4))
    made.use(other)
    verdicts = made.admit([step(2), step(4), step(3)])
    assert [v.outcome for v in verdicts] == ["duplicate", "out_of_order", "accepted"]


# -- any name -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
@pytest.mark.parametrize("transactional", [False, True], ids=["accepted", "refused"])
def test_half_a_surrogate_pair_in_the_name_of_a_queue(name: str, transactional: bool) -> None:
    """Lawful UTF-16 for MSMQ. An exception here would end the appliance, again and again."""
    mapping = to_plain("t-{queue}", "private$\\*", transactional=transactional)
    made, catalogue = shard(mapping)
    message = plain(1, destination=f"DIRECT=OS:a\\private$\\{name}")
    for topic in made.unknown_topics([message]):
        catalogue.learn(topic, TopicLimits(1))
    [verdict], unit = decide(made, message)
    assert verdict.outcome == ("rejected" if transactional else "accepted")
    [record] = unit.records or unit.rejects
    assert record.headers["msmq.queue"] == f"private$\\{name}".encode("utf-8", "surrogatepass")
    [entry] = msgspec.json.decode(unit.audit[0])
    assert entry["verdict"] == verdict.outcome


# A list: in the alphabet of one st.text the two halves drown among a million characters.
odd = st.lists(st.sampled_from("aB_. \ud800\udfff{}*") | st.characters(), max_size=9).map("".join)


@given(odd, odd, st.sampled_from(("body", "text", "json", "envelope")), st.booleans())
def test_any_name_and_label_get_a_verdict(
    name: str, label: str, value: str, cloudevents: bool
) -> None:
    defaults = Defaults(
        unknown="auto-create",
        value=value,  # type: ignore[arg-type]
        headers=HeaderRules(cloudevents=cloudevents),
    )
    made, catalogue = shard(defaults=defaults)
    destination = f"DIRECT=OS:a\\private$\\{name}"
    several = [
        plain(1, destination=destination, label=label, destination_multi=name),
        step(1, destination=destination, label=label),
    ]
    for topic in made.unknown_topics(several):
        assert not topic.startswith("_")
        catalogue.learn(topic, TopicLimits(1))
    verdicts, unit = decide(made, *several)
    assert {v.outcome for v in verdicts} <= {"accepted", "rejected"}
    assert len(unit.records) + len(unit.rejects) == 2
    assert len(msgspec.json.decode(unit.audit[0])) == 2


def test_headers_that_the_mapping_adds_are_counted() -> None:
    rules = HeaderRules(add={f"env-{n}": "x" * 1000 for n in range(4)})
    one, _ = shard(to_plain(headers=rules), p=TopicLimits(4, 4000))
    (verdict,), unit = decide(one, plain(1, wire=b"w" * 10))
    assert verdict.reason == "larger-than-the-topic-takes"
    assert unit.records == []


def test_over_the_journal_quota_the_copy_is_lost_and_the_message_is_not() -> None:  # DM-30
    mapping = to_plain(journal=JournalTopic("j"), journal_quota_kb=1)
    one, _ = shard(mapping, p=TopicLimits(4, LARGE), j=TopicLimits(1, LARGE))
    exact = plain(1, body=b"x" * 1000, wire=b"w" * 24)
    over = plain(2, body=b"x" * 1000, wire=b"w" * 25)
    verdicts, unit = decide(one, exact, over)
    assert [v.reason for v in verdicts] == ["", ""]
    assert [r.topic for r in unit.records] == ["p", "j", "p"]
