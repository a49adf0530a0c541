"""Design 3.1, of all commands at once: help, example, output, errors, colour."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from bridge.cli import demo, serve
from bridge.cli.app import COMMANDS, PROGRAM, build, main
from bridge.cli.output import Output

Leaf = Any  # typer keeps click's classes to itself
ROOT = typer.main.get_command(build())
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-9]|10[0-7])m")
REDIRECTS = (">", ">>", "|")
NO_RESULT = ("serve",)  # it runs, and says on lines what it does
NOT_THERE = ["--config", "/no/such/bridge.yaml"]

# How each command fails at once, whatever the machine; None = it has nothing to fail at.
FAULTS: dict[str, list[str] | None] = {
    "init": [f"{__file__}/folder"],
    "serve": NOT_THERE,
    "demo": NOT_THERE,
    "status": NOT_THERE,
    "doctor": None,  # a fault is a finding, on stdout; tests/cli/test_doctor.py
    "trace": ["no-id"],
    "send": ["--queue", "private$\\"],
    "backfill": ["--source", "x.jsonl", "--out", "/no", "--rate", "-1"],
    "reconcile": ["--out", "/no", "--allow", "nonsense"],
    "receive": ["--queue", "q", "--host", "no address"],
    "map list": NOT_THERE,
    "map add": ["private$\\q", *NOT_THERE],
    "map remove": ["private$\\q", *NOT_THERE],
    "map validate": NOT_THERE,
    "map plan": NOT_THERE,
    "map apply": NOT_THERE,
    "map test": NOT_THERE,
    "map schema": None,
    "queue list": NOT_THERE,
    "queue peek": ["private$\\q", *NOT_THERE],
    "queue receive": ["private$\\q", *NOT_THERE],
    "queue export": ["private$\\q", "--out", "o.jsonl", *NOT_THERE],
    "queue purge": ["private$\\q", "--yes", *NOT_THERE],
    "queue move": ["private$\\q", "--lookup-id", "1", "--to", "private$\\q;x", *NOT_THERE],
    "queue create": ["private$\\q", *NOT_THERE],
    "queue delete": ["private$\\q", "--yes", *NOT_THERE],
    "stream list": NOT_THERE,
    "stream adopt": ["no-guid", "DIRECT=OS:a\\q", "--yes", *NOT_THERE],
    "stream forget": ["no-guid", "DIRECT=OS:a\\q", "--yes", *NOT_THERE],
    "kafka start": ["--data", f"{__file__}/data"],
    "kafka stop": None,  # no broker there: it is stopped
    "kafka status": None,  # no broker there: that is its answer, with exit code 1
}


def leaves(command: Leaf, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from leaves(child, (*path, name))


ALL = dict(leaves(ROOT))
GROUPS = sorted({path[:1] for path in ALL if len(path) > 1})


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here is no process of its own whose log could go to stderr."""
    for module in (serve, demo):
        monkeypatch.setattr(module, "setup_logging", lambda *_: None)


@pytest.fixture(params=ALL, ids=" ".join)
def path(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


def one_line(text: str) -> str:
    (line,) = text.splitlines()
    assert line.startswith(f"{PROGRAM}: error: ")
    assert line.isprintable()
    assert "Traceback" not in line
    return line


def example(command: Leaf) -> list[str]:
    found = re.search(rf"Example: ({PROGRAM} .+)", command.help)
    assert found is not None
    words = shlex.split(found[1])
    ends = [words.index(word) for word in REDIRECTS if word in words]
    return words[: min(ends, default=len(words))]


def test_the_list_is_whole() -> None:
    assert {" ".join(path) for path in ALL} == set(FAULTS)
    assert {path[0] for path in ALL} == set(COMMANDS)


# -- help -------------------------------------------------------------------------------------


def test_help_has_an_example(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    printed = capsys.readouterr()
    assert f"Example: {' '.join((PROGRAM, *path))}" in printed.out
    assert printed.err == ""


def test_the_example_is_right(path: tuple[str, ...]) -> None:
    words = example(ALL[path])
    assert words[: len(path) + 1] == [PROGRAM, *path]
    ALL[path].make_context(path[-1], words[len(path) + 1 :]).close()  # else a usage error


def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    assert [p.name for p in ALL[path].params if not p.help] == []
    assert all(p.help.endswith((".", "…")) for p in ALL[path].params)


@pytest.mark.parametrize("group", [(), *GROUPS], ids=" ".join)
def test_a_group_alone_shows_its_help(
    group: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(group)) == 2
    printed = capsys.readouterr()
    assert "Usage:" in printed.out
    assert printed.err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{PROGRAM} {version(PROGRAM)}\n"


# -- output -----------------------------------------------------------------------------------


def test_a_result_as_table_json_or_yaml(path: tuple[str, ...]) -> None:
    named = [p for p in ALL[path].params if "--output" in p.opts]
    if path[0] in NO_RESULT:
        assert not named
        return
    (option,) = named
    assert set(option.opts) == {"--output", "-o"}
    for way in Output:
        words = example(ALL[path])[len(path) + 1 :]
        with ALL[path].make_context(path[-1], [*words, "-o", way]) as context:
            assert context.params["output"] == way


def usage_of(path: tuple[str, ...]) -> int:
    """2; but of these it says what they found: a pipeline must not take a slip for that."""
    return 1 if " ".join(path) in ("backfill", "reconcile", "map plan") else 2


def test_an_unknown_output_is_wrong_usage(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "-o", "xml"]) == usage_of(path)
    assert one_line(capsys.readouterr().err)


# -- errors -----------------------------------------------------------------------------------


def test_a_wrong_option_is_one_line(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--no-such-option"]) == usage_of(path)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert one_line(printed.err).endswith(f"see '{' '.join((PROGRAM, *path))} --help'")


@pytest.mark.parametrize("group", [(), *GROUPS], ids=" ".join)
def test_a_wrong_command_is_2_and_one_line(
    group: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*group, "no-such-command"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no-such-command" in one_line(printed.err)


def test_an_error_is_1_and_one_line(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    fault = FAULTS[" ".join(path)]
    if fault is not None:
        assert main([*path, *fault]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert one_line(printed.err)


# -- colour -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation


def shown(monkeypatch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> str:
    """What comes to a terminal, stdout and stderr."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", **environment}.items():
        monkeypatch.setenv(name, value)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    main(list(arguments))
    return screen.getvalue()


def test_no_colour_when_asked(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    helped = shown(monkeypatch, *path, "--help", NO_COLOR="1")
    assert "Usage:" in helped
    assert not COLOUR.search(helped)
    assert not COLOUR.search(shown(monkeypatch, *path, "--no-such-option", NO_COLOR="1"))


def test_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert COLOUR.search(shown(monkeypatch, "--help"))  # or the test above says nothing


QUIET = [("map", "list", "-m"), ("map", "validate", "-m"), ("kafka", "status", "--data")]


@pytest.mark.parametrize("arguments", QUIET, ids=" ".join)
def test_a_result_without_colour(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "queues.yaml").write_text("queues: [{queue: orders}]\n")
    printed = shown(monkeypatch, *arguments, str(tmp_path), NO_COLOR="1")
    assert "│" in printed
    assert not COLOUR.search(printed)


def test_no_escapes_in_a_pipe(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["--no-such-option"], FAULTS[" ".join(path)] or ["--help"]):
        main([*path, *arguments])
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err
