"""Packets with one thing wrong each, and packets with anything wrong."""

import random
import struct
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

from tests.outside.appliance import queue
from tests.outside.rawmsmq import (
    Message,
    Tx,
    base,
    build,
    ec_request,
    pad4,
    security_header,
)

SOURCE = UUID("66666666-0000-0000-0000-000000000001")
USER = 16  # offset of UserHeader
FLAGS = USER + 44
PLAIN = Message(
    source=SOURCE, message_id=1, destination=queue("fuzz"), label="label", body=b"hostile"
)
DIRECT = USER + 48  # offset of the destination's name
PROPERTIES = DIRECT + len(PLAIN.destination.data)


def patched(at: int, layout: str, value: int, packet: bytes | None = None) -> bytes:
    data = bytearray(build(PLAIN) if packet is None else packet)
    struct.pack_into(layout, data, at, value)
    return bytes(data)


def with_flags(change: Callable[[int], int], message: Message = PLAIN) -> bytes:
    return patched(FLAGS, "<I", change(message.user_flags), build(message))


def with_dq(code: int) -> bytes:
    return with_flags(lambda flags: flags & ~0x1C00 | code << 10)


def with_aq(code: int) -> bytes:
    return with_flags(lambda flags: flags | code << 13)


def multi(header: int = 0x64, size: int = 12, signature: int = 0x15E) -> bytes:
    """A MultiQueueFormatHeader with up to one wrong part. MS-MQMQ 2.2.20.1"""
    first = struct.pack("<IHHI", size, header, 0, 0)
    rest = b"".join(struct.pack("<IHHI", 12, number, 0, 0) for number in (0xC8, 0x12C))
    return pad4(first) + rest + struct.pack("<HHI", signature, 0, 0)


def soap(first: int = 0x320, second: int = 0x384, length: int = 2) -> bytes:
    """A SoapHeader. 2.14"""
    header = struct.pack("<HHI", first, 0, length) + "h\0".encode("utf-16-le")
    return header + struct.pack("<HHI", second, 0, 2) + "b\0".encode("utf-16-le")


def extended(**parts: bytes) -> bytes:
    message = Message(source=SOURCE, message_id=1, destination=queue("fuzz"), **parts)  # type: ignore[arg-type]
    return build(message)


def internal(kind: int, size: int = 36) -> bytes:
    return base(size, 0x1B) + struct.pack("<HH", 0, kind) + bytes(size - 20)


def malformed() -> Iterator[tuple[str, bytes]]:
    yield "version", patched(0, "<B", 0x11)
    yield "signature", patched(4, "<I", 0x4C494F52)
    for size in (0, 15, 0x400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF):
        yield f"PacketSize {size:#x}", patched(8, "<I", size)
    yield "PacketSize ends in UserHeader", patched(8, "<I", 60)[:60]
    yield "PacketSize ends in the name", patched(8, "<I", 68)[:68]
    yield "PacketSize is only a BaseHeader", patched(8, "<I", 16)[:16]
    yield "TR without DH", patched(2, "<H", 0x0103)
    yield "DH without DebugHeader", patched(2, "<H", 0x0023)
    yield "MP=0", with_flags(lambda flags: flags & ~0x200000)
    yield "AH=1", with_flags(lambda flags: flags | 0x02000000)
    yield "DM=2", with_flags(lambda flags: flags | 0x40)
    yield "DM=3", with_flags(lambda flags: flags | 0x60)
    tx = Tx(sequence_id=1, number=1, previous=0)
    ordered = Message(source=SOURCE, message_id=1, destination=queue("fuzz"), tx=tx)
    yield "TH=1 with DM=0", with_flags(lambda flags: flags & ~0x60, ordered)
    for code in (1, 2, 4, 6):
        yield f"DQ={code}", with_dq(code)
    for code in (1, 4):
        yield f"AQ={code}", with_aq(code)
    for count in (0xFFFF, 0xFFFE, 0x8000):
        yield f"name of {count:#x} bytes", patched(DIRECT, "<H", count)
    yield "LabelLength 0xFB", long_label()
    yield "LabelLength beyond the end", patched(PROPERTIES + 1, "<B", 0xFA)
    for field, at in (("MessageSize", 32), ("ExtensionSize", 52)):
        for size in (0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFC, 0xFFFFFFFF):
            yield f"{field} {size:#x}", patched(PROPERTIES + at, "<I", size)
    yield from malformed_options()
    for kind in (0, 4, 9, 15):
        yield f"internal packet type {kind}", internal(kind)


def long_label() -> bytes:
    """LabelLength 0xFB and all sizes in agreement with it."""
    long = Message(source=SOURCE, message_id=1, destination=queue("fuzz"), body=bytes(2000))
    packet = patched(PROPERTIES + 1, "<B", 0xFB, build(long))
    return patched(PROPERTIES + 32, "<I", 2000 - 2 * 0xFB, packet)


def malformed_options() -> Iterator[tuple[str, bytes]]:
    """Optional headers; each is announced by its flag and then broken."""
    sid = security_header(bytes(28))
    for field, at, layout in (
        ("SenderIdSize", 2, "<H"),
        ("EncryptionKeySize", 4, "<H"),
        ("SignatureSize", 6, "<H"),
        ("SenderCertSize", 8, "<I"),
        ("ProviderInfoSize", 12, "<I"),
    ):
        value = 0xFFFF if layout == "<H" else 0xFFFFFFFD
        yield field, extended(security=patched(at, layout, value, sid))
    yield "MultiQueueFormat id", extended(multi=multi(header=0x65))
    yield "MultiQueueFormat size 0", extended(multi=multi(size=0))
    yield "MultiQueueFormat size", extended(multi=multi(size=0xFFFFFFF0))
    yield "MultiQueueFormat signature", extended(multi=multi(signature=0x15F))
    yield "Soap header id", extended(soap=soap(first=0x321))
    yield "Soap body id", extended(soap=soap(second=0x385))
    yield "Soap length", extended(soap=soap(length=0x7FFFFFFF))
    yield "Soap length wraps", extended(soap=soap(length=0xFFFFFFFF))


MALFORMED = dict(malformed())
BROKEN_HANDSHAKES = {
    "text": b"GET / HTTP/1.1\r\nHost: bridge01\r\n\r\n",
    "zeros": bytes(600),
    "EC cut by its PacketSize": patched(8, "<I", 60, ec_request(SOURCE))[:60],
    "EC of 4 GiB": patched(8, "<I", 0xFFFFFFFF, ec_request(SOURCE)),
    "EC with only a BaseHeader": patched(8, "<I", 16, ec_request(SOURCE))[:16],
}


def damaged(seed: int) -> bytes:
    chaos = random.Random(seed)
    tx = Tx(sequence_id=seed << 32, number=1, previous=0) if seed % 3 == 0 else None
    good = build(
        Message(
            source=uuid4(),
            message_id=seed,
            destination=queue("fuzz"),
            label="fuzz",
            body=chaos.randbytes(50),
            tx=tx,
            security=security_header(bytes(28)) if seed % 2 else b"",
            multi=multi() if seed % 5 == 0 else b"",
        )
    )
    match seed % 4:
        case 0:
            return good[: chaos.randrange(len(good))]
        case 1:
            return chaos.randbytes(chaos.randrange(1, 600))
        case 2:
            return good[:16] + chaos.randbytes(len(good) - 16)
    data = bytearray(good)
    for _ in range(chaos.randrange(1, 6)):
        data[chaos.randrange(len(data))] ^= 1 << chaos.randrange(8)
    return bytes(data)
