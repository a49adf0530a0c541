from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.output import Output
from bridge.cli.taking import NothingThere, Wanted, require_number, take
from bridge.core.message_data import as_json, data_of
from bridge.model.errors import ConfigError, Unavailable
from tests.core.messages import plain

ONE = Wanted("q", 1, 0, None, None)


def rows(*bodies: bytes) -> list[dict[str, Any]]:
    return [as_json(data_of(plain(n, body=body), "q")) for n, body in enumerate(bodies, 1)]


def test_shown_whatever_comes_between(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from rows(b"a", b"b")
        raise Unavailable("gone")

    with pytest.raises(Unavailable):
        take(Wanted("q", 5, 0, None, None), broken, Output.JSON)
    assert capsys.readouterr().out.count('"message_id"') == 2


def test_nothing() -> None:
    with pytest.raises(NothingThere, match="in q"):
        take(ONE, lambda: iter(()), Output.JSON)


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        (Wanted("q", 2, 0, 7, None), "--count"),
        (Wanted("q", 1, 3, 7, None), "--wait"),
        (Wanted("q", 2, 0, None, Path("-")), "--raw"),
        (Wanted("q", 1, 0, 1 << 64, None), "--lookup-id"),
    ],
)
def test_what_does_not_go_together(wanted: Wanted, where: str) -> None:
    def never() -> Iterator[dict[str, Any]]:
        raise AssertionError

    with pytest.raises(ConfigError, match=where):
        take(wanted, never, Output.JSON)


def test_a_file_that_cannot_be_written_takes_nothing(tmp_path: Path) -> None:
    taken: list[int] = []

    def receive() -> Iterator[dict[str, Any]]:
        taken.append(1)
        yield from rows(b"a")

    with pytest.raises(ConfigError, match="--raw"):
        take(Wanted("q", 1, 0, None, tmp_path / "no" / "file"), receive, Output.JSON)
    assert taken == []


def test_numbers() -> None:
    require_number("--after", None)
    require_number("--after", (1 << 64) - 1)
    with pytest.raises(ConfigError, match="64 bits"):
        require_number("--after", 1 << 64)
