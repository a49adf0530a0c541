"""Edits of mapping files: one entry more or less, every other byte as it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.mapping_editor import (
    one_line_value,
    with_entry,
    without_entry,
    write_atomically,
    yaml_scalar,
)
from bridge.adapters.mapping_files import locate_mappings
from bridge.adapters.yaml_tree import parse_yaml
from bridge.model.errors import ConfigError
from tests.adapters.test_config_files import ROOT

ENTRY = {"queue": "private$\\new", "topic": "new", "transactional": "true"}


def added(text: str, entry: dict[str, str] | None = None) -> str:
    return with_entry(text.encode(), entry or ENTRY, "f").decode()


def removed(text: str, queue: str) -> str:
    return without_entry(text.encode(), queue, "f").decode()


BLOCK = "- queue: private$\\new\n  topic: new\n  transactional: true\n"


def indented(text: str, by: int) -> str:
    return "".join(" " * by + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "queues:\n" + indented(BLOCK, 2)),
        ("# only words", "# only words\nqueues:\n" + indented(BLOCK, 2)),
        ("queues:\n", "queues:\n" + indented(BLOCK, 2)),
        ("queues: # none\n", "queues: # none\n" + indented(BLOCK, 2)),
        ("queues: []\n", "queues:\n" + indented(BLOCK, 2)),
        ("queues: ~  # none\n", "queues:  # none\n" + indented(BLOCK, 2)),
        ("queues: []\ndefaults: {}\n", "queues:\n" + indented(BLOCK, 2) + "defaults: {}\n"),
        ("queues:\n\n# b\ndefaults: {}", "queues:\n" + indented(BLOCK, 2) + "\n# b\ndefaults: {}"),
        ("defaults: {}", "defaults: {}\nqueues:\n" + indented(BLOCK, 2)),
        ("queues:\n- queue: a", "queues:\n- queue: a\n" + BLOCK),
        ("queues:\n    -   queue: a\n", None),
        ("queues:\n  - queue: a  # x\n", "queues:\n  - queue: a  # x\n" + indented(BLOCK, 2)),
        (
            "queues:\n  - queue: a\n    allow:\n# end\n",
            "queues:\n  - queue: a\n    allow:\n" + indented(BLOCK, 2) + "# end\n",
        ),
        (
            "queues:\n  - queue: a\n    # of a\n  # of nobody\n",
            "queues:\n  - queue: a\n    # of a\n" + indented(BLOCK, 2) + "  # of nobody\n",
        ),
        (
            "queues:\n  - queue: a\n\n  - queue: b\n\ndefaults: {}\n",
            "queues:\n  - queue: a\n\n  - queue: b\n\n" + indented(BLOCK, 2) + "\ndefaults: {}\n",
        ),
        ("---\nqueues:\n- queue: a\n...\n", "---\nqueues:\n- queue: a\n" + BLOCK + "...\n"),
        (
            "queues:\n- {queue: a}\n",
            "queues:\n- {queue: a}\n- {queue: private$\\new, topic: new, transactional: true}\n",
        ),
        (
            "queues: [{queue: a}]\n",
            "queues: [{queue: a}, {queue: private$\\new, topic: new, transactional: true}]\n",
        ),
        (
            "queues: [\n  {queue: a}, # first\n]\n",
            "queues: [\n  {queue: a}, {queue: private$\\new, topic: new, transactional: true},"
            " # first\n]\n",
        ),
    ],
)
def test_an_entry_more(before: str, after: str | None) -> None:
    if after is None:  # the indentation of the file
        after = before + "    -   queue: private$\\new\n        topic: new\n        "
        after += "transactional: true\n"
    assert added(before) == after


@pytest.mark.parametrize(
    ("before", "queue", "after"),
    [
        ("queues:\n  - queue: a\n    topic: x\n", "A", "queues:\n"),
        ("queues:\n  - queue: a\n  - queue: b\n", "a", "queues:\n  - queue: b\n"),
        ("queues:\n  - queue: a\n  - queue: b", "b", "queues:\n  - queue: a\n"),
        (
            "queues:\n  # all of them\n\n  # of a\n  - queue: a\n    # in a\n    topic: x\n\n"
            "  # of b\n  - queue: b\n",
            "a",
            "queues:\n  # all of them\n\n  # of b\n  - queue: b\n",
        ),
        (
            "queues:\n  - queue: a\n\n  - queue: b\n\n  - queue: c\n",
            "b",
            "queues:\n  - queue: a\n\n  - queue: c\n",
        ),
        (
            "queues:\n  - queue: a\n\n  - queue: b\n    allow:\n      - 10.0.0.1\n# end\n",
            "b",
            "queues:\n  - queue: a\n\n# end\n",
        ),
        ("queues: [{queue: a}, {queue: b}, {queue: c}]", "a", "queues: [{queue: b}, {queue: c}]"),
        ("queues: [{queue: a}, {queue: b}, {queue: c}]", "b", "queues: [{queue: a}, {queue: c}]"),
        ("queues: [{queue: a}, {queue: b}, {queue: c}]", "c", "queues: [{queue: a}, {queue: b}]"),
        ("queues: [{queue: a}]", "a", "queues: []"),
        ("queues:\n  -\n    queue: a\n  - queue: b\n", "a", "queues:\n  - queue: b\n"),
    ],
)
def test_an_entry_less(before: str, queue: str, after: str) -> None:
    assert removed(before, queue) == after


def test_line_ends_and_the_mark_of_windows_stay() -> None:
    before = b"\xef\xbb\xbf# caf\xc3\xa9\r\nqueues:\r\n  - queue: a\r\n    topic: x   # y\r\n"
    after = with_entry(before, {"queue": "b"}, "f")
    assert after == before + b"  - queue: b\r\n"
    assert without_entry(after, "b", "f") == before


def test_what_is_added_and_removed_again_leaves_no_trace() -> None:
    text = (ROOT / "mappings/demo.yaml").read_text(encoding="utf-8")
    assert removed(added(text), "private$\\new") == text


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{defaults: {}}",
        "{queues: []}",
        "defaults: {}\n...\n",
        "x: &q [{queue: a}]\nqueues: *q\n",
    ],
)
def test_what_cannot_be_edited_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError, match="by hand"):
        added(text)


def test_an_anchor_that_others_need_is_not_removed() -> None:
    text = "queues:\n  - &a {queue: a}\n  - {queue: b, headers: &h {include: none}}\nx: *h\n"
    with pytest.raises(ConfigError, match="cannot be edited"):
        removed(text, "b")


def test_a_broken_file_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        added("queues: [\n")
    assert caught.value.where.startswith("f:2:")


names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=20)


@given(names)
def test_any_text_can_be_written(text: str) -> None:
    written = yaml_scalar(text)
    assert parse_yaml(f"- {written}".encode(), "").value[0].value == text  # type: ignore[index, union-attr]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("private$\\orders", "private$\\orders"),
        ("private$\\*", "private$\\*"),
        ("*", "'*'"),
        ("{queue}", "'{queue}'"),
        ("7", "'7'"),
        ("true", "'true'"),
        ("", "''"),
        ("it's", "it's"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("json:$.a", "json:$.a"),
        ("a,b", "'a,b'"),
    ],
)
def test_quotes_only_where_they_are_needed(text: str, written: str) -> None:
    assert yaml_scalar(text) == written


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "\ud800", "a\x07"])
def test_text_that_has_no_place_on_a_line(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        yaml_scalar(text)


def test_values_as_somebody_typed_them() -> None:
    assert one_line_value("{include: none} ", "--set") == "{include: none}"
    for text in ("", "1, topic: x", "1\ntopic: x", "a: b", "[1", "}, {queue: x", "1 # x", "\ud800"):
        with pytest.raises(ConfigError) as caught:
            one_line_value(text, "--set")
        assert caught.value.where == "--set"


def test_the_result_is_read_as_it_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    entry = ENTRY | {"headers": "{cloudevents: true}"}
    located = locate_mappings(path, instead={path: with_entry(b"", entry, "f")})
    mapping = located.mappings.queues[0]
    assert (mapping.queue, mapping.transactional) == ("private$\\new", True)
    assert mapping.headers.cloudevents


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert {file.name for file in tmp_path.iterdir()} == {"link.yaml", "m.yaml"}
    write_atomically(tmp_path / "sub/new.yaml", b"x")
    assert (tmp_path / "sub/new.yaml").stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file/x.yaml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be written"):
            write_atomically(path, b"x")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
