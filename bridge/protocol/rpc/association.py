"""One connection of an RPC server, from its first byte to its close: events in, commands out.

    UNBOUND --bind--> BOUND --requests, alter_contexts, auth3--> CLOSED

A request is put together by its call id, checked, and handed out as `Invoke`; `Answered` or
`Faulted` brings what became of it. Calls run side by side and are answered as they end, each
answer in one piece (RR-6): fragments are protected in the order in which they leave.
What a client may hold here is bounded: calls, bytes, contexts, and the time for each step.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from functools import partial
from typing import assert_never

from bridge.model.errors import ProtocolError, WireError
from bridge.protocol.commands import Close
from bridge.protocol.events import BytesReceived, Instant, PeerClosed, Tick
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.protocol.rpc.dialogue import (
    Answered,
    Command,
    Event,
    Faulted,
    Invoke,
    Refused,
    RunDown,
    Runtime,
    Transmit,
    Withdraw,
)
from bridge.protocol.rpc.fragments import LARGEST, SMALLEST, Target, cut
from bridge.protocol.rpc.ntlm import Acceptor, AuthFailed
from bridge.protocol.rpc.presentation import Presentation
from bridge.protocol.rpc.requests import ACCESS_DENIED, CANCELLED, Complete, NotTaken, Requests
from bridge.protocol.rpc.seal import BadSeal, Piece
from bridge.protocol.rpc.security import Denied, SecurityContext, SecurityTable, UnknownAuthType
from bridge.protocol.timers import Timers
from bridge.wire.rpc.bind import Bind, BindAck, BindNak, NakReason
from bridge.wire.rpc.pdu import (
    HEADER,
    WHOLE,
    FaultPdu,
    Flags,
    Fragment,
    FragmentReader,
    PduType,
    Request,
    Verifier,
    VersionError,
    pack_pdu,
)


class State(Enum):
    UNBOUND = auto()
    BOUND = auto()
    CLOSED = auto()


class Timer(IntEnum):
    BIND = auto()
    AUTHENTICATION = auto()
    REQUEST = auto()
    PROOF = auto()


class Association:
    def __init__(
        self,
        runtime: Runtime,
        *,
        connection: int,
        peer: str,
        local: tuple[str, int],
        now: Instant,
    ) -> None:
        self.state = State.UNBOUND
        self._runtime, self._limits = runtime, runtime.limits
        self._connection, self.peer, self._local = connection, peer, local
        self._reader = FragmentReader()
        self._presentation = Presentation(runtime.served)
        self._security = SecurityTable(partial(_acceptor, runtime, peer))
        self._group = 0
        self._max_xmit = self._max_recv = SMALLEST
        self._requests = Requests(runtime.limits, self._presentation)
        self._timers = Timers[Timer]()
        self._timers.start(Timer.BIND, now.mono + self._limits.bind_timeout)
        self._commands: list[Command] = []

    # -- the outside ------------------------------------------------------------------------

    def handle(self, event: Event, now: Instant) -> list[Command]:
        if self.state is State.CLOSED:
            return []
        try:
            self._react(event, now)
        except ProtocolError as fault:  # what came before it still counts
            self._close(fault.reason, fault.detail)
        return self._take()

    def close(self, reason: str) -> list[Command]:
        """End it for a reason of the owner's."""
        if self.state is not State.CLOSED:
            self._close(reason)
        return self._take()

    def next_wakeup(self) -> float | None:
        return None if self.state is State.CLOSED else self._timers.next_wakeup()

    @property
    def is_known(self) -> bool:
        """Bound, and by a proved name where calls need one."""
        is_proved = self._limits.anonymous or self._security.is_proved
        return self.state is State.BOUND and is_proved

    @property
    def held(self) -> int:
        """Bytes that this connection keeps here."""
        return self._requests.held + self._reader.unfinished

    def _take(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands

    def _close(self, reason: str, detail: str = "") -> None:
        self._commands += [Withdraw(call_id, orphaned=True) for call_id in self._requests.pending]
        self._commands.append(Close(reason, detail))
        if self.state is State.BOUND and self._runtime.groups.leave(self._group):
            self._commands.append(RunDown(self._group))
        self.state = State.CLOSED
        self._requests = Requests(self._limits, self._presentation)
        self._reader = FragmentReader()

    def _send(self, *buffers: Piece) -> None:
        self._commands.append(Transmit(buffers))

    # -- events -----------------------------------------------------------------------------

    def _react(self, event: Event, now: Instant) -> None:
        match event:
            case BytesReceived():
                self._on_bytes(event.data, now)
            case Answered():
                self._on_answered(event)
            case Faulted():
                if (call := self._requests.answered(event.call_id)) is not None and not call.silent:
                    self._fault(event.call_id, event.status, call.context, event.did_not_execute)
            case Tick():
                for timer in self._timers.due(now.mono):
                    raise ProtocolError("rpc-slow", timer.name.lower())
            case PeerClosed():
                self._close("peer-closed")
            case _:
                assert_never(event)

    def _on_bytes(self, data: bytes, now: Instant) -> None:
        try:
            for fragment in self._reader.feed(data):
                self._on_fragment(fragment, now)
                if self.state is State.CLOSED:
                    return
        except VersionError:
            self._send(_nak(0, NakReason.PROTOCOL_VERSION))
            raise
        if self._requests.unfinished or self._reader.unfinished:
            deadline = now.mono + self._limits.request_timeout
            self._timers.start_if_idle(Timer.REQUEST, deadline)
        else:
            self._timers.stop(Timer.REQUEST)

    def _on_fragment(self, fragment: Fragment, now: Instant) -> None:
        kind = fragment.type
        if self.state is State.UNBOUND:
            if kind is not PduType.BIND:
                raise ProtocolError("rpc-unexpected-pdu", f"{kind.name} before bind")
            self._on_bind(fragment, now)
        elif kind is PduType.REQUEST:
            self._on_request(fragment)
        elif kind is PduType.ALTER_CONTEXT:
            self._on_alter_context(fragment, now)
        elif kind is PduType.AUTH3:
            self._on_auth3(fragment, now)
        elif kind in (PduType.CO_CANCEL, PduType.ORPHANED):
            self._on_cancel(fragment)
        else:
            raise ProtocolError("rpc-unexpected-pdu", kind.name)

    # -- bind, alter_context, auth3 ---------------------------------------------------------

    def _on_bind(self, fragment: Fragment, now: Instant) -> None:
        bind = _whole_bind(fragment)
        try:
            verifier = self._authenticate(fragment, now)
        except UnknownAuthType:
            self._send(_nak(fragment.call_id, NakReason.AUTHENTICATION_TYPE))
            raise
        except ProtocolError:
            self._send(_nak(fragment.call_id, NakReason.NOT_SPECIFIED))
            raise
        if not self._enter(bind.group):
            self._send(_nak(fragment.call_id, NakReason.NOT_SPECIFIED))
            raise ProtocolError("rpc-unknown-group", str(bind.group))
        self._max_xmit = min(max(bind.max_recv, SMALLEST), LARGEST)
        self._max_recv = min(max(bind.max_xmit, SMALLEST), LARGEST)
        self._timers.stop(Timer.BIND)
        self._watch_proof(now)
        self._send(self._ack(PduType.BIND_ACK, fragment, bind, verifier))

    def _enter(self, wanted: int) -> bool:
        groups = self._runtime.groups
        if wanted and not groups.join(wanted, self.peer):
            return False
        self._group = wanted or groups.create(self.peer)
        self.state = State.BOUND
        return True

    def _on_alter_context(self, fragment: Fragment, now: Instant) -> None:
        bind = _whole_bind(fragment)
        try:
            verifier = self._authenticate(fragment, now)
        except AuthFailed as error:
            self._commands.append(Refused(error.reason, error.detail))
            self._fault(fragment.call_id, ACCESS_DENIED, 0, did_not_execute=True)
            return
        self._send(self._ack(PduType.ALTER_CONTEXT_RESP, fragment, bind, verifier))

    def _on_auth3(self, fragment: Fragment, now: Instant) -> None:
        try:
            self._security.finish(fragment.verifier, now)
        except AuthFailed as error:  # the next request hears of it
            self._commands.append(Refused(error.reason, error.detail))
        self._watch_authentication(now)

    def _authenticate(self, fragment: Fragment, now: Instant) -> Verifier | None:
        try:
            if fragment.verifier is None:
                return None
            return self._security.step(fragment.verifier, now)
        finally:
            self._watch_authentication(now)

    def _watch_authentication(self, now: Instant) -> None:
        if self._security.pending:
            deadline = now.mono + self._limits.authentication_timeout
            self._timers.start_if_idle(Timer.AUTHENTICATION, deadline)
        else:
            self._timers.stop(Timer.AUTHENTICATION)
        self._watch_proof(now)

    def _watch_proof(self, now: Instant) -> None:
        """Anonymous connections, as to the endpoint mapper, are short."""
        if self.is_known:
            self._timers.stop(Timer.PROOF)
        elif self.state is State.BOUND:
            self._timers.start_if_idle(Timer.PROOF, now.mono + self._limits.proof_timeout)

    def _ack(
        self, kind: PduType, fragment: Fragment, bind: Bind, verifier: Verifier | None
    ) -> bytes:
        results = tuple(self._presentation.answer(proposal) for proposal in bind.proposals)
        port = str(self._local[1]) if kind is PduType.BIND_ACK else ""
        ack = BindAck(self._max_xmit, self._max_recv, self._group, results, port)
        flags = WHOLE | fragment.flags & (Flags.CONC_MPX | Flags.SUPPORT_HEADER_SIGN)  # RR-6
        return pack_pdu(kind, fragment.call_id, ack.pack(), flags=flags, verifier=verifier)

    # -- requests ---------------------------------------------------------------------------

    def _on_request(self, fragment: Fragment) -> None:
        request = Request.unpack(fragment)
        try:
            security = self._security.of(fragment)
            stub = _stub(fragment, request.stub_at, security)
            complete = self._requests.add(fragment, request, security, stub)
        except NotTaken as error:
            if error.reason:
                self._commands.append(Refused(error.reason, error.detail))
            self._refuse(fragment, error.status, request.context)
            return
        except (Denied, BadSeal) as error:
            self._refuse(fragment, ACCESS_DENIED, request.context)
            self._on_denied(error)
            return
        if complete is not None:
            self._invoke(fragment.call_id, complete)

    def _invoke(self, call_id: int, complete: Complete) -> None:
        self._timers.stop(Timer.REQUEST)
        security = complete.security
        level = AuthLevel.NONE if security is None else security.level
        user = "" if security is None else security.user
        where = self._group, self._connection, self.peer, self._local
        call = Call(complete.opnum, complete.stub, level, user, *where)
        self._commands.append(Invoke(call_id, complete.context.index, call))

    def _refuse(self, fragment: Fragment, status: int, context: int) -> None:
        """Nothing of it ran."""
        self._requests.skip(fragment)
        if not fragment.flags & Flags.MAYBE:
            self._fault(fragment.call_id, status, context, did_not_execute=True)

    def _on_denied(self, error: Denied | BadSeal) -> None:
        if isinstance(error, BadSeal):
            raise error
        if error.fatal:
            raise ProtocolError("rpc-access-denied", error.why)
        self._commands.append(Refused("rpc-access-denied", error.why))

    def _on_cancel(self, fragment: Fragment) -> None:
        """RR-13. A verifier is rare here, but moves the counter of who sends it."""
        if fragment.verifier is not None:
            try:
                _stub(fragment, HEADER.size, self._security.of(fragment))
            except Denied as denied:
                raise ProtocolError("rpc-access-denied", denied.why) from denied
        call_id, is_orphaned = fragment.call_id, fragment.type is PduType.ORPHANED
        context = self._requests.cancel(call_id)
        if context is not None and not is_orphaned:
            self._fault(call_id, CANCELLED, context, did_not_execute=True)
        elif self._requests.is_pending(call_id):
            self._commands.append(Withdraw(call_id, is_orphaned))
            if is_orphaned:
                self._requests.answered(call_id)

    # -- answers ----------------------------------------------------------------------------

    def _on_answered(self, event: Answered) -> None:
        call = self._requests.answered(event.call_id)
        if call is None or call.silent:
            return
        security = call.security
        protection = security.protection if security is not None and security.signs else None
        target = Target(PduType.RESPONSE, event.call_id, call.context)
        self._send(*cut(target, event.stub, self._max_xmit, protection))

    def _fault(self, call_id: int, status: int, context: int, did_not_execute: bool) -> None:
        self._send(FaultPdu(call_id, status, context, did_not_execute).pack())


def _acceptor(runtime: Runtime, peer: str, auth_type: int, level: AuthLevel) -> Acceptor | None:
    return runtime.acceptor(auth_type, level, peer)


def _whole_bind(fragment: Fragment) -> Bind:
    if fragment.flags & WHOLE != WHOLE:
        raise WireError("pfc_flags", fragment.flags, "C706 12.6.4.3: a bind is not fragmented")
    return Bind.unpack(fragment)


def _stub(fragment: Fragment, start: int, security: SecurityContext | None) -> bytes:
    if security is None:
        return fragment.data[start : fragment.body_end]
    return security.open(fragment, start)


def _nak(call_id: int, reason: NakReason) -> bytes:
    return pack_pdu(PduType.BIND_NAK, call_id, BindNak(reason).pack())
