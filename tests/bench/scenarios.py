"""What is measured, by name, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.bench.packets import KINDS
from tests.bench.posts import KINDS as HTTP_KINDS

KIB = 1024
SMALL, LARGE = KIB, 64 * KIB
HALF_WINDOW = 32  # a session acks as often: counts are multiples, so that none waits for a timer
IDLE_SESSIONS = 1000
STREAMS = 100_000
LATENCY_S = 8.0
QUICK = 8  # this much less of everything

# Messages of each session, by size and sessions: some seconds of work.
_COUNTS = {
    (SMALL, 1): 6400,
    (SMALL, 8): 3200,
    (SMALL, 10): 9600,
    (SMALL, 64): 992,
    (SMALL, 1000): 96,
    (LARGE, 1): 640,
    (LARGE, 8): 256,
    (LARGE, 64): 96,
}
# Over HTTP each connection waits for the commit of one message.
_HTTP_COUNTS = {1: 640, 8: 288}
_RAW_COUNTS = {SMALL: 60_000, LARGE: 4000}


def called(kind: str) -> str:
    """A kind of message as people read it."""
    return kind.replace("srmp-", "SRMP ")


@dataclass(frozen=True, slots=True)
class Raw:
    """The plain producer with the records of these messages."""

    kind: str
    size: int

    @property
    def name(self) -> str:
        return f"raw/{self.kind}/{self.size // KIB}KiB"

    def count(self, quick: bool) -> int:
        return _RAW_COUNTS[self.size] // (2 if quick else 1)


@dataclass(frozen=True, slots=True)
class Flood:
    """The bridge, as fast as it takes them."""

    kind: str
    size: int
    sessions: int
    idle: int = 0

    @property
    def name(self) -> str:
        beside = f"+{self.idle}idle" if self.idle else ""
        return f"bridge/{self.kind}/{self.size // KIB}KiB/{self.sessions}{beside}"

    @property
    def is_http(self) -> bool:
        return self.kind in HTTP_KINDS

    @property
    def who(self) -> str:
        noun = "connection" if self.is_http else "session"
        beside = f" and {self.idle:,} idle" if self.idle else ""
        return f"{self.sessions:,} {noun}{'' if self.sessions == 1 else 's'}{beside}"

    @property
    def queue(self) -> str:
        in_order = self.kind in ("transactional", "srmp-stream")
        return "private$\\orders" if in_order else "private$\\plain"

    @property
    def raw(self) -> Raw:
        return Raw(self.kind, self.size)

    def count(self, quick: bool) -> int:
        """Messages of each session."""
        if self.is_http:
            count = _HTTP_COUNTS[self.sessions]
        else:
            count = _COUNTS[self.size, self.sessions]
        if quick:
            count //= QUICK
        return max(1, count // HALF_WINDOW) * HALF_WINDOW


MAIN = Flood("transactional", SMALL, 64)
FEW = Flood("transactional", SMALL, 10)
MANY = Flood("transactional", SMALL, 1000)
HTTP = Flood("srmp-durable", SMALL, 8)
FLOODS = (
    *(Flood("transactional", SMALL, sessions) for sessions in (1, 8, 64)),
    Flood("transactional", SMALL, 64, IDLE_SESSIONS),
    FEW,
    MANY,
    *(Flood(kind, SMALL, sessions) for kind in KINDS[:2] for sessions in (1, 8, 64)),
    *(Flood(kind, LARGE, sessions) for kind in reversed(KINDS) for sessions in (1, 8, 64)),
    Flood("srmp-durable", SMALL, 1),
    HTTP,
    Flood("srmp-stream", SMALL, 8),
)
# At half the throughput of MAIN: one by one, or as many at a time as a session acks at once.
LATENCIES: Mapping[str, int] = {"latency/steady": 1, "latency/bursts": HALF_WINDOW}
MEMORY = "memory/idle-session"
START_UP = "start-up/streams"
# 100,000 messages of 1 KiB in a retained queue, read by one remote client.
REMOTE_COUNT = 100_000
REMOTE: Mapping[str, str] = {
    "remote/scan": "peeked remotely",
    "remote/receive": "received remotely",
    "remote/consume": "by a Kafka consumer",
}
# 50,000 messages of 1 KiB from an export into a topic, and the same records by Spark alone.
SPARK_COUNT = 50_000
SPARK: Mapping[str, str] = {
    "spark/backfill": "backfilled from an export",
    "spark/sink": "by Spark's plain Kafka sink",
}
# Verdicts on ten million messages, beside a bare full outer join of the same ledgers.
RECONCILE_COUNT = 10_000_000
RECONCILE = "reconcile/verdicts"
NAMES = (
    *(flood.name for flood in FLOODS),
    *(*LATENCIES, MEMORY, START_UP),
    *(*REMOTE, *SPARK, RECONCILE),
)


def chosen(pattern: str) -> list[str]:
    """Names that have the pattern in them; it may use * and ?."""
    return [name for name in NAMES if fnmatchcase(name, f"*{pattern}*")]


@dataclass(frozen=True, slots=True)
class Target:
    """A promise about one figure; `most` if it is an upper bound, else a lower one."""

    what: str
    scenario: str
    figure: str
    limit: float
    unit: str = ""
    most: bool = False

    @property
    def wanted(self) -> str:
        return f"{'≤' if self.most else '≥'} {self.limit:g}{self.unit}"

    def judge(self, value: float) -> bool:
        return value <= self.limit if self.most else value >= self.limit


TARGETS = (
    Target("throughput, of the raw producer's", MAIN.name, "of_raw", 0.6),
    Target("CPU per message, of the raw producer's", MAIN.name, "cpu_of_raw", 2.0, "x", True),
    Target("1,000 sessions, of 10 sessions' throughput", MANY.name, "of_10_sessions", 0.9),
    Target("ack p99 at half load, one by one", "latency/steady", "p99_ms", 100.0, " ms", True),
    Target("ack p99 at half load, in bursts", "latency/bursts", "p99_ms", 100.0, " ms", True),
    Target("memory of an idle session", MEMORY, "kib_per_session", 64.0, " KiB", True),
    Target("start-up, of a plain read of the state", START_UP, "of_plain_read", 2.0, "x", True),
    Target("  what the streams add to it", START_UP, "added_of_plain_read", 2.0, "x", True),
    Target("verdicts, of a bare join's time", RECONCILE, "of_join", 1.5, "x", True),
    Target(
        "CPU of the load generator, of the bridge's", MAIN.name, "sender_of_bridge", 0.1, "", True
    ),
    Target(
        "CPU of the one over HTTP, of the bridge's", HTTP.name, "sender_of_bridge", 0.1, "", True
    ),
)


def verdicts(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One for each target whose figure was measured."""
    found = []
    for target in TARGETS:
        value = results.get(target.scenario, {}).get(target.figure)
        if value is not None:
            found.append(
                {
                    "what": target.what,
                    "scenario": target.scenario,
                    "figure": target.figure,
                    "value": value,
                    "wanted": target.wanted,
                    "unit": target.unit,
                    "reached": target.judge(value),
                }
            )
    return found
