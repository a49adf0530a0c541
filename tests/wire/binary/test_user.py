from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary import user as module
from bridge.wire.binary.user import (
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    MULTI_QUEUE,
    PRESENT,
    RECOVERABLE,
    SECURITY,
    SOAP,
    TRANSACTION,
    QueueRef,
    UserHeader,
)
from tests.wire.binary.build import DIRECT_DQ, MP, C, S, direct, user
from tests.wire.binary.strategies import SOME, users

U32 = struct.pack("<I", 0xA1B2C3D4)


def unpack(raw: bytes) -> tuple[UserHeader, int, int]:
    return UserHeader.unpack_from(raw, 0, len(raw))


def test_fixed_part() -> None:  # MS-MQMQ 2.2.19.2
    raw = struct.pack("<16s16sIIII", C, S, 7, 0x60000010, 42, MP | 0x00000325 | 3 << 10) + U32
    header, present, end = unpack(raw)
    assert header == UserHeader(
        source=Guid(C),
        queue_manager=Guid(S),
        time_to_be_received=7,
        sent_time=0x60000010,
        message_id=42,
        hop_count=5,
        delivery=RECOVERABLE,
        journal=JOURNAL_NEGATIVE | JOURNAL_POSITIVE,
        destination=QueueRef(code=3, number=0xA1B2C3D4),
    )
    assert (present, end) == (0, len(raw))
    assert header.pack() == raw


@pytest.mark.parametrize(
    ("shift", "code", "on_wire", "ref"),
    [
        (10, 3, U32, QueueRef(code=3, number=0xA1B2C3D4)),
        (10, 5, S, QueueRef(code=5, guid=Guid(S))),
        (10, 7, direct("OS:a\\q"), QueueRef(code=7, text="OS:a\\q")),
        (13, 2, U32, QueueRef(code=2, number=0xA1B2C3D4)),
        (13, 3, U32, QueueRef(code=3, number=0xA1B2C3D4)),
        (13, 5, S, QueueRef(code=5, guid=Guid(S))),
        (13, 6, S + U32, QueueRef(code=6, guid=Guid(S), number=0xA1B2C3D4)),
        (13, 7, direct("TCP:1.2.3.4\\q"), QueueRef(code=7, text="TCP:1.2.3.4\\q")),
        (16, 1, b"", QueueRef(code=1)),  # CONFLICT-15: nothing on the wire
        (16, 2, U32, QueueRef(code=2, number=0xA1B2C3D4)),
        (16, 3, U32, QueueRef(code=3, number=0xA1B2C3D4)),
        (16, 4, U32, QueueRef(code=4, number=0xA1B2C3D4)),
        (16, 5, S, QueueRef(code=5, guid=Guid(S))),
        (16, 6, S + U32, QueueRef(code=6, guid=Guid(S), number=0xA1B2C3D4)),
        (16, 7, direct("x"), QueueRef(code=7, text="x")),
    ],
)
def test_queue_names(shift: int, code: int, on_wire: bytes, ref: QueueRef) -> None:
    raw = user(MP | code << shift, on_wire)
    header, _present, end = unpack(raw)
    found = {10: header.destination, 13: header.admin, 16: header.response}
    assert found.pop(shift) == ref
    assert set(found.values()) == {QueueRef()}
    assert end == len(raw)
    assert header.pack() == raw
    for length in range(len(raw)):
        with pytest.raises(WireError):
            unpack(raw[:length])


def test_names_stand_in_order_and_connector_type_last() -> None:
    names = direct("OS:a\\q") + S + U32 + direct("OS:b\\r") + bytes(range(16))
    raw = user(MP | 7 << 10 | 6 << 13 | 7 << 16 | 0x00400000, names)
    header, _present, end = unpack(raw)
    assert header.destination.text == "OS:a\\q"
    assert header.admin == QueueRef(code=6, guid=Guid(S), number=0xA1B2C3D4)
    assert header.response.text == "OS:b\\r"
    assert header.connector_type == Guid(bytes(range(16)))
    assert end == len(raw)
    assert header.pack() == raw


def test_a_connector_type_of_zeros_is_still_there() -> None:
    raw = user(MP | 0x00400000, bytes(16))
    header = unpack(raw)[0]
    assert header.connector_type == NULL_GUID
    assert header.pack() == raw


@pytest.mark.parametrize("bit", [SECURITY, TRANSACTION, MULTI_QUEUE, SOAP])
def test_presence_bits_pass_through(bit: int) -> None:
    raw = user(MP | DIRECT_DQ | 0x20 | bit)
    header, present, _end = unpack(raw)
    assert present == bit
    assert header.pack(present) == raw


def test_reserved_bits_are_ignored_and_sent_as_zero() -> None:
    raw = user(MP | DIRECT_DQ | 0xED000080)
    header, present, _end = unpack(raw)
    assert present == 0
    assert header.pack() == user(MP | DIRECT_DQ)


@pytest.mark.parametrize(
    "flags",
    [
        DIRECT_DQ,  # MP must be 1
        MP | DIRECT_DQ | 0x40,  # DM 2
        MP | DIRECT_DQ | 0x60,  # DM 3
        MP | DIRECT_DQ | TRANSACTION,  # TH needs DM 1
        MP | DIRECT_DQ | 0x02000000,  # AH
        *(MP | code << 10 for code in (1, 2, 4, 6)),
        *(MP | code << 13 for code in (1, 4)),
    ],
)
def test_bad_flags(flags: int) -> None:  # QB-3
    with pytest.raises(WireError) as caught:
        unpack(user(flags) + bytes(64))
    assert caught.value.field == "UserHeader.Flags"


def test_bad_codes_are_not_sent_either() -> None:
    with pytest.raises(WireError):
        UserHeader(source=Guid(C), sent_time=0, message_id=0, destination=QueueRef(code=2)).pack()
    with pytest.raises(WireError):
        QueueRef(code=7, text="x" * 0x8000).pack()


@pytest.mark.parametrize(
    "name",
    [
        struct.pack("<H", 0) + b"\0\0",  # not even a NUL
        struct.pack("<H", 3) + b"a\0\0" + bytes(3),  # half a character
        struct.pack("<H", 2) + b"a\0",  # no NUL
        struct.pack("<H", 4) + b"a\0b\0" + bytes(2),
        struct.pack("<H", 0xFFFE) + b"a\0\0\0",
    ],
)
def test_bad_direct_names(name: bytes) -> None:
    with pytest.raises(WireError):
        unpack(user(MP | DIRECT_DQ, name))


def test_padding_of_a_direct_name_may_hold_anything() -> None:  # MS-MQMQ <2>
    name = struct.pack("<H", 6) + b"a\0b\0\0\0" + b"\0\0"
    garbage = struct.pack("<H", 8) + b"a\0b\0c\0\0\0" + b"\xcd\xcd"
    assert unpack(user(MP | DIRECT_DQ, name))[0].destination.text == "ab"
    assert unpack(user(MP | DIRECT_DQ, garbage))[0].destination.text == "abc"


def test_an_empty_direct_name_is_a_name() -> None:
    raw = user(MP | DIRECT_DQ, direct(""))
    assert unpack(raw)[0].destination == QueueRef(code=7, text="")
    assert unpack(raw)[0].pack() == raw


def test_longest_direct_name() -> None:
    raw = user(MP | DIRECT_DQ, direct("x" * 32766))
    assert unpack(raw)[0].pack() == raw


def test_direct_names_are_remembered_but_not_forever() -> None:
    first = unpack(user())[0].destination
    assert unpack(user())[0].destination is first
    for number in range(5000):
        unpack(user(names=direct(f"OS:a\\{number}")))
    unpack(user(names=direct("x" * 30000)))
    assert len(module._direct_names) <= 2048
    assert max(map(len, module._direct_names)) <= 1024


def test_end_of_the_packet_counts_not_end_of_the_data() -> None:
    raw = user()
    with pytest.raises(WireError):
        UserHeader.unpack_from(raw + raw, 0, len(raw) - 4)


@SOME
@given(users(st.integers(0, 1)), st.sets(st.sampled_from([SECURITY, MULTI_QUEUE, SOAP])))
def test_round_trip(header: UserHeader, bits: set[int]) -> None:
    raw = header.pack(sum(bits))
    assert len(raw) % 4 == 0
    assert UserHeader.unpack_from(b"zzz" + raw, 3, 3 + len(raw)) == (
        header,
        sum(bits),
        3 + len(raw),
    )
    assert sum(bits) & ~PRESENT == 0
