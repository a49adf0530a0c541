"""Who leads among appliances of one identity: whoever Kafka assigns the lease to.

The lease is the only partition of a topic without records, in a consumer group named after the
topic prefix. Members stay where they are when others come (cooperative-sticky); one that leaves
hands it on at once, one that falls silent after the session timeout, unless somebody inherits it
before (succession.py): whoever joins under the name of a member has its place, and the other is
turned away. It says only when to take over: that two never commit at once is the fencing of the
shards' producers, with or without it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bridge.adapters.kafka.client import CLIENT_ID, Settings, member
from bridge.adapters.kafka.members import signed
from bridge.adapters.kafka.topics import OwnTopics
from bridge.model.errors import BridgeError

POLL_S: Final = 0.05
RETRY_S: Final = 2.0
LEAVE_S: Final = 2.0
DECIDE_S: Final = 1.0  # for the group to tell all our members what it decided
BURY_S: Final = 3.0
QUIET_S: Final = 30.0  # without an error, and it is over

_log = logging.getLogger(__name__)


class LeaseLost(BridgeError):
    """Another appliance leads now, or is about to."""


class Lease:
    """`won` once; then `lost` raises if it ever goes to somebody else; `leave` hands it on."""

    def __init__(
        self,
        settings: Settings,
        own: OwnTopics,
        lease_s: float,
        *,
        name: str = "",
        lifeline: int = 0,
    ) -> None:
        """`lifeline` is the port by which others see that we live; `name` is what it says."""
        self._settings, self._own, self._lease_s = settings, own, lease_s
        self.name = name or new_name()
        self._instance = self.name
        self._client_id = signed(str(settings.get("client.id", CLIENT_ID)), self.name, lifeline)
        self._will: tuple[str, tuple[str, ...]] | None = None
        self._loop = asyncio.get_running_loop()
        self._held = asyncio.Event()
        self._gone = asyncio.Event()
        self._left = asyncio.Event()
        self._is_in_doubt = False
        self._holder: Consumer | None = None  # the member that was given it
        self._passed_over: set[Consumer] = set()
        self.why = ""  # what keeps us out of the group
        self._complained = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    async def won(self) -> None:
        """Until it is ours."""
        await self._held.wait()

    @property
    def is_held(self) -> bool:
        """Also while it is in doubt, and after it was lost: whoever asks is about to end."""
        return self._held.is_set()

    async def lost(self) -> None:
        """Until it is somebody else's."""
        await self._gone.wait()
        raise LeaseLost(
            f"another appliance leads {self._own.prefix} now; start this one again "
            "and it is the standby"
        )

    async def leave(self, patience_s: float) -> None:
        """Hand it on; a Kafka that is away is not waited for."""
        self._stop.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._left.wait()

    def inherit(self, place: str, others: tuple[str, ...] = ()) -> None:
        """Lead in the place of one that is gone, at once; its other members leave the group.

        The group is told, and has the last word."""
        if not self._held.is_set():
            self._will = place, others
            self._held.set()

    # -- in the loop ------------------------------------------------------------------------

    def _on_assigned(self, is_ours: bool) -> None:
        """After every change in the group; what a member keeps is not named again."""
        self.why = ""
        if is_ours:
            self._is_in_doubt = False
            self._held.set()
        elif self._is_in_doubt:
            self._gone.set()

    def _on_lost(self) -> None:
        """We were silent for too long. The group may yet give it back: Kafka was away, and nobody
        else could do better. Whoever gets it fences us."""
        if self._held.is_set():
            self._is_in_doubt = True
            _log.warning("the lease has run out; the group decides who leads")

    def _on_revoked(self) -> None:
        if not self._stop.is_set():
            self._gone.set()

    def _on_replaced(self) -> None:
        """Somebody has inherited our place: we were thought dead. Or we failed in it."""
        if self._held.is_set():
            self._gone.set()

    # -- in the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._be_member(self._join())
            except KafkaException as error:
                if error.args[0].code() == KafkaError._FATAL:
                    self._instance = new_name()
                    self._tell(self._on_replaced)
                self._complain(error.args[0].str())
                self._stop.wait(RETRY_S)
            except Exception as error:  # nobody would see a dead thread
                self._tell(self._on_replaced)
                self._complain(repr(error))
                self._stop.wait(RETRY_S)
        self._tell(self._left.set)

    def _join(self) -> Consumer:
        seat = self._member(self._instance)
        seat.subscribe(
            [self._own.lease],
            on_assign=self._assigned,
            on_revoke=lambda _source, places: self._tell(self._on_revoked) if places else None,
            on_lost=lambda _source, _places: self._tell(self._on_lost),
        )
        return seat

    def _member(self, instance: str) -> Consumer:
        return member(
            self._settings,
            self._own.lease,
            self._lease_s,
            instance=instance,
            client_id=self._client_id,
        )

    def _be_member(self, seat: Consumer) -> None:
        self._holder = None
        self._passed_over.clear()
        mine = [seat]
        try:
            while not self._stop.is_set():
                self._serve(mine)
                will, self._will = self._will, None
                if will is not None and self._holder is None:
                    self._succeed(mine, *will)
        finally:
            for each in mine:  # the one that has it goes first
                _leave(each)

    def _serve(self, mine: Sequence[Consumer]) -> None:
        for each in mine:
            message = each.poll(POLL_S / len(mine))
            if message is not None and (error := message.error()) is not None:
                if error.code() == KafkaError._FATAL:
                    raise KafkaException(error)
                self._complain(error.str())
        is_quiet = monotonic() - self._complained > QUIET_S
        if self.why and is_quiet and all(each.memberid() for each in mine):
            self.why = ""  # outside the group silence says nothing

    def _succeed(self, mine: list[Consumer], place: str, others: Sequence[str]) -> None:
        """Of an inherited place brokers go on telling the client.id and the address of whoever had
        it first. So an heir stays in the group as itself, too, and does not want the lease."""
        own, self._instance = self._instance, place
        heir = self._join()
        mine.insert(0, heir)
        while self._holder is None and heir not in self._passed_over and not self._stop.is_set():
            self._serve(mine)
        deadline = monotonic() + DECIDE_S
        while self._holder is None and monotonic() < deadline:
            self._serve(mine)
        if self._holder is None:
            self._tell(self._gone.set)
            return
        if self._holder is heir:
            self._only_sign(mine[1])
        else:  # Kafka had let the other one go meanwhile: we lead as ourselves
            self._instance = own
            mine.remove(heir)
            _leave(heir)
        for instance in others:
            self._bury(instance, mine)

    def _only_sign(self, source: Consumer) -> None:
        """In the group as ourselves. There has to be something to subscribe to."""
        source.subscribe([self._own.state], on_assign=_not_read)

    def _bury(self, instance: str, mine: Sequence[Consumer]) -> None:
        """Come back in its place, and leave: a group that changes would wait for the dead."""
        dead = self._member(instance)
        self._only_sign(dead)
        deadline = monotonic() + BURY_S
        while not dead.memberid() and monotonic() < deadline:
            dead.poll(POLL_S)
            self._serve(mine)
        _leave(dead)

    def _assigned(self, source: Consumer, places: Sequence[TopicPartition]) -> None:
        _not_read(source, places)
        if places:
            self._holder = source
        else:
            self._passed_over.add(source)
        is_ours = bool(places)
        self._tell(lambda: self._on_assigned(is_ours))

    def _complain(self, why: str) -> None:
        if why != self.why:
            _log.warning("the lease: %s", why)
        self.why, self._complained = why, monotonic()

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(what)


def new_name() -> str:
    return uuid4().hex


def _not_read(source: Consumer, places: Sequence[TopicPartition]) -> None:
    source.incremental_assign(list(places))
    source.pause(list(places))


def _leave(source: Consumer) -> None:
    """Tell the group. A static member that is only closed would be waited for."""
    with suppress(KafkaException, RuntimeError):
        source.unsubscribe()
        until = monotonic() + LEAVE_S
        while source.memberid() and monotonic() < until:
            source.poll(POLL_S)
    source.close()
