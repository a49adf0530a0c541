"""A server of RemoteRead as the digest describes it: stubs in, stubs out, nothing of `bridge.wire`.

Sections 2.1, 2.5, 3.1 and 3.2 of remote-read.md. It has one queue per name, in memory. A connection
is a number: `lose` ends one, and its handles, cursors and locks go with it (2.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from bridge.protocol.rpc.calls import Fault
from tests.outside.rawmsmq import Message, Tx, build, direct

SOURCE = UUID("11111111-2222-3333-4444-555555555555")
LOW = (1 << 56) - 1
EXTENSION = struct.pack("<IIB3x", 12, 176, 0x12)  # SQ and EA
SUBQUEUE = struct.pack("<IIIII128x", 148, 0, 2, 1, 1_600_000_000)
ADDRESS = struct.pack("<IHHI16s", 28, 4, 1, 0, bytes((10, 0, 0, 7)))

OK = 0
BAD_PARAMETER, BAD_HANDLE, CANCELLED, SHARING = 0xC00E0006, 0xC00E0007, 0xC00E0008, 0xC00E0009
TIMEOUT, CURSOR, RECEIVED = 0xC00E001B, 0xC00E001C, 0xC00E001D
DENIED, LOCKED, NOT_FOUND, NO_QUEUE = 0xC00E0025, 0xC00E0050, 0xC00E0088, 0xC00E0003
CONTEXT_MISMATCH = 0x1C00001A


@dataclass(slots=True)
class Stored:
    lookup_id: int
    packet: bytes  # UserMessage and the chain behind it
    body_at: int
    body_size: int
    arrived: int
    is_transactional: bool = False
    lock: tuple[bytes, int] | None = None  # (handle, request id)

    @property
    def is_free(self) -> bool:
        return self.lock is None


@dataclass(slots=True)
class Handle:
    connection: int
    queue: str
    access: int
    cursors: dict[int, tuple[int, bool]] = field(default_factory=dict)  # position, is read


class FakeServer:
    """`matches_low`: lookup ids are found by their low 56 bits (2.5); else exactly as given."""

    def __init__(self, *, has_extensions: bool = True, matches: Callable[[int, int], bool]) -> None:
        self.queues: dict[str, list[Stored]] = {}
        self.deleted: dict[str, list[int]] = {}
        self.removed: list[bytes] = []  # bodies that an End ACK took away
        self.calls: list[int] = []  # opnums
        self.most_body: list[int] = []
        self.handles: dict[bytes, Handle] = {}
        self.moves: dict[int, bytes] = {}
        self.open_status = OK
        self.has_extensions, self.matches = has_extensions, matches
        self.tells_its_end = True
        self.waits: list[int] = []
        self.on_wait: Callable[[], None] | None = None
        self._numbers = count(1)
        self._ids = count(1)
        self._stuck: set[bytes] = set()  # handles of connections that it does not know are lost

    # -- what is in it ----------------------------------------------------------------------

    def put(
        self,
        queue: str,
        body: bytes,
        *,
        ordinal: int | None = None,
        priority: int = 3,
        transactional: bool = False,
        gap: int = 0,
        label: str = "",
    ) -> Stored:
        for _ in range(gap):
            next(self._ids)
        number = next(self._ids)
        message = Message(
            source=SOURCE,
            message_id=number if ordinal is None else ordinal,
            destination=direct(f"OS:host\\{queue}"),
            body=body,
            label=label,
            priority=priority,
            sent_time=1_700_000_000,
            ttrq=1_700_000_000 + 345_600,  # absolute here (3.3)
            tx=Tx(sequence_id=1 << 32, number=number, previous=0) if transactional else None,
        )
        packet = build(message)
        chain = EXTENSION + SUBQUEUE + ADDRESS if self.has_extensions else b""
        rank = 7 if transactional else 7 - priority
        stored = Stored(
            lookup_id=rank << 56 | number,
            packet=packet + chain,
            body_at=packet.rindex(body) if body else len(packet),
            body_size=len(body),
            arrived=1_700_000_100 + number,
        )
        messages = self.queues.setdefault(queue.lower(), [])
        messages.append(stored)
        messages.sort(key=lambda s: s.lookup_id)
        return stored

    def take(self, queue: str, stored: Stored) -> None:
        """Another reader has received it."""
        self.queues[queue].remove(stored)
        self.deleted.setdefault(queue, []).append(stored.lookup_id)

    def bodies(self, queue: str) -> list[bytes]:
        stored = self.queues.get(queue, [])
        return [s.packet[s.body_at : s.body_at + s.body_size] for s in stored]

    def lose(self, connection: int) -> None:
        """Rundown. 2.3"""
        gone = [key for key, handle in self.handles.items() if handle.connection == connection]
        for key in gone:
            self._release(key)

    def _release(self, key: bytes) -> None:
        handle = self.handles.pop(key)
        for stored in self.queues.get(handle.queue, []):
            if stored.lock is not None and stored.lock[0] == key:
                stored.lock = None

    # -- calls ------------------------------------------------------------------------------

    def call(self, connection: int, opnum: int, stub: bytes) -> bytes:
        self.calls.append(opnum)
        if opnum in (2, 11):
            return self._open(connection, opnum, stub)
        key = stub[:20]
        handle = self.handles.get(key)
        if handle is None or handle.connection != connection:
            raise Fault(CONTEXT_MISMATCH)
        return {
            3: self._close,
            4: self._create_cursor,
            5: self._close_cursor,
            6: self._purge,
            7: self._start,
            8: self._cancel,
            9: self._end,
            10: self._move,
        }[opnum](key, handle, stub)

    def _open(self, connection: int, opnum: int, stub: bytes) -> bytes:
        if self.open_status:
            raise Fault(self.open_status)
        name, at = _queue_format(stub)
        access, share = struct.unpack_from("<II", stub, at)
        client, routing, major, minor = (
            stub[at + 8 : at + 24],
            *struct.unpack_from("<iBB", stub, at + 24),
        )
        assert client != bytes(16)
        assert (routing, major, minor, share) == (1, 6, 1, 0)  # RR-45
        if access not in ((4,) if opnum == 11 else (1, 0x20)):
            raise Fault(BAD_PARAMETER)
        if name not in self.queues:
            raise Fault(NO_QUEUE)
        key = bytes(4) + next(self._numbers).to_bytes(16, "little")
        self.handles[key] = Handle(connection, name, access)
        if opnum == 2:
            return key
        context = 1 << 40 | len(self.moves)
        self.moves[context] = key
        return struct.pack("<Q", context) + key

    def _close(self, key: bytes, _handle: Handle, _stub: bytes) -> bytes:
        self._release(key)
        return bytes(20) + struct.pack("<I", OK)

    def _create_cursor(self, _key: bytes, handle: Handle, _stub: bytes) -> bytes:
        cursor = 100 + len(handle.cursors)
        handle.cursors[cursor] = (-1, False)
        return struct.pack("<II", cursor, OK)

    def _close_cursor(self, _key: bytes, handle: Handle, stub: bytes) -> bytes:
        (cursor,) = struct.unpack_from("<I", stub, 20)
        known = handle.cursors.pop(cursor, None)
        return struct.pack("<I", OK if known else BAD_HANDLE)

    def _purge(self, _key: bytes, handle: Handle, _stub: bytes) -> bytes:
        if handle.access != 1:
            return struct.pack("<I", 0xC0000022)
        self.queues[handle.queue].clear()
        return struct.pack("<I", OK)

    def _cancel(self, _key: bytes, _handle: Handle, _stub: bytes) -> bytes:
        return struct.pack("<I", 0xC0000225)

    def _end(self, key: bytes, handle: Handle, stub: bytes) -> bytes:
        ack, request_id = struct.unpack_from("<II", stub, 20)
        if ack not in (1, 2):
            raise Fault(0x6F7)
        messages = self.queues[handle.queue]
        for stored in messages:
            if stored.lock == (key, request_id):
                stored.lock = None
                if ack == 2:
                    messages.remove(stored)
                    self.deleted.setdefault(handle.queue, []).append(stored.lookup_id)
                    at = stored.body_at
                    self.removed.append(stored.packet[at : at + stored.body_size])
                return struct.pack("<I", OK)
        held = any(stored.lock is not None and stored.lock[0] == key for stored in messages)
        return struct.pack("<I", BAD_PARAMETER if held else BAD_HANDLE)

    def _move(self, _key: bytes, handle: Handle, stub: bytes) -> bytes:
        context, lookup_id = struct.unpack_from("<QQ", stub, 24)
        assert stub[40:56] == bytes(16)  # no transaction
        target = self.handles.get(self.moves.get(context, b""))
        if target is None:
            return struct.pack("<I", BAD_HANDLE)
        stored = self._find(handle.queue, lookup_id)
        if stored is None:
            return struct.pack("<I", NOT_FOUND)
        self.queues[handle.queue].remove(stored)
        stored.lookup_id = stored.lookup_id & ~LOW | next(self._ids)
        self.queues[target.queue].append(stored)
        return struct.pack("<I", OK)

    # -- Start ------------------------------------------------------------------------------

    def _start(self, key: bytes, handle: Handle, stub: bytes) -> bytes:
        assert len(stub) == 56
        lookup_id, cursor, action, timeout, request_id, most, _ = struct.unpack_from(
            "<QIIIIII", stub, 24
        )
        if any(stored.lock == (key, request_id) for stored in self.queues[handle.queue]):
            return _failed(BAD_PARAMETER)
        self.most_body.append(most)
        is_lookup, is_receive = bool(action & 0x40000000), action in (0, 0x40000020)
        if is_lookup != bool(lookup_id) or (is_lookup and (cursor or timeout)):
            return _failed(BAD_PARAMETER)
        if is_receive and handle.access != 1:
            return _failed(DENIED)
        if is_lookup:
            found: Stored | int = self._lookup(handle.queue, action, lookup_id)
        elif cursor:
            found = self._by_cursor(handle, cursor, action)
        else:
            found = self._first(handle.queue, timeout)
        if isinstance(found, int):
            return _failed(found)
        if is_receive:
            found.lock = (key, request_id)
        return _started(found, most)

    def _first(self, queue: str, timeout: int) -> Stored | int:
        free = [stored for stored in self.queues[queue] if stored.is_free]
        if not free and timeout:
            self.waits.append(timeout)
            if self.on_wait is not None:
                self.on_wait()
            free = [stored for stored in self.queues[queue] if stored.is_free]
        return free[0] if free else TIMEOUT

    def _find(self, queue: str, lookup_id: int) -> Stored | None:
        found = [s for s in self.queues[queue] if self.matches(s.lookup_id, lookup_id)]
        return found[0] if found else None

    def _lookup(self, queue: str, action: int, lookup_id: int) -> Stored | int:
        if action == 0x40000012 and lookup_id == 0xFFFFFFFFFFFFFFFF:  # PEEK_PREV: the last one
            free = [s for s in self.queues[queue] if s.is_free]
            return free[-1] if free and self.tells_its_end else NOT_FOUND
        stored = self._find(queue, lookup_id)
        if action == 0x40000011:  # PEEK_NEXT
            if stored is None:
                return NOT_FOUND
            after = [s for s in self.queues[queue] if s.lookup_id > stored.lookup_id and s.is_free]
            return after[0] if after else NOT_FOUND
        if stored is not None and stored.is_free:
            return stored
        if stored is not None and action == 0x40000010:
            return LOCKED
        return NOT_FOUND

    def _by_cursor(self, handle: Handle, cursor: int, action: int) -> Stored | int:
        if cursor not in handle.cursors:
            return 0xC0000008
        position, is_read = handle.cursors[cursor]
        free = [stored for stored in self.queues[handle.queue] if stored.is_free]
        if action == 0x80000001 and not is_read:
            return CURSOR
        if action == 0x80000000 and is_read:
            return next((s for s in free if s.lookup_id == position), RECEIVED)
        following = [stored for stored in free if stored.lookup_id > position]
        if not following:
            return TIMEOUT
        handle.cursors[cursor] = (following[0].lookup_id, True)
        return following[0]


def by_low_bits(stored: int, asked: int) -> bool:
    return stored & LOW == asked & LOW


def exactly(stored: int, asked: int) -> bool:
    return stored == asked


def without_top_byte(stored: int, asked: int) -> bool:
    return stored & LOW == asked


def new_server(*names: str, **options: bool) -> FakeServer:
    server = FakeServer(matches=by_low_bits, **options)
    server.queues = {name: [] for name in names or ("private$\\orders",)}
    return server


def _queue_format(stub: bytes) -> tuple[str, int]:
    """The queue that is meant, by its path name, and where the next parameter starts. 3.1"""
    kind, suffix, _, tag = struct.unpack_from("<BBHB", stub)
    assert tag == kind
    if kind in (1, 4):
        return f"{kind}:{UUID(bytes_le=stub[8:24])}:{suffix:02x}", 24
    if kind == 2:
        (number,) = struct.unpack_from("<I", stub, 24)
        return f"2:{UUID(bytes_le=stub[8:24])}\\{number:x}:{suffix:02x}", 28
    referent, most, offset, actual = struct.unpack_from("<IIII", stub, 8)
    assert referent
    assert (most, offset) == (actual, 0)
    text = stub[24 : 24 + 2 * actual].decode("utf-16-le")
    assert text.endswith("\0")
    path = text[:-1].partition("\\")[2].lower()
    wanted = {"journal": 0x81, "deadletter": 0x82, "deadxact": 0x83}
    tail = path.partition(";")[2]
    assert suffix == (wanted.get(tail, 0x05) if tail else 0), "text and byte agree"
    assert kind == (8 if suffix == 0x05 else 3)
    return path, (24 + 2 * actual + 3) // 4 * 4


def _failed(status: int) -> bytes:
    """28 bytes: all out-parameters, and nothing behind the pointer. 2.1"""
    return struct.pack("<I4xQIII", 0, 0, 0, 0, status)


def _started(stored: Stored, most: int) -> bytes:
    sections = _sections(stored, most)
    head = struct.pack("<I4xQI", stored.arrived, stored.lookup_id & LOW, len(sections))
    head += struct.pack("<II", 0x20000, len(sections))
    for number, (kind, alloc, data) in enumerate(sections):
        head += struct.pack("<HxxIII", kind, alloc, len(data), 0x20004 + 4 * number)
    for _, _, data in sections:
        head += bytes(-len(head) % 4) + struct.pack("<I", len(data)) + data
    return head + bytes(-len(head) % 4) + struct.pack("<I", OK)


def _sections(stored: Stored, most: int) -> list[tuple[int, int, bytes]]:
    """3.2; the padding belongs to no section."""
    packet, end = stored.packet, stored.body_at + stored.body_size
    if most >= stored.body_size:
        return [(0, len(packet), packet)]
    trailer = end + -end % 4
    sections = [(1, trailer, packet[: stored.body_at + most])]
    if packet[trailer:]:
        sections.append((2, len(packet) - trailer, packet[trailer:]))
    return sections
