"""The other end of a session: its bytes come from tests.outside, none from bridge.wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TypeVar
from uuid import UUID

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.verdict import ACCEPTED, Cursor, Outcome, Verdict
from bridge.protocol.binary.handshake import AcceptorHandshake, InitiatorHandshake
from bridge.protocol.binary.session import Session, SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close, Command, Send
from bridge.protocol.events import BytesReceived, Decided, Instant, Tick
from bridge.wire.binary.packet import Packet, PacketReader, UserMessage
from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.outside.rawmsmq import (
    ZERO,
    Message,
    Name,
    SessionHeader,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    session_ack,
)
from tests.outside.rawparse import Received, SessionAck, parse

CLIENT = UUID("11111111-2222-3333-4444-555555555555")  # C of the digest's vectors
SERVER = UUID("A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9")  # S
LOCAL = Guid(SERVER.bytes_le)
REMOTE = Guid(CLIENT.bytes_le)
ADDRESS = "192.0.2.10"
EPOCH = 0x60000000
SEQUENCE = 0x60000000_00000001
QUEUE = direct("OS:appl\\private$\\q1")
QUEUE_NAME = "DIRECT=OS:appl\\private$\\q1"
DEFAULTS = SessionSettings()

CommandT = TypeVar("CommandT")


def at(seconds: float) -> Instant:
    """Both clocks, `seconds` after the connection was made."""
    return Instant(seconds, EPOCH + seconds)


def packet_of(raw: bytes) -> Packet:
    (packet,) = PacketReader().feed(raw)
    return packet


def user_message(raw: bytes) -> UserMessage:
    return UserMessage.unpack(raw)


# -- what the peer sends ----------------------------------------------------------------------


def message(
    ordinal: int = 1,
    *,
    recoverable: bool = False,
    tx: Tx | None = None,
    queue: Name = QUEUE,
    source: UUID = CLIENT,
    manager: UUID = ZERO,
    body: bytes = b"body",
) -> Message:
    return Message(
        source=source,
        message_id=ordinal,
        destination=queue,
        queue_manager=manager,
        body=body,
        recoverable=recoverable,
        tx=tx,
        sent_time=EPOCH,
    )


def express(ordinal: int = 1, header: SessionHeader | None = None) -> bytes:
    return build(message(ordinal), header)


def recoverable(ordinal: int = 1, header: SessionHeader | None = None) -> bytes:
    return build(message(ordinal, recoverable=True), header)


def transactional(number: int, **options: object) -> bytes:
    tx = Tx(sequence_id=SEQUENCE, number=number, previous=number - 1)
    return build(message(number, tx=tx, **options))  # type: ignore[arg-type]


def peer_ack(**fields: int) -> bytes:
    return session_ack(SessionHeader(**fields))


# -- what the core answers --------------------------------------------------------------------


def accepted(batch: int, messages: int = 1) -> Decided:
    return Decided(batch, [ACCEPTED] * messages)


def taken(number: int, sequence: int = SEQUENCE, outcome: Outcome = Outcome.ACCEPTED) -> Verdict:
    """A verdict on a transactional message, and where its stream stands after it."""
    return Verdict(outcome, 0, "", Cursor(sequence, number))


# -- the session under test -------------------------------------------------------------------


def acceptor(
    *, settings: SessionSettings = DEFAULTS, peer: str = ADDRESS, now: Instant | None = None
) -> Session:
    return Session(
        AcceptorHandshake(LOCAL, settings.window),
        local=LOCAL,
        peer=peer,
        ordinals=count(1).__next__,
        now=now or at(0),
        settings=settings,
    )


def open_acceptor(
    *,
    settings: SessionSettings = DEFAULTS,
    peer: str = ADDRESS,
    asked: UUID = ZERO,
    window: int = 64,
    recoverable_ack_ms: int = 500,
    ack_ms: int = 20_000,
) -> Session:
    """An acceptor after the handshake, at time 0; `asked` is the ServerGuid of the request."""
    session = acceptor(settings=settings, peer=peer)
    request = ec_request(CLIENT, asked)
    parameters = {"recoverable_ack_ms": recoverable_ack_ms, "ack_ms": ack_ms}
    assert sent(session.handle(BytesReceived(request), at(0))) == [
        expected_ec_response(client=CLIENT, server=SERVER)
    ]
    request = cp_request(window=window, **parameters)
    assert sent(session.handle(BytesReceived(request), at(0))) == [
        expected_cp_response(window=settings.window, **parameters)
    ]
    assert session.state is SessionState.OPEN
    return session


def initiator(
    *, settings: SessionSettings = DEFAULTS, remote: Guid = NULL_GUID, ack_ms: int = 20_000
) -> Session:
    """Here the session under test is the client, so it has the GUID S all the same."""
    return Session(
        InitiatorHandshake(LOCAL, remote, settings.window, ack_ms),
        local=LOCAL,
        peer=ADDRESS,
        ordinals=count(1).__next__,
        now=at(0),
        settings=settings,
    )


def feed(session: Session, data: bytes, seconds: float) -> list[Command]:
    return session.handle(BytesReceived(data), at(seconds))


def tick(session: Session, seconds: float) -> list[Command]:
    return session.handle(Tick(), at(seconds))


def decide(session: Session, verdicts: Decided, seconds: float) -> list[Command]:
    return session.handle(verdicts, at(seconds))


def receive(session: Session, data: bytes, seconds: float) -> list[Command]:
    """Messages come and are all accepted at once."""
    commands = feed(session, data, seconds)
    for command in [c for c in commands if isinstance(c, Accept)]:
        commands += decide(session, accepted(command.batch, len(command.messages)), seconds)
    return commands


# -- its commands -----------------------------------------------------------------------------


def only(kind: type[CommandT], commands: Iterable[Command]) -> list[CommandT]:
    return [command for command in commands if isinstance(command, kind)]


def sent(commands: Iterable[Command]) -> list[bytes]:
    return [command.data for command in only(Send, commands)]


def acks(commands: Iterable[Command]) -> list[SessionHeader]:
    """The stand-alone session acks among them."""
    packets = [parse(raw) for raw in sent(commands)]
    return [packet.session for packet in packets if isinstance(packet, SessionAck)]


def user_messages(commands: Iterable[Command]) -> list[Received]:
    return [packet for raw in sent(commands) if isinstance(packet := parse(raw), Received)]


def closed(commands: Sequence[Command]) -> str:
    """Why the session closed; it must be the last command, and the only one of its kind."""
    (close,) = only(Close, commands)
    assert commands[-1] is close
    return close.reason
