"""What commands print: tables, JSON, YAML."""

import io
import json
import sys
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path

import msgspec
import pytest
from ruamel.yaml import YAML

from bridge.cli.output import Output, console, plain, show
from bridge.model.guid import Guid

ID = Guid.parse("3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77")


class Sample(msgspec.Struct):
    body: bytes
    where: Path


class Code(IntEnum):
    ONE = 1


DATA = {
    "id": ID,
    "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "sample": Sample(b"\x00\x01", Path("/x")),
    "list": (1, 2.5, None, True),
    "set": {"b", "a"},
    "code": Code.ONE,
    "output": Output.JSON,
    "label": "Привет",
}
PLAIN = {
    "id": "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
    "at": "2026-01-02T03:04:05+00:00",
    "sample": {"body": "AAE=", "where": "/x"},
    "list": [1, 2.5, None, True],
    "set": ["a", "b"],
    "code": 1,
    "output": "json",
    "label": "Привет",
}


def test_values_become_plain() -> None:
    assert plain(DATA) == PLAIN
    assert type(plain(Code.ONE)) is int


def test_json_is_stable(capsys: pytest.CaptureFixture[str]) -> None:
    show(DATA, Output.JSON)
    text = capsys.readouterr().out
    assert json.loads(text) == PLAIN
    assert list(json.loads(text)) == list(PLAIN)  # the order of the data
    assert text.endswith("}\n")


def test_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    show(DATA, Output.YAML)
    text = capsys.readouterr().out
    assert YAML(typ="safe", pure=True).load(text) == PLAIN
    assert text.startswith("id: 3f8a0c5e")


def test_a_list_is_a_row_each(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"queue": "a", "depth": 1}, {"queue": "b", "topic": None}], Output.TABLE, "queues")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "queues"
    assert [word in lines[2] for word in ("queue", "depth", "topic")] == [True] * 3
    assert any("b" in line and "-" in line for line in lines)


@pytest.mark.parametrize("data", [{"a": [1, 2], "b": {"c": 1}, "d": True}, [], ["x"], "x", None])
def test_anything_can_be_shown(capsys: pytest.CaptureFixture[str], data: object) -> None:
    for output in Output:
        show(data, output)
    assert capsys.readouterr().err == ""


def test_a_pipe_does_not_cut_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"long": "x" * 500}], Output.TABLE)
    assert "x" * 500 in capsys.readouterr().out


def test_a_label_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"label": "\x1b[2J[bold]\r\nnext\u202e"}], Output.TABLE)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J[bold]\\r\\nnext\\u202e" in out


def test_half_a_character_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("utf-8", "ascii"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        show({"label": "é\udc00"}, Output.JSON)
        stream.seek(0)
        assert json.loads(stream.read()) == {"label": "é\udc00"}


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    for no_color in (True, False):
        monkeypatch.setattr(sys, "stdout", Terminal())
        monkeypatch.delenv("NO_COLOR", raising=False)
        if no_color:
            monkeypatch.setenv("NO_COLOR", "1")
        assert console().no_color is no_color
