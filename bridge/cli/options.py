"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The appliance's bridge.yaml; without it the defaults."),
]
MappingsOption = Annotated[
    Path | None,
    typer.Option("--mappings", "-m", help="A mapping file or folder, instead of --config's."),
]

# Of the Spark jobs.
QueuesOption = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", help="Only this queue (* and ? match); repeatable."),
]
SourcePasswordOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file", help="Its first line is the password of the users in --source."
    ),
]
