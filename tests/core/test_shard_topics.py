"""What a topic does not take: refused, or left at its sender, before Kafka has to say so."""

from typing import Any

import msgspec
import pytest

from bridge.core.admission import NO_TOPIC, REFUSED_BY_KAFKA, TOO_LARGE, Policy
from bridge.core.catalogue import TopicLimits
from bridge.core.mapping_words import Key
from bridge.core.ports import Record
from bridge.core.shard import Shard
from bridge.model.guid import NULL_GUID
from bridge.model.message import INFINITE, JOURNAL_NEGATIVE
from bridge.model.verdict import Cursor, Outcome
from tests.core.messages import ORDERS, PLAIN, SEQUENCE, catalogue, plain, queue, shard, step

REASON = "__connect.errors.exception.message"


def of(**mapping: Any) -> Shard:
    return shard(queue("private$\\plain", transactional=False, **mapping))


def close(made: Shard, destination: str, why: str = "is gone") -> None:
    found = made._catalogue.find(destination)
    assert found is not None
    made._catalogue.closed[found.topic] = why
    made.use(made._catalogue)


def test_a_message_that_kafka_refused_moves_its_stream_and_leaves_a_reject() -> None:
    made = shard()
    doomed = msgspec.structs.replace(REFUSED_BY_KAFKA, detail="INVALID_RECORD: no")
    first, ends = made.admit_one(step(1), NULL_GUID, None)
    second, end = made.admit_one(step(2), NULL_GUID, doomed)
    third, last = made.admit_one(step(3), NULL_GUID, None)
    assert [first.outcome, second.outcome, third.outcome] == [
        Outcome.ACCEPTED,
        Outcome.REJECTED,
        Outcome.ACCEPTED,
    ]
    assert second.cursor == Cursor(SEQUENCE, 2)
    assert (ends, end, last) == (1, 1, 2)
    unit = made.take_unit(0)[1]
    assert [record.value for record in unit.records] == [step(1).body, step(3).body]
    (reject,) = unit.rejects
    assert reject.headers[REASON] == b"refused-by-kafka: INVALID_RECORD: no"


def test_a_doomed_message_that_was_here_before_is_a_duplicate() -> None:
    made = shard()
    made.admit([step(1)])
    verdict, _ = made.admit_one(step(1), NULL_GUID, REFUSED_BY_KAFKA)
    assert verdict.outcome is Outcome.DUPLICATE
    assert made.take_unit(0)[1].rejects == []


@pytest.mark.parametrize("message", [plain(1), step(1)])
def test_a_closed_topic_changes_no_state(message: Any) -> None:
    made = shard()
    close(made, message.destination)
    (verdict,) = made.admit([message])
    assert (verdict.outcome, verdict.reason) == (Outcome.BUSY, "topic-unavailable")
    assert made.take_unit(0)[1].records == []
    made._catalogue.closed.clear()
    made.use(made._catalogue)
    (verdict,) = made.admit([message])
    assert verdict.outcome is Outcome.ACCEPTED


def test_another_queue_goes_on() -> None:
    made = shard()
    close(made, ORDERS)
    assert [v.outcome for v in made.admit([plain(1), plain(2)])] == [Outcome.ACCEPTED] * 2


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    made = of(key=Key("none"))
    found = made._catalogue.find(PLAIN)
    assert found is not None
    made._catalogue.learn(found.topic, TopicLimits(4, wants_key=True))
    (verdict,) = made.admit([plain(1)])
    assert verdict.reason == "compacted-topic-wants-a-key"


def test_a_time_that_the_topic_does_not_take() -> None:
    made = of(timestamp="sent")
    found = made._catalogue.find(PLAIN)
    assert found is not None
    made._catalogue.learn(found.topic, TopicLimits(4, before_ms=3_600_000))
    old = plain(1, sent_time=1000, time_to_reach_queue=INFINITE, time_to_be_received=INFINITE)
    assert [v.reason for v in made.admit([old])] == ["time-is-outside-what-the-topic-takes"]
    now = plain(2, sent_time=old.arrived_ms // 1000)
    assert [v.outcome for v in made.admit([now])] == [Outcome.ACCEPTED]


def test_copies_that_their_topics_do_not_take_are_rejects() -> None:
    made = shard()
    made._records += [Record("a", b"0"), Record("b", b"1"), Record("c", b"2"), Record("c", b"3")]
    made._catalogue.closed["b"] = "is gone"
    assert made.divert(0, {2: REFUSED_BY_KAFKA}) == [0, 3]
    unit = made.take_unit(0)[1]
    assert [record.value for record in unit.records] == [b"0", b"3"]
    told = [(reject.value, reject.headers[REASON]) for reject in unit.rejects]
    gone = f"{NO_TOPIC.reason}: is gone".encode()
    assert told == [(b"1", gone), (b"2", REFUSED_BY_KAFKA.reason.encode())]


def test_no_dead_letter_to_a_topic_that_is_away() -> None:
    made = Shard(
        catalogue(queue("private$\\plain", transactional=False, quota_kb=1)),
        Policy(deadletter_topic="dead"),
    )
    large = {"body": b"x" * 5000, "journal": JOURNAL_NEGATIVE}
    made._catalogue.closed["dead"] = "is gone"
    made.admit([plain(1, **large)])
    unit = made.take_unit(0)[1]
    assert (unit.records, len(unit.rejects)) == ([], 1)


def test_a_record_that_kafka_finds_too_large_leaves_a_dead_letter() -> None:
    """MS-MQQB 3.1.5.8.8, as if we had known the size; but none that Kafka has refused itself."""
    made = shard()
    why = msgspec.structs.replace(TOO_LARGE, detail="MSG_SIZE_TOO_LARGE: no")
    message = plain(1, journal=1)
    verdict, end = made.admit_one(message, NULL_GUID, why)
    assert (verdict.message_class, verdict.reason, end) == (0x8003, TOO_LARGE.reason, 1)
    assert [record.topic for record in made.take_unit(0)[1].records] == ["dead"]
    alone = msgspec.structs.replace(why, alone=True)
    _, end = made.admit_one(plain(2, journal=1), NULL_GUID, alone)
    _, end = made.admit_one(plain(3, journal=1), NULL_GUID, REFUSED_BY_KAFKA)
    unit = made.take_unit(0)[1]
    assert (end, unit.records, len(unit.rejects)) == (0, [], 2)
