"""The rows of the Spark scenarios, measured in processes of their own: `spark`, `reconcile`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.figures import ratio
from tests.bench.scenarios import RECONCILE
from tests.outside.appliance import ROOT

Rows = dict[str, dict[str, Any]]


def measured(bootstrap: str, folder: Path, count: int) -> Rows:
    return rows_of(_told("spark", count, "--bootstrap", bootstrap, "--folder", str(folder)))


def reconciled(count: int) -> Rows:
    return {RECONCILE: reconcile_row(_told("reconcile", count))}


def _told(module: str, count: int, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"tests.bench.{module}", "--count", str(count), *more]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    return dict(json.loads(told))


def reconcile_row(figures: Mapping[str, Any]) -> dict[str, Any]:
    growth = {"half_s": figures["half"]["seconds"], "growth": figures["growth"]}
    return {**figures["whole"], **growth, "peak_gib": figures["peak_gib"]}


def rows_of(figures: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Both always: one says nothing without the other."""
    backfill, sink = figures["backfill"], figures["sink"]
    share = ratio(backfill["per_second"], sink["per_second"])
    return {"spark/backfill": {**backfill, "of_sink": share}, "spark/sink": dict(sink)}
