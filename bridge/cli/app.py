"""`msmq-bridge`: puts the commands together and turns an error into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from traceback import format_exception
from types import TracebackType
from typing import Annotated, Final

import typer

from bridge.adapters.masking import SECRETS
from bridge.model.errors import BridgeError

PROGRAM: Final = "msmq-bridge"
# Modules of this package.
COMMANDS: Final = (
    "init",
    *(
        "serve",
        "demo",
        "status",
        "doctor",
        "map",
        "queue",
        "stream",
        "trace",
        "send",
        "receive",
        "kafka",
    ),
    *("backfill", "reconcile"),
)
COMPLETE: Final = "_MSMQ_BRIDGE_COMPLETE"  # set by the completion script of a shell
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
FINDINGS: Final = ("backfill", "reconcile", "map plan")  # of these, 2 says what they found
SPARK: Final = ("pyspark", "py4j")


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """The whole command line; or, when a command is named, only what that one needs to load."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    named = [arguments[0]] if arguments and arguments[0] in COMMANDS else COMMANDS
    for name in named:
        import_module(f"bridge.cli.{name}").register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """0 success, 1 a failure, 2 wrong usage (of FINDINGS: 1), 130 Ctrl-C."""
    sys.excepthook = _say_bug
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        command = typer.main.get_command(build(given or _completed_words()))
        result = command.main(given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _usage(error)
    except BridgeError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        return _lacks(error)
    except typer.Abort:
        return _fail("stopped before it was done")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return FAILED
    except SystemExit as end:  # how a completion ends
        return end.code if isinstance(end.code, int) else FAILED
    return result if isinstance(result, int) else 0


def _completed_words() -> list[str]:
    """The arguments of a line that a shell wants completed, but for the one that is not whole.

    bash has it in COMP_WORDS, one word per line, the others in typer's own variable.
    """
    if not os.environ.get(COMPLETE):
        return []
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()[1:]
    return words if line[-1:].isspace() else words[:-1]


def _root(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.")
    ] = False,
) -> None:
    """An MSMQ queue manager on Linux whose messages are Kafka records, exactly once and in order.

    Example: msmq-bridge serve --config bridge.yaml
    """
    if show_version:
        typer.echo(f"{PROGRAM} {_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def _version() -> str:
    try:
        return version(PROGRAM)
    except PackageNotFoundError:
        return "(not installed)"


def _usage(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else PROGRAM
    message = error.format_message()
    if message:  # empty: a group without a command has just shown its help
        _fail(f"{message.rstrip('.')}; see '{path} --help'")
    return FAILED if path.removeprefix(PROGRAM).strip() in FINDINGS else error.exit_code


def _lacks(error: ModuleNotFoundError) -> int:
    """An installation without the parts that only some commands need: Spark in the small image."""
    package = (error.name or "").partition(".")[0]
    if package not in SPARK:
        raise error
    return _fail(f"Spark is not here ({package}); use an installation or an image that has it")


def _fail(message: str) -> int:
    sys.stdout.flush()
    one_line = " ".join(message.split())
    sys.stderr.write(f"{PROGRAM}: error: {SECRETS.hide(one_line)}\n")
    return FAILED


def _say_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The traceback, without the secrets that may be in it."""
    sys.stderr.write(SECRETS.hide("".join(format_exception(kind, error, trace))))


def _silence_stdout() -> None:
    """The reader went away (`| head`): what the interpreter still flushes must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
