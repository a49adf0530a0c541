"""Runs scenarios one after the other against one broker and gathers their figures."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import spark_rows
from tests.bench.figures import micros, ratio
from tests.bench.posts import KINDS as HTTP_KINDS
from tests.bench.raw import PARTITIONS
from tests.bench.remote import PASSWORD, USER
from tests.bench.scenarios import (
    FEW,
    FLOODS,
    HALF_WINDOW,
    IDLE_SESSIONS,
    LATENCIES,
    LATENCY_S,
    MAIN,
    MANY,
    MEMORY,
    QUICK,
    RECONCILE,
    RECONCILE_COUNT,
    REMOTE,
    REMOTE_COUNT,
    SMALL,
    SPARK,
    SPARK_COUNT,
    START_UP,
    STREAMS,
    Flood,
    Raw,
)
from tests.bench.startup import fill, plain_read
from tests.bench.subject import Sender, Subject
from tests.outside.appliance import QUEUES, ROOT, Settings
from tests.outside.records import create_topics

WARM_UP = {"sessions": 64, "count": 320}
WARM_SESSIONS = 8
STARTS = 2  # of each kind; the faster one counts
MIB = 1 << 20
REMOTE_SENDERS = 10
RETAINED = Settings(
    queues={"kept": {"mode": "retain", "allow_read": ["*"]}},
    listen={"rpc": 0},
    users={USER: PASSWORD},
)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Runner:
    def __init__(
        self, folder: Path, bootstrap: str, settings: Mapping[str, object], *, quick: bool
    ) -> None:
        self._folder, self._bootstrap = folder, bootstrap
        self._settings, self._quick = settings, quick
        self._results: dict[str, dict[str, Any]] = {}
        self._bridge: Subject | None = None
        self._subjects: list[Subject] = []

    def run(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = set(names)
        if MEMORY in wanted:
            self._memory()
        if START_UP in wanted:
            self._start_up()
        if wanted & REMOTE.keys():
            self._remote([name for name in REMOTE if name in wanted])
        if wanted & SPARK.keys():
            progress("spark: a backfill, and Spark's plain sink")
            count = SPARK_COUNT // QUICK if self._quick else SPARK_COUNT
            self._results |= spark_rows.measured(self._bootstrap, self._folder / "spark", count)
        if RECONCILE in wanted:
            progress("reconcile: verdicts, and a bare join")
            count = RECONCILE_COUNT // QUICK if self._quick else RECONCILE_COUNT
            self._results |= spark_rows.reconciled(count)
        for flood in FLOODS:
            if flood.name in wanted:
                self._flood(flood)
                if flood in (MAIN, MANY):
                    self._raw(MAIN.raw)  # again: the targets rest on it
        for name in LATENCIES:
            if name in wanted:
                self._latency(name)
        self._derive()
        return self._results

    def stop(self) -> None:
        for subject in self._subjects:
            subject.stop()

    # -- throughput -------------------------------------------------------------------------

    def _raw(self, raw: Raw) -> None:
        progress(raw.name)
        bridge = self._running()
        queue = Flood(raw.kind, raw.size, 1).queue
        command = [sys.executable, "-m", "tests.bench.raw", "--config", str(bridge.config)]
        command += ["--topic", "raw", "--queue", queue, "--kind", raw.kind]
        command += ["--size", str(raw.size), "--count", str(raw.count(self._quick))]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
        runs = self._results.get(raw.name, {}).get("runs", [])
        runs = [*runs, json.loads(told)]
        self._results[raw.name] = {
            "kind": raw.kind,
            "size": raw.size,
            "messages": sum(run["messages"] for run in runs),
            "per_second": median(run["per_second"] for run in runs),
            "cpu_us": median(run["cpu_us"] for run in runs),
            "runs": runs,
        }

    def _flood(self, flood: Flood) -> None:
        if flood.name in self._results:
            return
        if flood.raw.name not in self._results:
            self._raw(flood.raw)
        progress(flood.name)
        row = self._send(
            kind=flood.kind,
            queue=flood.queue,
            size=flood.size,
            sessions=flood.sessions,
            count=flood.count(self._quick),
            idle=flood.idle,
        )
        shape = {"kind": flood.kind, "size": flood.size, "sessions": flood.sessions}
        self._results[flood.name] = {**shape, "idle": flood.idle, **row}

    def _send(self, **options: object) -> dict[str, Any]:
        """One run of a load generator, and what it cost the bridge until that is quiet again."""
        bridge = self._running()
        is_http = options.get("kind") in HTTP_KINDS
        sender = Sender(bridge.http_address if is_http else bridge.address, **options)
        try:
            bridge.settle()
            before = bridge.cpu_s()
            told = sender.go()
            during = bridge.cpu_s() - before
            bridge.settle()
            total = bridge.cpu_s() - before
        finally:
            sender.close()
        messages = int(told["messages"])
        figures: dict[str, Any] = {
            "messages": messages,
            "seconds": told["seconds"],
            "per_second": told["per_second"],
            "cpu_us": micros(total, messages),
            "cpu_during_us": micros(during, messages),  # the rest was put off: the audit index
            "sender_cpu_us": micros(told["cpu_s"], messages),
        }
        return figures | {key: told[key] for key in ("p50_ms", "p99_ms", "max_ms") if key in told}

    def _latency(self, name: str) -> None:
        self._flood(MAIN)
        progress(name)
        rate = self._results[MAIN.name]["per_second"] / 2
        seconds = LATENCY_S / 2 if self._quick else LATENCY_S
        half_windows = max(1, round(seconds * rate / MAIN.sessions / HALF_WINDOW))
        row = self._send(
            kind=MAIN.kind,
            queue=MAIN.queue,
            size=MAIN.size,
            sessions=MAIN.sessions,
            count=half_windows * HALF_WINDOW,
            rate=rate,
            burst=LATENCIES[name],
        )
        self._results[name] = {"rate": rate, "burst": LATENCIES[name], **row}

    def _derive(self) -> None:
        for flood in FLOODS:
            row, raw = self._results.get(flood.name), self._results.get(flood.raw.name)
            if row is not None and raw is not None:
                row["of_raw"] = ratio(row["per_second"], raw["per_second"])
                row["cpu_of_raw"] = ratio(row["cpu_us"], raw["cpu_us"])
                row["sender_of_bridge"] = ratio(row["sender_cpu_us"], row["cpu_us"])
        few, many = self._results.get(FEW.name), self._results.get(MANY.name)
        if few is not None and many is not None:
            many["of_10_sessions"] = ratio(many["per_second"], few["per_second"])

    # -- memory and start-up ----------------------------------------------------------------

    def _memory(self) -> None:
        """A fresh process: memory that was used before and given back would hide what is new."""
        progress(MEMORY)
        bridge = self._subject("memory")
        bridge.start(launcher(self._folder / "unused.json"))
        warm = Sender(bridge.address, sessions=0, idle=WARM_SESSIONS)
        before = self._rss(bridge)
        idle = Sender(bridge.address, sessions=0, idle=IDLE_SESSIONS)
        after = self._rss(bridge)
        idle.close()
        warm.close()
        bridge.stop()
        self._results[MEMORY] = {
            "sessions": IDLE_SESSIONS,
            "before_mib": before / MIB,
            "after_mib": after / MIB,
            "kib_per_session": (after - before) / IDLE_SESSIONS / 1024,
        }

    def _rss(self, bridge: Subject) -> int:
        bridge.settle()
        bridge.signal(signal.SIGUSR1)  # collects garbage
        bridge.settle()
        return bridge.rss()

    def _start_up(self) -> None:
        progress(START_UP)
        bridge = self._subject("start")
        bridge.start()  # makes its topics
        bridge.stop()
        count = STREAMS // QUICK if self._quick else STREAMS
        empty = self._fastest_start(bridge)
        shards = int(str(self._settings.get("shards", 2)))
        fill(self._bootstrap, "start.state", count, shards)
        full = self._fastest_start(bridge)
        reads = [plain_read(self._bootstrap, "start.state", shards) for _ in range(STARTS)]
        assert all(found >= count for found, _ in reads)
        read = min(seconds for _, seconds in reads)
        self._results[START_UP] = {
            "streams": count,
            "empty_s": empty,
            "full_s": full,
            "plain_read_s": read,
            "of_plain_read": ratio(full, read),
            "added_of_plain_read": ratio(full - empty, read),
        }

    def _fastest_start(self, bridge: Subject) -> float:
        seconds = []
        for _ in range(STARTS):
            seconds.append(bridge.start())
            bridge.stop()
        return min(seconds)

    # -- remote read ------------------------------------------------------------------------

    def _remote(self, names: Iterable[str]) -> None:
        """A bridge of its own, whose retained queue is filled once; `receive` empties it."""
        progress("remote: fill")
        bridge = self._subject("remote", RETAINED)
        create_topics(self._bootstrap, [bridge.topic(name) for name in (*QUEUES, "kept")], 1)
        bridge.start()
        count = REMOTE_COUNT // QUICK if self._quick else REMOTE_COUNT
        each = count // REMOTE_SENDERS
        fill = {"kind": "recoverable", "size": SMALL, "sessions": REMOTE_SENDERS, "count": each}
        sender = Sender(bridge.address, queue="private$\\kept", **fill)
        try:
            sender.go()
        finally:
            sender.close()
        bridge.settle()
        for name in sorted(names, key=lambda name: name == "remote/receive"):  # the last one
            self._results[name] = self._read_remotely(bridge, name, each * REMOTE_SENDERS)
        bridge.stop()

    def _read_remotely(self, bridge: Subject, name: str, count: int) -> dict[str, Any]:
        progress(name)
        command = [sys.executable, "-m", "tests.bench.remote", "--way", name.partition("/")[2]]
        command += ["--address", bridge.rpc_address, "--queue", "private$\\kept"]
        command += ["--bootstrap", self._bootstrap, "--topic", bridge.topic("kept")]
        before = bridge.cpu_s()
        told = subprocess.run(
            [*command, "--count", str(count)], stdout=subprocess.PIPE, check=True, cwd=ROOT
        ).stdout
        bridge.settle()
        figures: dict[str, Any] = json.loads(told)
        assert figures["messages"] == count, figures
        return figures | {"bridge_cpu_us": micros(bridge.cpu_s() - before, count)}

    # -- bridges ----------------------------------------------------------------------------

    def _subject(self, prefix: str, wanted: Settings | None = None) -> Subject:
        subject = Subject(self._folder / prefix, self._bootstrap, prefix, self._settings, wanted)
        self._subjects.append(subject)
        return subject

    def _running(self) -> Subject:
        """The one that all messages go through, warmed up."""
        if self._bridge is None:
            self._bridge = self._subject("bench")
            topics = [self._bridge.topic(name) for name in QUEUES]
            create_topics(self._bootstrap, [*topics, "raw"], PARTITIONS)
            self._bridge.start()
            self._raw(MAIN.raw)  # a broker that has just started is slow
            del self._results[MAIN.raw.name]
            self._send(**WARM_UP)
        return self._bridge


def launcher(out: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.launch", str(out)]
