"""What every RPC server tells of itself. C706 appendix Q"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.access import ReadAccess
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.wire.rpc import management as wire
from bridge.wire.rpc.endpoint_mapper import InterfaceId

_UNKNOWN_PACKAGE: Final = 1747  # RPC_S_UNKNOWN_AUTHN_SERVICE
_TOO_SMALL: Final = 122  # ERROR_INSUFFICIENT_BUFFER
_SPNEGO, _NTLM, _KERBEROS = 9, 10, 16


class Management(ServedInterface):
    """`principal` is the name that Kerberos clients ask a ticket for."""

    def __init__(
        self, interfaces: Callable[[], Sequence[tuple[Guid, tuple[int, int]]]], principal: str
    ) -> None:
        self._interfaces, self._principal = interfaces, principal
        super().__init__(
            wire.MANAGEMENT,
            ReadAccess(AuthLevel.NONE, has_users=False),
            (
                Entry(wire.InquireInterfaceIds, self._interface_ids, is_open=True),
                Entry(wire.IsServerListening, self._is_listening, is_open=True),
                Entry(wire.InquirePrincipalName, self._principal_name, is_open=True),
            ),
        )

    def _interface_ids(self, _call: Call, _request: wire.InquireInterfaceIds) -> wire.InterfaceIds:
        found = (InterfaceId(uuid, *version) for uuid, version in self._interfaces())
        return wire.InterfaceIds(tuple(found), 0)

    def _is_listening(self, _call: Call, _request: wire.IsServerListening) -> wire.IsListening:
        return wire.IsListening(0, 1)

    def _principal_name(
        self, _call: Call, request: wire.InquirePrincipalName
    ) -> wire.PrincipalName:
        name, status = self._principal, 0
        if request.package not in (_SPNEGO, _NTLM, _KERBEROS):
            name, status = "", _UNKNOWN_PACKAGE
        elif len(name) + 1 > request.most:
            name, status = "", _TOO_SMALL
        return wire.PrincipalName(wire.Text(name, max(request.most, 1)), status)
