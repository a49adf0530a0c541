"""Session establishment, acceptor side, byte for byte. MS-MQQB 3.1.5.3, 3.1.5.4"""

from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.outside.rawmsmq import (
    ZERO,
    Message,
    SessionHeader,
    build,
    cp_request,
    ec_request,
    session_ack,
)

pytestmark = pytest.mark.kafka
CLIENT = UUID("11111111-2222-3333-4444-555555555555")


@pytest.mark.parametrize("ours", [True, False], ids=["our guid", "zero guid"])
def test_establish_connection_is_answered(
    appliance: Appliance, open_sender: OpenSender, ours: bool
) -> None:  # QB-12, QB-13: ServerGuid of the answer is ours even if the request had zero
    sender = open_sender(handshake=False)
    sender.send(ec_request(CLIENT, appliance.guid if ours else ZERO, timestamp=0xFEDCBA98))
    answer = sender.read_packet()
    assert answer.raw == expected_ec_response(
        client=CLIENT, server=appliance.guid, timestamp=0xFEDCBA98
    )


def test_the_ping_bit_is_echoed(appliance: Appliance, open_sender: OpenSender) -> None:  # QB-13
    sender = open_sender(handshake=False)
    sender.send(ec_request(CLIENT, system=0x0010, padding=0xA7))  # a workstation that did ping
    answer = sender.read_packet()
    assert answer.raw == expected_ec_response(client=CLIENT, server=appliance.guid, no_ping=False)


def test_another_server_guid_is_refused_and_closed(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-12, QB-15
    sender = open_sender(handshake=False)
    sender.send(ec_request(CLIENT, uuid4()))
    answer = sender.read_packet()
    assert answer.raw == expected_ec_response(client=CLIENT, server=appliance.guid, refused=True)
    sender.expect_closed()


@pytest.mark.parametrize(
    ("recoverable_ack_ms", "ack_ms", "window"),
    [(500, 20_000, 64), (120_000, 120_000, 1), (0x5D8, 0x1D4C0, 0xFFFF), (1, 0, 64)],
)
def test_connection_parameters_are_echoed(
    open_sender: OpenSender, recoverable_ack_ms: int, ack_ms: int, window: int
) -> None:  # QB-16; QB-18: out of range is echoed too
    sender = open_sender(handshake=False)
    sender.establish()
    sender.send(cp_request(recoverable_ack_ms=recoverable_ack_ms, ack_ms=ack_ms, window=window))
    assert sender.read_packet().raw == expected_cp_response(
        recoverable_ack_ms=recoverable_ack_ms, ack_ms=ack_ms
    )


def test_both_requests_in_one_segment_and_in_single_bytes(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    requests = ec_request(CLIENT) + cp_request()
    whole = open_sender(handshake=False)
    whole.send(requests)
    crumbs = open_sender(handshake=False)
    for byte in requests:
        crumbs.send(bytes([byte]))
    for sender in (whole, crumbs):
        established = expected_ec_response(client=CLIENT, server=appliance.guid)
        assert sender.read_packet().raw == established
        assert sender.read_packet().raw == expected_cp_response()


def user_message() -> bytes:
    return build(Message(source=CLIENT, message_id=1, destination=queue("plain"), body=b"early"))


EARLY = {
    "connection parameters": cp_request(),
    "user message": user_message(),
    "session ack": session_ack(SessionHeader()),
}


@pytest.mark.parametrize("packet", EARLY.values(), ids=EARLY.keys())
def test_nothing_else_may_come_first(open_sender: OpenSender, packet: bytes) -> None:  # QB-17
    sender = open_sender(handshake=False)
    sender.send(packet)
    sender.expect_closed()


UNPARAMETERED = {
    "establish connection": ec_request(CLIENT),
    "user message": user_message(),
    "session ack": session_ack(SessionHeader()),
}


@pytest.mark.parametrize("packet", UNPARAMETERED.values(), ids=UNPARAMETERED.keys())
def test_only_parameters_may_come_second(
    open_sender: OpenSender, packet: bytes
) -> None:  # QB-11, QB-17
    sender = open_sender(handshake=False)
    sender.establish()
    sender.send(packet)
    sender.expect_closed()


@pytest.mark.parametrize("packet", [ec_request(CLIENT), cp_request()], ids=["EC", "CP"])
def test_no_handshake_in_an_open_session(
    open_sender: OpenSender, packet: bytes
) -> None:  # QB-11, QB-17
    sender = open_sender()
    sender.send(packet)
    sender.expect_closed()
