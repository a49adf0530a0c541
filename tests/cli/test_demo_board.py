"""The board: a picture that changes, lines in a pipe, or data alone."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bridge.cli import demo_board as module
from bridge.cli.demo_board import Board
from bridge.cli.demo_text import LAST, Answers
from bridge.cli.output import Output
from bridge.core.audit import AuditEntry
from tests.support.waiting import until

NOTHING = Answers(verdicts=[], records=[], told=[])


def entries(*numbers: int, verdict: str = "accepted") -> list[AuditEntry]:
    return [
        AuditEntry(
            id=f"g\\{n}",
            verdict=verdict,
            at=0,
            dest="q",
            queue="q",
            transport="http",
            label=f"no. {n}",
        )
        for n in numbers
    ]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


async def drawing(board: Board, until_seen: Callable[[], object]) -> None:
    task = asyncio.create_task(board.draw("what arrives"))
    try:
        await until(until_seen)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        board = Board(Output.TABLE)
        board.add(entries(1))
        printed: list[str] = []

        def seen() -> list[str]:
            printed.extend(capsys.readouterr().out.splitlines())
            return printed

        await drawing(board, seen)
        assert printed == ["1970-01-01T00:00:00.000+00:00 accepted: no. 1 over http to q"]
        board.add(entries(2))
        task = asyncio.create_task(board.draw("what arrives"))
        await asyncio.sleep(0)
        board.add(entries(3))
        task.cancel()  # what has come is written all the same
        await asyncio.gather(task, return_exceptions=True)
        assert [row[-20:] for row in capsys.readouterr().out.splitlines()] == [
            *("no. 2 over http to q", "no. 3 over http to q")
        ]

    run(test)


def test_verdicts_are_waited_for() -> None:
    async def test() -> None:
        board = Board(Output.JSON)
        waiting = asyncio.create_task(board.verdicts({"g\\1", "g\\3"}, 3))
        await asyncio.sleep(0)
        board.add(entries(1, 2))
        board.add(entries(2, 3))  # 2 is somebody else's
        await asyncio.sleep(0)
        assert not waiting.done()
        board.add(entries(1, 4))  # again
        assert [entry.id for entry in await waiting] == ["g\\1", "g\\3", "g\\1"]

    run(test)


def test_data_alone(capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        board = Board(Output.JSON)
        board.say("nobody reads this")
        task = asyncio.create_task(board.draw("what arrives"))
        await asyncio.sleep(0)
        board.add(entries(1))
        board.answer(NOTHING)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert json.loads(capsys.readouterr().out) == {"came_in": [], "in_kafka": [], "told": []}

    run(test)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    made = Terminal()
    monkeypatch.setattr(sys, "stdout", made)
    return made


def test_a_picture_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    screen = terminal(monkeypatch)

    async def test() -> None:
        board = Board(Output.TABLE)
        board.add(entries(1))
        task = asyncio.create_task(board.draw("what arrives"))
        await until(lambda: "no. 1" in screen.getvalue())
        quiet = len(screen.getvalue())
        await asyncio.sleep(0.05)
        assert len(screen.getvalue()) == quiet  # nothing new, nothing drawn: it does not flicker
        board.add(entries(2, verdict="expired"))
        await until(lambda: "no. 2" in screen.getvalue())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        text = screen.getvalue()
        assert "1 accepted, 1 expired" in text
        assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")  # the cursor is back
        assert "\x1b[2J" not in text  # and nothing else on the screen was touched

    run(test)


def test_after_the_answers_it_counts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)

    async def test() -> None:
        board = Board(Output.TABLE)
        board.add(entries(1, 2, 3))
        assert not board.answered
        board.answer(NOTHING)
        assert board.answered
        assert screen.getvalue().count("nothing") == 3
        board.add(entries(*range(100, 200)))
        assert len(board._kept) == LAST  # it may stay for days
        await drawing(board, lambda: "100 accepted" in screen.getvalue())
        assert "no. 199" in screen.getvalue()
        assert "no. 100" not in screen.getvalue()

    run(test)
