"""Caches that are bounded in bytes."""

import tracemalloc
from contextlib import suppress

from bridge.core.patterns import fill_topic
from bridge.model.cache import FRAME, Cache, text_size
from bridge.model.errors import IllegalName
from bridge.model.names import parse_format_name, parse_path_name


def test_it_is_a_dict_that_counts() -> None:
    cache: Cache[str, int] = Cache(10, 1 << 20)
    assert cache.keep("a", 1, 100) == 1
    assert (cache.get("a"), cache.get("b"), cache.size) == (1, None, 100 + FRAME)
    cache.resize(50)
    assert cache.size == 150 + FRAME


def test_at_the_bound_it_is_emptied() -> None:
    few: Cache[int, int] = Cache(3, 1 << 20)
    for number in range(4):
        few.keep(number, number, 1)
    assert few == {3: 3}
    small: Cache[int, int] = Cache(1000, 100_000)
    for number in range(1000):
        small.keep(number, number, 500)
        assert small.size <= 100_000
    assert small
    assert small.size == len(small) * (500 + FRAME)


def test_a_large_entry_is_not_kept_and_empties_nothing() -> None:
    cache: Cache[int, int] = Cache(1000, 100_000)
    cache.keep(1, 1, 10)
    assert cache.keep(2, 2, 10_000) == 2
    assert cache == {1: 1}


def test_texts_are_counted_at_their_largest() -> None:
    assert text_size("abc", "d") == 16


def test_long_keys_do_not_fill_the_memory() -> None:
    """A direct name has up to 32 Ki characters: 4,096 of them would take hundreds of MiB."""
    tracemalloc.start()
    for number in range(1000):
        name = f"{number}".ljust(30_000, "x")
        for parse, text in (
            (parse_format_name, f"DIRECT=OS:host\\{name}"),
            (parse_format_name, f"DIRECT=HTTP://host/msmq/{name}"),
            (parse_path_name, f"host\\{name}"),
        ):
            with suppress(IllegalName):
                parse(text)
        fill_topic("{queue}", name)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 10 << 20
