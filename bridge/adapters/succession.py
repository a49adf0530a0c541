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
from bridge.adapters.kafka.members import Member, Members
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.kafka.worker import Worker
from bridge.adapters.net.lifeline import Sight
from bridge.config import Address
from bridge.model.errors import SinkUnavailable

LOOK_S: Final = 1.0
RETRY_S: Final = 0.2
MISSES: Final = 10  # who has just won opens its lifeline a moment later
TURN_S: Final = 1.0  # between one standby and the next, if there are several

_log = logging.getLogger(__name__)


class Succession:
    def __init__(self, settings: Settings, own: OwnTopics, lease: Lease) -> None:
        self._members = Members(settings, own)
        self._lease = lease
        self._worker = Worker("succession")

    async def run(self) -> None:
        """For as long as we are the standby."""
        try:
            misses = 0
            while True:
                others = [one for one in await self._look() if one.name != self._lease.name]
                misses = 0 if await self._follow_one_of(others) else misses + 1
                if misses == MISSES and others:
                    _log.warning(
                        "the leader cannot be reached (listen.lease); if it crashes, "
                        "its lease has to run out first"
                    )
                await asyncio.sleep(LOOK_S)
        finally:
            self._worker.stop()

    async def _follow_one_of(self, members: list[Member]) -> bool:
        """Only who leads can be met. Until it has ended, or is out of sight."""
        for member in members:
            with closing(Sight(member.host, member.port, member.name)) as sight:
                if member.port and await _is_met(sight):
                    await self._follow(member, sight)
                    return True
        return False

    async def _follow(self, member: Member, sight: Sight) -> None:
        place = await self._place()  # brokers may show it under the name of its predecessor
        _log.info("the leader at %s is in sight", Address(member.host, member.port))
        self._members.forget()  # hours may pass
        if sight.is_open and await sight.outlive():
            await self._succeed(member, place)

    async def _succeed(self, gone: Member, place: str) -> None:
        """Unless it left the group before it ended, or another standby was first."""
        members = await self._look()
        leader = next((one for one in members if one.instance == place), None)
        if leader is None:
            return
        if turn := self._turn(gone.name, leader, members):
            await asyncio.sleep(TURN_S * turn)
            if leader.id not in [one.id for one in await self._look()]:
                return
        dead = [one.instance for one in members if one.name == gone.name and one != leader]
        _log.warning("the leader at %s has ended", Address(gone.host, gone.port))
        self._lease.inherit(place, tuple(dead))

    async def _place(self) -> str:
        """That has the lease; while the group changes nobody has."""
        while True:
            for member in await self._look():
                if member.leads:
                    return member.instance
            await asyncio.sleep(RETRY_S)

    def _turn(self, gone: str, leader: Member, members: list[Member]) -> int:
        """0: we are next. A standby that was killed a moment ago may still be in the group."""
        names = [one.name for one in members if one.name != gone and one != leader]
        return names.index(self._lease.name) if self._lease.name in names else len(names)

    async def _look(self) -> list[Member]:
        """Without Kafka there is nothing to inherit, and nobody who could take it first."""
        while True:
            try:
                return await self._worker.run(self._members.look)
            except SinkUnavailable as error:
                _log.debug("%s", error)
            await asyncio.sleep(RETRY_S)


async def _is_met(sight: Sight) -> bool:
    try:
        return await sight.meet()
    except (OSError, TimeoutError):
        return False
