"""Lookup identifiers: where a message stands in its queue. MS-MQDMPR 3.1.1.12, 3.1.7.1.9

The top byte is 7 - priority, the low 56 bits are the queue manager's SequentialID. So the numbers
ascend along the order of a queue, priority first, then arrival (DM-20), and one number is never
given twice. Readers get the low 56 bits only and guess the top byte, so they are all that counts
when somebody asks for a number (data-model.md 2.6).
"""

from __future__ import annotations

from typing import Final

_BITS: Final = 56
_LOW: Final = (1 << _BITS) - 1
_LOWEST_PRIORITY: Final = 0
_HIGHEST_PRIORITY: Final = 7

START: Final = -1  # before the first message
END: Final = (_HIGHEST_PRIORITY + 1) << _BITS  # after the last one


def lookup_id(priority: int, sequential_id: int, *, transactional: bool = False) -> int:
    """T-1: the top byte always tells the priority. That of a transactional message is ignored."""
    effective = _LOWEST_PRIORITY if transactional else priority
    return (_HIGHEST_PRIORITY - effective) << _BITS | sequential_id & _LOW


def renewed(old: int, sequential_id: int) -> int:
    """For a copy, or in another queue: the same priority, a new number. DM-29"""
    return old & ~_LOW | sequential_id & _LOW


def low_bits(number: int) -> int:
    """What a remote reader is told. MS-MQRR 3.1.4.7"""
    return number & _LOW


def spellings(number: int) -> tuple[int, ...]:
    """The lookup identifiers that a reader may mean by this number: one for each priority."""
    return tuple(rank << _BITS | number & _LOW for rank in range(_HIGHEST_PRIORITY + 1))


def rank_of(number: int) -> int:
    """0 for priority 7, 7 for priority 0."""
    return number >> _BITS


def ends_of_ranks() -> tuple[int, ...]:
    """For each rank, the place behind all of its messages."""
    return tuple((rank + 1) << _BITS for rank in range(_HIGHEST_PRIORITY + 1))
