"""Who may send to a queue: `allow:` of its mapping. MS-MQQB 3.1.5.8.3"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from bridge.model import hosts
from bridge.model.cache import Cache, text_size
from bridge.model.guid import Guid
from bridge.model.message import Message

ANONYMOUS: Final = "S-1-5-7"  # a message without a sender is judged as this one
EVERYONE: Final = "S-1-1-0"
_SID: Final = re.compile(r"S-1(-\d+){1,16}", re.IGNORECASE)
_NAME: Final = re.compile(
    r"(cn|san):[^\x00-\x20\x7f]([^\x00-\x1f\x7f]{0,254}[^\x00-\x20\x7f])?", re.I
)
_CACHE: Final = 10_000
_CACHE_BYTES: Final = 4 << 20

Network = hosts.Network
_Marks = tuple[Guid, str, str, tuple[str, ...]]


class AllowedSender(str):
    """A sender's GUID, a SID, an address or a network in CIDR notation, GUID@network, or the name
    in a client certificate: cn:NAME, san:NAME."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> AllowedSender:
        if not _SID.fullmatch(text) and not _NAME.fullmatch(text):
            guid, at, network = text.rpartition("@")
            if at:
                Guid.parse(guid)
            if at or not is_guid(text):
                hosts.network(network)
        return cls(text)


class Access(Enum):
    GRANTED = auto()
    USER_DENIED = auto()  # the list has users, and the message's is not among them
    PEER_DENIED = auto()  # no user could send this from there: its source is not to be believed


class AccessList:
    """Grants access to a message when one entry fits.

    The SID is the sender's own claim (direct names prove none), the address is that of the peer,
    and the names are those of the certificate that the peer has shown (`srmp.client_ca`).
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._guids: set[Guid] = set()
        self._sids: set[str] = set()
        self._networks: list[Network] = []
        self._guids_at: dict[Guid, list[Network]] = {}
        self._names: set[str] = set()
        for text in allowed:
            guid, at, network = text.rpartition("@")
            if _SID.fullmatch(text):
                self._sids.add(text.upper())
            elif _NAME.fullmatch(text):
                self._names.add(text.lower())
            elif at:
                places = self._guids_at.setdefault(Guid.parse(guid), [])
                places.append(hosts.network(network))
            elif is_guid(text):
                self._guids.add(Guid.parse(text))
            else:
                self._networks.append(hosts.network(text))
        self._known: Cache[_Marks, Access] = Cache(_CACHE, _CACHE_BYTES)

    def judge(self, message: Message) -> Access:
        names = () if message.srmp is None else message.srmp.peer_names
        marks = message.source, message.peer, message.sender, names
        known = self._known.get(marks)
        if known is not None:
            return known
        size = text_size(message.peer, message.sender, *names)
        return self._known.keep(marks, self._judge(*marks), size)

    @property
    def names_certificates(self) -> bool:
        """Whether two senders at one address, with one GUID, can be judged differently."""
        return bool(self._names)

    def lists(self, guid: Guid, peer: str) -> bool:
        """Whether it names the queue manager, its address, or both together."""
        return guid in self._guids or self._is_at_home(guid, peer)

    def _judge(self, source: Guid, peer: str, sender: str, names: tuple[str, ...]) -> Access:
        sids = {sender.upper() or ANONYMOUS, EVERYONE}
        if sids & self._sids or self.lists(source, peer) or not self._names.isdisjoint(names):
            return Access.GRANTED
        return Access.USER_DENIED if self._sids else Access.PEER_DENIED

    def _is_at_home(self, source: Guid, peer: str) -> bool:
        places = [*self._networks, *self._guids_at.get(source, ())]
        return bool(places) and in_networks(peer, places)


def in_networks(peer: str, networks: Iterable[Network]) -> bool:
    """An IPv4 address that came in over an IPv6 socket is judged as IPv4."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in networks)


def is_guid(text: str) -> bool:
    try:
        Guid.parse(text)
    except ValueError:
        return False
    return True
