"""MD4, which OpenSSL 3 no longer has: the hash of a password. RFC 1320"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack
from typing import Final

_MASK: Final = 0xFFFFFFFF
_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_Round = tuple[Callable[[int, int, int], int], int, tuple[int, ...], tuple[int, ...]]
_ROUNDS: Final[tuple[_Round, ...]] = (
    (lambda x, y, z: x & y | ~x & z, 0, tuple(range(16)), (3, 7, 11, 19)),
    (
        lambda x, y, z: x & y | x & z | y & z,
        0x5A827999,
        (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        (3, 5, 9, 13),
    ),
    (
        lambda x, y, z: x ^ y ^ z,
        0x6ED9EBA1,
        (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15),
        (3, 9, 11, 15),
    ),
)


def md4(data: bytes) -> bytes:
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + pack("<Q", 8 * len(data))
    state: tuple[int, ...] = _START
    for at in range(0, len(padded), 64):
        state = _block(state, unpack("<16I", padded[at : at + 64]))
    return pack("<4I", *state)


def _block(state: tuple[int, ...], words: tuple[int, ...]) -> tuple[int, ...]:
    a, b, c, d = state
    for mix, constant, order, turns in _ROUNDS:
        for step, index in enumerate(order):
            total = (a + mix(b, c, d) + words[index] + constant) & _MASK
            turn = turns[step % 4]
            a, d, c, b = d, c, b, (total << turn | total >> (32 - turn)) & _MASK
    return tuple((old + new) & _MASK for old, new in zip(state, (a, b, c, d), strict=True))


def nt_hash(password: str) -> bytes:
    """NTOWFv1. MS-NLMP 3.3.1"""
    return md4(password.encode("utf-16-le", "surrogatepass"))
