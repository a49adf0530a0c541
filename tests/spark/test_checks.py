"""Found before Spark starts; the lines that a user sees are in tests/cli/test_backfill.py."""

from pathlib import Path

import pytest

from bridge.adapters.kafka import topics
from bridge.adapters.kafka.broker import free_port
from bridge.model.errors import ConfigError, Unavailable
from msmq_jobs.checks import check, check_file


def test_a_kafka_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "CALL_TIMEOUT_S", 0.5)
    config = tmp_path / "bridge.yaml"
    (tmp_path / "mappings").mkdir()
    address = f"127.0.0.1:{free_port()}"
    config.write_text(f"kafka: {{bootstrap.servers: '{address}'}}\n")
    with pytest.raises(Unavailable, match=rf"{address}: Kafka: .*is it up, is the address right"):
        check(config, ["a.jsonl"], "", out="x")


def test_a_folder_without_a_name() -> None:
    with pytest.raises(ConfigError, match="--state: is empty; name a folder"):
        check(None, [], "", out="x", state=" ")


def test_a_plan_that_cannot_be_written(tmp_path: Path) -> None:
    check_file("--plan", "")
    check_file("--plan", "s3a://bucket/plan.json")  # nobody here can tell
    check_file("--plan", f"{tmp_path}/new/plan.json")
    assert (tmp_path / "new").is_dir()
    with pytest.raises(ConfigError, match=r"--plan: .*new is a folder; name a file"):
        check_file("--plan", f"{tmp_path}/new")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"--plan: .*plan.json: .*; name a file"):
        check_file("--plan", f"{tmp_path}/file/plan.json")
