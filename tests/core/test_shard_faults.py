"""A message that makes us raise is refused alone, and the unit is as if it had never begun."""

from typing import Any

import pytest

from bridge.core import copies
from bridge.core import shard as module
from bridge.core.admission import Policy
from bridge.core.http_receipts import HttpReceipts
from bridge.core.mapper import Mapper
from bridge.core.ports import Record, Unit
from bridge.core.receipts import Receipts
from bridge.core.shard import Shard
from bridge.model.message import Kind, Message
from bridge.model.verdict import Outcome
from tests.core.messages import NOW, ORDERS, PLAIN, SENDER, catalogue, plain, receipts, step
from tests.core.posts import mail, part, posting_shard
from tests.core.units import entries, restarted

ADMIN = "DIRECT=TCP:10.1.2.3\\private$\\admin"
POISON = "poison"


class Raising(Receipts):
    """Raises for messages with a certain label, when the record of it is already made."""

    def accepted(self, message: Message, via: Any) -> Any:
        yield from super().accepted(message, via)
        if message.label == POISON:
            raise RuntimeError("a bug")


def raising() -> Receipts:
    made = Raising()
    template = receipts()
    made.local, made.ordinals = template.local, template.ordinals
    return made


def one_that_raises() -> Shard:
    return Shard(catalogue(), Policy(), raising())


ASKS: dict[str, Any] = {"ack": 3, "admin_queue": ADMIN, "label": POISON}


@pytest.mark.parametrize("poison", [plain(2, **ASKS), step(2, ordinal=900, **ASKS)])
def test_what_raises_refuses_one_message(poison: Message) -> None:
    one = one_that_raises()
    messages = [plain(1), step(1), poison, plain(3), step(3, 2 if poison.transaction else 1)]
    verdicts = one.admit(messages)
    assert [v.outcome for v in verdicts].count(Outcome.ACCEPTED) == 4
    assert (verdicts[2].outcome, verdicts[2].reason) == (Outcome.REJECTED, "internal-error")
    ((message, fault),) = one.faults
    assert message is poison
    assert str(fault) == "a bug"
    _, unit = one.take_unit(NOW)
    assert len(unit.records) == 4
    assert [reject.headers["msmq.id"] for reject in unit.rejects] == [poison.id.encode()]
    assert [entry["verdict"] for entry in entries(unit)].count("rejected") == 1
    # No ack says that it was accepted; one that is transactional has a negative final ack.
    assert len(unit.acks) == (1 if poison.transaction else 0)
    assert set(one.outbox) == {ack.ordinal for ack in unit.acks}


def test_its_stream_goes_on_after_a_restart() -> None:
    one = one_that_raises()
    one.admit([step(1), step(2, **ASKS)])
    again = restarted(one, [one.take_unit(NOW)[1]])
    assert [v.outcome for v in again.admit([step(2), step(3)])] == [
        Outcome.DUPLICATE,
        Outcome.ACCEPTED,
    ]


@pytest.mark.parametrize("is_plain", [True, False])
def test_the_short_way_keeps_what_came_before(
    is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that look alike are taken in one run: those before the fault stand."""
    monkeypatch.setattr("bridge.core.lane.crc32", crc_that_raises)
    monkeypatch.setattr(Mapper, "record", record_that_raises)
    kind = Kind()
    make = plain if is_plain else step
    bodies = [b"one", b"two", b"poison", b"four"]
    messages = [
        make(number, body=body, kind=kind, wire=b"wire") for number, body in enumerate(bodies, 1)
    ]
    one = Shard(catalogue(), Policy(), receipts())
    verdicts = one.admit(messages)
    assert [v.reason for v in verdicts] == ["", "", "internal-error", ""]
    _, unit = one.take_unit(NOW)
    assert [record.value for record in unit.records] == [b"one", b"two", b"four"]
    assert len(one.faults) == 1


_record = Mapper.record


def record_that_raises(self: Mapper, message: Message, *rest: Any) -> Record:
    crc_that_raises(message.body)
    return _record(self, message, *rest)


def crc_that_raises(data: bytes) -> int:
    if data == b"poison":
        raise ValueError(data)
    return 7


def test_when_not_even_a_refusal_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the reject has the bytes as they came, and none of their texts."""
    reject_record = copies.reject_record

    def picky(message: Message, *rest: Any) -> Any:
        if message.label:
            raise RuntimeError("another bug")
        return reject_record(message, *rest)

    monkeypatch.setattr(module, "reject_record", picky)
    one = one_that_raises()
    (verdict,) = one.admit([plain(1, body=b"body", **ASKS)])
    assert verdict.reason == "internal-error"
    _, unit = one.take_unit(NOW)
    (reject,) = unit.rejects
    assert reject.value == b"body"
    assert reject.headers["msmq.id"] == f"{SENDER}\\1".encode()


@pytest.mark.parametrize("message", [mail(1), part(1)])
def test_over_http(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    one = posting_shard()

    def wrong(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(HttpReceipts, "delivered", wrong)
    (verdict,) = one.admit([message])
    assert verdict.reason == "internal-error"
    _, unit = one.take_unit(NOW)
    assert (unit.records, unit.due, unit.seen, len(unit.rejects)) == ([], [], {}, 1)
    monkeypatch.undo()
    assert one.admit([message])[0].outcome is Outcome.ACCEPTED


def test_topics_of_others_are_looked_up_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Shard(catalogue(), Policy())
    monkeypatch.setattr(one._catalogue, "is_open_ended", True)
    monkeypatch.setattr(one, "_unknown_topics", topics_of)
    messages = [plain(1, destination=ORDERS), plain(2, destination=PLAIN)]
    assert one.unknown_topics(messages) == {"t"}


def topics_of(message: Message) -> set[str]:
    if message.destination == ORDERS:
        raise RuntimeError("a bug")
    return {"t"}


def outbox_keys(unit: Unit) -> dict[str, bool]:
    """By key, whether it is written (True) or removed."""
    return {k: v is not None for k, v in unit.state.items() if k.startswith("outbox/")}


def owing(**policy: Any) -> Shard:
    return Shard(catalogue(), Policy(**policy), raising())


@pytest.mark.parametrize("is_committed", [True, False])
def test_acks_that_gave_way_to_a_message_that_raised_are_given_up_for_good(
    is_committed: bool,
) -> None:
    """The outbox has lost them, so the state must lose them too: a restart must not owe again what
    was reported as dropped."""
    one = owing(outbox_bytes=8_000)
    asks = {"ack": 3, "admin_queue": ADMIN, "peer": "10.1.2.3"}
    one.admit([plain(n, **asks) for n in range(1, 3)])
    units = [one.take_unit(NOW)[1]] if is_committed else []
    before = {entry.ordinal for entry in one.outbox.values()}
    other = "DIRECT=TCP:10.1.2.4\\private$\\admin"
    one.admit([plain(3, **{**asks, "label": POISON, "admin_queue": other})])
    _, unit = one.take_unit(NOW)
    gone = {entry.ordinal for entry in unit.dropped}
    assert gone  # its acks met the bound before it raised
    assert gone <= before  # and those of the message itself were never owed
    assert set(one.outbox) == before - gone
    assert set(one.outbox) == set(restarted(one, [*units, unit]).outbox)
    if is_committed:
        assert outbox_keys(unit) == {f"outbox/{ordinal}": False for ordinal in gone}
    else:
        assert {entry.ordinal for entry in unit.acks} == before - gone


def test_an_ack_that_a_message_owed_and_dropped_before_it_raised() -> None:
    one = owing(outbox_destinations=1)
    other = "DIRECT=TCP:10.1.2.4\\private$\\admin"
    one.admit([plain(1, ack=3, admin_queue=ADMIN), plain(2, **{**ASKS, "admin_queue": other})])
    _, unit = one.take_unit(NOW)
    assert {entry.ordinal for entry in unit.acks} == set(one.outbox)
    assert {key for key, kept in outbox_keys(unit).items() if kept} == {
        entry.key for entry in one.outbox.values()
    }
    assert set(one.outbox) == set(restarted(one, [unit]).outbox)
