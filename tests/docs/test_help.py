"""`--help` of every command has an example, and the example is a command line that it takes."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from bridge.cli.app import PROGRAM, build

EXAMPLE = re.compile(r"Example:\s*(.+)")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield path, command


def whole() -> Any:
    return typer.main.get_command(build())


ALL = [path for path, _ in commands(whole())]


def examples(path: tuple[str, ...]) -> list[list[str]]:
    command = dict(commands(whole()))[path]
    return [shlex.split(line) for line in EXAMPLE.findall(command.help or "")]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_example_of_a_command_is_one_of_its_own(path: tuple[str, ...]) -> None:
    found = examples(path)
    assert found, "an 'Example: ...' line is missing in its docstring"
    for words in found:
        assert words[0] == PROGRAM
        assert parsed(_before_the_shell(words[1:])) == path


def parsed(arguments: list[str]) -> tuple[str, ...]:
    """Which command a line would run, with all its options understood; nothing is run."""
    called: list[tuple[str, ...]] = []
    root = whole()
    for path, command in commands(root):
        command.callback = _stub(called, path)
    root.main(arguments, prog_name=PROGRAM, standalone_mode=False)
    [path] = called
    return path


def _stub(called: list[tuple[str, ...]], name: tuple[str, ...]) -> Callable[..., None]:
    return lambda **_: called.append(name)


def _before_the_shell(words: list[str]) -> list[str]:
    ends = [index for index, word in enumerate(words) if word in (">", "|", "&&", "<")]
    return words[: ends[0]] if ends else words


def test_the_program_has_an_example_too() -> None:
    [words] = [shlex.split(line) for line in EXAMPLE.findall(whole().help or "")]
    assert parsed(words[1:]) in ALL


@pytest.mark.parametrize("line", ["serve --confg x", "map nothing", "send --count many"])
def test_a_line_that_it_does_not_take(line: str) -> None:
    with pytest.raises(typer.TyperException):
        parsed(shlex.split(line))
