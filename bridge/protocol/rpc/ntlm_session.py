"""NTLMv1 responses with extended session security ("NTLM2 session"), as XP and 2003 send them.

The proof is made with DES: whoever records one can find the NT hash by trying 2**56 keys. So an
acceptor takes it only where it is told to. MS-NLMP 3.3.1, 3.4.5.1
"""

from __future__ import annotations

import hmac
from hashlib import md5
from typing import Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from bridge.protocol.rpc.md4 import md4

_PART: Final = 7  # bytes of a DES key without its parity bits


def session_response(nt_hash: bytes, server_challenge: bytes, client_challenge: bytes) -> bytes:
    """NtChallengeResponse. MS-NLMP 3.3.1"""
    both = md5(server_challenge + client_challenge, usedforsecurity=False).digest()
    return _desl(nt_hash, both[:8])


def session_key(nt_hash: bytes, server_challenge: bytes, client_challenge: bytes) -> bytes:
    """KeyExchangeKey. MS-NLMP 3.4.5.1"""
    return hmac.digest(md4(nt_hash), server_challenge + client_challenge, "md5")


def _desl(key: bytes, data: bytes) -> bytes:
    """DESL: DES by each third of the key, which is filled up with zeros. MS-NLMP 6"""
    filled = key.ljust(3 * _PART, b"\0")
    parts = (filled[at : at + _PART] for at in range(0, len(filled), _PART))
    return b"".join(_des(part, data) for part in parts)


def _des(part: bytes, data: bytes) -> bytes:
    """Triple DES with one key three times is DES."""
    bits = int.from_bytes(part)
    key = bytes((bits >> 49 - 7 * index & 0x7F) << 1 for index in range(8))
    return Cipher(TripleDES(key * 3), modes.ECB()).encryptor().update(data)  # noqa: S305
