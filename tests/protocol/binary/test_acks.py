from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import ProtocolError
from bridge.protocol.binary.acks import ReceiveWindow, SendWindow
from bridge.wire.binary.session import SessionHeader
from tests.outside.rawmsmq import SessionHeader as Raw
from tests.vectors.binary import PACKETS
from tests.wire.binary.strategies import SOME


def header(raw: Raw) -> SessionHeader:
    return SessionHeader.unpack(raw.pack())


def take(window: ReceiveWindow, *modes: int) -> None:
    """Messages of these delivery modes come and are decided."""
    for mode in modes:
        window.arrive(mode)
        decide(window, mode)


def decide(window: ReceiveWindow, mode: int) -> None:
    """What the session does for each verdict."""
    window.decided += 1
    window.recoverable_decided += mode


def told(window: ReceiveWindow, sent: SendWindow | None = None, size: int = 64) -> Raw:
    return Raw.unpack(window.acknowledge(sent or SendWindow(), size).pack())


# -- receiving --------------------------------------------------------------------------------


def test_the_header_of_v4() -> None:  # digest section 6, V4; QB-43
    received, sent = ReceiveWindow(), SendWindow()
    take(received, 1, 1, 0)
    sent.send(1, 0)
    sent.send(2, 1)
    assert received.acknowledge(sent, 64).pack() == PACKETS["V4"].data[20:]


def test_nothing_came() -> None:
    assert told(ReceiveWindow()) == Raw(ack=0, recoverable_ack=0, flags=0, window=64)


def test_express_messages_leave_the_recoverable_fields_zero() -> None:  # MS-MQMQ 2.2.20.4
    window = ReceiveWindow()
    take(window, 0, 0, 0)
    assert told(window) == Raw(ack=3)


def test_each_ack_tells_only_what_is_new() -> None:  # QB-43
    window = ReceiveWindow()
    take(window, 1, 0, 1)
    assert told(window) == Raw(ack=3, recoverable_ack=1, flags=0b11)
    assert window.unacked == 0
    assert told(window) == Raw(ack=3)
    take(window, 1)
    assert window.unacked == 1
    assert told(window) == Raw(ack=4, recoverable_ack=3, flags=0b1)


def test_what_is_not_decided_is_not_told() -> None:  # QB-46
    window = ReceiveWindow()
    take(window, 1, 0)
    window.arrive(1)
    window.arrive(0)
    assert window.unacked == 2
    assert told(window) == Raw(ack=2, recoverable_ack=1, flags=0b1)
    assert told(window) == Raw(ack=2)
    decide(window, 1)
    decide(window, 0)
    assert told(window) == Raw(ack=4, recoverable_ack=2, flags=0b1)


def test_32_flags_are_full() -> None:  # QB-42
    window = ReceiveWindow()
    take(window, *[1, 0] * 31)
    take(window, 1)
    assert told(window) == Raw(ack=63, recoverable_ack=1, flags=0xFFFFFFFF)
    take(window, 1)
    assert told(window) == Raw(ack=64, recoverable_ack=33, flags=0b1)


def test_our_window_and_our_counts_travel_too() -> None:  # QB-43, QB-51
    sent = SendWindow()
    for token in range(5):
        sent.send(token, token == 0)
    assert told(ReceiveWindow(), sent, 1) == Raw(sent=5, sent_recoverable=1, window=1)


def test_both_counters_wrap_at_16_bits() -> None:  # QB-40
    window, sent = ReceiveWindow(), SendWindow()
    modes = [1, 1, 0]
    recoverables = 0
    for n in range(1, 100_001):
        mode = modes[n % 3]
        take(window, mode)
        sent.send(n, mode)
        recoverables += mode
        if n % 30 == 0:
            assert told(window, sent) == Raw(
                ack=n & 0xFFFF,
                recoverable_ack=(recoverables - 19) & 0xFFFF,
                flags=(1 << 20) - 1,
                sent=n & 0xFFFF,
                sent_recoverable=recoverables & 0xFFFF,
            )
            told_us = Raw(ack=n, recoverable_ack=recoverables - 19, flags=(1 << 20) - 1)
            assert len(sent.on_header(header(told_us))) == 30
    assert recoverables > 0x10000


def test_the_base_of_the_flags_may_wrap_to_zero() -> None:  # QB-40: 65536 is written 0
    window = ReceiveWindow()
    for _ in range(0xFFFF // 3):
        take(window, 1, 1, 1)
        told(window)
    take(window, 1, 1)
    assert told(window) == Raw(ack=1, recoverable_ack=0, flags=0b11)


@pytest.mark.parametrize(
    ("sent", "recoverable"), [(2, 1), (4, 1), (3, 0), (3, 2), (0, 0), (3 + 256, 1)]
)
def test_a_wrong_count_is_a_fault(sent: int, recoverable: int) -> None:  # QB-49
    window = ReceiveWindow()
    take(window, 0, 1, 0)
    window.check(header(Raw(sent=3, sent_recoverable=1)))
    with pytest.raises(ProtocolError) as fault:
        window.check(header(Raw(sent=sent, sent_recoverable=recoverable)))
    assert fault.value.reason == "count-mismatch"


def test_counts_are_of_what_came_not_of_what_is_decided() -> None:  # QB-49
    window = ReceiveWindow()
    window.arrive(1)
    window.check(header(Raw(sent=1, sent_recoverable=1)))


def test_counts_are_compared_in_16_bits() -> None:  # QB-40
    window = ReceiveWindow()
    for _ in range(0x10002):
        window.arrive(1)
    window.check(header(Raw(sent=2, sent_recoverable=2)))


# -- sending ----------------------------------------------------------------------------------


def filled(*modes: int) -> SendWindow:
    """Sent messages; each token is 100 + its number."""
    window = SendWindow()
    for number, mode in enumerate(modes, 1):
        window.send(100 + number, mode)
    return window


def test_express_messages_go_with_the_ack_number() -> None:  # QB-48
    window = filled(0, 0, 0)
    assert window.unacked == 3
    assert window.on_header(header(Raw(ack=2))) == [101, 102]
    assert window.unacked == 1
    assert not window.idle
    assert window.on_header(header(Raw(ack=2))) == []
    assert window.on_header(header(Raw(ack=3))) == [103]
    assert window.idle


def test_the_ack_number_frees_the_window_but_not_recoverable_messages() -> None:  # QB-48
    window = filled(1, 0)
    assert window.on_header(header(Raw(ack=2))) == [102]
    assert window.unacked == 0
    assert not window.idle
    assert window.on_header(header(Raw(ack=2, recoverable_ack=1, flags=0b1))) == [101]
    assert window.idle


def test_flags_count_from_their_base() -> None:  # MS-MQMQ 2.2.20.4
    window = filled(1, 1, 1, 1)
    assert window.on_header(header(Raw(ack=4, recoverable_ack=1, flags=0b1011))) == [101, 102, 104]
    assert window.on_header(header(Raw(ack=4, recoverable_ack=3, flags=0b1))) == [103]


def test_all_up_to_the_base_is_stored() -> None:  # QB-48: <= RecoverableMsgAckSeqNumber
    window = filled(1, 1, 1, 1)
    assert window.on_header(header(Raw(ack=4, recoverable_ack=3, flags=0b1))) == [101, 102, 103]


def test_without_flags_the_base_says_nothing() -> None:  # MS-MQMQ 2.2.20.4: 0 if none
    window = filled(1, 1)
    assert window.on_header(header(Raw(ack=2, recoverable_ack=0, flags=0))) == []
    assert window.on_header(header(Raw(ack=2, recoverable_ack=2, flags=0))) == []


def test_a_repeated_ack_names_nothing_twice() -> None:
    window = filled(1, 1)
    ack = header(Raw(ack=2, recoverable_ack=1, flags=0b11))
    assert window.on_header(ack) == [101, 102]
    assert window.on_header(ack) == []


def test_an_ack_may_run_ahead_of_its_ack_number() -> None:
    """A recoverable one is on disk before the express one in front of it was counted."""
    window = filled(0, 1)
    assert window.on_header(header(Raw(ack=0, recoverable_ack=1, flags=0b1))) == [102]
    assert window.unacked == 2


@pytest.mark.parametrize("ack", [4, 0x8000, 0xFFFF])
def test_an_ack_of_what_was_never_sent(ack: int) -> None:
    with pytest.raises(ProtocolError) as fault:
        filled(0, 1, 0).on_header(header(Raw(ack=ack)))
    assert fault.value.reason == "bad-ack"


def test_an_ack_that_takes_back() -> None:
    window = filled(0, 0)
    window.on_header(header(Raw(ack=2)))
    with pytest.raises(ProtocolError) as fault:
        window.on_header(header(Raw(ack=1)))
    assert fault.value.reason == "bad-ack"


@pytest.mark.parametrize(
    ("base", "flags"), [(3, 0b1), (1, 0b100), (2, 0b10), (1, 1 << 31), (0xFFFF, 0b1)]
)
def test_flags_of_what_was_never_sent(base: int, flags: int) -> None:
    with pytest.raises(ProtocolError) as fault:
        filled(1, 0, 1).on_header(header(Raw(ack=3, recoverable_ack=base, flags=flags)))
    assert fault.value.reason == "bad-ack"


def test_sent_numbers_wrap() -> None:  # QB-40
    window = SendWindow()
    for n in range(1, 70_001):
        window.send(n, 1)
        taken = window.on_header(header(Raw(ack=n, recoverable_ack=n, flags=0b1)))
        assert taken == [n]
    assert window.idle


def test_flags_across_the_wrap() -> None:  # QB-40
    window = SendWindow()
    for n in range(1, 0xFFFF):
        window.send(n, 1)
        window.on_header(header(Raw(ack=n, recoverable_ack=n, flags=0b1)))
    for n in range(0xFFFF, 0x10003):
        window.send(n, 1)
    late = header(Raw(ack=0x10002, recoverable_ack=0xFFFF, flags=0b1001))
    assert window.on_header(late) == [0xFFFF, 0x10002]
    assert window.on_header(header(Raw(ack=2, recoverable_ack=0, flags=0b11))) == [
        0x10000,
        0x10001,
    ]
    assert window.idle


@SOME
@given(
    st.lists(st.integers(0, 1), min_size=1, max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 0xFFFFFFFF)), max_size=12),
)
def test_any_honest_receiver_frees_every_message_once(
    modes: list[int], rounds: list[tuple[int, int]]
) -> None:
    """It stores recoverable messages in any order but never lets the base pass a hole."""
    window = filled(*modes)
    recoverables = sum(modes)
    stored = bytearray(recoverables)
    base = ack = 0  # how many are stored without a hole; how many were counted
    told: list[int] = []
    for upto, mask in [*rounds, *[(len(modes), 0xFFFFFFFF)] * 3]:
        ack = max(ack, min(upto, len(modes)))
        for bit in range(min(32, recoverables - base)):
            stored[base + bit] |= mask >> bit & 1
        flags = sum(on << bit for bit, on in enumerate(stored[base : base + 32]))
        if not flags & 1:  # QB-46
            flags = 0
        told += window.on_header(
            header(Raw(ack=ack, recoverable_ack=base + 1 if flags else 0, flags=flags))
        )
        while flags and base < recoverables and stored[base]:
            base += 1
    assert sorted(told) == [100 + n for n in range(1, len(modes) + 1)]
    assert window.idle
