"""Packets in the manner of what broke other queue managers (CVE-2023-21554 and its kind).

Each comes behind a good message on the same connection. The reason is the one in /metrics.
"""

import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

from tests.outside.appliance import queue
from tests.outside.hostile import (
    DIRECT,
    PLAIN,
    PROPERTIES,
    SOURCE,
    extended,
    internal,
    patched,
    soap,
    with_flags,
)
from tests.outside.rawmsmq import (
    Message,
    SessionHeader,
    Tx,
    base,
    build,
    cp_request,
    direct,
    ec_request,
    pad4,
    security_header,
    session_ack,
)

MALFORMED = "malformed"
ALL_HEADERS = 0x10D80000  # SH, TH, CQ, MQ, HH
FULL = 0xFFFFFFFF
WRAPPED = 1 << 32


def cut(packet: bytes, size: int) -> bytes:
    """A packet that ends there and says so."""
    return patched(8, "<I", size, packet)[:size]


def sizes(label: int | None, extension: int, body: int, allocated: int = FULL) -> bytes:
    packet = bytearray(build(PLAIN))
    if label is not None:
        packet[PROPERTIES + 1] = label
    struct.pack_into("<II", packet, PROPERTIES + 32, body, allocated)
    struct.pack_into("<I", packet, PROPERTIES + 52, extension)
    return bytes(packet)


def security(sid: int, key: int, signature: int, certificate: int, provider: int) -> bytes:
    header = struct.pack("<HHHHII", 1, sid, key, signature, certificate, provider)
    return extended(security=header + bytes(28))


def address(
    header: int, count: int, elements: bytes = b"", size: int | None = None
) -> bytes:  # 2.15
    length = 12 + len(elements) if size is None else size
    return pad4(struct.pack("<IHHI", length, header, 0, count) + elements)


def queues(first: bytes, second: bytes = b"", third: bytes = b"", signature: int = 0) -> bytes:
    parts = first, second or address(0xC8, 0), third or address(0x12C, 0)
    return b"".join(parts) + struct.pack("<HHI", 0x15E, 0, signature)


def absent() -> Iterator[tuple[str, bytes]]:
    """Headers that a flag announces; the packet ends where they should begin."""
    plain = build(PLAIN)
    for name, flag in (("SH", 0x80000), ("TH", 0x100020), ("CQ", 0x400000), ("all", ALL_HEADERS)):
        yield f"{name} and no more", cut(with_flags(lambda f, flag=flag: f | flag), PROPERTIES)  # type: ignore[misc]
    yield "no MessagePropertiesHeader", cut(plain, PROPERTIES)
    yield "half a MessagePropertiesHeader", cut(plain, PROPERTIES + 28)
    yield "HH and no SoapHeader", with_flags(lambda f: f | 0x10000000)
    yield "MQ and no MultiQueueFormatHeader", with_flags(lambda f: f | 0x800000)
    for code in (2, 3, 5, 6, 7):
        admin = with_flags(lambda f, code=code: f | code << 13)  # type: ignore[misc]
        response = with_flags(lambda f, code=code: f | code << 16)  # type: ignore[misc]
        yield f"AQ={code} and no more", cut(admin, PROPERTIES)
        yield f"RQ={code} and no more", cut(response, PROPERTIES)
    tx = Tx(sequence_id=1, number=1, previous=0, connector=uuid4())
    ordered = Message(source=SOURCE, message_id=1, destination=queue("fuzz"), tx=tx)
    yield "CG and no ConnectorQMGuid", cut(build(ordered), PROPERTIES + 20)


def sums() -> Iterator[tuple[str, bytes]]:
    """Sizes that are each a number, and together a small one if 32 bits are all there is."""
    yield "label + extension", sizes(6, WRAPPED - 12, 7)
    yield "extension + body", sizes(None, 0x80000000, 0x80000007)
    yield "label + extension + body", sizes(0xFA, WRAPPED - 0x200, 0x200 - 2 * 0xFA)
    yield "body to the last byte", sizes(None, 0, FULL)
    yield "body and its padding", sizes(None, 0, WRAPPED - 3)
    yield "all sizes", sizes(0xFF, FULL, FULL)
    yield "less allocated than there is", sizes(None, 0, 7, allocated=6)
    yield "security: all at most", security(0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, FULL)
    yield "security: provider wraps", security(28, 0, 0, 0, WRAPPED - 3)
    yield "security: sum is 28", security(28, 0x100, 0x100, 0x100, WRAPPED - 0x300)
    yield "security: certificate", security(28, 0, 0, FULL, 0)
    for length in (0x80000000, 0x80000001, 0x7FFFFFFE):
        yield f"soap length {length:#x}", extended(soap=soap(length=length))
    body = struct.pack("<HHI", 0x320, 0, 0) + struct.pack("<HHI", 0x384, 0, 0x80000000)
    yield "soap body length", extended(soap=body)


def counts() -> Iterator[tuple[str, bytes]]:
    """MultiQueueFormatHeader: counts times sizes, counts in counts."""
    one = struct.pack("<HH", 1, 0) + SOURCE.bytes_le
    for count in (2, 1000, 0x0CCCCCCD, 0x10000000, 0x10000001, 0x40000000, FULL):
        yield f"{count:#x} elements", extended(multi=queues(address(0x64, count, one)))
    most = address(0x64, FULL, one), address(0xC8, FULL, one), address(0x12C, FULL, one)
    yield "all counts", extended(multi=queues(*most))
    for size in (1, 11, WRAPPED - 3, WRAPPED - 12, FULL):
        yield f"HeaderSize {size:#x}", extended(multi=queues(address(0x64, 1, one, size=size)))
    yield (
        "headers in one another",
        extended(multi=queues(address(0x64, 0, size=12 + 12 + 12 + 8 + 4))),
    )
    yield (
        "a name without its NUL",
        extended(multi=queues(address(0x64, 1, b"\x03\0" + "a".encode("utf-16-le") * 9))),
    )
    for size in (1, WRAPPED - 3, FULL):
        yield f"signature of {size:#x}", extended(multi=queues(address(0x64, 0), signature=size))


def packets() -> Iterator[tuple[str, bytes]]:
    for size in (0, 1, 15, 16, 20, 63):
        yield f"PacketSize {size}", patched(8, "<I", size)
    yield "version", patched(0, "<B", 0x20)
    yield "signature", patched(4, "<I", 0x4C494F52)
    for count in (0, 1, 3, 0xFFFF):
        yield f"name of {count} bytes", patched(DIRECT, "<H", count)
    yield "name without its NUL", patched(DIRECT + 2 + PLAIN.destination.data[0] - 2, "<H", 0x41)
    yield "internal packet of 4 MiB", patched(8, "<I", 0x400000, internal(1))
    yield "internal packet without its header", base(16, 0x1B)
    yield "text", b"GET /metrics HTTP/1.1\r\nHost: bridge01\r\n\r\n"


def lies() -> Iterator[tuple[str, bytes, str]]:
    """Well formed, and not true."""
    good = build(PLAIN)
    announced = patched(2, "<H", 0x13, good)
    yield "SessionHeader announced, a packet follows", announced + good, "bad-ack"
    yield "SessionAck without its header", base(20, 0x1B) + b"\0\0\1\0" + good, "bad-ack"
    yield "acks what we never sent", session_ack(SessionHeader(ack=1, sent=1)), "bad-ack"
    flags = SessionHeader(recoverable_ack=1, flags=FULL, sent=1)
    yield "flags for what we never sent", session_ack(flags), "bad-ack"
    yield "sent more than came", session_ack(SessionHeader(sent=0xFFFF)), "count-mismatch"
    yield "a second EstablishConnection", ec_request(SOURCE), "unexpected-packet"
    yield "a second ConnectionParameters", cp_request(), "unexpected-packet"


ADVISORIES: dict[str, tuple[bytes, str]] = {
    **{
        name: (data, MALFORMED) for part in (absent, sums, counts, packets) for name, data in part()
    },
    **{name: (data, reason) for name, data, reason in lies()},
}
# Before any handshake; the first is the public probe: a reserved bit of the BaseHeader is set.
WITHOUT_HANDSHAKE: dict[str, tuple[bytes, str]] = {
    "UserMessage, bit 0x1000": (patched(2, "<H", 0x1003), "handshake"),
    "SessionAck": (session_ack(SessionHeader()), "handshake"),
    "ConnectionParameters": (cp_request(), "handshake"),
    "4 MiB": (patched(8, "<I", 0x400000), MALFORMED),
}


def monsters(source: UUID) -> Iterator[Message]:
    """Within every limit of the protocol, and far beyond what any sender makes."""
    long = direct("OS:" + "x" * 0x7FF0 + "\\q")
    many = queues(address(0x64, 8000, b"\x03\0\0\0" * 8000))
    text = struct.pack("<I", 1 << 20) + "s".encode("utf-16-le") * (1 << 20)
    both = struct.pack("<HH", 0x320, 0) + text + struct.pack("<HHI", 0x384, 0, 0)
    provider = struct.pack("<HHHHII", 0, 0, 0, 0, 0, 3 << 20) + bytes(3 << 20)
    odd: list[dict[str, Any]] = [
        {"destination": long},
        {"admin": long, "response": long, "acks": 0xF},
        {"extension": bytes(3 << 20)},
        {"multi": many},
        {"soap": both},
        {"security": provider},
        {"security": security_header(bytes(0xFFFF))},
    ]
    for number, fields in enumerate(odd, 1):
        known = {"destination": queue("fuzz"), "recoverable": True, **fields}
        yield Message(source=source, message_id=number, **known)
