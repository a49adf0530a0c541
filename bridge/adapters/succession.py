"""A standby that sees its leader end does not wait for the lease to run out: it inherits it.

It joins the lease's group under the leader's `group.instance.id`; the group's coordinator takes it
for the leader come back, gives it the lease at once, and turns the other away should it be alive
after all. Whom it suspects wrongly ends and starts again as the standby; fencing keeps all of it
exactly once. Where the leader cannot be reached, the lease decides as if nobody had looked.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from typing import Final

from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.lease import Lease
from bridge.adapters.kafka.members import Member, Members, NotTold
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.kafka.worker import Worker
from bridge.adapters.net.lifeline import Sight
from bridge.config import Address
from bridge.model.errors import SinkUnavailable

LOOK_S: Final = 1.0
RETRY_S: Final = 0.2
AWAY_S: Final = 1.0  # after a look that failed; then twice as long, and so on
SELDOM_S: Final = 10.0
REFUSALS: Final = 3
MISSES: Final = 10  # who has just won opens its lifeline a moment later
TURN_S: Final = 1.0  # between one standby and the next, if there are several

_log = logging.getLogger(__name__)


class Succession:
    def __init__(self, settings: Settings, own: OwnTopics, lease: Lease) -> None:
        self._members = Members(settings, own)
        self._lease = lease
        self._worker = Worker("succession")
        self._misses = 0
        self._is_warned = False

    async def run(self) -> None:
        """For as long as we are the standby. What fails here fails for us only: the lease stays."""
        try:
            while True:
                try:
                    await self._step()
                except Exception:
                    _log.exception("looking for the leader failed; trying again")
                    await asyncio.sleep(SELDOM_S)
        finally:
            self._worker.stop()

    async def _step(self) -> None:
        others = [one for one in await self._look() if one.name != self._lease.name]
        if await self._follow_one_of(others):
            self._misses, self._is_warned = 0, False
        else:
            self._misses += 1
        if self._misses >= MISSES and others and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "the leader %s (listen.lease); if it crashes, its lease has to run out first",
                "cannot be reached" if any(one.port for one in others) else "has no port for us",
            )
        await asyncio.sleep(SELDOM_S if self._is_warned else LOOK_S)

    async def _follow_one_of(self, members: list[Member]) -> bool:
        """Only who leads can be met. Until it has ended, or is out of sight."""
        for member in members:
            with closing(Sight(member.host, member.port, member.name)) as sight:
                if member.port and await _is_met(sight):
                    await self._follow(member, sight)
                    return True
        return False

    async def _follow(self, member: Member, sight: Sight) -> None:
        leader = await self._leader()  # brokers may show it under the name of its predecessor
        _log.info("the leader at %s is in sight", Address(member.host, member.port))
        self._members.forget()  # hours may pass
        if sight.is_open and await sight.outlive():
            await self._succeed(member, leader)

    async def _succeed(self, gone: Member, leader: Member) -> None:
        """Unless it left the group before it ended, or another standby was first."""
        members = await self._look()
        if not _is_vacant(leader, gone, members):
            return
        if turn := self._turn(gone.name, leader, members):
            await asyncio.sleep(TURN_S * turn)
            if not _is_vacant(leader, gone, await self._look()):
                return
        dead = [one.instance for one in members if one.name == gone.name and one.id != leader.id]
        _log.warning("the leader at %s has ended", Address(gone.host, gone.port))
        self._lease.inherit(leader.instance, tuple(dead))

    async def _leader(self) -> Member:
        """Who has the lease; while the group changes nobody has."""
        while True:
            for member in await self._look():
                if member.leads:
                    return member
            await asyncio.sleep(RETRY_S)

    def _turn(self, gone: str, leader: Member, members: list[Member]) -> int:
        """0: we are next. A standby that was killed a moment ago may still be in the group."""
        names = [one.name for one in members if one.name != gone and one.id != leader.id]
        return names.index(self._lease.name) if self._lease.name in names else len(names)

    async def _look(self) -> list[Member]:
        """Without Kafka there is nothing to inherit, and nobody who could take it first."""
        pause, refusals = AWAY_S, 0
        while True:
            try:
                return await self._worker.run(self._members.look)
            except NotTold as error:
                refusals += 1
                if refusals == REFUSALS:
                    _log.warning("%s; if the leader crashes, its lease has to run out first", error)
            except SinkUnavailable as error:
                _log.debug("%s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, SELDOM_S)


def _is_vacant(place: Member, gone: Member, members: list[Member]) -> bool:
    """It is as it was when it was last seen to lead, nobody else leads, and the one that is gone is
    still in the group: who inherits is there as itself, too."""
    return (
        (place.instance, place.id) in [(one.instance, one.id) for one in members]
        and not any(one.leads and one.id != place.id for one in members)
        and any(one.name == gone.name for one in members)
    )


async def _is_met(sight: Sight) -> bool:
    try:
        return await sight.meet()
    except (OSError, TimeoutError):
        return False
