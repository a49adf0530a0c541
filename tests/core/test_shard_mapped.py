"""What a shard does with the mapping language: oversize, unknown topics, queues of any kind."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from bridge.core import chunks
from bridge.core.admission import Policy
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits
from bridge.core.mapping import message_from_record, size_of
from bridge.core.mapping_rules import (
    Claims,
    Defaults,
    HeaderRules,
    Mappings,
    QueueMapping,
    QueuePath,
    Topic,
)
from bridge.core.shard import Shard
from bridge.model.message import Message
from bridge.model.verdict import Outcome
from tests.core.messages import LOCAL, NOW, OTHER, plain, queue, shard, step
from tests.core.test_shard import decide, entries, unit_of

BIG = bytes(range(256)) * 40
LIMIT = 4000


def small_queue(oversize: str, **settings: Any) -> Shard:
    return shard(queue(max_bytes=LIMIT, oversize=oversize, **settings))


def test_a_body_that_the_topic_does_not_take_is_refused() -> None:
    one = small_queue("reject")
    assert decide(one, step(1, body=BIG)).reason == "larger-than-the-topic-takes"
    assert unit_of(one).records == []


def test_it_is_cut_into_chunks_that_fit() -> None:
    one = small_queue("chunk")
    message = step(1, body=BIG)
    assert decide(one, message).outcome is Outcome.ACCEPTED
    records = unit_of(one).records
    assert len(records) > 2
    assert all(size_of(record) <= LIMIT for record in records)
    assert len({record.partition for record in records}) == 1
    assert message_from_record(chunks.join(records)) == message


def test_chunks_go_to_the_journal_too() -> None:
    one = small_queue("chunk", journal="orders.journal")
    decide(one, step(1, body=BIG))
    records = unit_of(one).records
    copies = [record for record in records if record.topic == "orders.journal"]
    assert len(copies) == len(records) // 2
    assert chunks.join(copies).value == BIG


def test_a_claim_check_leaves_the_body_outside() -> None:
    one = small_queue("claim-check", claims=Claims("/somewhere"))
    decide(one, step(1, body=BIG))
    decide(one, step(2, body=b"small"))
    unit = unit_of(one)
    (claim,) = unit.claims
    digest = sha256(BIG).hexdigest()
    assert (claim.name, claim.data, claim.store) == (
        f"{digest[:2]}/{digest[2:4]}/{digest}",
        BIG,
        "/somewhere",
    )
    first, second = unit.records
    assert size_of(first) <= LIMIT
    assert chunks.redeem(first, claim.data).value == BIG
    assert second.value == b"small"
    assert unit_of(one).claims == []


@pytest.mark.parametrize("oversize", ["chunk", "claim-check"])
def test_headers_that_leave_no_room_are_refused(oversize: str) -> None:
    one = small_queue(oversize)
    verdict = decide(one, step(1, body=BIG, extension=bytes(2 * LIMIT)))
    assert verdict.reason == "larger-than-the-topic-takes"
    unit = unit_of(one)
    assert (unit.records, unit.claims) == ([], [])


def test_headers_that_the_mapping_adds_are_counted() -> None:
    rules = HeaderRules(add={f"env-{n}": "x" * 1000 for n in range(4)})
    one = shard(queue(max_bytes=LIMIT, headers=rules))
    verdict = decide(one, step(1, wire=b"w" * 10))
    assert verdict.reason == "larger-than-the-topic-takes"


# -- topics that a message names ------------------------------------------------------------


def by_label() -> tuple[Shard, Catalogue]:
    mapping = QueueMapping(queue=QueuePath("private$\\events"), topic=Topic("events.{label}"))
    catalogue = Catalogue.of(LOCAL, Mappings(queues=(mapping,)), {}, "_own.")
    return Shard(catalogue, Policy()), catalogue


def event(ordinal: int, label: str) -> Message:
    return plain(ordinal, destination="DIRECT=OS:b\\private$\\events", label=label)


def test_a_topic_is_asked_for_before_it_is_needed() -> None:
    one, catalogue = by_label()
    events = [event(1, "a"), event(2, "b"), event(3, "a")]
    assert one.unknown_topics(events) == {"events.a", "events.b"}
    catalogue.learn("events.a", TopicLimits(3))
    catalogue.learn("events.b", TopicLimits(5))
    assert one.unknown_topics(events) == set()
    one.admit(events)
    records = unit_of(one).records
    assert [record.topic for record in records] == ["events.a", "events.b", "events.a"]


def test_a_topic_that_cannot_be_made_refuses_its_messages_only() -> None:
    one, catalogue = by_label()
    catalogue.learn("events.a", TopicLimits(3))
    catalogue.learn("events.b", TopicLimits(UNKNOWN))
    assert one.unknown_topics([event(1, "b")]) == set()
    verdicts = one.admit([event(1, "b"), event(2, "a")])
    assert [v.reason for v in verdicts] == ["topic-cannot-be-made", ""]
    assert [e.get("reason", "") for e in entries(unit_of(one))] == ["topic-cannot-be-made", ""]


def test_nobody_makes_a_topic_for_what_is_refused_anyway() -> None:
    one, _ = by_label()
    encrypted = msgspec.structs.replace(event(1, "a"), encrypted=True)
    foreign = plain(2, destination="DIRECT=OS:b\\private$\\events", destination_qm=OTHER)
    unknown = plain(3, destination="DIRECT=OS:b\\private$\\nobody")
    wrong_kind = step(4, destination="DIRECT=OS:b\\private$\\events")
    assert one.unknown_topics([encrypted, foreign, unknown, wrong_kind]) == set()


def test_a_queue_that_nobody_listed_takes_both_kinds() -> None:
    catalogue = Catalogue.of(LOCAL, Mappings(defaults=Defaults(unknown="auto-create")), {}, "_own.")
    one = Shard(catalogue, Policy())
    new = "DIRECT=OS:b\\private$\\brand-new"
    messages = [plain(1, destination=new), step(1, destination=new)]
    assert one.unknown_topics(messages) == {"brand-new"}
    catalogue.learn("brand-new", TopicLimits(2))
    assert [v.outcome for v in one.admit(messages)] == [Outcome.ACCEPTED, Outcome.ACCEPTED]
    assert one.take_unit(NOW)[1].records[0].headers["msmq.queue"] == b"private$\\brand-new"
