"""Who may read: how well a call is protected, and whom a mapping's `allow_read` names. RR-16"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.core.remote_read.codes import ACCESS_DENIED
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault

EVERYBODY = "*"  # whoever has proven who he is


class ReadAccess:
    """With users configured nobody may read unless a mapping names him. Without any there is
    nobody to name: then a queue without a list is open to all whom the level lets in."""

    def __init__(self, minimum: AuthLevel, *, has_users: bool) -> None:
        self.minimum, self._has_users = minimum, has_users

    def demand_level(self, call: Call, recorded: AuthLevel = AuthLevel.NONE) -> None:
        """`recorded` is the level at which a handle was opened: its later calls keep to it."""
        if call.level < max(self.minimum, recorded):
            raise Fault(ACCESS_DENIED, did_not_execute=True)

    def permits(self, user: str, allowed: Iterable[str] | None) -> bool:
        if allowed is None:
            return not self._has_users
        return bool(user) and any(_is_meant(user.lower(), entry.lower()) for entry in allowed)


def _is_meant(user: str, entry: str) -> bool:
    r"""`DOMAIN\name` is that one, `name` anybody of that name."""
    return entry in (EVERYBODY, user, user.rpartition("\\")[2])
