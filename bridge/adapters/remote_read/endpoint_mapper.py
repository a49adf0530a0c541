"""Tells clients the ports of our interfaces. RR-2, C706 appendix O

A list that does not fit in one answer goes on by a handle that is nothing but a place in it, so
there is nothing to keep and nothing to run down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.codes import NO_SUCH_HANDLE
from bridge.model.guid import NULL_GUID, Guid
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault
from bridge.wire.rpc import endpoint_mapper as wire
from bridge.wire.rpc.ndr import NULL_HANDLE, BadStub
from bridge.wire.rpc.tower import Tower

_PLACE: Final = b"\0\0\0\0msmq-bridge\0"  # opens the handle of a list that goes on
_BY_INTERFACE: Final = (1, 3)  # inquiry_type: rpc_c_ep_match_by_if, …_by_both
_BY_OBJECT: Final = (2, 3)

Item = TypeVar("Item")


class Endpoint(msgspec.Struct, frozen=True):
    """An interface and the port that it is at."""

    uuid: Guid
    version: tuple[int, int]
    port: int
    annotation: str = ""


class EndpointMapper(ServedInterface):
    version = wire.VERSION

    def __init__(self, endpoints: Callable[[], Sequence[Endpoint]]) -> None:
        self._endpoints = endpoints
        super().__init__(
            wire.ENDPOINT_MAPPER,
            ReadAccess(AuthLevel.NONE, has_users=False),
            (
                Entry(wire.Lookup, self._lookup, is_open=True),
                Entry(wire.Map, self._map, is_open=True),
                Entry(wire.FreeHandle, self._free, is_open=True),
            ),
        )

    def _map(self, call: Call, request: wire.Map) -> wire.Mapped:
        try:
            wanted = None if request.tower is None else Tower.unpack(request.tower)
        except BadStub as bad:
            raise Fault(bad.status) from None
        found = [
            tower
            for endpoint, tower in self._towers(call)
            if wanted is not None and _is_compatible(endpoint, wanted.uuid, wanted.version)
        ]
        page, handle = _page(found, request.handle, request.most)
        status = 0 if found else wire.NOT_REGISTERED
        return wire.Mapped(handle, wire.Listed(tuple(page), request.most), status)

    def _lookup(self, call: Call, request: wire.Lookup) -> wire.LookedUp:
        found = [
            wire.Entry(tower, endpoint.annotation)
            for endpoint, tower in self._towers(call)
            if _is_asked_for(endpoint, request)
        ]
        page, handle = _page(found, request.handle, request.most)
        status = 0 if found else wire.NOT_REGISTERED
        return wire.LookedUp(handle, wire.ListedEntries(tuple(page), request.most), status)

    def _free(self, _call: Call, _request: wire.FreeHandle) -> wire.HandleFreed:
        return wire.HandleFreed(NULL_HANDLE, 0)

    def _towers(self, call: Call) -> list[tuple[Endpoint, bytes]]:
        """At the address that the client has reached us by."""
        return [
            (each, Tower(each.uuid, each.version, each.port, call.local[0]).pack())
            for each in self._endpoints()
        ]


def _is_compatible(endpoint: Endpoint, uuid: Guid, version: tuple[int, int]) -> bool:
    """The same major version, and at least the minor one."""
    (major, minor), (wanted_major, wanted_minor) = endpoint.version, version
    return endpoint.uuid == uuid and major == wanted_major and minor >= wanted_minor


def _is_asked_for(endpoint: Endpoint, request: wire.Lookup) -> bool:
    if request.inquiry in _BY_OBJECT and request.object not in (None, NULL_GUID):
        return False  # none of ours has an object
    interface = request.interface
    if request.inquiry not in _BY_INTERFACE or interface is None:
        return True
    if endpoint.uuid != interface.uuid:
        return False
    asked, has = (interface.major, interface.minor), endpoint.version
    match request.version_option:
        case 2:  # rpc_c_vers_compatible
            return _is_compatible(endpoint, interface.uuid, asked)
        case 3:  # …_exact
            return has == asked
        case 4:  # …_major_only
            return has[0] == asked[0]
        case 5:  # …_upto
            return has <= asked
        case _:
            return True


def _page(found: Sequence[Item], handle: bytes, most: int) -> tuple[Sequence[Item], bytes]:
    """What fits, and the handle of the rest; NULL if there is none."""
    start = 0
    if handle != NULL_HANDLE:
        start = int.from_bytes(handle[len(_PLACE) :], "little")
        if not handle.startswith(_PLACE) or start > len(found):
            raise Fault(NO_SUCH_HANDLE)
    end = start + most
    if end >= len(found) or not most:
        return found[start:end], NULL_HANDLE
    return found[start:end], _PLACE + end.to_bytes(len(NULL_HANDLE) - len(_PLACE), "little")
