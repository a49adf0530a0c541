"""PDUs by hand, from C706 12.6 and MS-RPCE 2.2.2, without the code under test."""

from __future__ import annotations

import struct
import uuid

BIND, BIND_ACK, BIND_NAK, ALTER, ALTER_RESP, AUTH3 = 11, 12, 13, 14, 15, 16
REQUEST, RESPONSE, FAULT, SHUTDOWN, CO_CANCEL, ORPHANED = 0, 2, 3, 17, 18, 19
FIRST, LAST, WHOLE = 1, 2, 3
NDR = uuid.UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le + struct.pack("<HH", 2, 0)
NDR64 = uuid.UUID("71710533-beba-4937-8319-b5dbef9ccc36").bytes_le + struct.pack("<HH", 1, 0)
ECHO_UUID = "12345678-1234-abcd-ef00-0123456789ab"
ECHO = uuid.UUID(ECHO_UUID).bytes_le + struct.pack("<HH", 1, 0)


def features(bits: int) -> bytes:
    """6CB71C2C-9812-4540 and then the bits. MS-RPCE 3.3.1.5.3"""
    return bytes.fromhex("2c1cb76c12984045") + struct.pack("<QHH", bits, 1, 0)


def pdu(
    kind: int,
    body: bytes = b"",
    *,
    call_id: int = 1,
    flags: int = WHOLE,
    auth: bytes = b"",
    auth_length: int | None = None,
    size: int | None = None,
    drep: bytes = b"\x10\0\0\0",
    version: tuple[int, int] = (5, 0),
) -> bytes:
    """`auth`: sec_trailer and value; the lengths may lie."""
    whole = 16 + len(body) + len(auth) if size is None else size
    length = max(0, len(auth) - 8) if auth_length is None else auth_length
    head = struct.pack("<BBBB4sHHI", *version, kind, flags, drep, whole, length, call_id)
    return head + body + auth


def trailer(auth_type: int, level: int, value: bytes, *, pad: int = 0, context: int = 0) -> bytes:
    return struct.pack("<BBBBI", auth_type, level, pad, 0, context) + value


def proposal(number: int, interface: bytes, *transfers: bytes) -> bytes:
    return struct.pack("<HBx", number, len(transfers)) + interface + b"".join(transfers)


def bind_body(
    *proposals: bytes, group: int = 0, xmit: int = 5840, recv: int = 5840, count: int | None = None
) -> bytes:
    number = len(proposals) if count is None else count
    return struct.pack("<HHIBxH", xmit, recv, group, number, 0) + b"".join(proposals)


def bind(*, group: int = 0, auth: bytes = b"", recv: int = 5840, call_id: int = 1) -> bytes:
    body = bind_body(proposal(0, ECHO, NDR), group=group, recv=recv)
    return pdu(BIND, body, auth=auth, call_id=call_id, flags=WHOLE | 0x10)


def request(
    stub: bytes = b"",
    *,
    call_id: int = 2,
    opnum: int = 1,
    context: int = 0,
    flags: int = WHOLE,
    auth: bytes = b"",
    hint: int | None = None,
) -> bytes:
    head = struct.pack("<IHH", len(stub) if hint is None else hint, context, opnum)
    return pdu(REQUEST, head + stub, call_id=call_id, flags=flags, auth=auth)


def response(stub: bytes, *, call_id: int = 2, flags: int = WHOLE, hint: int = 0) -> bytes:
    body = struct.pack("<IHBx", hint or len(stub), 0, 0) + stub
    return pdu(RESPONSE, body, call_id=call_id, flags=flags)


def fault(status: int, *, call_id: int = 2, ran: bool = False, context: int = 0) -> bytes:
    """32 bytes. RR-11"""
    body = struct.pack("<IHBxII", 32, context, 0, status, 0)
    return pdu(FAULT, body, call_id=call_id, flags=WHOLE | (0 if ran else 0x20))


def nak(reason: int, call_id: int = 1) -> bytes:
    return pdu(BIND_NAK, struct.pack("<HBBB3x", reason, 1, 5, 0), call_id=call_id)


def pdus(data: bytes) -> list[bytes]:
    """A stream, cut by its lengths."""
    found = []
    while data:
        (size,) = struct.unpack_from("<H", data, 8)
        found.append(data[:size])
        data = data[size:]
    return found


def kinds(data: bytes) -> list[int]:
    return [one[2] for one in pdus(data)]


def fault_status(data: bytes) -> int:
    assert data[2] == FAULT
    return int(struct.unpack_from("<I", data, 24)[0])


def group_of(bind_ack: bytes) -> int:
    return int(struct.unpack_from("<I", bind_ack, 20)[0])


def auth_value(data: bytes) -> bytes:
    (length,) = struct.unpack_from("<H", data, 10)
    return data[len(data) - length :]
