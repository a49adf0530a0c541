"""The checker finds what is planted, by its name and no other, and nothing where all is right."""

from dataclasses import replace

import pytest

from tests.chaos.checker import Fault, Kind, check, counts
from tests.chaos.history import (
    History,
    Landed,
    Mode,
    Op,
    Outage,
    Probe,
    digest_of,
    is_intact,
    make_body,
)
from tests.chaos.read_bugs import READ_BUGS
from tests.chaos.report import Verdict, summary

E, R, T = Mode.EXPRESS, Mode.RECOVERABLE, Mode.TRANSACTIONAL
PLACE = ("orders", 0)


def op(number: int, mode: Mode = T, *, sent: float | None = None, acked: float | None = None) -> Op:
    """Sent at its number, acked half a second later, done a second later."""
    at = float(number) if sent is None else sent
    ack = at + 0.5 if acked is None else acked
    return Op(
        identity=f"guid\\{number}",
        mode=mode,
        stream="guid/orders",
        topic="orders",
        number=number,
        digest=digest_of(b"%d" % number),
        session=1,
        sends=1,
        sent_at=at,
        stored_at=ack,
        ordered_at=ack + 0.1 if mode is T else None,
        done_at=ack + 0.5,
    )


def at(number: int, offset: int | None = None) -> Landed:
    return Landed(
        topic="orders",
        partition=0,
        offset=number if offset is None else offset,
        identity=f"guid\\{number}",
        digest=digest_of(b"%d" % number),
    )


def history(mode: Mode = T, count: int = 9) -> History:
    return History(ops=[op(number, mode) for number in range(1, count + 1)])


def records(count: int = 9) -> list[Landed]:
    return [at(number) for number in range(1, count + 1)]


def names(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(str(fault.kind), fault.identity) for fault in faults]


@pytest.mark.parametrize("mode", list(Mode))
def test_all_there_in_order(mode: Mode) -> None:
    assert check(history(mode), records()) == []
    assert check(History(), []) == []


@pytest.mark.parametrize("mode", [R, T])
def test_lost_acked(mode: Mode) -> None:
    landed = [record for record in records() if record.offset != 4]
    assert names(check(history(mode), landed)) == [("lost-acked", "guid\\4")]


def test_what_was_not_acked_is_not_lost() -> None:
    told = history(R)
    told.ops[3].stored_at = told.ops[3].done_at = None
    landed = [record for record in records() if record.offset != 4]
    assert names(check(told, landed)) == [("never-acked", "guid\\4")]


def test_express_may_be_lost() -> None:
    told = history(E)
    told.ops[1].dropped, told.ops[1].done_at, told.ops[1].stored_at = True, None, None
    assert check(told, [at(1), *records()[4:]]) == []
    assert check(told, records()) == []  # dropped there, and here already


@pytest.mark.parametrize(
    ("mode", "name"), [(R, "duplicate"), (T, "duplicate"), (E, "express-twice")]
)
def test_twice(mode: Mode, name: str) -> None:
    assert names(check(history(mode), [*records(), at(5, 20)])) == [(name, "guid\\5")]


@pytest.mark.parametrize("mode", list(Mode))
def test_reorder(mode: Mode) -> None:
    landed = [at(1, 2), at(2, 1), *records()[2:]]
    assert names(check(history(mode), landed)) == [("reorder", "guid\\1")]


def test_a_stream_in_two_partitions_has_no_order() -> None:
    landed = [*records()[:8], replace(at(9), partition=1)]
    assert names(check(history(), landed)) == [("reorder", "guid\\9")]


def test_an_express_message_of_an_older_session_may_come_late() -> None:
    told = history(E)
    told.ops[0].session = 0
    assert check(told, [at(1, 5), at(2, 1), at(3, 2), at(4, 3), *records()[5:]]) == []


def test_plain_messages_of_both_kinds_are_ordered_each_for_itself() -> None:
    told = History(ops=[op(1, E), op(2, R)])
    assert check(told, [at(1, 2), at(2, 1)]) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(at(7), digest=digest_of(b"8")),
        replace(at(7), intact=False),
        replace(at(7), topic="elsewhere", offset=7),
    ],
)
def test_altered(other: Landed) -> None:
    told = History(ops=[op(7)])
    assert names(check(told, [other])) == [("altered", "guid\\7")]


def test_phantom() -> None:
    stranger = replace(at(1, 30), identity="nobody\\1")
    assert names(check(history(), [*records(), stranger])) == [("phantom", "nobody\\1")]


def test_a_message_that_was_never_sent_is_a_phantom() -> None:
    told = history()
    told.ops[8] = replace(told.ops[8], sent_at=None, stored_at=None, ordered_at=None)
    assert names(check(told, records())) == [("phantom", "guid\\9")]


def test_ack_while_the_broker_is_frozen() -> None:
    told = history(R)
    told.outages = [Outage(0.1, 0.2), Outage(3.9, 4.6, "frozen"), Outage(100, 101)]
    assert names(check(told, records())) == [("ack-before-durable", "guid\\4")]


def test_an_ack_of_what_came_before_the_freeze_or_after_it_is_lawful() -> None:
    told = history(R)
    told.outages = [Outage(4.1, 4.9), Outage(5.9, 6.4)]  # sent before; acked after
    assert check(told, records()) == []


def test_nobody_promises_anything_for_an_express_message() -> None:
    told = history(E)
    told.outages = [Outage(3.9, 4.6)]
    told.probes = [Probe(5.0, {PLACE: 1})]
    assert check(told, records()) == []


@pytest.mark.parametrize("mode", [R, T])
def test_acked_before_a_record_that_is_behind_the_end_of_then(mode: Mode) -> None:
    told = history(mode)
    told.probes = [Probe(0.5, {PLACE: 0}), Probe(4.55, {PLACE: 4}), Probe(20.0, {PLACE: 11})]
    # 1 to 3 lie before the end at 4.55; 4 was acked at 4.5 and came later, by a resend.
    landed = [*records()[:3], *(at(number, number + 1) for number in range(4, 10))]
    assert names(check(told, landed)) == [("ack-before-durable", "guid\\4")]


def test_only_a_probe_after_the_ack_counts() -> None:
    told = history(R)
    told.probes = [Probe(4.4, {PLACE: 4})]
    assert check(told, records()) == []


def test_never_acked() -> None:
    told = history()
    told.ops[5].ordered_at = told.ops[5].done_at = None
    assert names(check(told, records())) == [("never-acked", "guid\\6")]
    told = history(R)
    told.ops[5] = replace(told.ops[5], sent_at=None, stored_at=None, done_at=None, sends=0)
    assert names(check(told, [*records()[:5], *records()[6:]])) == [("never-acked", "guid\\6")]


def test_every_name_is_tested_here() -> None:
    """The eight of them, and no more; those of readers have tests beside them."""
    of_readers = {kind for kind, _ in READ_BUGS.values()}
    assert {str(kind) for kind in set(Kind) - of_readers} == {
        "lost-acked",
        "duplicate",
        "reorder",
        "altered",
        "phantom",
        "ack-before-durable",
        "never-acked",
        "express-twice",
    }


def test_a_body_shows_that_it_is_whole() -> None:
    body = make_body(bytes(16), 1, 7, b"filler")
    assert is_intact(body, bytes(16), 7)
    assert not is_intact(body, bytes(16), 8)
    assert not is_intact(body, b"x" * 16, 7)
    assert not is_intact(body[:-1], bytes(16), 7)
    assert not is_intact(body.replace(b"fill", b"bill"), bytes(16), 7)
    assert not is_intact(b"", bytes(16), 7)


def test_a_verdict_names_the_kinds_and_the_seed() -> None:
    faults = check(history(), [*records()[:8], at(5, 20)])
    assert counts(faults) == {"lost-acked": 1, "duplicate": 1}
    verdict = Verdict(42, faults, [])
    assert not verdict.passed
    assert list(verdict.lines())[-1] == (
        "verdict: FAILED, 1 lost-acked, 1 duplicate; repeat with SEED=42"
    )
    assert list(Verdict(42, [], []).lines()) == ["verdict: PASSED, no fault of any kind; seed 42"]
    assert not Verdict(42, [], ["the bridge ended by itself"]).passed


def test_a_summary_counts_modes_resends_and_kills() -> None:
    told = history(R)
    told.ops[0].sends = 3
    kills = {"bridge: random": 2, "bridge: after-ack": 1, "broker": 4}
    lines = list(summary(told, kills, {record.identity for record in records()}))
    assert "recoverable: 9 messages, 9 landed" in lines
    assert "resends: 2" in lines
    assert "kills of the bridge: 3 (after-ack 1, random 2)" in lines
    assert "kills of the broker: 4" in lines
