"""Mapping files with their places; what is in them is tested in test_config_files_mappings."""

from pathlib import Path

import pytest

from bridge.adapters.mapping_files import (
    is_mapping_file,
    load_mappings,
    locate_mappings,
    mapping_files,
)
from bridge.adapters.yaml_structs import Faults
from bridge.model.errors import ConfigError
from tests.adapters.test_config_files import write


def test_every_entry_has_its_place(tmp_path: Path) -> None:
    write(tmp_path, "queues:\n  - queue: b\n\n  - queue: PRIVATE$\\C\n", "b.yaml")
    write(tmp_path, "defaults: {key: label}\nqueues: [{queue: a}]", "a.yaml")
    located = locate_mappings(tmp_path)
    assert {name: str(mark) for name, mark in located.places.items()} == {
        "a": f"{tmp_path / 'a.yaml'}:2:18",
        "b": f"{tmp_path / 'b.yaml'}:2:12",
        "private$\\c": f"{tmp_path / 'b.yaml'}:4:12",
    }
    assert str(located.defaults) == f"{tmp_path / 'a.yaml'}:1:1"
    assert located.files == (tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert [m.key for m in located.mappings.queues] == ["label"] * 3


def test_all_faults_of_all_files(tmp_path: Path) -> None:
    write(tmp_path, "queues:\n- {queue: a, topics: x}\n- {queue: a/, topic: a/b}\n- 7", "a.yaml")
    write(tmp_path, "queue: [\n", "b.yaml")
    write(tmp_path, "defaults: {mode: kept}\nother: 1\nqueues: {}", "c.yaml")
    write(tmp_path, "defaults: {}\nqueues: [{queue: x}, {queue: X}]", "d.yaml")
    with pytest.raises(Faults) as caught:
        locate_mappings(tmp_path)
    places = [
        ":".join(fault.where.split(":")[:2]).removeprefix(f"{tmp_path}/")
        for fault in caught.value.faults
    ]
    assert sorted(places) == [
        "a.yaml:2",
        "a.yaml:3",
        "a.yaml:4",
        "b.yaml:2",
        "c.yaml:1",
        "c.yaml:2",
        "c.yaml:3",
        "d.yaml:1",
        "d.yaml:2",
    ]
    assert all(fault.mend for fault in caught.value.faults)


def test_what_a_file_would_hold(tmp_path: Path) -> None:
    path, _ = write(tmp_path, "queues: [{queue: a}]", "a.yaml")
    instead = {path: b"queues: [{queue: b}]", tmp_path / "new.yaml": b"queues: [{queue: c}]"}
    found = locate_mappings(tmp_path, instead=instead).mappings
    assert [m.queue for m in found.queues] == ["b", "c"]
    nowhere = tmp_path / "none"
    instead = {nowhere / "x.yaml": b"queues: [{queue: d}]"}
    assert locate_mappings(nowhere, instead=instead).mappings.queues[0].queue == "d"
    with pytest.raises(ConfigError, match="no such"):
        locate_mappings(nowhere)


@pytest.mark.parametrize(
    "text",
    [
        "{queue: a, topic: §own.state}",
        "{queue: a, journal: §own.seen}",
        "{queue: own.x, journal: §'{queue}'}",
    ],
)
def test_topics_of_the_bridge_are_not_for_queues(tmp_path: Path, text: str) -> None:
    if "queue}" in text:
        text = text.replace("own.x,", "own.x, topic: t,")
    path, where = write(tmp_path, f"queues:\n- {text}", "a.yaml")
    load_mappings(path)
    with pytest.raises(ConfigError, match="topic of the bridge itself") as caught:
        load_mappings(path, reserved="own.")
    assert caught.value.where == where


def test_which_files_are_read(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "a.test.yaml", ".c.yaml", "schema.json"):
        (tmp_path / name).touch()
    assert [file.name for file in mapping_files(tmp_path)] == ["a.yaml", "b.yml"]
    assert not is_mapping_file(Path("x.test.yml"))
    assert mapping_files(tmp_path / "schema.json") == [tmp_path / "schema.json"]
