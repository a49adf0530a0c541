"""`msmq-bridge receive`: an MSMQ reader of our own, the other end of `send`."""

from __future__ import annotations

from typing import Annotated

import typer

from bridge.cli.output import Output, OutputOption
from bridge.cli.remote import (
    AuthOption,
    ExclusiveOption,
    LevelOption,
    PasswordFileOption,
    Remote,
    UserOption,
)
from bridge.cli.taking import (
    CountOption,
    LookupOption,
    RawOption,
    WaitOption,
    Wanted,
    remotely,
    take,
)

QueueOption = Annotated[
    str,
    typer.Option("--queue", help=r"Path name on the host, like private$\orders, or a format name."),
]
HereOption = Annotated[
    str,
    typer.Option("--host", help="HOST or HOST:PORT; without a port its endpoint mapper is asked."),
]


def register(app: typer.Typer) -> None:
    app.command("receive")(receive)


def receive(
    queue: QueueOption,
    host: HereOption = "127.0.0.1",
    count: CountOption = 1,
    wait: WaitOption = 0,
    lookup_id: LookupOption = None,
    raw: RawOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    exclusive: ExclusiveOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Receive messages from a queue of any MSMQ host by remote read, and show them.

    Example: msmq-bridge receive --queue 'private$\demo' --host msmq01 --user 'CORP\ann' --count 10
    """
    wanted = Wanted(queue, count, wait, lookup_id, raw)
    remote = Remote(host, user, password_file, level, auth, exclusive)
    take(wanted, lambda: remotely(remote, wanted), output)
