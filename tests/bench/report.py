"""The results as JSON with stable keys, and as tables on the terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import confluent_kafka
from rich.console import Console, RenderableType
from rich.table import Table

from tests.bench.neighbours import CALM
from tests.bench.scenarios import (
    FLOODS,
    KIB,
    LATENCIES,
    MEMORY,
    RECONCILE,
    REMOTE,
    SPARK,
    START_UP,
    called,
    verdicts,
)

FORMAT = 1
WIDTH = 100
_SPREAD = "p50 / p99 / worst"
Results = Mapping[str, Mapping[str, Any]]


def document(
    results: Results,
    *,
    quick: bool,
    settings: Mapping[str, object],
    seconds: float,
    others: float,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "quick": quick,
        "seconds": round(seconds, 1),
        "settings": dict(settings),
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "cores_taken_by_others": round(others, 2),
        },
        "versions": {
            "msmq-bridge": version("msmq-bridge"),
            "python": platform.python_version(),
            "confluent-kafka": confluent_kafka.__version__,
            "librdkafka": confluent_kafka.libversion()[0],
        },
        "results": {name: dict(figures) for name, figures in results.items()},
        "targets": verdicts(results),
    }


def show(told: Mapping[str, Any], console: Console | None = None) -> None:
    console = console or Console(width=WIDTH)
    for part in tables(told):
        console.print(part)


def tables(told: Mapping[str, Any]) -> Iterable[RenderableType]:
    results: Results = told["results"]
    machine, versions = told["machine"], told["versions"]
    where = f"{machine['cores']} cores, Python {versions['python']}, "
    where += f"librdkafka {versions['librdkafka']}{', quick' if told['quick'] else ''}"
    if any(name.startswith("bridge/") for name in results):
        yield _floods(results, where)
    rest = list(_rest(results))
    if rest:
        table = Table(title="Latency, memory, start-up, remote read, Spark", width=WIDTH)
        table.add_column("what")
        table.add_column("measured", justify="right")
        for row in rest:
            table.add_row(*row)
        yield table
    if told["targets"]:
        yield _targets(told["targets"])
    if machine["cores_taken_by_others"] > CALM:
        yield (
            f"[yellow]Other work took {machine['cores_taken_by_others']:.2f} of "
            f"{machine['cores']} cores meanwhile: these figures say little.[/]"
        )


def _floods(results: Results, where: str) -> Table:
    table = Table(title=f"One broker, one run: {where}", width=WIDTH)
    table.add_column("what", no_wrap=True, ratio=1)
    for name in ("per second", "of raw", "CPU µs", "of raw", "sender's µs"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = ""
    for flood in FLOODS:
        if flood.name not in results:
            continue
        if flood.raw.name != shown and flood.raw.name in results:
            if shown:
                table.add_section()
            shown = flood.raw.name
            raw = results[shown]
            label = f"raw producer, {called(flood.kind)}, {flood.size // KIB} KiB"
            table.add_row(label, f"{raw['per_second']:,.0f}", "", f"{raw['cpu_us']:.1f}", "", "")
        row = results[flood.name]
        table.add_row(
            f"  {flood.who}",
            f"{row['per_second']:,.0f}",
            share(row["of_raw"]),
            f"{row['cpu_us']:.1f}",
            f"{row['cpu_of_raw']:.{1 if row['cpu_of_raw'] < 100 else 0}f}x",
            f"{row['sender_cpu_us']:.1f}",
        )
    return table


def _rest(results: Results) -> Iterable[tuple[str, str]]:
    for name, burst in LATENCIES.items():
        if row := results.get(name):
            way = "one by one" if burst == 1 else f"{burst} at a time"
            yield f"ack latency at {row['rate']:,.0f} a second, {way}: {_SPREAD}", _spread(row)
    for flood in FLOODS:
        if flood.is_http and (row := results.get(flood.name)):
            what = f"{called(flood.kind)}, {flood.who}"
            yield f"the answer to a request, {what}: {_SPREAD}", _spread(row)
    if row := results.get(MEMORY):
        yield (
            f"RSS with none and with {row['sessions']:,} idle sessions",
            f"{row['before_mib']:.1f} / {row['after_mib']:.1f} MiB",
        )
    if row := results.get(START_UP):
        yield (
            f"start-up with none and with {row['streams']:,} streams",
            f"{row['empty_s']:.2f} / {row['full_s']:.2f} s",
        )
        yield "a plain read of the same state topic", f"{row['plain_read_s']:.2f} s"
    for name, what in REMOTE.items():
        if row := results.get(name):
            cost = f"{row['cpu_us']:.0f} / {row['bridge_cpu_us']:.0f} µs"
            yield (
                f"{row['messages']:,} x 1 KiB {what}: per second, reader's / bridge's CPU",
                f"{row['per_second']:,.0f}, {cost}",
            )

    for name, what in SPARK.items():
        if row := results.get(name):
            beside = f", {share(row['of_sink'])} of the sink" if "of_sink" in row else ""
            yield (
                f"{row['messages']:,} x 1 KiB {what}: per second",
                f"{row['per_second']:,.0f}{beside}",
            )
    if row := results.get(RECONCILE):
        yield (
            f"{row['messages']:,} messages reconciled / a bare full outer join counted",
            f"{row['seconds']:.0f} / {row['join_s']:.0f} s",
        )
        yield "  verdicts only counted, none kept", f"{row['counted_s']:.0f} s"
        yield (
            "  half as many messages; twice the data takes",
            (f"{row['half_s']:.0f} s; {row['growth']:.2f} times as long"),
        )
        yield "  peak memory of Spark", f"{row['peak_gib']:.1f} GiB"


def _spread(row: Mapping[str, Any]) -> str:
    return f"{row['p50_ms']:.0f} / {row['p99_ms']:.0f} / {row['max_ms']:.0f} ms"


def _targets(found: Iterable[Mapping[str, Any]]) -> Table:
    table = Table(title="Targets", width=WIDTH)
    table.add_column("what", ratio=1)
    table.add_column("measured", justify="right")
    table.add_column("wanted", justify="right")
    table.add_column("")
    for target in found:
        mark = "[green]reached[/]" if target["reached"] else "[red]not reached[/]"
        table.add_row(target["what"], amount(target), target["wanted"], mark)
    return table


def share(value: float) -> str:
    """Of one; of a very small one as much as says something."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def amount(target: Mapping[str, Any]) -> str:
    """A figure with its unit, as many digits as say something."""
    value = float(target["value"])
    return f"{value:.2f}{target['unit']}" if value < 10 else f"{value:,.0f}{target['unit']}"
