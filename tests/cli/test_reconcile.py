"""`msmq-bridge reconcile`: what is wrong on the line is told before Spark starts."""

import pytest

from bridge.cli.app import main

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (("--in-flight", "soon"), "--in-flight"),
        (("--from", "yesterday"), "--from"),
        (("--to", "x"), "--to"),
        (("--follow",), "--state"),
        (("--allow", "missing=some"), "--allow"),
        (("--every", "-1"), "--every"),
    ],
)
def test_a_wrong_option(line: tuple[str, ...], option: str, capsys: Printed) -> None:
    assert main(["reconcile", *line]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert option in error


def test_help_has_an_example(capsys: Printed) -> None:
    assert main(["reconcile", "--help"]) == 0
    assert "Example: msmq-bridge reconcile" in capsys.readouterr().out
