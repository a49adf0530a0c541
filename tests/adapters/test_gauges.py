"""What is looked up when somebody asks for the metrics."""

import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from bridge.adapters.gauges import measure
from bridge.adapters.telemetry import PREFIX, Telemetry


def sample(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.registry.get_sample_value(f"{PREFIX}{name}", labels)


def test_each_gauge_asks_its_own_function(tmp_path: Path) -> None:
    telemetry, found = Telemetry(), {"streams": 7.0, "retained": 3.0}
    measure(
        telemetry,
        tmp_path,
        {"retained": lambda: found["retained"], "audit": lambda: 0},
        streams=lambda: found["streams"],
        ready=lambda: True,
    )
    assert (sample(telemetry, "streams"), sample(telemetry, "ready")) == (7, 1)
    found["streams"], found["retained"] = 8.0, 4.0
    assert sample(telemetry, "streams") == 8
    assert sample(telemetry, "view_lag_records", view="retained") == 4
    assert sample(telemetry, "build_info", version=version("msmq-bridge")) == 1


def test_the_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    telemetry = Telemetry()
    measure(telemetry, tmp_path / "not" / "yet", {})
    free, size = sample(telemetry, "data_free_bytes"), sample(telemetry, "data_size_bytes")
    assert free is not None
    assert size is not None
    assert 0 < free <= size


def test_a_disk_that_cannot_be_asked_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_place: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(shutil, "disk_usage", fail)
    telemetry = Telemetry()
    measure(telemetry, tmp_path, {})
    assert str(sample(telemetry, "data_free_bytes")) == "nan"
    assert b"data_free_bytes NaN" in telemetry.exposition()[0]


def test_a_gauge_that_does_not_exist_is_a_bug_of_ours(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        measure(Telemetry(), tmp_path, {}, no_such_gauge=lambda: 0)
