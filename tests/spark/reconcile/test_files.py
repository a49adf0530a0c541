"""Small files, on a disk and through Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.files import Folder


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    folder = Folder(spark, f"{scheme}{tmp_path}/x/")
    assert folder.names() == []
    folder.make("--out")
    assert folder.read("a") is None
    for text in ("one", "two"):
        folder.write("a", [text])
        assert folder.read("a") == text
    folder.write("b", ["1\n", "2\n"])
    assert (tmp_path / "x" / "b").read_text() == "1\n2\n"
    assert folder.names() == ["a", "b"]
    folder.delete("b")
    assert not (tmp_path / "x" / "b").exists()


def test_a_replacement_that_died_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    """Where the old one has to go first, the new one is whole by then."""
    folder = Folder(spark, f"file://{tmp_path}")
    (tmp_path / "a.new").write_text("two")
    assert folder.read("a") == "two"
    folder.write("a", ["three"])
    assert (folder.read("a"), folder.names()) == ("three", ["a"])


def test_a_folder_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--state"):
        Folder(spark, f"{tmp_path}/file/x").make("--state")


def test_a_folder_has_one_run_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    folder, again = Folder(spark, str(tmp_path)), Folder(spark, f"{tmp_path}/")
    with folder.alone("--out"):
        with pytest.raises(ConfigError, match="another run uses it; wait"), again.alone("--out"):
            pass
        elsewhere = Folder(spark, f"file://{tmp_path}")  # like s3a://: nobody can tell
        with elsewhere.alone("--out"):
            pass
    with again.alone("--out"):
        assert folder.names() == []
