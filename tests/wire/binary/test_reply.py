"""Packets for readers: what a sender wrote, but for a few fields. MS-MQRR 2.2.5, digest 3.3"""

import struct
from typing import Any

import pytest
from msgspec.structs import replace

from bridge.model.guid import Guid
from bridge.model.message import INFINITE, Message, Transaction
from bridge.wire.binary.convert import message_from_packet, packet_from_message
from bridge.wire.binary.extension import Extension, Subqueue, overlay
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.reply import bare_packet, destination_code, expiry, reply_packet
from bridge.wire.binary.session import SessionHeader

SOURCE = Guid(bytes(range(16)))
DIRECT = "DIRECT=OS:host\\private$\\q"
SENT, TTRQ = 1_700_000_000, 50


def sent(destination: str = DIRECT, body: bytes = b"hello", **fields: Any) -> Message:
    """As it is stored: with the packet that it came in."""
    message = Message(
        source=SOURCE,
        ordinal=7,
        destination=destination,
        body=body,
        label="label",
        sent_time=SENT,
        time_to_reach_queue=TTRQ,
        extension=b"ext",
        **fields,
    )
    packet = UserMessage.unpack(packet_from_message(message).pack())
    return message_from_packet(packet, "10.1.2.3", 5)


def whole(message: Message) -> bytes:
    return b"".join(reply_packet(message, Subqueue()).all)


def test_only_some_bytes_differ_from_what_was_sent() -> None:
    """TimeToReachQueue at 12 is absolute, the address of the sender lies over 32 to 47; behind
    the packet is the extension chain. RR-34: the stored packet is not touched."""
    message = sent()
    before = message.wire
    raw, stored = whole(message), packet_from_message(message).pack()
    chain = Extension(peer="10.1.2.3").pack()
    assert raw[:12] == stored[:12]
    assert raw[12:16] == struct.pack("<I", SENT + TTRQ)
    assert raw[16:32] == bytes(SOURCE)
    assert raw[32:48] == struct.pack("<HHI8s", 4, 1, 0, bytes((10, 1, 2, 3)))
    assert raw[48:] == stored[48:] + chain
    assert message.wire == before


def test_the_head_ends_where_the_body_begins() -> None:
    message = sent(body=b"12345")
    packet = reply_packet(message, Subqueue())
    assert packet.part is message.body  # nobody copies it
    assert (len(packet.head) + 5 + len(packet.pad)) % 4 == 0
    assert packet.tail == Extension(peer="10.1.2.3").pack()
    assert not packet.is_srmp


@pytest.mark.parametrize(
    ("ttrq", "sent_time", "absolute"),
    [(50, 100, 150), (INFINITE, 100, INFINITE), (0xFFFFFFF0, 100, INFINITE), (0, 100, 100)],
)
def test_an_absolute_time(ttrq: int, sent_time: int, absolute: int) -> None:
    message = replace(sent(), time_to_reach_queue=ttrq, sent_time=sent_time)
    assert expiry(message) == absolute
    assert whole(message)[12:16] == struct.pack("<I", absolute)


def test_another_name_than_a_direct_one_has_the_guid_of_its_sender() -> None:
    message = sent(f"PRIVATE={Guid(bytes(16))}\\00000009", destination_qm=Guid(bytes(16)))
    raw = whole(message)
    assert destination_code(raw) == 3
    assert raw[32:48] == bytes(SOURCE)


def test_a_dead_letter_has_the_class_of_its_failure() -> None:
    """RR-53; the packet that is stored has the class it was sent with."""
    dead = replace(sent(), message_class=0x8003)
    for raw in (whole(dead), b"".join(bare_packet(dead).all)):
        found = UserMessage.unpack(raw[: int.from_bytes(raw[8:12], "little")])
        assert found.properties.message_class == 0x8003


def test_the_bare_packet_is_what_was_sent() -> None:
    """For qm2qm: a relative time, no extension. MS-MQDMPR 3.1.7.1.30"""
    message = sent(transaction=Transaction(5, 6), delivery=1)
    assert b"".join(bare_packet(message).all) == packet_from_message(message).pack()


def test_a_session_header_is_stripped() -> None:
    packet = packet_from_message(sent())
    raw = replace(packet, session=SessionHeader()).pack()
    message = message_from_packet(UserMessage.unpack(raw), "10.1.2.3", 5)
    assert b"".join(bare_packet(message).all) == packet.pack()


@pytest.mark.parametrize("size", range(6))
def test_a_message_without_a_packet_gets_one(size: int) -> None:
    message = replace(sent(body=b"12345"[:size]), wire=b"")
    assert b"".join(bare_packet(message).all) == packet_from_message(message).pack()


def test_a_packet_that_does_not_fit_its_body_is_not_used() -> None:
    message = replace(sent(), body=b"another body", body_type=8)
    found = UserMessage.unpack(b"".join(bare_packet(message).all))
    assert (found.properties.body, found.properties.body_type) == (b"another body", 8)


@pytest.mark.parametrize(
    "fields",
    [
        {"response_queue": "MULTICAST=234.1.1.1:8001"},
        {"admin_queue": "DL=not a guid"},
        {"destination": "MULTICAST=234.1.1.1:8001"},
        {"destination": "PRIVATE=nonsense"},
        {"destination": "DIRECT=" + "x" * 40_000},
        {"transaction": Transaction(5, 6), "delivery": 0},
    ],
)
def test_names_that_have_no_place_in_a_packet(fields: dict[str, Any]) -> None:
    message = replace(sent(), wire=b"", transport="http", **fields)
    found = UserMessage.unpack(b"".join(bare_packet(message).all))
    assert found.properties.body == b"hello"


def test_a_message_by_http_whose_request_was_not_kept() -> None:
    """An equivalent binary packet, with the SOAP texts as UH.HH has them."""
    message = replace(sent(), wire=b"", soap="<e/>", transport="http")
    found = UserMessage.unpack(b"".join(bare_packet(message, ("<h/>", "<b/>")).all))
    assert found.soap is not None
    assert (found.soap.header, found.soap.body) == ("<h/>", "<b/>")
    assert found.properties.body == b"hello"


def test_a_message_by_http_whose_request_was_kept() -> None:
    """UH.AH is set exactly if both SRMP parts are there; the compound is what may be cut."""
    message = replace(sent(), wire=b"", soap="<e/>", soap_compound=b"POST\r\n\r\nhello")
    packet = reply_packet(message, Subqueue())
    (flags,) = struct.unpack_from("<I", packet.head, 60)
    assert packet.is_srmp
    assert flags & 0x02000000
    assert packet.part[16:] == b"POST\r\n\r\nhello"
    assert packet.part[4:16] == struct.pack("<III", 13, 5, 8)
    assert packet.head.endswith("<e/>\0".encode("utf-16-le") + bytes(2))
    (size,) = struct.unpack_from("<I", packet.head, 8)
    assert size == len(packet) - len(packet.tail)  # BH.PacketSize: the UserMessage
    (plain,) = struct.unpack_from("<I", whole(sent()), 60)
    assert not plain & 0x02000000


def test_the_subqueue_and_the_dead_letter_queue_are_told() -> None:
    subqueue = Subqueue(name="poison", aborts=1, moves=2, moved_at=3)
    packet = reply_packet(replace(sent(), deadletter_queue="a\\dl"), subqueue)
    chain = Extension(subqueue=subqueue, deadletter="a\\dl", peer="10.1.2.3")
    assert packet.tail == chain.pack()


def test_a_sender_without_an_address() -> None:
    message = replace(sent(), peer="")
    assert whole(message)[32:48] == overlay("") == bytes(16)
