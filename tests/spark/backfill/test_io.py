"""The run's folder, the plan's file, and which headers tell what a record is of."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.core.mapping_rules import HeaderRules
from bridge.model.errors import ConfigError
from msmq_jobs.backfill import io
from msmq_jobs.backfill.transforms import Planned
from msmq_jobs.sources.locator import Export, LiveQueue, Source
from tests.spark.letters import letter, mappings, write_lines
from tests.spark.reconcile.test_queues import of


def test_a_run_has_a_name_of_its_own() -> None:
    now = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)
    assert io.new_run(now).startswith("20260131T120005Z-")
    assert io.new_run(now) != io.new_run(now)


def test_the_folder_keeps_every_run(tmp_path: Path) -> None:
    unused: Any = None
    for run in ("r1", "r2"):
        folder = io.RunFolder(f"{tmp_path}/out/", run)
        folder.prepare()
        folder.keep(unused, {"run": run})
    assert json.loads((tmp_path / "out" / "run-r1.json").read_text()) == {"run": "r1"}
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == {"run": "r2"}
    assert folder.place("read") == f"{tmp_path}/out/read/run=r2"


def test_a_folder_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """What has a scheme is Spark's to write."""
    folder = io.RunFolder(f"file://{tmp_path}", "r1")
    folder.prepare()
    folder.keep(spark, {"run": "r1"})
    assert json.loads((tmp_path / "run.json").read_text()) == {"run": "r1"}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--out"):
        io.RunFolder(f"{tmp_path}/file/out", "r").prepare()


def test_sources_are_kept_and_a_broken_one_is_told(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [letter(1), letter(2)], b"half")
    (tmp_path / "in" / "b.parquet").write_bytes(b"PAR1 no more")
    live = LiveQueue(text="msmq://h/;deadletter", host="127.0.0.1", port=1, suffix="deadletter")
    sources: list[Source] = [
        Export(str(tmp_path / "in")),
        Export(str(tmp_path / "none.jsonl")),
        live,
    ]
    folder = io.RunFolder(str(tmp_path / "out"), "r")
    kept, refused = io.keep_sources(spark, sources, folder)
    assert kept == [0]
    assert [line.source for line in refused] == [source.text for source in sources]
    assert all("\n" not in line.why for line in refused)
    assert refused[2].why.endswith("is the host up, and does nothing block its RPC ports?")
    rows = io.read_kept(spark, folder, kept).collect()
    assert sorted(row["message_id"] or "" for row in rows)[1:] == [
        letter(1).message_id,
        letter(2).message_id,
    ]
    assert io.read_kept(spark, folder, []).count() == 0


def test_plans(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('[{"message_id": "g\\\\1", "queue": "q", "source": "a.jsonl", "more": 1}]')
    assert io.read_plan(file) == [Planned(message_id="g\\1", queue="q", source="a.jsonl")]
    for text in ("{}", '[{"queue": "q"}]', "no JSON", ""):
        file.write_text(text)
        with pytest.raises(ConfigError, match="as reconcile writes it"):
            io.read_plan(file)
    with pytest.raises(ConfigError, match="--plan"):
        io.read_plan(tmp_path / "none")


def test_which_headers_tell() -> None:
    assert io.names_in(mappings()) == io.Names(("msmq.id",), ("msmq.queue",), {})
    renamed = HeaderRules(rename={"msmq.id": "id"}, prefix="x-")
    assert io.names_in(mappings(headers=renamed)) == io.Names(("id",), ("x-queue",), {})
    silent = of(headers=HeaderRules(exclude=("msmq.queue",)))
    told = io.Names(("msmq.id",), ("msmq.queue",), {"orders": "private$\\Orders"})
    assert io.names_in(silent) == told


def test_the_audit_speaks_for_silent_queues_only(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One queue that hides its ids is no reason to believe the audit of the others: a record that
    was lost is not there, whatever was accepted."""
    entries = [
        {"id": "g\\1", "verdict": "accepted", "queue": queue, "at": 1}
        for queue in ("private$\\Orders", "private$\\other")
    ]
    value = json.dumps(entries).encode()
    audit = spark.createDataFrame([(value,)], "value binary")
    monkeypatch.setattr(io, "read_range", lambda *_: audit)
    silent = of(headers=HeaderRules(exclude=("msmq.id",)))
    found = io.known_messages(spark, {}, silent, io.names_in(silent), {}, {"audit": {0: 1}})
    assert [tuple(row) for row in found.collect()] == [("g\\1", "private$\\orders")]
    told = io.known_messages(spark, {}, of(), io.names_in(of()), {}, {"audit": {0: 1}})
    assert told.count() == 0
