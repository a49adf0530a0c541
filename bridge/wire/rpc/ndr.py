"""NDR 2.0, little-endian: as much of it as the MSMQ interfaces need. C706 chapter 14

`Reader` and `Writer` know the primitive types and how they are aligned, always from the start of
the stub. Counts come from a stranger: each is compared with the bytes that are there before
anything is made of it (RR-12). What is wrong with a stub is a `BadStub`, which carries the status
of the fault that its sender gets (RR-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.cursor import decode_utf16, encode_utf16z, guid

BAD_STUB_DATA: Final = 0x6F7  # RPC_X_BAD_STUB_DATA
BAD_TAG: Final = 0x1C000006  # nca_s_fault_invalid_tag: no such arm of a union

NULL_HANDLE: Final = bytes(20)
_HANDLE_SIZE: Final = len(NULL_HANDLE)
_REFERENT: Final = 0x00020000  # what Windows begins with; any number but 0 will do
_LARGE: Final = 4096  # from here on bytes are passed on and not copied

_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")
_VARYING: Final = Struct("<III")


class BadStub(WireError):
    """A stub that does not follow its IDL. `status` is that of the fault."""

    def __init__(self, field: str, value: object, rule: str, status: int = BAD_STUB_DATA) -> None:
        self.status = status
        super().__init__(field, value, rule)


class Reader:
    """Walks through one stub. Bytes after the last parameter are nobody's business (RR-10)."""

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    @property
    def left(self) -> int:
        return max(len(self._data) - self._offset, 0)

    def align(self, size: int) -> None:
        self._offset += -self._offset % size

    def take(self, size: int) -> bytes:
        start = self._require(size)
        return self._data[start : start + size]

    def u8(self) -> int:
        return self._data[self._require(1)]

    def u16(self) -> int:
        self.align(2)
        return int(_U16.unpack_from(self._data, self._require(2))[0])

    def u32(self) -> int:
        self.align(4)
        return int(_U32.unpack_from(self._data, self._require(4))[0])

    def u64(self) -> int:
        self.align(8)
        return int(_U64.unpack_from(self._data, self._require(8))[0])

    def ranged(self, field: str, low: int, high: int) -> int:
        """[range(low, high)] of the IDL."""
        value = self.u32()
        if not low <= value <= high:
            raise BadStub(field, value, f"range({low},{high})")
        return value

    def guid(self) -> Guid:
        self.align(4)
        return guid(self.take(16))

    def handle(self) -> bytes:
        """A context handle: attributes and a UUID."""
        self.align(4)
        return self.take(_HANDLE_SIZE)

    def pointer(self) -> bool:
        """The referent id of a unique pointer: whether there is something behind it."""
        return self.u32() != 0

    def conformant(self, size: int) -> bytes:
        """[size_is(size)] byte[]"""
        if self.u32() != size:
            raise BadStub("max_count", size, "C706 14.3.3.2: it is not what size_is says")
        return self.take(size)

    def varying(self, size: int) -> bytes:
        """[size_is(size), length_is(size)] byte[]"""
        most, offset, actual = self._varying()
        if (most, offset, actual) != (size, 0, size):
            raise BadStub("max_count", (most, offset, actual), f"C706 14.3.3.4: {size} bytes")
        return self.take(size)

    def wide_string(self) -> str:
        """[string] wchar_t[], without its NUL."""
        most, offset, actual = self._varying()
        if offset or not 1 <= actual <= most:
            raise BadStub("actual_count", (most, offset, actual), "C706 14.3.4")
        raw = self.take(2 * actual)
        if raw[-2:] != b"\0\0":
            raise BadStub("string", raw[-8:], "C706 14.3.4: it ends with NUL")
        text = decode_utf16(raw[:-2])
        if "\0" in text:
            raise BadStub("string", text[:80], "C706 14.3.4: it has one NUL")
        return text

    def _varying(self) -> tuple[int, int, int]:
        self.align(4)
        most, offset, actual = _VARYING.unpack_from(self._data, self._require(_VARYING.size))
        return most, offset, actual

    def _require(self, size: int) -> int:
        """Where the next `size` bytes start, which are there."""
        start = self._offset
        if size > len(self._data) - start:
            raise BadStub("stub", size, f"RR-12: only {self.left} bytes left")
        self._offset = start + size
        return start


class Writer:
    """Collects buffers. Large ones go out as they are, so that a message is not copied."""

    __slots__ = ("_buffers", "_referents", "_size", "_small")

    def __init__(self) -> None:
        self._buffers: list[bytes] = []
        self._small = bytearray()
        self._size = self._referents = 0

    def buffers(self) -> list[bytes]:
        self._flush()
        return list(self._buffers)

    def put(self, data: bytes) -> None:
        if len(data) >= _LARGE:
            self._flush()
            self._buffers.append(data)
        else:
            self._small += data
        self._size += len(data)

    def align(self, size: int) -> None:
        self.put(bytes(-self._size % size))

    def u8(self, value: int) -> None:
        self.put(bytes((value,)))

    def u16(self, value: int) -> None:
        self.align(2)
        self.put(_U16.pack(value))

    def u32(self, value: int) -> None:
        self.align(4)
        self.put(_U32.pack(value))

    def u64(self, value: int) -> None:
        self.align(8)
        self.put(_U64.pack(value))

    def guid(self, value: Guid) -> None:
        self.align(4)
        self.put(value)

    def handle(self, value: bytes) -> None:
        self.align(4)
        self.put(value)

    def pointer(self, is_there: bool) -> None:
        if is_there:
            self.u32(_REFERENT + 4 * self._referents)
            self._referents += 1
        else:
            self.u32(0)

    def conformant(self, parts: Sequence[bytes]) -> None:
        self.u32(sum(map(len, parts)))
        for part in parts:
            self.put(part)

    def varying(self, parts: Sequence[bytes]) -> None:
        size = sum(map(len, parts))
        self.align(4)
        self.put(_VARYING.pack(size, 0, size))
        for part in parts:
            self.put(part)

    def wide_string(self, text: str) -> None:
        raw = encode_utf16z(text)
        self.align(4)
        self.put(_VARYING.pack(len(raw) // 2, 0, len(raw) // 2))
        self.put(raw)

    def _flush(self) -> None:
        if self._small:
            self._buffers.append(bytes(self._small))
            self._small.clear()
