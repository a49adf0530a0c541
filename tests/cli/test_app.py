"""The command line as a whole: errors are one line and an exit code."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from bridge.adapters.masking import Secrets
from bridge.cli import app as module
from bridge.cli.app import build, main
from bridge.model.errors import BridgeError, ConfigError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException | int | None], None]:
    """Makes the whole program one command, `go`, that ends in the way it is told."""

    def make(end: BaseException | int | None) -> None:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.callback()(lambda: None)

        @app.command()
        def go() -> None:
            if isinstance(end, BaseException):
                raise end
            raise typer.Exit(end or 0)

        monkeypatch.setattr(module, "build", lambda _arguments: app)

    return make


@pytest.mark.parametrize(
    ("end", "code", "error"),
    [
        (None, 0, ""),
        (3, 3, ""),
        (BridgeError("it broke"), 1, "msmq-bridge: error: it broke\n"),
        (
            ModuleNotFoundError(name="pyspark.sql"),
            1,
            "msmq-bridge: error: Spark is not here (pyspark); "
            "use an installation or an image that has it\n",
        ),
        (
            ConfigError("bad", where="bridge.yaml:3:4", mend="mend it"),
            1,
            "msmq-bridge: error: bridge.yaml:3:4: bad; mend it\n",
        ),
        (BridgeError("two\nlines"), 1, "msmq-bridge: error: two lines\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 1, "msmq-bridge: error: stopped before it was done\n"),
        (typer.BadParameter("no."), 2, "msmq-bridge: error: Invalid value: no; see"),
    ],
)
def test_how_a_command_ends(
    command: Callable[[BaseException | int | None], None],
    capsys: pytest.CaptureFixture[str],
    end: BaseException | int | None,
    code: int,
    error: str,
) -> None:
    command(end)
    assert main(["go"]) == code
    printed = capsys.readouterr()
    assert printed.err.startswith(error)
    assert bool(printed.err) == bool(error)
    assert len(printed.err.splitlines()) <= 1


def test_another_module_that_is_missing_is_a_bug(
    command: Callable[[BaseException | int | None], None],
) -> None:
    command(ModuleNotFoundError(name="bridge.core.nothing"))
    with pytest.raises(ModuleNotFoundError):
        main(["go"])


def test_our_own_bug_is_loud(command: Callable[[BaseException | int | None], None]) -> None:
    command(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["go"])


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["--nothing"], ["status", "--nothing"], ["status", "-o", "xml"]]
)
def test_wrong_usage_is_2_and_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("msmq-bridge: error: ")
    assert printed.err.endswith("--help'\n")
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(
    "line", ["backfill --rate much", "reconcile -o xml", "map plan --nothing", "backfill --nothing"]
)
def test_where_2_is_a_finding_wrong_usage_is_an_error(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith("--help'")


@pytest.mark.parametrize("arguments", [[], ["kafka"]])
def test_no_command_shows_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert "Usage:" in printed.out
    assert printed.err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("msmq-bridge ")


def commands(
    command: typer.core.TyperCommand | typer.core.TyperGroup, path: list[str]
) -> list[list[str]]:
    children = getattr(command, "commands", None)
    if not children:
        return [path]
    return [leaf for name, child in children.items() for leaf in commands(child, [*path, name])]


ALL = commands(typer.main.get_command(build()), [])  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [[], *ALL], ids=" ".join)
def test_every_help_has_an_example(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    assert f"Example: {' '.join(['msmq-bridge', *path])}" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_error_to_shout_about() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    program = "import sys; from bridge.cli.app import main; sys.exit(main(['--help']))"
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)
    assert done.returncode == 1
    assert done.stderr == b""


def test_no_secret_in_an_error_or_in_the_traceback_of_a_bug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = Secrets()
    secrets.add("hunter2-of-kafka")
    monkeypatch.setattr(module, "SECRETS", secrets)
    assert module._fail("Kafka: hunter2-of-kafka is wrong") == 1
    try:
        raise RuntimeError("with hunter2-of-kafka")
    except RuntimeError as error:
        module._say_bug(RuntimeError, error, error.__traceback__)
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "msmq-bridge: error: Kafka: *** is wrong"
    assert rest[0].startswith("Traceback")
    assert rest[-1] == "RuntimeError: with ***"
