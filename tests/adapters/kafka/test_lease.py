"""Who leads: on a real group, and what a member makes of what it is told."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, TopicPartition

from bridge.adapters.kafka import lease as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.lease import Lease, LeaseLost
from bridge.adapters.kafka.members import Member, Members
from bridge.adapters.kafka.topics import OwnTopics, ensure_lease, ensure_topics
from tests.support.kafka import unique
from tests.support.waiting import until

pytestmark = pytest.mark.kafka
SOON_S = 60.0
LEASE_S = 6.0


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, SOON_S))


class Counting(Lease):
    passes = 0

    def _serve(self, mine: Sequence[Consumer]) -> None:
        super()._serve(mine)
        self.passes += 1


def group(kafka: EmbeddedKafka) -> Callable[[], Lease]:
    """Makes members of a group of its own."""
    settings, own = {"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(unique("lease"))
    ensure_lease(settings, own)
    return lambda: Lease(settings, own, LEASE_S)


def test_one_leads_until_it_leaves(kafka: EmbeddedKafka) -> None:
    join = group(kafka)

    async def test() -> None:
        first = join()
        await first.won()
        lost = asyncio.create_task(first.lost())
        joined: list[Lease] = []
        told = asyncio.Event()

        class Told(Lease):
            def _on_assigned(self, is_ours: bool) -> None:
                joined.append(self)
                super()._on_assigned(is_ours)
                told.set()

        second = Told(first._settings, first._own, LEASE_S)
        await told.wait()  # it is in the group, and has nothing
        assert (first.is_held, second.is_held, lost.done()) == (True, False, False)
        await first.leave(SOON_S)
        await second.won()
        assert not lost.done()  # who leaves was not robbed
        lost.cancel()
        await second.leave(SOON_S)

    run(test())


def test_one_that_ran_out_and_went_to_another_is_lost(kafka: EmbeddedKafka) -> None:
    join = group(kafka)

    async def test() -> None:
        lease = join()
        await lease.won()
        lost = asyncio.create_task(lease.lost())
        lease._on_assigned(is_ours=False)  # somebody came; what we keep is not named again
        lease._on_lost()
        await asyncio.sleep(0)
        assert not lost.done()
        lease._on_assigned(is_ours=True)  # the group gave it back
        lease._on_assigned(is_ours=False)
        await asyncio.sleep(0)
        assert not lost.done()
        lease._on_lost()
        lease._on_assigned(is_ours=False)
        with pytest.raises(LeaseLost, match="another appliance leads lease-"):
            await lost
        await lease.leave(SOON_S)

    run(test())


def test_one_that_is_taken_away_is_lost(kafka: EmbeddedKafka) -> None:
    join = group(kafka)

    async def test() -> None:
        lease = join()
        await lease.won()
        lease._on_revoked()
        with pytest.raises(LeaseLost):
            await lease.lost()
        await lease.leave(SOON_S)

    run(test())


def test_who_inherits_leads_at_once_and_the_other_is_turned_away(kafka: EmbeddedKafka) -> None:
    """The lease of a minute does not run out in this test. Wrongly suspected, it is lost."""
    settings, own = {"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(unique("lease"))
    ensure_lease(settings, own)
    ensure_topics(settings, own, 1, ())
    members = Members(settings, own)

    async def seen(*, leads: str) -> list[Member]:
        """All members, once the group shows that one leads."""
        while True:
            found = await asyncio.to_thread(members.look)
            if any(one.leads and one.instance == leads for one in found):
                return found

    async def test() -> None:
        first = Lease(settings, own, 60.0, lifeline=1)
        await first.won()
        second = Lease(settings, own, 60.0, lifeline=2)
        await until(lambda: second._passed_over)
        place = first.name
        second.inherit(place)
        with pytest.raises(LeaseLost):
            await first.lost()
        assert second.is_held
        found = await seen(leads=place)
        assert {one.instance for one in found} >= {place, second.name}  # as itself, too
        third = Lease(settings, own, 60.0, lifeline=3)
        await until(lambda: third._passed_over)
        assert not second._gone.is_set()
        third.inherit(place, (second.name,))
        with pytest.raises(LeaseLost):
            await second.lost()
        while second.name in {one.instance for one in await seen(leads=place)}:
            pass  # until it is buried: nobody waits for it
        await asyncio.gather(*(lease.leave(SOON_S) for lease in (first, second)))
        fourth = Lease(settings, own, 60.0)
        await until(lambda: fourth._passed_over)
        await third.leave(SOON_S)  # with both of its members, at once
        await fourth.won()
        await fourth.leave(SOON_S)

    run(test())


def test_an_heir_whom_the_group_passes_over_ends(kafka: EmbeddedKafka) -> None:
    join = group(kafka)

    async def test() -> None:
        leader = join()
        await leader.won()
        heir = join()
        await until(lambda: heir._passed_over)
        heir.inherit("nobody")  # the leader stays where it is
        with pytest.raises(LeaseLost):
            await heir.lost()
        assert not leader._gone.is_set()
        await asyncio.gather(leader.leave(SOON_S), heir.leave(SOON_S))

    run(test())


def test_what_keeps_us_out_is_told(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers take no session timeout below group.min.session.timeout.ms, 6 s by default.

    It stays told: silence says nothing as long as we are not in the group."""
    monkeypatch.setattr(module, "QUIET_S", 0.0)
    settings, own = {"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(unique("lease"))
    ensure_lease(settings, own)

    async def test() -> None:
        lease = Counting(settings, own, 1.0)
        await until(lambda: "session" in lease.why.lower())
        passes = lease.passes
        await until(lambda: lease.passes > passes + 3)
        assert "session" in lease.why.lower()
        assert not lease.is_held
        await lease.leave(SOON_S)

    run(test())


def test_a_kafka_that_is_away_is_not_waited_for() -> None:
    async def test() -> None:
        lease = Lease({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("nowhere"), LEASE_S)
        await lease.leave(0.2)
        assert not lease.is_held

    run(test())


def test_what_is_over_is_not_told_for_ever(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nothing changes in the group."""
    monkeypatch.setattr(module, "QUIET_S", 0.1)
    join = group(kafka)

    async def test() -> None:
        lease = join()
        await lease.won()
        lease._complain("a broker was away")
        assert lease.why
        await until(lambda: not lease.why)
        await lease.leave(SOON_S)

    run(test())


def test_a_bug_of_ours_is_no_dead_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who led is out of the group then, and ends; and it can be left."""
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    tries: list[str] = []

    class Failing(Lease):
        def _join(self) -> Consumer:
            tries.append(self.name)
            raise TypeError("a bug")

    async def test() -> None:
        lease = Failing({}, OwnTopics("x"), LEASE_S)
        lease.inherit("x")  # held
        with pytest.raises(LeaseLost):
            await lease.lost()
        await until(lambda: len(tries) > 2)
        assert "a bug" in lease.why
        await lease.leave(SOON_S)
        assert lease._left.is_set()

    run(test())


def test_who_is_given_it_as_itself_leaves_the_place_of_the_dead() -> None:
    """Kafka had let it go meanwhile: else the group would wait for a place that nobody wants."""

    class Fake:
        is_open = True

        def poll(self, _: float) -> None: ...
        def unsubscribe(self) -> None: ...
        def incremental_assign(self, _: object) -> None: ...
        def pause(self, _: object) -> None: ...

        def memberid(self) -> str:
            return ""

        def close(self) -> None:
            self.is_open = False

    seat, heir = Fake(), Fake()

    class Idle(Lease):
        def _run(self) -> None: ...

        def _join(self) -> Consumer:
            self._assigned(cast(Consumer, seat), [TopicPartition(self._own.lease, 0)])
            return cast(Consumer, heir)

    async def test() -> None:
        lease = Idle({}, OwnTopics("x"), LEASE_S)
        mine = [cast(Consumer, seat)]
        lease._succeed(mine, "the dead", ())
        assert mine == [cast(Consumer, seat)]
        assert (seat.is_open, heir.is_open) == (True, False)
        assert lease._instance == lease.name

    run(test())
