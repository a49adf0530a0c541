"""Who leads among appliances of one identity: whoever Kafka assigns the lease to.

The lease is the only partition of a topic without records, in a consumer group named after the
topic prefix. Members stay where they are when others come (cooperative-sticky); one that leaves
hands it on at once, one that falls silent after the session timeout. It says only when to take
over: that two never commit at once is the fencing of the shards' producers, with or without it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bridge.adapters.kafka.client import Settings, member
from bridge.adapters.kafka.topics import OwnTopics
from bridge.model.errors import BridgeError

POLL_S: Final = 0.1
RETRY_S: Final = 2.0

_log = logging.getLogger(__name__)


class LeaseLost(BridgeError):
    """Another appliance leads now, or is about to."""


class Lease:
    """`won` once; then `lost` raises if it ever goes to somebody else; `leave` hands it on."""

    def __init__(self, settings: Settings, own: OwnTopics, lease_s: float) -> None:
        self._settings, self._own, self._lease_s = settings, own, lease_s
        self._loop = asyncio.get_running_loop()
        self._held = asyncio.Event()
        self._gone = asyncio.Event()
        self._left = asyncio.Event()
        self._is_in_doubt = False
        self.why = ""  # what keeps us out of the group
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

    # -- in the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                source = member(self._settings, self._own.lease, self._lease_s)
                source.subscribe(
                    [self._own.lease],
                    on_assign=self._assigned,
                    on_revoke=lambda _source, _places: self._tell(self._on_revoked),
                    on_lost=lambda _source, _places: self._tell(self._on_lost),
                )
                self._poll(source)
                source.close()  # tells the group that we are gone
            except KafkaException as error:
                self._complain(error.args[0].str())
                self._stop.wait(RETRY_S)
        self._tell(self._left.set)

    def _poll(self, source: Consumer) -> None:
        while not self._stop.is_set():
            message = source.poll(POLL_S)
            if message is not None and (error := message.error()) is not None:
                self._complain(error.str())

    def _assigned(self, source: Consumer, places: Sequence[TopicPartition]) -> None:
        mine = list(places)
        source.incremental_assign(mine)
        source.pause(mine)  # there is nothing to read
        self._tell(lambda: self._on_assigned(bool(mine)))

    def _complain(self, why: str) -> None:
        if why != self.why:
            _log.warning("the lease: %s", why)
        self.why = why

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(what)
