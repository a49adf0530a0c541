"""SPNEGO tokens: the few lines of DER that they need. RFC 4178 4.2, MS-SPNG 2.2"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError

NTLM_OID: Final = bytes.fromhex("2b06010401823702020a")  # 1.3.6.1.4.1.311.2.2.10
KERBEROS_OID: Final = bytes.fromhex("2a864886f712010202")
MS_KERBEROS_OID: Final = bytes.fromhex("2a864882f712010202")  # an old mistake that stayed
_SPNEGO_OID: Final = bytes.fromhex("2b0601050502")
_APPLICATION: Final = 0x60
_OID: Final = 0x06
_OCTETS: Final = 0x04
_ENUMERATED: Final = 0x0A
_SEQUENCE: Final = 0x30
_FIELD: Final = 0xA0  # [0], [1], …
_MOST_MECHANISMS: Final = 32


class NegState(IntEnum):
    ACCEPT_COMPLETED = 0
    ACCEPT_INCOMPLETE = 1
    REJECT = 2
    REQUEST_MIC = 3


class NegTokenInit(msgspec.Struct, frozen=True, gc=False):
    """What a client begins with. RFC 4178 4.2.1"""

    mechanisms: tuple[bytes, ...]
    mech_types: bytes  # the list as it came: the MIC is over these bytes
    token: bytes
    mic: bytes


class NegTokenResp(msgspec.Struct, frozen=True, gc=False):
    """Every token after the first, either way. RFC 4178 4.2.2"""

    state: int | None = None
    mechanism: bytes = b""
    token: bytes = b""
    mic: bytes = b""

    def pack(self) -> bytes:
        fields = b""
        if self.state is not None:
            fields += _tlv(_FIELD, _tlv(_ENUMERATED, bytes((self.state,))))
        if self.mechanism:
            fields += _tlv(_FIELD + 1, _tlv(_OID, self.mechanism))
        if self.token:
            fields += _tlv(_FIELD + 2, _tlv(_OCTETS, self.token))
        if self.mic:
            fields += _tlv(_FIELD + 3, _tlv(_OCTETS, self.mic))
        return _tlv(_FIELD + 1, _tlv(_SEQUENCE, fields))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        fields = _fields(_only(_SEQUENCE, _only(_FIELD + 1, data)))
        state = _value(fields, 0, _ENUMERATED)
        if len(state) > 1:
            raise WireError("negState", len(state), "RFC 4178 4.2.2")
        return cls(
            state[0] if state else None,
            _value(fields, 1, _OID),
            _value(fields, 2, _OCTETS),
            _value(fields, 3, _OCTETS),
        )


def unpack_init(data: bytes) -> NegTokenInit:
    """The first token, in its GSS-API frame. RFC 2743 3.1"""
    frame = _only(_APPLICATION, data)
    tag, oid, rest = _element(frame)
    if (tag, oid) != (_OID, _SPNEGO_OID):
        raise WireError("thisMech", oid.hex(), "RFC 4178 4.1")
    fields = _fields(_only(_SEQUENCE, _only(_FIELD, rest)))
    mech_types = fields.get(0, b"")
    return NegTokenInit(
        _oids(_only(_SEQUENCE, mech_types)),
        mech_types,
        _value(fields, 2, _OCTETS),
        _value(fields, 3, _OCTETS),
    )


def _oids(data: bytes) -> tuple[bytes, ...]:
    found: list[bytes] = []
    while data and len(found) < _MOST_MECHANISMS:
        tag, oid, data = _element(data)
        if tag != _OID:
            raise WireError("MechType", tag, "RFC 4178 4.1")
        found.append(oid)
    return tuple(found)


def _fields(data: bytes) -> dict[int, bytes]:
    """The context-tagged members of a sequence, in order and each once."""
    found: dict[int, bytes] = {}
    while data:
        tag, value, data = _element(data)
        number = tag - _FIELD
        if not max(found, default=-1) < number <= 15:
            raise WireError("SPNEGO field", tag, "RFC 4178 4.2")
        found[number] = value
    return found


def _value(fields: dict[int, bytes], number: int, tag: int) -> bytes:
    return _only(tag, fields[number]) if number in fields else b""


def _only(tag: int, data: bytes) -> bytes:
    """The content of an element with that tag; what follows it is ignored."""
    found, value, _ = _element(data)
    if found != tag:
        raise WireError("DER tag", hex(found), f"X.690: {tag:#x} expected")
    return value


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content, and what follows. X.690 8.1; lengths of up to four bytes"""
    if len(data) < 2:
        raise WireError("DER element", len(data), "X.690 8.1: breaks off")
    size, at = data[1], 2
    if size & 0x80:
        octets = size & 0x7F
        if not 1 <= octets <= 4 or len(data) < 2 + octets:
            raise WireError("DER length", hex(size), "X.690 8.1.3")
        size, at = int.from_bytes(data[2 : 2 + octets], "big"), 2 + octets
    if size > len(data) - at:
        raise WireError("DER length", size, f"X.690 8.1.3: only {len(data) - at} bytes left")
    return data[0], data[at : at + size], data[at + size :]


def _tlv(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + value
