"""SecurityHeader: who sent it, signature and key; and SIDs as text. MS-MQMQ 2.2.20.6"""

from __future__ import annotations

import re
from functools import lru_cache
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.cursor import pad4

SENDER_NONE: Final = 0  # SecurityHeader.sender_type
SENDER_SID: Final = 1
SENDER_QM: Final = 2

_LAYOUT: Final = Struct("<HHHHII")
_unpack: Final = _LAYOUT.unpack_from
_SIZE: Final = _LAYOUT.size
_SENDER_TYPE: Final = 0x000F  # ST
_AUTHENTICATED: Final = 0x0010  # AU
_ENCRYPTED: Final = 0x0020  # EB
_DEFAULT_PROVIDER: Final = 0x0040  # DE
_SECURITY_DATA: Final = 0x0080  # AI
_SECTION: Final = "MS-MQMQ 2.2.20.6"
_SID_SECTION: Final = "MS-DTYP 2.4.2"
_SID: Final = re.compile(r"S-1-(0x[0-9a-f]{12}|\d{1,10})((?:-\d{1,10}){0,15})", re.I | re.A)


class SecurityHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`authenticated` and `signature_type` are never to be believed (QB-131)."""

    sender_type: int = SENDER_NONE
    authenticated: bool = False
    encrypted: bool = False
    default_provider: bool = False
    security_data: bool = False  # says nothing about the items: see unpack_from
    signature_type: int = 0
    sender_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    certificate: bytes = b""
    provider_info: bytes = b""

    def pack(self) -> bytes:
        flags = (
            self.sender_type
            | (_AUTHENTICATED if self.authenticated else 0)
            | (_ENCRYPTED if self.encrypted else 0)
            | (_DEFAULT_PROVIDER if self.default_provider else 0)
            | (_SECURITY_DATA if self.security_data else 0)
            | self.signature_type << 8
        )
        items = (
            self.sender_id,
            self.encryption_key,
            self.signature,
            self.certificate,
            self.provider_info,
        )
        return _LAYOUT.pack(flags, *map(len, items)) + b"".join(map(pad4, items))

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        if end - offset < _SIZE:
            raise WireError("SecurityHeader", end - offset, f"{_SECTION}: 16 bytes")
        flags, id_size, key_size, signature_size, cert_size, info_size = _unpack(data, offset)
        if cert_size > 0xFFFF:
            raise WireError("SecurityHeader.SenderCertSize", cert_size, _SECTION)
        # CONFLICT-5: an item is there if it has a size, whatever AI says. Each is padded to 4.
        sid = offset + _SIZE
        key = sid + (id_size + 3 & ~3)
        signature = key + (key_size + 3 & ~3)
        cert = signature + (signature_size + 3 & ~3)
        info = cert + (cert_size + 3 & ~3)
        after = info + (info_size + 3 & ~3)
        if after > end:
            raise WireError("SecurityHeader.SecurityData", after - end, f"{_SECTION}: too long")
        kind, authenticated, encrypted, default_provider, security_data, signed = _split(flags)
        header = cls(
            sender_type=kind,
            authenticated=authenticated,
            encrypted=encrypted,
            default_provider=default_provider,
            security_data=security_data,
            signature_type=signed,
            sender_id=data[sid : sid + id_size],
            encryption_key=data[key : key + key_size],
            signature=data[signature : signature + signature_size],
            certificate=data[cert : cert + cert_size],
            provider_info=data[info : info + info_size],
        )
        return header, after


@lru_cache(maxsize=256)
def _split(flags: int) -> tuple[int, bool, bool, bool, bool, int]:
    return (
        flags & _SENDER_TYPE,
        flags & _AUTHENTICATED != 0,
        flags & _ENCRYPTED != 0,
        flags & _DEFAULT_PROVIDER != 0,
        flags & _SECURITY_DATA != 0,
        flags >> 8 & 0xF,
    )


def sid_text(raw: bytes) -> str:
    """`S-1-5-21-...`. MS-DTYP 2.4.2.1"""
    if len(raw) < 8 or raw[0] != 1 or raw[1] > 15 or len(raw) != 8 + 4 * raw[1]:
        raise WireError("SID", raw.hex(), _SID_SECTION)
    authority = int.from_bytes(raw[2:8], "big")
    head = f"0x{authority:012x}" if authority >> 32 else str(authority)
    return "-".join(("S-1", head, *map(str, Struct(f"<{raw[1]}I").unpack_from(raw, 8))))


def sid_bytes(text: str) -> bytes:
    match = _SID.fullmatch(text)
    if match is None:
        raise WireError("SID", text, _SID_SECTION)
    authority, parts = int(match[1], 0), [int(part) for part in match[2].split("-")[1:]]
    if any(part > 0xFFFFFFFF for part in parts):
        raise WireError("SID", text, _SID_SECTION)
    head = bytes((1, len(parts))) + authority.to_bytes(6, "big")
    return head + Struct(f"<{len(parts)}I").pack(*parts)
