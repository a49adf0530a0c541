"""A refusal is traced to its message."""

from collections.abc import Sequence

from bridge.adapters.intake import Submission
from bridge.adapters.suspects import PART, Suspects, cut, reason_of
from bridge.core.admission import REFUSED_BY_KAFKA, TOO_LARGE
from bridge.core.ports import RefusedRecord
from bridge.model.guid import NULL_GUID
from bridge.model.verdict import ACCEPTED, Verdict
from tests.core.messages import step


def refused(
    position: int, error: str = "INVALID_RECORD", *, of_topic: bool = False
) -> RefusedRecord:
    return RefusedRecord(position, "orders", error, "no", of_topic=of_topic)


def test_a_record_belongs_to_the_message_that_made_it() -> None:
    suspects = Suspects()
    suspects.ends = [1, 1, 4]  # the second made none, the third three
    assert [suspects.message_of(position) for position in range(5)] == [0, 2, 2, 2, None]


def test_a_topic_that_is_gone_is_no_fault_of_a_message() -> None:
    suspects = Suspects()
    suspects.ends = [1, 2, 3]
    found = suspects.blame([refused(0, of_topic=True), refused(2), refused(7)])
    assert found == {2: refused(2)}


def test_the_reason_says_what_kafka_said() -> None:
    reason = reason_of(refused(0))
    assert (reason.reason, reason.message_class) == (
        REFUSED_BY_KAFKA.reason,
        REFUSED_BY_KAFKA.message_class,
    )
    assert reason.detail == "INVALID_RECORD: no"
    assert reason_of(refused(0, "MSG_SIZE_TOO_LARGE")).reason == TOO_LARGE.reason


def test_parts_are_told_together() -> None:
    told: list[Sequence[Verdict]] = []
    messages = [step(number) for number in range(1, 2 * PART + 2)]
    whole = Submission(messages, NULL_GUID, told.append)
    whole.doom(PART, TOO_LARGE)
    parts = cut(whole)
    assert [len(part.messages) for part in parts] == [PART, PART, 1]
    assert sum(part.size for part in parts) == whole.size
    assert [dict(part.doomed) for part in parts] == [{}, {0: TOO_LARGE}, {}]
    for part in parts:
        assert told == []
        part.on_decided([ACCEPTED] * len(part.messages))
    assert [len(verdicts) for verdicts in told] == [len(messages)]


def test_it_ends_when_all_are_settled() -> None:
    suspects = Suspects()
    suspects.left = 3
    suspects.settled(2)
    assert suspects
    suspects.settled(2)
    assert not suspects
