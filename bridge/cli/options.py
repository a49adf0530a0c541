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
