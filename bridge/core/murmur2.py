"""The hash by which Kafka's own clients spread keys over partitions.

`order: key` must put a key where every other producer of the topic puts it, or a consumer that
joins two topics by key finds half of it elsewhere. (librdkafka's default is another hash.)
"""

from __future__ import annotations

from struct import iter_unpack
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """As Java's DefaultPartitioner: the hash without its sign."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """32 bits, unsigned."""
    length = len(data)
    whole = length & ~3
    h = (_SEED ^ length) & _MASK
    for (k,) in iter_unpack("<I", data[:whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
