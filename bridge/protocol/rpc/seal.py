"""How a PDU is signed and sealed once both sides share a key. MS-NLMP 3.4

With extended session security the signature covers the whole PDU, whether or not header signing
was negotiated: header, plain stub and padding, sec_trailer. There is one RC4 stream and one
counter per direction, and each fragment moves both: what was protected first must leave first.
"""

from __future__ import annotations

import hmac
from hashlib import md5
from typing import Final, Protocol

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher

from bridge.model.errors import ProtocolError
from bridge.wire.rpc.ntlm import NtlmFlags

SIGNATURE_SIZE: Final = 16
_VERSION: Final = b"\1\0\0\0"

Piece = bytes | memoryview


class BadSeal(ProtocolError):
    """A PDU that was not made, or not now, by who shares the key."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("rpc-bad-seal", detail)


class Seal(Protocol):
    """One security context's keys. `head` and `tail` are signed only, `body` sealed if asked."""

    def protect(
        self, head: bytes, body: Piece, tail: bytes, *, encrypt: bool
    ) -> tuple[Piece, bytes]:
        """The body as it goes out, and the signature."""

    def unprotect(
        self, head: bytes, body: Piece, tail: bytes, signature: bytes, *, encrypt: bool
    ) -> bytes:
        """The plain body; raises BadSeal."""

    def size(self, *, encrypt: bool) -> int:
        """Of a signature: it must be known before there is one."""


def rc4(key: bytes, data: bytes) -> bytes:
    return Rc4(key).update(data)


class Rc4:
    """A stream that goes on where it stopped."""

    def __init__(self, key: bytes) -> None:
        # NTLM has no other cipher; the session it protects is no weaker elsewhere.
        self.update = Cipher(ARC4(key), mode=None).encryptor().update


class _Direction:
    """One way: a key to sign with, a stream to seal with, and how many went by."""

    def __init__(self, session_key: bytes, flags: int, way: str) -> None:
        constant = f"session key to {way} signing key magic constant\0".encode()
        self._sign_key = _md5(session_key + constant)
        constant = f"session key to {way} sealing key magic constant\0".encode()
        self._seal_key = _md5(_weakened(session_key, flags) + constant)
        self._seals_checksum = flags & NtlmFlags.KEY_EXCH != 0
        self._sequence = 0
        self.rekey()

    def rekey(self) -> None:
        self.stream = Rc4(self._seal_key)

    def signature(self, *message: Piece) -> bytes:
        """MS-NLMP 3.4.4.2; counts."""
        number = self._sequence.to_bytes(4, "little")
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        checksum = hmac.digest(self._sign_key, b"".join((number, *message)), "md5")[:8]
        if self._seals_checksum:
            checksum = self.stream.update(checksum)
        return _VERSION + checksum + number


class NtlmSeal:
    """The server's end, or the client's in tests."""

    def __init__(self, session_key: bytes, flags: int, *, server: bool = True) -> None:
        to_server = _Direction(session_key, flags, "client-to-server")
        to_client = _Direction(session_key, flags, "server-to-client")
        self._in, self._out = (to_server, to_client) if server else (to_client, to_server)

    def size(self, *, encrypt: bool) -> int:  # noqa: ARG002 - the same
        return SIGNATURE_SIZE

    def protect(
        self, head: bytes, body: Piece, tail: bytes, *, encrypt: bool
    ) -> tuple[Piece, bytes]:
        sealed = self._out.stream.update(body) if encrypt else body  # before the checksum
        return sealed, self._out.signature(head, body, tail)

    def unprotect(
        self, head: bytes, body: Piece, tail: bytes, signature: bytes, *, encrypt: bool
    ) -> bytes:
        plain = self._in.stream.update(body) if encrypt else bytes(body)
        if not hmac.compare_digest(self._in.signature(head, plain, tail), signature):
            raise BadSeal
        return plain

    def sign(self, message: bytes) -> bytes:
        return self._out.signature(message)

    def verify(self, message: bytes, signature: bytes) -> None:
        if not hmac.compare_digest(self._in.signature(message), signature):
            raise BadSeal

    def rekey(self) -> None:
        """After mechListMICs: the streams begin anew, the counters go on. MS-SPNG 3.3.5.1"""
        self._in.rekey()
        self._out.rekey()


def _weakened(session_key: bytes, flags: int) -> bytes:
    """As many bits as were negotiated. MS-NLMP 3.4.5.3"""
    if flags & NtlmFlags.KEY_128:
        return session_key
    return session_key[:7] if flags & NtlmFlags.KEY_56 else session_key[:5]


def _md5(data: bytes) -> bytes:
    return md5(data).digest()  # noqa: S324 - what MS-NLMP says
