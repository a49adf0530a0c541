"""The rows of the Spark scenarios, measured in a process of their own (`tests.bench.spark`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.figures import ratio
from tests.outside.appliance import ROOT

Rows = dict[str, dict[str, Any]]


def measured(bootstrap: str, folder: Path, count: int) -> Rows:
    command = [sys.executable, "-m", "tests.bench.spark", "--bootstrap", bootstrap]
    command += ["--folder", str(folder), "--count", str(count)]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    return rows_of(json.loads(told))


def rows_of(figures: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Both always: one says nothing without the other."""
    backfill, sink = figures["backfill"], figures["sink"]
    share = ratio(backfill["per_second"], sink["per_second"])
    return {"spark/backfill": {**backfill, "of_sink": share}, "spark/sink": dict(sink)}
