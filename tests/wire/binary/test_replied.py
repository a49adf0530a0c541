"""From a reader's packet to the message again. RR-52, RR-53"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message
from bridge.wire.binary.convert import message_from_packet, packet_from_message
from bridge.wire.binary.extension import Subqueue
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.replied import Replied, read_reply
from bridge.wire.binary.reply import reply_packet
from bridge.wire.binary.session import SessionHeader
from bridge.wire.binary.user import DIRECT
from bridge.wire.rpc.sections import Section, split
from tests.wire.binary.strategies import user_messages
from tests.wire.binary.test_reply import SENT, TTRQ, sent, whole

LOCAL = Guid(b"l" * 16)


def rebuilt(sections: tuple[Section, ...]) -> Replied:
    second = sections[1].data if len(sections) > 1 else None
    return read_reply(sections[0].data, second, is_cut=sections[0].kind != 0, arrived_ms=5)


@given(user_messages())
def test_whole_packets(packet: UserMessage) -> None:
    """Absolute times and addresses become again what they were. (A GUID beside a direct name is
    lost: the sender's address lies over it.)"""
    if packet.user.destination.code == DIRECT:
        packet = replace(packet, user=replace(packet.user, queue_manager=NULL_GUID))
    received = UserMessage.unpack(packet.pack())
    message = message_from_packet(received, "10.1.2.3", 5)
    found = read_reply(whole(message), manager=message.destination_qm, arrived_ms=5)
    expected = replace(message, wire=b"")
    if message.sent_time + message.time_to_reach_queue > INFINITE:
        expected = replace(expected, time_to_reach_queue=found.message.time_to_reach_queue)
    elif message.sent_time + message.time_to_reach_queue == INFINITE:
        expected = replace(expected, time_to_reach_queue=INFINITE)
    assert replace(found.message, wire=b"") == expected
    assert (found.size, found.is_cut) == (len(message.body), False)


def test_the_packet_as_it_was_sent_is_back() -> None:
    message = sent()
    assert read_reply(whole(message), arrived_ms=5).message == message


@pytest.mark.parametrize("most", range(5))
def test_cut_short(most: int) -> None:
    message = replace(sent(), deadletter_queue="a\\dl")
    found = rebuilt(split(reply_packet(message, Subqueue(name="s", moves=2)), most))
    assert found.message == replace(message, body=b"hello"[:most], wire=b"")
    assert (found.size, found.is_cut) == (5, True)
    assert found.extension is not None
    assert found.extension.subqueue.moves == 2


def test_a_server_whose_second_section_begins_with_the_padding() -> None:
    """D-12: the pad belongs to no section; RR-52: skip up to 3 bytes."""
    packet = reply_packet(sent(), Subqueue(name="s"))
    first, second = split(packet, 2)
    for pad in range(4):
        found = read_reply(first.data, bytes(pad) + second.data, is_cut=True)
        assert found.extension is not None
        assert found.extension.subqueue.name == "s"


@pytest.mark.parametrize("unused", [1, 4, 9])
@pytest.mark.parametrize("most", [None, 2])
def test_a_body_that_does_not_fill_its_allocation(unused: int, most: int | None) -> None:
    """MS-MQMQ 2.2.19.3: what follows is behind the allocation, in the second section too."""
    packet = packet_from_message(sent())
    roomy = replace(
        packet, properties=replace(packet.properties, allocation_size=len(sent().body) + unused)
    )
    received = UserMessage.unpack(roomy.pack())
    message = message_from_packet(received, sent().peer, sent().arrived_ms)
    reply = reply_packet(message, Subqueue(name="s", moves=2))
    sections = split(reply, 1 << 20 if most is None else most)
    found = rebuilt(sections)
    assert found.message.body == message.body[:most]
    assert found.extension is not None
    assert (found.extension.subqueue.name, found.extension.subqueue.moves) == ("s", 2)
    if most is None:
        assert found.message.wire == message.wire


def test_windows_server_2003_sends_no_extension() -> None:
    """RR <5>-<8>"""
    packet = reply_packet(sent(), Subqueue())
    raw = packet.head + packet.part + packet.pad
    found = read_reply(raw, arrived_ms=5)
    assert found.extension is None
    assert found.message == sent()  # the address is in the UserHeader, too
    cut = read_reply(packet.head + packet.part[:2], None, is_cut=True)
    assert (cut.message.body, cut.size, cut.extension) == (b"he", 5, None)


@pytest.mark.parametrize("size", [0, 16, 2**32 - 1])
def test_packet_size_is_not_believed(size: int) -> None:
    """Whether it counts the extension is not said: digest 3.3."""
    raw = bytearray(whole(sent()))
    struct.pack_into("<I", raw, 8, size)
    assert read_reply(bytes(raw), arrived_ms=5).message == sent()


def test_a_session_header_is_left_out() -> None:
    packet = packet_from_message(sent())
    raw = bytearray(replace(packet, session=SessionHeader()).pack())
    struct.pack_into("<I", raw, 12, SENT + TTRQ)
    found = read_reply(bytes(raw))
    assert found.message.wire == UserMessage.unpack(packet.pack()).wire_without_body


def test_a_private_queue_belongs_to_whom_was_asked() -> None:
    message = sent(f"PRIVATE={LOCAL}\\00000009")
    found = read_reply(whole(message), manager=LOCAL, arrived_ms=5).message
    assert found.destination == f"PRIVATE={LOCAL}\\00000009"


def test_a_message_that_came_by_http() -> None:
    request = b"POST / HTTP/1.1\r\n\r\nhello"
    message = replace(sent(), wire=b"", transport="http", soap="<e/>", soap_compound=request)
    found = read_reply(whole(message), arrived_ms=5)
    assert found.message == message
    assert found.size == len(request)
    for most in range(16 + len(request)):
        cut = rebuilt(split(reply_packet(message, Subqueue(name="s")), most))
        assert cut.is_cut
        assert cut.message.soap == "<e/>"
        assert cut.size == (len(request) if most >= 16 else 0)
        assert cut.extension is not None


def test_broken_packets() -> None:
    raw = whole(sent())
    for size in range(len(raw) - 28):
        try:
            found = read_reply(raw[:size])
        except WireError:
            continue
        assert found.extension is None  # cut exactly behind the UserMessage, or its padding
        assert found.message.body == b"hello"


@given(st.binary(max_size=200), st.integers(0, 250), st.booleans(), st.none() | st.binary())
def test_any_bytes(noise: bytes, place: int, is_cut: bool, second: bytes | None) -> None:
    raw = whole(sent())
    mixed = raw[:place] + noise + raw[place + len(noise) :]
    try:
        found = read_reply(mixed, second, is_cut=is_cut)
    except WireError:
        return
    assert isinstance(found.message, Message)
