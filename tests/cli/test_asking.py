"""Nothing that cannot be undone happens without a yes."""

import io

import pytest
import typer

from bridge.cli.asking import require_yes
from bridge.model.errors import ConfigError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_yes_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    require_yes("Remove it?", yes=True)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("stdin", [None, io.StringIO("y\n")])
def test_without_a_terminal_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(ConfigError, match="nobody to ask") as caught:
        require_yes("Remove it?", yes=False)
    assert (caught.value.where, caught.value.mend) == ("--yes", "add it")


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " yes \n"])
def test_the_question_is_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    require_yes("Remove it?", yes=False)
    assert capsys.readouterr() == ("", "Remove it? [y/N]: ")


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yeah\n"])
def test_anything_else_is_no(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    with pytest.raises(typer.Abort):
        require_yes("Remove it?", yes=False)
