"""Structs that pack and unpack themselves by the annotations of their fields."""

import struct
from typing import Annotated, ClassVar

import pytest

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.stub import U8, U32, U64, Handle, Id, Request, Result, Stub, Uow, ranged

G = Guid(bytes(range(16)))


class Example(Request, frozen=True, gc=False):
    OPNUM: ClassVar[int] = 77
    RESPONSE: ClassVar[type[Stub]] = Result
    flag: U8
    number: U64
    who: Id
    uow: Uow
    kind: Annotated[int, ranged("kind", 1, 2)]
    handle: Handle = bytes(20)


def test_fields_in_their_order_each_aligned() -> None:
    example = Example(1, 2, G, b"u" * 16, 2)
    raw = struct.pack("<B7xQ16s16sI20s", 1, 2, G, b"u" * 16, 2, bytes(20))
    assert example.pack() == raw
    assert b"".join(example.buffers()) == raw
    assert Example.unpack(raw) == example


def test_more_bytes_than_parameters_do_not_matter() -> None:
    """RR-10: Windows appends a verification trailer."""
    raw = struct.pack("<I", 5) + bytes.fromhex("8ae3137102f43671")
    assert Result.unpack(raw) == Result(5)


def test_less_do() -> None:
    raw = Example(1, 2, G, b"u" * 16, 2).pack()
    for size in range(len(raw)):
        with pytest.raises(BadStub):
            Example.unpack(raw[:size])


def test_a_range_is_checked() -> None:
    raw = bytearray(Example(1, 2, G, b"u" * 16, 2).pack())
    raw[48:52] = struct.pack("<I", 3)
    with pytest.raises(BadStub, match="kind"):
        Example.unpack(bytes(raw))


def test_a_number_that_does_not_fit_is_an_error_of_ours() -> None:
    with pytest.raises(struct.error):
        Result(2**32).pack()


class _Plain(Stub, frozen=True, gc=False):
    number: U32


def test_every_struct_has_its_own_fields() -> None:
    assert _Plain(7).pack() == struct.pack("<I", 7)
