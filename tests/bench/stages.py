"""From samples to a table: which stage of a message's way the main thread was in; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# The innermost frame that is listed decides; the first line that fits it.
_STAGES: tuple[tuple[str, str, str], ...] = (
    # stage, part of the file's path, part of the function's name
    ("produce", "bridge/adapters/kafka/sink.py", "_produce"),
    ("commit hand-over", "bridge/adapters/kafka/", ""),
    ("parse", "bridge/wire/", ""),
    ("session", "bridge/protocol/", ""),
    ("audit", "bridge/core/audit.py", ""),
    ("map", "bridge/core/mapp", ""),
    ("map", "bridge/core/header_rules.py", ""),
    ("map", "bridge/core/values.py", ""),
    ("admit", "bridge/core/", ""),
    ("intake", "bridge/adapters/intake.py", ""),
    ("metrics", "prometheus_client/", ""),
    ("metrics", "bridge/adapters/telemetry.py", ""),
    ("metrics", "bridge/adapters/meter.py", ""),
    ("sockets", "bridge/adapters/net/", ""),
    ("sockets", "asyncio/selector_events.py", ""),
    ("event loop", "asyncio/", ""),
    ("event loop", "selectors.py", ""),
)
OTHER = "other"
COMMIT_WAIT = "commit wait"
IDLE = "idle"

Frame = tuple[str, str]  # file, function


def stage_of(stack: Sequence[Frame]) -> str:
    """Of a stack with the innermost frame first."""
    for file, function in stack:
        for stage, where, what in _STAGES:
            if where in file and what in function:
                return stage
    return OTHER


def name_of(frame: Frame) -> str:
    """`bridge/wire/binary/fast.py` -> `wire.binary.fast: read_message`."""
    file, function = frame
    for root in ("/bridge/", "/site-packages/", "/lib/python"):
        _, found, rest = file.rpartition(root)
        if found:
            module = rest.partition("/")[2] if root == "/lib/python" else rest
            return f"{module.removesuffix('.py').replace('/', '.')}: {function}"
    return f"{file}: {function}"


@dataclass(slots=True)
class Profile:
    samples: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    own: Counter[str] = field(default_factory=Counter)  # in the function itself
    total: Counter[str] = field(default_factory=Counter)  # in it or in what it calls

    def share(self, count: int) -> float:
        return count / self.samples if self.samples else 0.0


def analyse(seen: dict[str, Any]) -> Profile:
    """What `Sampler` wrote."""
    profile = Profile()
    for count, frames in seen["stacks"]:
        stack = [(file, function) for file, function in frames]
        profile.stages[stage_of(stack)] += count
        profile.own[name_of(stack[0])] += count
        for name in {name_of(frame) for frame in stack}:
            profile.total[name] += count
    for stage, key in ((COMMIT_WAIT, "commit_wait"), (IDLE, "idle")):
        if seen[key]:
            profile.stages[stage] = seen[key]
    profile.samples = sum(profile.stages.values())
    return profile
