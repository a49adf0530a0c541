"""The demo's own folder."""

from pathlib import Path

import pytest

from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.demo.folder import CONFIG, QUEUES, demo_folder
from bridge.adapters.demo.script import Stage
from bridge.model.errors import ConfigError


def test_a_folder_that_goes() -> None:
    with demo_folder(None) as path:
        config = load_config(path)
        assert config.data == path.parent
        assert (config.listen.binary, config.listen.srmp, config.listen.admin) == (0, 0, 0)
        assert config.listen.ping is None
        assert "bootstrap.servers" not in config.kafka
        stage = Stage.of(load_mappings(config.mappings))
    assert not path.parent.exists()
    assert stage == Stage(
        transactional="private$\\orders",
        express="private$\\readings",
        recoverable="private$\\invoices",
    )


def test_a_folder_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "demo"
    with demo_folder(folder) as path:
        assert path == folder / CONFIG
    (folder / QUEUES).write_text("queues: [{queue: mine}]\n")
    with demo_folder(folder) as path:
        assert [str(m.queue) for m in load_mappings(load_config(path).mappings).queues] == ["mine"]


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match=r"--data: cannot write to .* \(Not a directory\)"),
        demo_folder(tmp_path / "file" / "demo"),
    ):
        pass
