"""Questions before something is done that nobody can undo."""

from __future__ import annotations

import sys

import typer

from bridge.model.errors import ConfigError


def require_yes(question: str, *, yes: bool) -> None:
    """Go on if the user said `--yes`, or says it now; without a terminal nobody can be asked."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        what = "it asks before it removes anything, and here is nobody to ask"
        raise ConfigError(what, where="--yes", mend="add it")
    # On stderr, all of it: typer's own prompt leaves a blank on stdout.
    typer.echo(f"{question} [y/N]: ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort
