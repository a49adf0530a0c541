"""Found before Spark starts; the lines that a user sees are in tests/cli/test_backfill.py."""

from pathlib import Path

import pytest

from bridge.adapters.kafka.broker import free_port
from bridge.model.errors import ConfigError, Unavailable
from msmq_jobs.checks import check


def test_a_kafka_that_is_away_is_named(tmp_path: Path) -> None:
    config = tmp_path / "bridge.yaml"
    (tmp_path / "mappings").mkdir()
    address = f"127.0.0.1:{free_port()}"
    config.write_text(f"kafka: {{bootstrap.servers: '{address}', socket.timeout.ms: 1000}}\n")
    with pytest.raises(Unavailable, match=rf"{address}: Kafka: .*is it up, is the address right"):
        check(config, ["a.jsonl"], "", out="x")


def test_a_folder_without_a_name() -> None:
    with pytest.raises(ConfigError, match="--state: is empty; name a folder"):
        check(None, [], "", out="x", state=" ")
