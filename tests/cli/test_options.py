"""Options that several commands share."""

from pathlib import Path

import typer
from typer.testing import CliRunner

from bridge.cli.options import ConfigOption


def test_the_configuration_is_a_path_or_nothing() -> None:
    app = typer.Typer()
    given: list[Path | None] = []

    @app.command()
    def command(config: ConfigOption = None) -> None:
        given.append(config)

    for arguments in ([], ["--config", "a.yaml"], ["-c", "b.yaml"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    assert given == [None, Path("a.yaml"), Path("b.yaml")]
