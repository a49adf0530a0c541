"""Rows of messages for other hosts, and what may wait: SR-6, SR-15, SR-60 to SR-63."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bridge.core.admission import Policy
from bridge.core.forwards import MEMORY, Forwards, Room, message_of
from bridge.core.ports import Forward
from bridge.model.message import JOURNAL_NEGATIVE, Onward
from tests.core.letters import FAR, SENT, STREAM, TYPE, envelope, letter, request, step, waiting
from tests.core.messages import LOCAL, NOW
from tests.core.posts import PEER
from tests.wire.srmp.build import QM, TO

SOON = "20231114T221420"  # a minute after SENT
BEFORE = "20231114T221319"  # a second before it
FOUR_DAYS = 345_600


def table(limit: int = 1 << 20) -> tuple[Forwards, Room]:
    room = Room(limit)
    return Forwards(room), room


def test_what_a_row_holds() -> None:
    soap = envelope(7, step(3))
    forward = waiting(letter(soap, b"\0\r\n--"), 7005)
    assert forward == Forward(
        ordinal=7005,
        id=f"{QM}\\7",
        onward=Onward(
            url=FAR,
            content_type=TYPE,
            packet=request(soap.replace(TO.encode(), FAR.encode()), b"\0\r\n--"),
            was=TO.encode(),
            via=(f"1.1 {LOCAL}",),
        ),
        mark=f"{QM}\\77 2 3 {FAR} {PEER}",
        arrived_ms=NOW * 1000,
        peer=PEER,
        transport="http",
    )
    assert forward.key == "forward/7005"
    assert msgspec.msgpack.decode(forward.encode(), type=Forward) == forward


def test_every_hop_adds_itself() -> None:  # RFC 9110 7.6.3
    forward = waiting(letter(via=["1.1 one", "1.0 two"]))
    assert forward.onward.via == ("1.1 one", "1.0 two", f"1.1 {LOCAL}")


@pytest.mark.parametrize(
    ("times", "policy", "expires"),
    [
        ({}, {}, 0),  # never
        ({"reach": SOON}, {}, NOW + 60),  # SR-60
        ({"expires": SOON}, {}, NOW + 60),
        ({"reach": SOON, "expires": SENT}, {}, NOW),  # SR-62: the earlier one
        ({"reach": SOON}, {"clock_skew_s": 9}, NOW + 69),
        ({"reach": SENT}, {}, NOW),  # strictly later is late
        ({"reach": BEFORE}, {}, NOW),  # TimeToReachQueue is no less than 0
        ({"expires": BEFORE}, {}, NOW + FOUR_DAYS),  # SR-61: over when it came, and delivered
        ({"expires": BEFORE}, {"clock_skew_s": 9}, NOW + 8),
    ],
)
def test_until_when_it_waits(
    times: dict[str, str], policy: dict[str, Any], expires: int
) -> None:  # SR-63
    message = letter(envelope(**times))  # type: ignore[arg-type]
    assert waiting(message, policy=Policy(**policy)).expires == expires


def test_the_message_again() -> None:
    """As it came, the envelope byte for byte, whatever stands in `<to>`."""
    soap = envelope(label="ä", flags="<DeadLetter/>").replace(TO.encode(), b" &#104;ttp://x/q\n")
    message = letter(soap, b"some bytes")
    again = message_of(waiting(message), 5)
    assert again.soap == soap.decode()
    assert again.journal == JOURNAL_NEGATIVE
    assert again.srmp is not None
    assert again == replace(
        message, arrived_ms=5, srmp=replace(again.srmp, onward=None), soap=soap.decode()
    )


def test_without_a_time_of_sending_that_of_arrival_stands() -> None:  # SR-60
    soap = envelope().replace(f"<sentAt>{SENT}</sentAt>".encode(), b"")
    again = message_of(waiting(letter(soap)), 5)
    assert (again.sent_time, again.arrived_ms) == (NOW, 5)


def test_a_row_of_another_version_leaves_a_trace_too() -> None:
    forward = waiting()
    strange = replace(forward, onward=replace(forward.onward, packet=b"rubbish"))
    message = message_of(strange, 5)
    assert (message.id, message.body) == (f"{QM}\\7", b"rubbish")
    assert (message.destination, message.arrived_ms) == (f"DIRECT={FAR}", 5)
    assert (message.peer, message.transport) == (PEER, "http")


def test_in_the_order_they_came() -> None:
    forwards, room = table()
    for ordinal in (9, 3, 7):
        forwards.add(waiting(letter(envelope(ordinal)), ordinal))
    assert [forward.ordinal for forward in forwards] == [9, 3, 7]
    assert (len(forwards), forwards.size, room.used) == (3, room.used, 3 * waiting().size)
    assert forwards.pop(3) == waiting(letter(envelope(3)), 3)
    assert forwards.pop(3) is None
    assert [forward.ordinal for forward in forwards] == [9, 7]
    assert room.used == 2 * waiting().size
    forwards.clear()
    assert (len(forwards), forwards.size, room.used) == (0, 0, 0)


def test_all_shards_share_one_room() -> None:  # SR-6
    size = waiting().size
    one, room = table(2 * size)
    two = Forwards(room)
    one.add(waiting(ordinal=1))
    two.add(waiting(ordinal=2))
    for forwards in (one, two):
        assert not forwards.has_room(waiting(ordinal=3))
    one.pop(1)
    assert two.has_room(waiting(ordinal=3))
    assert not two.has_room(waiting(letter(body=b"one byte more"), 3))


def test_what_waits_is_in_memory_so_no_quota_is_endless() -> None:
    assert Room(1 << 40).limit == MEMORY == 256 << 20
    assert Room(1000).limit == 1000


def test_a_row_weighs_all_that_it_holds() -> None:
    soap = envelope().replace(TO.encode(), b" " * 5000 + TO.encode())
    assert waiting(letter(soap)).size == waiting(letter(envelope())).size + 5000


def test_what_a_sender_repeats_while_it_waits() -> None:  # 4.1: for days, without a receipt
    forwards, _ = table()
    first = waiting(letter(envelope(7, step(3))), 1)
    forwards.add(first)
    assert forwards.knows(waiting(letter(envelope(8, step(3), label="again")), 2))
    for other in (
        letter(envelope(7, step(4))),
        letter(envelope(7, step(3, 1))),  # SR-72: the gap is bridged; it is needed as it is now
        letter(envelope(7, step(3).replace(STREAM, f"uid:{QM}\\78"))),
        letter(envelope(7, step(3)), url="http://far03/q"),
        letter(envelope(7)),  # without a stream the next hop knows duplicates by their id
    ):
        assert not forwards.knows(waiting(other, 2))
    forwards.pop(1)
    assert not forwards.knows(first)  # SR-37: a receipt may be lost, so it is repeated there


def test_plain_messages_are_all_stored() -> None:
    forwards, _ = table()
    forwards.add(waiting(ordinal=1))
    assert not forwards.knows(waiting(ordinal=2))


def test_restored_from_kafka() -> None:
    forwards, room = table()
    forward = waiting(letter(envelope(7, step(3))))
    forwards.restore(forward.encode())
    assert list(forwards) == [forward]
    assert room.used == forward.size
    assert forwards.knows(forward)
