"""Who may send to a queue: `allow:` of its mapping. DM-14, MS-MQQB 3.1.5.8.3"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from bridge.model.guid import Guid
from bridge.model.message import Message

ANONYMOUS: Final = "S-1-5-7"  # a message without a sender is judged as this one
EVERYONE: Final = "S-1-1-0"
_SID: Final = re.compile(r"S-1(-\d+){1,16}", re.IGNORECASE)
_CACHE: Final = 10_000


class AllowedSender(str):
    """A sender's GUID, a SID, an address or a network in CIDR notation."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> AllowedSender:
        if not _SID.fullmatch(text):
            try:
                Guid.parse(text)
            except ValueError:
                ipaddress.ip_network(text)
        return cls(text)


class AccessList:
    """Permits a message when any of its sender's marks is on the list.

    The SID is the sender's own claim (direct names prove none), the address that of the peer.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._guids: set[Guid] = set()
        self._sids: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for text in allowed:
            if _SID.fullmatch(text):
                self._sids.add(text.upper())
            elif _is_guid(text):
                self._guids.add(Guid.parse(text))
            else:
                self._networks.append(ipaddress.ip_network(text))
        self._known: dict[tuple[Guid, str, str], bool] = {}

    def permits(self, message: Message) -> bool:
        marks = message.source, message.peer, message.sender
        known = self._known.get(marks)
        if known is None:
            if len(self._known) >= _CACHE:
                self._known.clear()
            known = self._known[marks] = self._judge(*marks)
        return known

    def _judge(self, source: Guid, peer: str, sender: str) -> bool:
        sids = {sender.upper() or ANONYMOUS, EVERYONE}
        if source in self._guids or sids & self._sids:
            return True
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _is_guid(text: str) -> bool:
    try:
        Guid.parse(text)
    except ValueError:
        return False
    return True
