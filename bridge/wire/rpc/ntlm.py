"""The three messages of NTLM, as far as an acceptor reads and writes them. MS-NLMP 2.2"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.cursor import decode_utf16, encode_utf16

_SIGNATURE: Final = b"NTLMSSP\0"
_KIND: Final = Struct("<8sI")
_FIELD: Final = Struct("<HHI")
_CHALLENGE: Final = Struct("<8sIHHII8s8xHHI8s")
_AUTHENTICATE_MIN: Final = 64
_MIC: Final = slice(72, 88)
_AV_PAIR: Final = Struct("<HH")
_BLOB: Final = Struct("<BB6xQ8s4x")
_PROOF: Final = 16
_V1_RESPONSE: Final = 24
_CHALLENGE_SIZE: Final = 8
_OUR_VERSION: Final = bytes((6, 1, 0xB1, 0x1D, 0, 0, 0, 15))  # what it is, nobody asks


class NtlmFlags(IntFlag):
    """MS-NLMP 2.2.2.5"""

    UNICODE = 0x00000001
    REQUEST_TARGET = 0x00000004
    SIGN = 0x00000010
    SEAL = 0x00000020
    NTLM = 0x00000200
    ANONYMOUS = 0x00000800
    ALWAYS_SIGN = 0x00008000
    TARGET_TYPE_SERVER = 0x00020000
    EXTENDED_SESSIONSECURITY = 0x00080000
    TARGET_INFO = 0x00800000
    VERSION = 0x02000000
    KEY_128 = 0x20000000
    KEY_EXCH = 0x40000000
    KEY_56 = 0x80000000


class Av(IntEnum):
    """MS-NLMP 2.2.2.1"""

    EOL = 0
    NB_COMPUTER_NAME = 1
    NB_DOMAIN_NAME = 2
    DNS_COMPUTER_NAME = 3
    DNS_DOMAIN_NAME = 4
    FLAGS = 6
    TIMESTAMP = 7


AV_MIC_PRESENT: Final = 0x2


def _require(data: bytes, kind: int, size: int) -> None:
    if len(data) < max(size, _KIND.size):
        raise WireError("NTLM message", len(data), "MS-NLMP 2.2.1: too short")
    signature, found = _KIND.unpack_from(data)
    if signature != _SIGNATURE or found != kind:
        raise WireError("NTLM MessageType", found, f"MS-NLMP 2.2.1: {kind} expected")


class Negotiate(msgspec.Struct, frozen=True, gc=False):
    """MS-NLMP 2.2.1.1; the names a client may add mean nothing to us."""

    flags: int

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        _require(data, 1, 16)
        return cls(int.from_bytes(data[12:16], "little"))


class Challenge(msgspec.Struct, frozen=True, gc=False):
    """MS-NLMP 2.2.1.2"""

    flags: int
    challenge: bytes
    target: str
    info: bytes  # AV pairs

    def pack(self) -> bytes:
        target = encode_utf16(self.target)
        info_at = _CHALLENGE.size + len(target)
        head = _CHALLENGE.pack(
            _SIGNATURE,
            2,
            len(target),
            len(target),
            _CHALLENGE.size,
            self.flags,
            self.challenge,
            len(self.info),
            len(self.info),
            info_at,
            _OUR_VERSION,
        )
        return head + target + self.info


class Authenticate(msgspec.Struct, frozen=True, gc=False):
    """MS-NLMP 2.2.1.3"""

    flags: int
    lm_response: bytes
    nt_response: bytes
    domain: str
    user: str
    session_key: bytes  # EncryptedRandomSessionKey
    data: bytes  # all of it, as it came

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        _require(data, 3, _AUTHENTICATE_MIN)
        flags = int.from_bytes(data[60:64], "little")
        if not flags & NtlmFlags.UNICODE:
            raise WireError("NTLM flags", hex(flags), "MS-NLMP 2.2.2.5: only Unicode")
        return cls(
            flags,
            lm_response=_field(data, 12),
            nt_response=_field(data, 20),
            domain=_text(data, 28),
            user=_text(data, 36),
            session_key=_field(data, 52),
            data=data,
        )

    @property
    def is_ntlmv1(self) -> bool:
        """By the size of NTLM_RESPONSE; an NTLMv2_RESPONSE is larger. MS-NLMP 2.2.2.6"""
        return len(self.nt_response) == _V1_RESPONSE

    @property
    def client_challenge(self) -> bytes:
        """Of an NTLMv1 response with extended session security: LmChallengeResponse is this and 16
        zeros. Empty if it is anything else. MS-NLMP 3.3.1"""
        lm = self.lm_response
        is_session = len(lm) == _V1_RESPONSE and not any(lm[_CHALLENGE_SIZE:])
        return lm[:_CHALLENGE_SIZE] if is_session else b""

    @property
    def mic(self) -> bytes:
        """Only if the AV flags say so; else these bytes are something else."""
        return self.data[_MIC]

    @property
    def without_mic(self) -> bytes:
        return self.data[: _MIC.start] + bytes(16) + self.data[_MIC.stop :]


def _field(data: bytes, at: int) -> bytes:
    size, _, offset = _FIELD.unpack_from(data, at)
    if size and offset + size > len(data):
        raise WireError("NTLM payload", (offset, size), f"MS-NLMP 2.2.1.3: {len(data)} bytes")
    return data[offset : offset + size]


def _text(data: bytes, at: int) -> str:
    raw = _field(data, at)
    if len(raw) % 2:
        raise WireError("NTLM name", len(raw), "MS-NLMP 2.2.1.3: odd length")
    return decode_utf16(raw)


class NtResponse(msgspec.Struct, frozen=True, gc=False):
    """NTLMv2_RESPONSE: the proof, and the blob that it proves, as they came. MS-NLMP 2.2.2.8"""

    proof: bytes
    blob: bytes
    av_flags: int

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        proof, blob = data[:_PROOF], data[_PROOF:]
        if len(blob) < _BLOB.size:  # 24 bytes in all would be NTLMv1
            raise WireError("NTLMv2_RESPONSE", len(data), "MS-NLMP 2.2.2.8: too short")
        kind, highest, _, _ = _BLOB.unpack_from(blob)
        if (kind, highest) != (1, 1):
            raise WireError("NTLMv2_CLIENT_CHALLENGE", (kind, highest), "MS-NLMP 2.2.2.7")
        flags = unpack_av_pairs(blob[_BLOB.size :]).get(Av.FLAGS, b"")
        return cls(proof, blob, int.from_bytes(flags[:4], "little"))


def pack_av_pairs(pairs: dict[Av, bytes]) -> bytes:
    body = b"".join(_AV_PAIR.pack(kind, len(value)) + value for kind, value in pairs.items())
    return body + _AV_PAIR.pack(Av.EOL, 0)


def unpack_av_pairs(data: bytes) -> dict[int, bytes]:
    """Up to the end mark, or where the bytes end: not everybody writes the mark."""
    pairs: dict[int, bytes] = {}
    at = 0
    while len(data) - at >= _AV_PAIR.size:
        kind, size = _AV_PAIR.unpack_from(data, at)
        at += _AV_PAIR.size
        if kind == Av.EOL:
            break
        if size > len(data) - at:
            raise WireError("AV_PAIR.AvLen", size, "MS-NLMP 2.2.2.1: breaks off")
        pairs[kind] = data[at : at + size]
        at += size
    return pairs
