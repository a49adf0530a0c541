"""Where a running appliance is found."""

import json
import os
from pathlib import Path

import pytest

from bridge.adapters.runtime import RUNTIME_FILE, find_admin_url, remove_runtime, write_runtime
from bridge.config import AdminConfig, Config, ListenConfig
from bridge.model.errors import BridgeError, ConfigError, Unavailable


def config(data: Path, port: int | None, host: str = "127.0.0.1") -> Config:
    return Config(data=data, listen=ListenConfig(admin=port, admin_host=host))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9180"),
        ("0.0.0.0", "http://127.0.0.1:9180"),
        ("::", "http://[::1]:9180"),
        ("fd00::7", "http://[fd00::7]:9180"),
        ("bridge01", "http://bridge01:9180"),
    ],
)
def test_a_fixed_port_is_known_from_the_configuration(tmp_path: Path, host: str, url: str) -> None:
    assert find_admin_url(config(tmp_path, 9180, host)) == url


def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    admin = AdminConfig(certificate=tmp_path / "admin.pem")
    settings = Config(data=tmp_path, listen=ListenConfig(admin=9180), admin=admin)
    assert find_admin_url(settings) == "https://127.0.0.1:9180"
    write_runtime(tmp_path, "https://127.0.0.1:1111", 1)
    assert find_admin_url(config(tmp_path, 0)) == "https://127.0.0.1:1111"


def test_a_free_port_is_known_from_the_data_folder(tmp_path: Path) -> None:
    data = tmp_path / "new" / "folder"
    write_runtime(data, "http://127.0.0.1:1111", 1)
    write_runtime(data, "http://127.0.0.1:2222", os.getpid())
    assert find_admin_url(config(data, 0)) == "http://127.0.0.1:2222"
    assert [file.name for file in data.iterdir()] == [RUNTIME_FILE]
    assert json.loads((data / RUNTIME_FILE).read_text())["pid"] == os.getpid()


def test_it_is_gone_after_the_run(tmp_path: Path) -> None:
    write_runtime(tmp_path, "http://127.0.0.1:1111", 1)
    remove_runtime(tmp_path)
    remove_runtime(tmp_path)
    with pytest.raises(Unavailable, match="no appliance is running"):
        find_admin_url(config(tmp_path, 0))


def test_a_port_that_is_off(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="off"):
        find_admin_url(config(tmp_path, None))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"admin_url": 5}',
        '{"admin_url": "x\\ny"}',
        '{"admin_url": "http://x:y"}',
    ],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / RUNTIME_FILE).write_text(text)
    with pytest.raises(BridgeError) as caught:
        find_admin_url(config(tmp_path, 0))
    assert len(str(caught.value).splitlines()) == 1


def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_runtime(tmp_path, "http://127.0.0.1:1", 1)
    assert list(tmp_path.iterdir()) == []
