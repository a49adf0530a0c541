"""Hands messages on to the hosts that `srmp.redirect_in` names. SR-15; digest srmp.md 3.11

They are durable before they come here and stay so until their host has taken them, or their time
is over (SR-63): at least once, those of a sender in their order. 400 is the host's last word.
Anything else but 2xx, and no answer, means again, for as long as it takes.

Nothing is given up for want of room: what may wait is bounded where messages are accepted. The
URLs are the operator's own, so few and trusted; not so those of receipts (postman.py).
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from typing import Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.outgoing import RETRANSMISSION_S, Carrier, OutgoingQueue
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.adapters.telemetry import Telemetry
from bridge.core.forwards import Ending
from bridge.core.ports import Forward
from bridge.model.errors import BridgeError

_BAD_REQUEST: Final = 400
_log = logging.getLogger(__name__)


class Forwarder:
    def __init__(
        self,
        targets: ReceiptTargets,
        telemetry: Telemetry,
        tls: ssl.SSLContext | None = None,
        retransmission_s: float = RETRANSMISSION_S,
    ) -> None:
        self._targets, self._telemetry, self._tls = targets, telemetry, tls
        self._retransmission_s = retransmission_s
        self._queues: dict[str, OutgoingQueue[int, Forward]] = {}
        self._owners: dict[int, ShardPump] = {}  # of all that wait
        self._stopped = False

    def take(self, forwards: Sequence[Forward], owner: ShardPump) -> None:
        """These are durable now; one that is known already is not taken twice."""
        for forward in () if self._stopped else forwards:
            if forward.ordinal not in self._owners:
                self._owners[forward.ordinal] = owner
                self._queue(forward.onward.url).put(forward.ordinal, forward)

    @property
    def failing(self) -> set[str]:
        """URLs, in small letters, that did not take what they were given last."""
        return {url for url, queue in self._queues.items() if queue.is_inactive}

    def stop(self) -> None:
        """What is not handed on yet waits for the next start."""
        self._stopped = True
        for queue in self._queues.values():
            queue.task.cancel()

    def _queue(self, url: str) -> OutgoingQueue[int, Forward]:
        url = url.lower()
        queue = self._queues.get(url)
        if queue is None:
            queue = self._queues[url] = OutgoingQueue(
                Carrier(self._tls),
                self._deliver,
                self._expire,
                lambda: self._leave(url),
                self._retransmission_s,
            )
        return queue

    def _leave(self, url: str) -> None:
        del self._queues[url]

    async def _deliver(self, carrier: Carrier, forward: Forward) -> bool:
        onward = forward.onward
        try:
            target = await self._targets.reach(onward.url)
            status = await carrier.post(target, onward.content_type, onward.packet, onward.via)
        except (OSError, TimeoutError, UnicodeError, BridgeError) as error:
            self._failed(forward, "forward-no-answer", error or "no answer")
            return False
        if status == _BAD_REQUEST:
            self._telemetry.refusal("forward-refused")
            _log.warning("%s does not want %s: 400", onward.url, forward.id)
            self._end(forward, Ending.REFUSED)
            return True
        if not 200 <= status < 300:
            self._failed(forward, "forward-not-taken", status)
            return False
        self._end(forward, Ending.TAKEN)
        return True

    def _failed(self, forward: Forward, reason: str, why: object) -> None:
        """One line when it begins: it may last for days."""
        self._telemetry.refusal(reason)
        queue = self._queues[forward.onward.url.lower()]
        level = logging.INFO if queue.is_inactive else logging.WARNING
        _log.log(level, "forwarding to %s: %s; trying again", forward.onward.url, why)

    def _expire(self, forward: Forward) -> None:
        self._telemetry.refusal("forward-expired")
        _log.warning("%s was not taken by %s in time", forward.id, forward.onward.url)
        self._end(forward, Ending.EXPIRED)

    def _end(self, forward: Forward, ending: Ending) -> None:
        self._telemetry.forward(ending.name.lower())
        self._owners.pop(forward.ordinal).forward_ended(forward, ending)
