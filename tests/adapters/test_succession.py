"""When a standby inherits the lease: with a real lifeline, and a group that the test makes up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any, cast

import pytest

from bridge.adapters import succession as module
from bridge.adapters.kafka.lease import Lease
from bridge.adapters.kafka.members import Member, Members, NotTold
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.net.lifeline import Lifeline
from bridge.adapters.succession import Succession
from bridge.model.errors import SinkUnavailable
from tests.support.waiting import until

HOST, SOON_S = "127.0.0.1", 30.0
LEADER, US, OTHER = "1" * 32, "5" * 32, "3" * 32


class Will:
    """What the standby's lease is asked to inherit."""

    def __init__(self) -> None:
        self.name = US
        self.read: list[tuple[str, tuple[str, ...]]] = []

    def inherit(self, place: str, others: tuple[str, ...] = ()) -> None:
        self.read.append((place, others))


class Group:
    """What brokers tell, look for look; `on_look` may change it."""

    def __init__(self, *members: Member) -> None:
        self.members = list(members)
        self.looks = 0
        self.on_look: Callable[[], None] = lambda: None

    def look(self) -> list[Member]:
        self.looks += 1
        self.on_look()
        return sorted(self.members, key=lambda member: member.instance)


def member(name: str, port: int = 0, **changes: Any) -> Member:
    told = {"instance": name, "id": f"{name}-1", "leads": False, **changes}
    return Member(name=name, host=HOST, port=port, **told)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("LOOK_S", "RETRY_S", "AWAY_S", "SELDOM_S", "TURN_S"):
        monkeypatch.setattr(module, pause, 0.01)


@asynccontextmanager
async def standby(
    group: Group, monkeypatch: pytest.MonkeyPatch, lifeline: Lifeline
) -> AsyncIterator[Will]:
    monkeypatch.setattr(Members, "look", group.look)
    will = Will()
    task = asyncio.create_task(Succession({}, OwnTopics("x"), cast(Lease, will)).run())
    await lifeline.open()
    try:
        async with asyncio.timeout(SOON_S):
            await until(lambda: lifeline._followers)
            yield will
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def made(**changes: Any) -> tuple[Lifeline, Group]:
    lifeline = Lifeline(HOST, 0, LEADER)
    leader = member(LEADER, lifeline.port, leads=True, **changes)
    return lifeline, Group(leader, member(US))


def test_who_is_gone_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline, group = made()

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            assert will.read == []
            lifeline.close()
            await until(lambda: will.read)
            assert will.read == [(LEADER, ())]

    asyncio.run(test())


def test_an_heir_is_inherited_with_its_other_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers show the place that it has under the name of whoever had it first."""
    lifeline, group = made()
    first = member(OTHER, 1, leads=True)  # nobody is on that port
    group.members = [first, member(LEADER, lifeline.port), member(US)]

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            lifeline.close()
            await until(lambda: will.read)
            assert will.read == [(OTHER, (LEADER,))]

    asyncio.run(test())


def test_who_left_the_group_before_has_nothing_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told to stop: the group decides."""
    lifeline, group = made()

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            group.members = [member(US, leads=True)]
            lifeline.close()
            seen = group.looks
            await until(lambda: group.looks > seen + 3)
            assert will.read == []

    asyncio.run(test())


def test_of_several_standbys_one_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one sees that the place was taken: its member has a new id."""
    lifeline, group = made()
    group.members.append(member(OTHER))  # before us by its name
    leader = group.members[0]

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            seen = group.looks

            def take() -> None:
                if group.looks > seen + 1:
                    group.members[0] = member(LEADER, leader.port, leads=True, id="another")

            group.on_look = take
            lifeline.close()
            await until(lambda: group.looks > seen + 4)
            assert will.read == []

    asyncio.run(test())


def test_the_second_goes_when_the_first_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline, group = made()
    group.members.append(member(OTHER))  # killed a moment ago, and still in the group

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            lifeline.close()
            await until(lambda: will.read)
            assert will.read == [(LEADER, ())]

    asyncio.run(test())


def test_a_kafka_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline, group = made()

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            seen = group.looks

            def away() -> None:
                if group.looks <= seen + 3:
                    raise SinkUnavailable("Kafka: away")

            group.on_look = away
            lifeline.close()
            await until(lambda: will.read)
            assert group.looks > seen + 3

    asyncio.run(test())


def test_who_could_not_be_met_is_left_to_the_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal alone says nothing: the address may be another machine's."""
    lifeline, group = made()
    monkeypatch.setattr(Members, "look", group.look)
    will = Will()

    async def test() -> None:
        with closing(lifeline):  # bound, never open
            task = asyncio.create_task(Succession({}, OwnTopics("x"), cast(Lease, will)).run())
            await until(lambda: group.looks > 2 * module.MISSES)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert will.read == []
        assert caplog.text.count("cannot be reached (listen.lease)") == 1

    asyncio.run(test())


def test_another_standby_that_was_quicker_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """We are next by our name, but its member has a new id when we look."""
    lifeline, group = made()

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            group.members[0] = member(LEADER, lifeline.port, leads=True, id="another")
            seen = group.looks
            lifeline.close()
            await until(lambda: group.looks > seen + 3)
            assert will.read == []

    asyncio.run(test())


def test_who_led_no_more_when_it_ended_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stood still, its lease ran out, and another one leads under its own name."""
    lifeline, group = made()

    async def test() -> None:
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            group.members = [member(LEADER, lifeline.port), member(OTHER, leads=True), member(US)]
            seen = group.looks
            lifeline.close()
            await until(lambda: group.looks > seen + 3)
            assert will.read == []

    asyncio.run(test())


def test_who_was_just_leaving_when_it_was_met_is_not_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The place that we saw is its successor's."""
    lifeline, group = made()

    async def test() -> None:
        leaving, leads = member(LEADER, lifeline.port), member(OTHER, leads=True)
        group.members = [leaving, leads, member(US)]
        async with standby(group, monkeypatch, lifeline) as will:
            await until(lambda: group.looks >= 2)
            group.members = [leads, member(US)]
            seen = group.looks
            lifeline.close()
            await until(lambda: group.looks > seen + 3)
            assert will.read == []

    asyncio.run(test())


@asynccontextmanager
async def alone(group: Group, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Task[None]]:
    """A standby that meets nobody; the pauses it makes are not waited for."""
    monkeypatch.setattr(Members, "look", group.look)
    task = asyncio.create_task(Succession({}, OwnTopics("x"), cast(Lease, Will())).run())
    try:
        async with asyncio.timeout(SOON_S):
            yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_leader_that_comes_late_is_missed_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one without a port, in other words; and then it is looked at less often."""
    group = Group(member(US))
    paused: list[float] = []
    monkeypatch.setattr(module, "SELDOM_S", 0.02)
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        paused.append(seconds)
        await sleep(seconds)

    async def test() -> None:
        monkeypatch.setattr(asyncio, "sleep", pause)
        async with alone(group, monkeypatch):
            while group.looks <= 2 * module.MISSES:
                await sleep(0.01)
            assert (caplog.text, paused.count(0.02)) == ("", 0)
            group.members.append(member(LEADER, leads=True))
            while paused.count(0.02) < 3:
                await sleep(0.01)
        assert caplog.text.count("the leader has no port for us (listen.lease)") == 1

    asyncio.run(test())


def test_a_bug_of_ours_does_not_end_the_standby(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = Group(member(US))

    def fail() -> None:
        if group.looks == 1:
            raise TypeError("a bug")

    group.on_look = fail

    async def test() -> None:
        async with alone(group, monkeypatch) as task:
            await until(lambda: task.done() or group.looks > 2)
            assert not task.done()
        assert "TypeError: a bug" in caplog.text

    asyncio.run(test())


def test_a_kafka_that_does_not_tell_is_complained_about_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And it is asked less and less often."""
    group = Group()
    paused: list[float] = []
    sleep = asyncio.sleep

    def refuse() -> None:
        raise NotTold("Group authorization failed")

    group.on_look = refuse

    async def pause(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    async def test() -> None:
        monkeypatch.setattr(module, "AWAY_S", 1.0)
        monkeypatch.setattr(module, "SELDOM_S", 10.0)
        monkeypatch.setattr(asyncio, "sleep", pause)
        async with alone(group, monkeypatch):
            while len(paused) < 6:
                await sleep(0.01)
        assert paused[:6] == [1, 2, 4, 8, 10, 10]
        assert caplog.text.count("Group authorization failed; if the leader crashes") == 1

    asyncio.run(test())
