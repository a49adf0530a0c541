"""Opens queues for readers: their names, and whether they may. MS-MQRR 3.1.4.2, MS-MQMP 3.1.4.2"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from bridge.adapters.logs import fields
from bridge.adapters.own_hosts import OwnHosts
from bridge.adapters.remote_read.reads import Owner
from bridge.adapters.retained.service import NotKept, demand_readable, traits_of
from bridge.core.catalogue import Catalogue
from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.naming import Home, queue_of
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.naming import is_system, parent_of
from bridge.core.retained.queues import Access, Share
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Call
from bridge.wire.rpc.queue_format import QueueFormat

_log = logging.getLogger(__name__)
MOST_QUEUES: Final = 10_000  # from here on nobody makes another one by its name alone
Allowed = Callable[[], tuple[str, ...] | None]


class Opening:
    """`hosts` are all that a name may call us, `defaults` tells who may read what no mapping has:
    the queues of the machine, and those whose mapping is gone."""

    def __init__(
        self,
        service: Owner,
        catalogue: Callable[[], Catalogue],
        hosts: OwnHosts,
        local: Guid,
        access: ReadAccess,
        defaults: Allowed,
    ) -> None:
        self._service, self._catalogue, self._hosts = service, catalogue, hosts
        self._local, self.access, self._defaults = local, access, defaults
        self.on_refused: Callable[[Call, Refused], None] = lambda _call, _refused: None

    def open(
        self, call: Call, name: QueueFormat, access: int, share: int, *, is_timed: bool = True
    ) -> int:
        """A handle of the retained queues; `is_timed` as in `Handles.open`. Refused, in this order:
        bad parameters, no such queue, no right to read it, a forward queue (which has nothing to
        read), a sharing violation."""
        try:
            return self._open(call, name, access, share, is_timed)
        except Refused as refused:
            self.on_refused(call, refused)
            raise

    def _open(self, call: Call, name: QueueFormat, access: int, share: int, is_timed: bool) -> int:
        if access not in list(Access) or share not in list(Share):
            raise Refused(Status.INVALID_PARAMETER, f"access {access:#x}, share {share:#x}")
        queue = queue_of(name, self._home(call))
        path = parent_of(queue)
        self._demand(call, path)
        if access != Access.MOVE:
            self._demand_readable(call, queue)
        if self._service.queues.queue(path) is None:
            self._make(path)
        handles = self._service.queues.handles
        return handles.open(queue, Access(access), Share(share), is_timed=is_timed)

    def _home(self, call: Call) -> Home:
        return Home(
            guid=self._local,
            is_ours=lambda host: host in self._hosts or host == call.local[0],
            path_of=self._path_of,
        )

    def _path_of(self, number: int) -> str | None:
        found = self._catalogue().find(f"PRIVATE={self._local}\\{number:08x}")
        return None if found is None else found.name

    def _demand(self, call: Call, path: str) -> None:
        """That the caller may read it; also that there is such a queue."""
        queues, is_machine = self._service.queues, is_system(path)
        model = None if is_machine else self._catalogue().would_be(path)
        if queues.queue(path) is None and model is None:
            raise Refused(Status.QUEUE_NOT_FOUND, path)
        allowed = self._defaults() if model is None else model.mapping.allow_read
        if not self.access.permits(call.user, allowed):
            raise Refused(Status.ACCESS_DENIED, path)

    def _demand_readable(self, call: Call, queue: str) -> None:
        try:
            demand_readable(self._service.queues, self._catalogue(), queue)
        except NotKept as refused:
            told = fields(reason="rpc-open-forward-queue", peer=call.peer, user=call.user)
            _log.warning("a reader at %s is denied: %s", call.peer, refused, extra=told)
            raise

    def _make(self, path: str) -> None:
        """A pattern takes the name, but nobody has sent to it yet."""
        queues = self._service.queues
        queue = self._catalogue().by_path(path) if len(queues.names()) < MOST_QUEUES else None
        if queue is None:
            raise Refused(Status.QUEUE_NOT_FOUND, path)
        queues.define(queue.name, traits_of(queue))
