from __future__ import annotations

from uuid import UUID

import pytest

from bridge.model.errors import ProtocolError
from bridge.model.guid import NULL_GUID, Guid
from bridge.protocol.binary.handshake import (
    AcceptorHandshake,
    InitiatorHandshake,
    Refused,
    Terms,
)
from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.outside.rawmsmq import ZERO, cp_request, ec_request, session_ack
from tests.outside.rawmsmq import SessionHeader as Raw
from tests.protocol.binary.peer import CLIENT, LOCAL, REMOTE, SERVER, at, express, packet_of
from tests.vectors.binary import PACKETS

NOW = at(0)


def refused_cp(raw: bytes) -> bytes:
    return raw[:18] + bytes((raw[18] | 0x10,)) + raw[19:]


# -- acceptor ---------------------------------------------------------------------------------


def waiting_for_cp(server: UUID = ZERO) -> AcceptorHandshake:
    handshake = AcceptorHandshake(LOCAL, 64)
    assert handshake.on_packet(packet_of(ec_request(CLIENT, server)), NOW)
    return handshake


def answer_to_ec(request: bytes, local: Guid = LOCAL) -> bytes:
    return AcceptorHandshake(local, 64).on_packet(packet_of(request), NOW)


@pytest.mark.parametrize("server", [SERVER, ZERO])
def test_ours_or_zero_is_accepted(server: UUID) -> None:  # QB-12, CONFLICT-2
    reply = answer_to_ec(ec_request(CLIENT, server))
    assert reply == expected_ec_response(client=CLIENT, server=SERVER)


def test_the_reply_echoes_time_and_client_but_not_the_padding() -> None:  # QB-13
    request = ec_request(CLIENT, ZERO, timestamp=0xFEDCBA98, padding=0xEE)
    expected = expected_ec_response(client=CLIENT, server=SERVER, timestamp=0xFEDCBA98)
    assert answer_to_ec(request) == expected
    assert expected[60:] == b"\x5a" * 512


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(0x0310, 0x0310), (0x0010, 0x0210), (0x0110, 0x0310), (0x0610, 0x0210), (0xFF10, 0x0310)],
)
def test_only_se_is_echoed_of_the_operating_system(asked: int, answered: int) -> None:  # QB-13
    reply = answer_to_ec(ec_request(CLIENT, ZERO, system=asked))
    assert int.from_bytes(reply[56:58], "little") == answered


def test_the_request_of_the_spec() -> None:  # MS-MQQB 4.1.3: F3
    f3 = PACKETS["F3"].data
    local = Guid(f3[36:52])
    reply = answer_to_ec(f3, local)
    assert reply[20:56] == f3[20:56]
    assert reply[0:20] == f3[0:1] + b"\0" + f3[2:20]
    assert len(reply) == 572


def test_another_server_is_refused_with_cs() -> None:  # QB-12, QB-15
    handshake = AcceptorHandshake(LOCAL, 64)
    with pytest.raises(Refused) as refused:
        handshake.on_packet(packet_of(ec_request(CLIENT, CLIENT)), NOW)
    expected = expected_ec_response(client=CLIENT, server=SERVER, refused=True)
    assert refused.value.reply == expected
    assert expected[18] == 0x12
    assert refused.value.reason == "refused"
    assert handshake.terms is None


def test_the_initiator_dictates_the_timeouts() -> None:  # QB-16
    handshake = waiting_for_cp()
    request = cp_request(recoverable_ack_ms=1496, ack_ms=120_000, window=32)
    reply = handshake.on_packet(packet_of(request), NOW)
    assert reply == expected_cp_response(recoverable_ack_ms=1496, ack_ms=120_000, window=64)
    assert handshake.terms == Terms(
        remote=REMOTE, ack_timeout=120.0, recoverable_ack_delay=1.496, window=32, direct=True
    )


def test_the_parameters_of_the_spec() -> None:  # MS-MQQB 4.1.5, 4.1.6: F5 = F6
    f5, f6 = PACKETS["F5"].data, PACKETS["F6"].data
    assert waiting_for_cp().on_packet(packet_of(f5), NOW) == f6[:1] + b"\0" + f6[2:]


def test_a_server_guid_means_that_no_direct_name_was_used() -> None:  # 2.3, QB-52
    handshake = waiting_for_cp(SERVER)
    handshake.on_packet(packet_of(cp_request()), NOW)
    assert handshake.terms is not None
    assert not handshake.terms.direct


@pytest.mark.parametrize(
    ("recoverable", "ack", "used"),
    [
        (500, 20_000, (0.5, 20.0)),
        (120_000, 120_000, (120.0, 120.0)),
        (499, 19_999, (0.5, 20.0)),
        (0, 0, (0.5, 20.0)),
        (120_001, 120_001, (120.0, 120.0)),
        (0xFFFFFFFF, 0xFFFFFFFF, (120.0, 120.0)),
    ],
)
def test_timeouts_out_of_range_are_echoed_but_not_used(
    recoverable: int, ack: int, used: tuple[float, float]
) -> None:  # QB-18
    handshake = waiting_for_cp()
    request = cp_request(recoverable_ack_ms=recoverable, ack_ms=ack)
    assert handshake.on_packet(packet_of(request), NOW) == request
    assert handshake.terms is not None
    assert (handshake.terms.recoverable_ack_delay, handshake.terms.ack_timeout) == used


OUT_OF_TURN = {
    "SessionAck": session_ack(Raw()),
    "user message": express(),
    "order ack": PACKETS["V2"].data,
    "final ack": PACKETS["V3"].data,
}


@pytest.mark.parametrize("raw", [*OUT_OF_TURN.values(), cp_request()])
def test_only_ec_opens(raw: bytes) -> None:  # QB-17
    with pytest.raises(ProtocolError, match="out of turn"):
        AcceptorHandshake(LOCAL, 64).on_packet(packet_of(raw), NOW)


@pytest.mark.parametrize("raw", [*OUT_OF_TURN.values(), ec_request(CLIENT)])
def test_only_cp_follows(raw: bytes) -> None:  # QB-11, QB-17
    with pytest.raises(ProtocolError, match="out of turn"):
        waiting_for_cp().on_packet(packet_of(raw), NOW)


# -- initiator: here S asks C -----------------------------------------------------------------


def asking(remote: Guid = NULL_GUID, seconds: float = 1.0) -> InitiatorHandshake:
    handshake = InitiatorHandshake(LOCAL, remote, 64, 20_000)
    server = ZERO if remote == NULL_GUID else CLIENT
    expected = ec_request(SERVER, server, timestamp=int(seconds * 1000))
    assert handshake.open(at(seconds)) == expected
    return handshake


@pytest.mark.parametrize("remote", [NULL_GUID, REMOTE])
def test_the_request_names_the_server_or_nobody(remote: Guid) -> None:  # QB-20, QB-23
    asking(remote)


def test_the_timestamp_wraps_after_49_days() -> None:
    handshake = InitiatorHandshake(LOCAL, NULL_GUID, 64, 20_000)
    request = handshake.open(at(0x1_0000_0000 / 1000 + 0.005))
    assert int.from_bytes(request[52:56], "little") == 5


def test_with_a_direct_name_the_server_is_learned() -> None:  # QB-24, CONFLICT-4
    handshake = asking()
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    assert handshake.on_packet(packet_of(reply), at(1.0)) == cp_request()
    assert handshake.on_packet(packet_of(cp_request(window=7)), at(1.0)) == b""
    assert handshake.terms == Terms(
        remote=REMOTE, ack_timeout=20.0, recoverable_ack_delay=0.5, window=7, direct=True
    )


def test_with_a_guid_only_that_server_will_do() -> None:  # QB-24
    handshake = asking(REMOTE)
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    handshake.on_packet(packet_of(reply), at(1.0))
    handshake.on_packet(packet_of(cp_request()), at(1.0))
    assert handshake.terms is not None
    assert not handshake.terms.direct


@pytest.mark.parametrize(
    "reply",
    [
        expected_ec_response(client=SERVER, server=CLIENT, refused=True),
        expected_ec_response(client=CLIENT, server=CLIENT),
        expected_ec_response(client=SERVER, server=SERVER),
        expected_ec_response(client=SERVER, server=ZERO),
    ],
    ids=["CS=1", "for another client", "from another server", "from nobody"],
)
def test_a_reply_that_is_not_for_us(reply: bytes) -> None:  # QB-24
    handshake = asking(REMOTE)
    with pytest.raises(ProtocolError) as fault:
        handshake.on_packet(packet_of(reply), at(1.0))
    assert fault.value.reason == "refused"
    assert handshake.terms is None


@pytest.mark.parametrize(
    ("round_trip", "milliseconds"),
    [
        (0.0, 500),
        (0.0624, 500),
        (0.0625, 500),
        (0.125, 1000),
        (1.5, 12_000),
        (15.0, 120_000),
        (15.1, 120_000),
        (59.0, 120_000),
    ],
)
def test_eight_round_trips_within_limits(round_trip: float, milliseconds: int) -> None:  # QB-25
    handshake = asking(seconds=1.0)
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    request = handshake.on_packet(packet_of(reply), at(1.0 + round_trip))
    assert request == cp_request(recoverable_ack_ms=milliseconds)


def test_of_the_answer_only_the_window_counts() -> None:  # QB-26, MS-MQQB 3.1.5.4.2
    handshake = asking()
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    handshake.on_packet(packet_of(reply), at(1.25))
    answer = cp_request(recoverable_ack_ms=120_000, ack_ms=120_000, window=9)
    handshake.on_packet(packet_of(answer), at(1.25))
    assert handshake.terms is not None
    assert handshake.terms.recoverable_ack_delay == 2.0
    assert handshake.terms.ack_timeout == 20.0
    assert handshake.terms.window == 9


def test_parameters_may_be_refused_too() -> None:  # MS-MQQB 2.2.1: CS
    handshake = asking()
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    handshake.on_packet(packet_of(reply), at(1.0))
    with pytest.raises(ProtocolError) as fault:
        handshake.on_packet(packet_of(refused_cp(cp_request())), at(1.0))
    assert fault.value.reason == "refused"
    assert handshake.terms is None


@pytest.mark.parametrize("raw", [*OUT_OF_TURN.values(), cp_request()])
def test_the_initiator_waits_for_ec(raw: bytes) -> None:  # WAITING_ECR
    with pytest.raises(ProtocolError, match="out of turn"):
        asking().on_packet(packet_of(raw), NOW)


@pytest.mark.parametrize("raw", [*OUT_OF_TURN.values(), ec_request(CLIENT)])
def test_the_initiator_then_waits_for_cp(raw: bytes) -> None:  # WAITING_CPR
    handshake = asking()
    reply = expected_ec_response(client=SERVER, server=CLIENT)
    handshake.on_packet(packet_of(reply), at(1.0))
    with pytest.raises(ProtocolError, match="out of turn"):
        handshake.on_packet(packet_of(raw), NOW)
