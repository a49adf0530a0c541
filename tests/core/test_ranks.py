"""Counts by address."""

import random
from collections import Counter

from bridge.core.ranks import Ranks


def test_ranks_against_a_plain_count() -> None:
    chance, ranks, counts = random.Random(1), Ranks(), Counter[str]()
    names = [str(number) for number in range(20)]
    for _ in range(5_000):
        name = chance.choice(names)
        step = chance.choice((1, 1, -1)) if counts[name] else 1
        ranks.change(name, step)
        counts[name] += step
        assert ranks.most == max(counts.values())
        assert ranks[name] == counts[name]
        if ranks.most:
            assert counts[ranks.heaviest()] == ranks.most
    assert len(ranks) == sum(count > 0 for count in counts.values())
