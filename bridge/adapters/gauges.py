"""What is looked up when somebody asks for the metrics, rather than counted."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from prometheus_client import Gauge

from bridge.adapters.telemetry import Telemetry

Answer = Callable[[], float]


def measure(
    telemetry: Telemetry, data: Path, views: Mapping[str, Answer], **gauges: Answer
) -> None:
    """Every gauge of `Telemetry` that is named gets the function that answers it; a view's lag
    is asked by its name."""
    telemetry.build_info.labels(_version()).set(1)
    telemetry.data_free.set_function(lambda: _disk(data)[0])
    telemetry.data_size.set_function(lambda: _disk(data)[1])
    for name, answer in gauges.items():
        gauge: Gauge = getattr(telemetry, name)
        gauge.set_function(answer)
    for view, answer in views.items():
        telemetry.view_lag.labels(view).set_function(answer)


def _disk(folder: Path) -> tuple[float, float]:
    """Free and whole; of the nearest folder that is there."""
    for place in (folder, *folder.parents):
        try:
            usage = shutil.disk_usage(place)
        except FileNotFoundError:
            continue
        except OSError:
            break
        return usage.free, usage.total
    return math.nan, math.nan


def _version() -> str:
    try:
        return version("msmq-bridge")
    except PackageNotFoundError:
        return "unknown"
