"""The limit of file descriptors, and what is left for connections."""

from __future__ import annotations

import resource
import sys

import pytest

from bridge.adapters.net.files import ENOUGH, most_connections, raise_file_limit

Limits = tuple[int, int]
NO_LIMIT = resource.RLIM_INFINITY


class System:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def get(self, which: int) -> Limits:
        assert which == resource.RLIMIT_NOFILE
        return self.limits

    def set(self, which: int, limits: Limits) -> None:
        assert which == resource.RLIMIT_NOFILE
        self.limits = limits


def system(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> System:
    made = System(limits)
    monkeypatch.setattr(resource, "getrlimit", made.get)
    monkeypatch.setattr(resource, "setrlimit", made.set)
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 4096), (4096, 4096)),
        ((4096, 4096), (4096, 4096)),
        ((1024, 1 << 30), (ENOUGH, 1 << 30)),
        ((1024, NO_LIMIT), (ENOUGH, NO_LIMIT)),
        ((1 << 20, 1 << 30), (1 << 20, 1 << 30)),  # never lowered
        ((NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT)),
    ],
)
def test_the_soft_limit_becomes_the_hard_one(
    monkeypatch: pytest.MonkeyPatch, before: Limits, after: Limits
) -> None:
    made = system(monkeypatch, before)
    raise_file_limit()
    assert made.limits == after


@pytest.mark.parametrize(
    ("soft", "most"), [(20_000, 19_488), (1024, 512), (100, 50), (NO_LIMIT, sys.maxsize)]
)
def test_connections_leave_some(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    system(monkeypatch, (soft, NO_LIMIT))
    assert most_connections() == most
