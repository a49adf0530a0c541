"""The client's side of one RPC connection: bytes in, outcomes out; no socket, no clock.

One connection speaks to one interface. Several calls may be under way if the server says so in its
bind_ack (PFC_CONC_MPX, C706 12.6.3.1); their answers come in any order and are told apart by call
id. Answers below the agreed protection are refused, except
faults: servers send them bare.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Protocol

import msgspec

from bridge.model.errors import BindRefused, InterfaceRefused, ProtocolError
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.fragments import (
    LARGEST,
    SMALLEST,
    Assembly,
    Protection,
    Stub,
    Target,
    cut,
)
from bridge.protocol.rpc.seal import BadSeal, Piece, Seal
from bridge.protocol.rpc.security import AuthType
from bridge.wire.rpc.bind import (
    NDR,
    Bind,
    BindAck,
    BindNak,
    NakReason,
    Proposal,
    Reason,
    ResultCode,
    Syntax,
)
from bridge.wire.rpc.pdu import (
    CALL_HEADER,
    FAULT_SIZE,
    WHOLE,
    FaultPdu,
    Flags,
    Fragment,
    FragmentReader,
    PduType,
    Response,
    Verifier,
    pack_pdu,
)

MOST_BYTES: Final = 17 << 20  # of an answer: RR-52 allows 16 MiB of sections
_CONTEXT: Final = 0  # of presentation
_AUTH_CONTEXT: Final = 1


class Authenticator(Protocol):
    """Proves who we are, token by token; raises BindRefused."""

    @property
    def type(self) -> int: ...

    @property
    def complete(self) -> bool: ...

    @property
    def seal(self) -> Seal: ...

    def step(self, token: bytes | None) -> bytes:
        """Our next token, empty if there is none."""


class Opened(msgspec.Struct, frozen=True, gc=False):
    """Calls can be made."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """To be sent, before anything else."""

    data: bytes


class Returned(msgspec.Struct, frozen=True, gc=False):
    call_id: int
    stub: bytes


class Failed(msgspec.Struct, frozen=True, gc=False):
    call_id: int
    status: int
    did_not_execute: bool


Outcome = Opened | Reply | Returned | Failed


class _State(Enum):
    BINDING = auto()
    AUTHENTICATING = auto()
    OPEN = auto()


class Client:
    def __init__(
        self,
        interface: Syntax,
        *,
        auth: Authenticator | None = None,
        level: AuthLevel = AuthLevel.NONE,
        group: int = 0,
        max_fragment: int = LARGEST,
    ) -> None:
        if (auth is None) != (level is AuthLevel.NONE):
            raise ValueError("a level above NONE needs somebody to be, and NONE nobody")
        self.group = group
        self.is_concurrent = False  # the server takes several calls at once
        self._interface, self._auth, self._level = interface, auth, level
        self._max_fragment = max_fragment
        self._max_xmit = SMALLEST
        self._state = _State.BINDING
        self._protection: Protection | None = None
        self._reader = FragmentReader()
        self._answers: dict[int, Assembly] = {}
        self._call_id = 1

    # -- what we send -----------------------------------------------------------------------

    def open(self) -> bytes:
        """The bind."""
        auth = self._auth
        verifier = self._verifier(auth.step(None)) if auth is not None else None
        flags = WHOLE | Flags.CONC_MPX | (Flags.SUPPORT_HEADER_SIGN if auth is not None else 0)
        return pack_pdu(
            PduType.BIND, self._call_id, self._bind().pack(), flags=flags, verifier=verifier
        )

    @property
    def is_busy(self) -> bool:
        """The server takes one call at a time, and one is under way."""
        return not self.is_concurrent and bool(self._answers)

    def call(self, opnum: int, stub: Stub) -> tuple[int, list[Piece]]:
        """The call id, and buffers that go out together. Not while it `is_busy`."""
        if self.is_busy:
            raise ProtocolError("rpc-busy", "the server takes one call at a time")
        if self._state is not _State.OPEN:
            raise ProtocolError("rpc-not-open", "a call before the bind is through")
        self._call_id = self._call_id % 0xFFFFFFFF + 1
        self._answers[self._call_id] = Assembly()
        target = Target(PduType.REQUEST, self._call_id, _CONTEXT, opnum)
        return self._call_id, cut(target, stub, self._max_xmit, self._protection)

    def orphan(self, call_id: int) -> bytes:
        """Nobody waits for it: what to tell the server; empty if it has answered already."""
        if self._answers.pop(call_id, None) is None:
            return b""
        return pack_pdu(PduType.ORPHANED, call_id, b"")

    def _bind(self) -> Bind:
        proposal = Proposal(_CONTEXT, self._interface, (NDR,))
        return Bind(self._max_fragment, self._max_fragment, self.group, (proposal,))

    def _verifier(self, token: bytes) -> Verifier:
        assert self._auth is not None
        return Verifier(self._auth.type, self._level, _AUTH_CONTEXT, token)

    # -- what comes -------------------------------------------------------------------------

    def receive(self, data: bytes) -> Iterator[Outcome]:
        """Raises ProtocolError or BindRefused: the connection is of no more use."""
        for fragment in self._reader.feed(data):
            match fragment.type:
                case PduType.RESPONSE if self._state is _State.OPEN:
                    yield from self._on_response(fragment)
                case PduType.FAULT:
                    yield from self._on_fault(fragment)
                case PduType.BIND_ACK if self._state is _State.BINDING:
                    yield from self._on_bind_ack(fragment)
                case PduType.ALTER_CONTEXT_RESP if self._state is _State.AUTHENTICATING:
                    yield from self._go_on(fragment)
                case PduType.BIND_NAK if self._state is _State.BINDING:
                    raise _refused(BindNak.unpack(fragment).reason)
                case PduType.SHUTDOWN:
                    pass  # we close when we have what we want. C706 12.6.4.11
                case _:
                    raise ProtocolError("rpc-unexpected-pdu", fragment.type.name)

    def _on_bind_ack(self, fragment: Fragment) -> Iterator[Outcome]:
        ack = BindAck.unpack(fragment)
        if len(ack.results) != 1:
            raise ProtocolError("rpc-bind-ack", f"{len(ack.results)} results")
        result = ack.results[0]
        if result.code != ResultCode.ACCEPTANCE:
            raise _rejected(result.reason)
        self.group = ack.group
        self.is_concurrent = fragment.flags & Flags.CONC_MPX != 0
        self._max_xmit = min(max(ack.max_recv, SMALLEST), self._max_fragment)
        yield from self._go_on(fragment)

    def _go_on(self, fragment: Fragment) -> Iterator[Outcome]:
        """The next token; a mechanism that ends with one of ours ends with auth3."""
        auth = self._auth
        if auth is not None and not auth.complete:
            if fragment.verifier is None:
                raise BindRefused("the server does not answer our authentication")
            token = auth.step(fragment.verifier.value)
            if token:
                is_last = auth.complete and auth.type != AuthType.NEGOTIATE
                yield Reply(self._token_pdu(token, is_last=is_last))
                if not is_last:
                    self._state = _State.AUTHENTICATING
                    return
        yield from self._finish()

    def _finish(self) -> Iterator[Outcome]:
        auth = self._auth
        if auth is not None:
            if not auth.complete:
                raise BindRefused("the authentication does not come to its end")
            if self._level > AuthLevel.CONNECT:
                self._protection = Protection(auth.seal, auth.type, self._level, _AUTH_CONTEXT)
        self._state = _State.OPEN
        yield Opened()

    def _token_pdu(self, token: bytes, *, is_last: bool) -> bytes:
        verifier = self._verifier(token)
        if is_last:  # four bytes that mean nothing. MS-RPCE 2.2.2.10
            return pack_pdu(PduType.AUTH3, self._call_id, bytes(4), verifier=verifier)
        body = self._bind().pack()
        return pack_pdu(PduType.ALTER_CONTEXT, self._call_id, body, verifier=verifier)

    def _on_response(self, fragment: Fragment) -> Iterator[Outcome]:
        Response.unpack(fragment)
        piece = self._opened(fragment, CALL_HEADER)
        answer = self._answers.get(fragment.call_id)
        if answer is None:  # an orphan's
            return
        if fragment.is_first and answer.size:
            raise ProtocolError("rpc-fragments", "a second first fragment")
        if answer.size + len(piece) > MOST_BYTES:
            raise ProtocolError("rpc-too-large", f"an answer over {MOST_BYTES} bytes")
        answer.add(piece)
        if fragment.is_last:
            del self._answers[fragment.call_id]
            yield Returned(fragment.call_id, answer.whole())

    def _opened(self, fragment: Fragment, start: int) -> bytes:
        protection = self._protection
        if protection is None or (
            fragment.verifier is None and protection.level < AuthLevel.INTEGRITY
        ):
            return fragment.data[start : fragment.body_end]
        verifier = fragment.verifier
        if verifier is not None and verifier.level != protection.level:
            raise BadSeal("another level than agreed on")
        return protection.open(fragment, start)

    def _on_fault(self, fragment: Fragment) -> Iterator[Outcome]:
        fault = FaultPdu.unpack(fragment)
        if self._state is not _State.OPEN:
            raise BindRefused(f"the server does not let us in ({_status(fault.status)})")
        if fragment.verifier is not None and self._protection is not None:
            self._opened(fragment, min(FAULT_SIZE, fragment.end))
        if self._answers.pop(fault.call_id, None) is not None:
            yield Failed(fault.call_id, fault.status, fault.did_not_execute)


def _status(status: int) -> str:
    return "access denied" if status == 5 else f"fault {status:08X}"


def _refused(reason: int) -> BindRefused:
    if reason == NakReason.AUTHENTICATION_TYPE:
        return BindRefused("the server does not know our kind of authentication")
    return BindRefused(f"the server refuses the connection (bind_nak, reason {reason})")


def _rejected(reason: int) -> BindRefused:
    if reason == Reason.ABSTRACT_SYNTAX:
        return InterfaceRefused("the server does not serve this interface")
    return BindRefused(f"the server refuses the interface (reason {reason})")
