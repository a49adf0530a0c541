"""One entry more in the mapping files, or one less; and back."""

from pathlib import Path

import pytest

from bridge.adapters.mapping_changes import Source, add_entry, queue_path, remove_entry
from bridge.model.errors import ConfigError

KEPT = {"queue": "private$\\kept", "mode": "retain"}
ORDERS = "queues:\n  # ours\n  - queue: private$\\orders\n    topic: orders\n"


def test_an_entry_is_added_to_the_only_file_and_undone(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(ORDERS)
    changed = add_entry(Source(tmp_path), "private$\\kept", KEPT)
    assert changed.place.file == str(file)
    assert Source(tmp_path).locate().places.keys() == {"private$\\orders", "private$\\kept"}
    changed.undo()
    assert file.read_text() == ORDERS


def test_a_folder_without_files_gets_one_and_loses_it_again(tmp_path: Path) -> None:
    changed = add_entry(Source(tmp_path), "private$\\kept", KEPT)
    assert [file.name for file in tmp_path.iterdir()] == ["queues.yaml"]
    changed.undo()
    assert list(tmp_path.iterdir()) == []


def test_an_entry_is_removed_and_put_back(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(ORDERS)
    changed = remove_entry(Source(file), "PRIVATE$\\Orders")
    assert "orders" not in file.read_text()
    changed.undo()
    assert file.read_text() == ORDERS


@pytest.mark.parametrize(
    ("queue", "what"),
    [("private$\\orders", "mapped at"), ("private$\\", "private"), ("a;b", "a;b")],
)
def test_what_cannot_be_added(tmp_path: Path, queue: str, what: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(ORDERS)
    with pytest.raises(ConfigError, match=what.replace("$", r"\$").replace("\\", r"\\")) as caught:
        add_entry(Source(file), queue, {"queue": queue})
    assert caught.value.where == "QUEUE"
    assert file.read_text() == ORDERS


def test_nothing_invalid_is_written(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(ORDERS)
    with pytest.raises(ConfigError, match="topic"):
        add_entry(Source(file, "own."), "private$\\kept", KEPT | {"topic": "own.state"})
    assert file.read_text() == ORDERS


def test_what_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(ORDERS)
    with pytest.raises(ConfigError, match="is not mapped"):
        remove_entry(Source(tmp_path), "private$\\nobody")


def test_of_several_files_one_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ORDERS)
    (tmp_path / "b.yaml").write_text("queues: []\n")
    source = Source(tmp_path)
    with pytest.raises(ConfigError, match="2 mapping files"):
        add_entry(source, "private$\\kept", KEPT)
    assert add_entry(source, "private$\\kept", KEPT, Path("b.yaml")).place.file.endswith("b.yaml")
    for wrong in ("c.txt", "x.test.yaml", "../d.yaml"):
        with pytest.raises(ConfigError, match="would not be read"):
            add_entry(source, "private$\\more", {"queue": "private$\\more"}, Path(wrong))


def test_a_name_is_checked() -> None:
    assert queue_path("private$\\Orders") == "private$\\Orders"
    with pytest.raises(ConfigError):
        queue_path("")
