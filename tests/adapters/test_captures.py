"""Messages in captures: streams are put together as TCP would, and nothing else is shown."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters.captures import messages_in
from bridge.model.errors import ConfigError
from tests.adapters.sample_packets import ack, handshake, order
from tests.support.captures import (
    ACK,
    BRIDGE,
    LINKS,
    RST,
    SENDER,
    SYN,
    conversation,
    ethernet,
    pcap,
    pcapng,
    segment,
)

ORDERS = b"".join(order(number) for number in (1, 2, 3))
STREAM = handshake() + ORDERS
CUTS = (100, 572, 700, 800, 1000)


def numbers(packets: Sequence[bytes], link: int = 1) -> list[int]:
    return [message.ordinal for message in messages_in(pcap(packets, link), "f")]


@pytest.mark.parametrize("link", LINKS)
def test_every_kind_of_link(link: int) -> None:
    assert numbers(conversation(STREAM, CUTS), link) == [1, 2, 3]


def test_both_kinds_of_file_give_the_same() -> None:
    packets = conversation(STREAM, CUTS)
    assert list(messages_in(pcap(packets), "f")) == list(messages_in(pcapng(packets), "f"))


def test_what_a_message_knows_of_its_capture() -> None:
    first, *_ = messages_in(pcap(conversation(STREAM, CUTS), at_ms=1_769_860_800_500), "f")
    assert first.peer == SENDER
    assert first.arrived_ms == 1_769_860_800_500 + 6  # when its last byte came
    assert first.label == "order 1"
    assert first.wire


def test_version_6_and_tags_of_virtual_networks() -> None:
    packet = segment(ORDERS, source="fd00::7", target="fd00::1", extensions=b"\x06\0" + bytes(6))
    framed = ethernet(packet, tags=2)
    size = len(framed).to_bytes(4, "little")
    file = pcap([]) + bytes(8) + size + size + framed
    assert [(m.ordinal, m.peer) for m in messages_in(file, "f")] == [
        (1, "fd00::7"),
        (2, "fd00::7"),
        (3, "fd00::7"),
    ]


def test_retransmits_and_overlaps_count_once() -> None:
    packets = conversation(STREAM, CUTS)
    packets.insert(5, packets[3])  # again, whole
    packets.insert(6, segment(STREAM[90:650], 1001 + 90))  # again, with more in it
    assert numbers(packets) == [1, 2, 3]


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_any_order_of_segments(shuffler: random.Random) -> None:
    first, second, *rest = conversation(STREAM, range(50, len(STREAM), 90))
    shuffler.shuffle(rest)
    assert numbers([first, second, *rest]) == [1, 2, 3]


def test_sequence_numbers_go_round() -> None:
    assert numbers(conversation(STREAM, CUTS, first=2**32 - 300)) == [1, 2, 3]


def test_the_middle_of_a_session() -> None:
    """Without the SYN, and from the middle of a packet on."""
    assert numbers([segment(ORDERS[50:400], 77), segment(ORDERS[400:], 427)]) == [2, 3]


def test_a_lost_segment_costs_the_packets_it_was_in() -> None:
    size = len(order(1))
    parts = [ORDERS[:size], ORDERS[size : size + 50], ORDERS[size + 50 :]]
    packets = [segment(parts[0], 10), segment(parts[2], 10 + size + 50)]
    assert numbers(packets) == [1, 3]


def test_the_same_ports_again() -> None:
    packets = conversation(order(1), [40]) + conversation(order(2), [40], first=5)
    assert numbers(packets) == [1, 2]


def test_two_connections_and_their_other_directions() -> None:
    packets = [
        segment(order(1), 1),
        segment(ack(), 1, source=BRIDGE, target=SENDER, ports=(1801, 50_000)),
        segment(order(2), 1, ports=(50_001, 1801)),
        segment(b"GET / HTTP/1.1\r\n\r\n" * 100, 1, ports=(50_002, 80)),
        segment(b"", 1 + len(order(1)), RST),
    ]
    assert numbers(packets) == [1, 2]


def test_acks_between_queue_managers_are_left_out() -> None:
    with pytest.raises(ConfigError, match="has no MSMQ message in its 1 frames"):
        numbers([segment(handshake() + ack(), 1)])


def test_segments_that_the_network_card_cuts_have_no_length() -> None:
    assert numbers([segment(ORDERS, 1, size=0)], 101) == [1, 2, 3]


def test_frames_of_other_kinds() -> None:
    other = [b"\x45" + bytes(8) + b"\x11" + bytes(30), b"\x50" + bytes(60), b"\x45", b"\x60\0"]
    assert numbers([*other, segment(ORDERS, 1)], 101) == [1, 2, 3]
    fragment = bytearray(segment(b"part", 1))
    fragment[6] = 0x20
    assert numbers([bytes(fragment), segment(ORDERS, 1)], 101) == [1, 2, 3]
    arp = pcap([])[:24] + bytes(8) + b"\x12\0\0\0" * 2 + bytes(12) + b"\x08\x06" + bytes(4)
    assert [m.ordinal for m in messages_in(arp + pcap([segment(ORDERS)])[24:], "f")] == [1, 2, 3]


def test_a_capture_without_messages_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"^f: has no .* 1 frames; capture TCP port 1801"):
        numbers([segment(b"hello")])
    short = pcap(conversation(STREAM, CUTS), snap=60)
    with pytest.raises(ConfigError, match=r"cut short; capture whole frames \(-s 0\)$"):
        list(messages_in(short, "f"))


def test_too_many_connections() -> None:
    syn = [segment(flags=SYN, ports=(port, 1801)) for port in range(1, 10_003)]
    with pytest.raises(ConfigError, match="more than 10000 connections"):
        numbers(syn)


def test_gaps_are_not_waited_for_without_end() -> None:
    far = [segment(b"\0" * 10, 10_000 + 20 * index, ACK) for index in range(1100)]
    assert numbers([segment(b"x", 1), *far, segment(ORDERS, 10_000 + 20 * 1099 + 10)]) == [1, 2, 3]


@given(st.lists(st.binary(max_size=80)), st.sampled_from(sorted(LINKS)))
def test_any_frames_give_messages_or_one_error(frames: list[bytes], link: int) -> None:
    file = pcap([], link)
    for frame in frames:
        file += bytes(8) + len(frame).to_bytes(4, "little") * 2 + frame
    with pytest.raises(ConfigError):
        list(messages_in(file, "f"))
