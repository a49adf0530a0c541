"""An NTLM client by hand, from MS-NLMP 3.1 and 3.4, without the code under test."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

from Cryptodome.Cipher import DES

from bridge.protocol.events import Instant
from bridge.protocol.rpc.guesses import Guesses
from bridge.protocol.rpc.ntlm import HostNames, NtlmAcceptor

UNICODE, SIGN, SEAL, NTLM, ESS = 0x1, 0x10, 0x20, 0x200, 0x80000
KEY_128, KEY_EXCH, KEY_56, ANONYMOUS = 0x20000000, 0x40000000, 0x80000000, 0x800
FLAGS = UNICODE | 0x4 | SIGN | SEAL | NTLM | 0x8000 | ESS | KEY_128 | KEY_EXCH | KEY_56
NONCE = bytes.fromhex("0123456789abcdef")
HOST = HostNames("BRIDGE01", "bridge01.example.com")
NOW = Instant(0.0, 1_700_000_000.0)
SECRET_HASH = bytes.fromhex("878d8014606cda29677a44efa1353fc7")  # of "secret"


class Accounts:
    """ann has the password `secret`."""

    def nt_hash(self, user: str, domain: str) -> bytes | None:
        return SECRET_HASH if user.lower() == "ann" else None


def acceptor(
    *, guesses: Guesses | None = None, peer: str = "", strong: bool = False, **options: Any
) -> NtlmAcceptor:
    known = {"guesses": guesses, "peer": peer, "strong": strong}
    return NtlmAcceptor(Accounts(), HOST, NONCE, **known | options)


def md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324 - what MS-NLMP says


def hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, "md5").digest()


class Rc4:
    """The textbook's."""

    def __init__(self, key: bytes) -> None:
        self.state, self.i, self.j = list(range(256)), 0, 0
        j = 0
        for i in range(256):
            j = (j + self.state[i] + key[i % len(key)]) % 256
            self.state[i], self.state[j] = self.state[j], self.state[i]

    def update(self, data: bytes) -> bytes:
        out, state = bytearray(), self.state
        for byte in data:
            self.i = (self.i + 1) % 256
            self.j = (self.j + state[self.i]) % 256
            state[self.i], state[self.j] = state[self.j], state[self.i]
            out.append(byte ^ state[(state[self.i] + state[self.j]) % 256])
        return bytes(out)


def negotiate(flags: int = FLAGS) -> bytes:
    return b"NTLMSSP\0" + struct.pack("<II", 1, flags) + bytes(16)


def av(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value


def challenge_parts(message: bytes) -> tuple[int, bytes, bytes]:
    """Flags, server challenge, target info."""
    assert message[:12] == b"NTLMSSP\0" + struct.pack("<I", 2)
    (flags,) = struct.unpack_from("<I", message, 20)
    size, _, offset = struct.unpack_from("<HHI", message, 40)
    return flags, message[24:32], message[offset : offset + size]


class NtlmPeer:
    """One authentication; every argument is something that may go wrong."""

    def __init__(
        self,
        *,
        user: str = "ann",
        domain: str = "DOM",
        nt_hash: bytes = SECRET_HASH,
        flags: int = FLAGS,
        auth_flags: int | None = None,
        mic: bool = True,
        blob_end: bytes = bytes(4),
    ) -> None:
        self.user, self.domain, self.nt_hash = user, domain, nt_hash
        self.flags, self.auth_flags, self.mic = flags, auth_flags, mic
        self.blob_end = blob_end
        self.negotiate = negotiate(flags)
        self.key = b""

    def authenticate(self, challenge: bytes) -> bytes:
        flags, nonce, info = challenge_parts(challenge)
        if self.auth_flags is not None:
            flags = self.auth_flags
        pairs = info[:-4] + (av(6, struct.pack("<I", 2)) if self.mic else b"") + bytes(4)
        blob = b"\1\1" + bytes(6) + bytes(8) + b"\xaa" * 8 + bytes(4) + pairs + self.blob_end
        name = (self.user.upper() + self.domain).encode("utf-16-le")
        owf = hmac_md5(self.nt_hash, name)
        proof = hmac_md5(owf, nonce + blob)
        base = hmac_md5(owf, proof)
        self.key, session_key = base, b""
        if flags & KEY_EXCH:
            self.key = b"\x55" * 16
            session_key = Rc4(base).update(self.key)
        message = self.message(proof + blob, session_key, flags)
        if self.mic:
            mic = hmac_md5(self.key, self.negotiate + challenge + message)
            message = message[:72] + mic + message[88:]
        self.flags = flags
        return message

    def message(
        self, nt_response: bytes, session_key: bytes, flags: int, lm_response: bytes = bytes(24)
    ) -> bytes:
        """AUTHENTICATE_MESSAGE. MS-NLMP 2.2.1.3"""
        parts = [lm_response, nt_response, self.domain.encode("utf-16-le")]
        parts += [self.user.encode("utf-16-le"), b"", session_key]
        fields, payload = b"", b""
        for part in parts:
            fields += struct.pack("<HHI", len(part), len(part), 88 + len(payload))
            payload += part
        head = b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", flags)
        return head + bytes(8) + bytes(16) + payload

    def session(self) -> PeerSession:
        return PeerSession(self.key, self.flags)


class OldPeer(NtlmPeer):
    """NTLMv1 with extended session security: the proof has 24 bytes. MS-NLMP 3.3.1

    SECRET_HASH is MD4 of "secret", and BASE is MD4 of that.
    """

    BASE = bytes.fromhex("25ee06323ac15264cf82397711ef38df")
    lm_response = b"\xaa" * 8 + bytes(16)

    def authenticate(self, challenge: bytes) -> bytes:
        flags, nonce, _ = challenge_parts(challenge)
        if self.auth_flags is not None:
            flags = self.auth_flags
        data = md5(nonce + self.lm_response[:8])[:8]
        padded = self.nt_hash + bytes(5)
        proof = b"".join(_des(padded[at : at + 7], data) for at in (0, 7, 14))
        base = hmac_md5(self.BASE, nonce + self.lm_response[:8])
        self.key, session_key = base, b""
        if flags & KEY_EXCH:
            self.key = b"\x55" * 16
            session_key = Rc4(base).update(self.key)
        self.flags = flags
        return self.message(proof, session_key, flags, self.lm_response)


def _des(part: bytes, data: bytes) -> bytes:
    bits = "".join(f"{byte:08b}" for byte in part)
    key = bytes(int(bits[at : at + 7] + "0", 2) for at in range(0, 56, 7))
    return DES.new(key, DES.MODE_ECB).encrypt(data)  # noqa: S304 - what MS-NLMP says


class PeerSession:
    """The client's signing and sealing. MS-NLMP 3.4"""

    def __init__(self, key: bytes, flags: int) -> None:
        weak = key if flags & KEY_128 else key[:7] if flags & KEY_56 else key[:5]
        self.exchanged = flags & KEY_EXCH != 0
        self.sign_keys = [
            md5(key + b"session key to client-to-server signing key magic constant\0"),
            md5(key + b"session key to server-to-client signing key magic constant\0"),
        ]
        self.seal_keys = [
            md5(weak + b"session key to client-to-server sealing key magic constant\0"),
            md5(weak + b"session key to server-to-client sealing key magic constant\0"),
        ]
        self.numbers = [0, 0]
        self.rekey()

    def rekey(self) -> None:
        self.streams = [Rc4(key) for key in self.seal_keys]

    def _mac(self, way: int, message: bytes) -> bytes:
        number = struct.pack("<I", self.numbers[way])
        self.numbers[way] += 1
        checksum = hmac_md5(self.sign_keys[way], number + message)[:8]
        if self.exchanged:
            checksum = self.streams[way].update(checksum)
        return struct.pack("<I", 1) + checksum + number

    def seal(self, head: bytes, body: bytes, tail: bytes) -> tuple[bytes, bytes]:
        sealed = self.streams[0].update(body)
        return sealed, self._mac(0, head + body + tail)

    def sign(self, message: bytes) -> bytes:
        return self._mac(0, message)

    def check(self, message: bytes, signature: bytes) -> None:
        """A signature of the server's."""
        assert self._mac(1, message) == signature

    def unseal(self, head: bytes, body: bytes, tail: bytes, signature: bytes) -> bytes:
        plain = self.streams[1].update(body)
        self.check(head + plain + tail, signature)
        return plain
