"""Progress: bars on a terminal, plain lines elsewhere, never on stdout."""

import io

import pytest
from rich.console import Console

from bridge.cli.backfill_board import Board


def test_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with Board() as board:
        board.stage("reading")
        board.stage("writing")
        board.written({"q": 3})
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "reading\nwriting\n"


def test_counts_on_a_terminal() -> None:
    screen = io.StringIO()
    with Board(Console(file=screen, force_terminal=True, width=80)) as board:
        board.stage("reading the sources")
        board.read("msmq://ann@old/private$/orders;journal", 70_500)
        board._bar.refresh()
        assert "orders;journal 70,500" in screen.getvalue()
        screen.truncate(0)
        board.stage("writing")
        board.written({"private$\\a\x1b[31m": 1234})
        board._bar.refresh()
    assert "1,234" in screen.getvalue()
    assert "private$\\a?[31m" in screen.getvalue()
    assert "70,500" not in screen.getvalue()  # of the stage before
