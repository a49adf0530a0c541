"""The targets of the fuzzer on their seeds, and on what hypothesis invents around them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    for seed in seeds(name):
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_bytes(name: str, data: bytes) -> None:
    TARGETS[name](data)


SEEDED = [name for name in TARGETS if any(seeds(name))]
TELLING = b"<0\r\0"  # bytes that a parser stops at


@pytest.mark.parametrize("name", SEEDED)
def test_damaged_seeds(name: str) -> None:
    dice = random.Random(f"damaged {name}")
    known = [seed for seed in seeds(name) if seed]
    for _ in range(400):
        raw = bytearray(dice.choice(known))
        for _ in range(dice.randint(1, 4)):
            raw[dice.randrange(len(raw))] = dice.choice((dice.randrange(256), *TELLING))
        start = dice.randrange(len(raw)) if dice.random() < 0.3 else 0
        TARGETS[name](bytes(raw[start:]))


@pytest.mark.parametrize("name", SEEDED)
def test_spliced_seeds(name: str) -> None:
    dice = random.Random(f"spliced {name}")
    known = [seed for seed in seeds(name) if seed]
    for _ in range(200):
        one, other = dice.choice(known), dice.choice(known)
        TARGETS[name](one[: dice.randrange(len(one))] + other[dice.randrange(len(other)) :])
