"""`msmq-bridge serve` as its operator sees it: lines, signals, exit codes."""

import json
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka, running_broker
from bridge.adapters.net.admin_client import get_json
from bridge.cli import serve as module
from bridge.cli.app import main
from tests.cli.program import run, serve
from tests.support.config import write_config

pytestmark = pytest.mark.kafka

GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
Refused = Callable[..., str]
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_line_per_listener_and_an_end_in_order(
    kafka: EmbeddedKafka, tmp_path: Path, number: signal.Signals
) -> None:  # design 3.2
    config = write_config(tmp_path, kafka.bootstrap_servers)
    with serve(config) as program:
        program.wait_line("ready: ")
        status = run("status", "--config", str(config), "-o", "json")
        assert program.end(number, seconds=10) == 0
    assert [re.sub(r":\d+$", ":PORT", line) for line in program.out[:2]] == [
        "listening: admin on 127.0.0.1:PORT",
        "listening: binary on 127.0.0.1:PORT",
    ]
    assert re.fullmatch(f"ready: queue manager {GUID} as BRIDGE01, 127.0.0.1", program.out[2])
    assert program.out[3:] == ["stopping"]
    assert [line for line in program.err if '"level": "INFO"' not in line] == []
    told = json.loads(status.stdout)
    assert told["ready"] is True
    assert told["queue_manager"]["names"] == ["BRIDGE01", "127.0.0.1"]
    assert told["queue_manager"]["id"] in program.out[2]
    assert told["listeners"] == {
        name: line.rpartition(" ")[2]
        for name, line in zip(("admin", "binary"), program.out, strict=False)
    }
    assert told["kafka"]["bootstrap.servers"] == kafka.bootstrap_servers
    assert not (tmp_path / "data" / "runtime.json").exists()


def test_with_a_kafka_of_its_own(tmp_path: Path) -> None:
    config = write_config(tmp_path, None)
    with serve(config) as program:
        place = program.wait_line("kafka: embedded broker on ").rpartition(" ")[2]
        program.wait_line("ready: ")
        state = running_broker(tmp_path / "data" / "kafka")
        assert state is not None
        assert state.bootstrap_servers == place
        status = get_json(f"http://{program.address('admin')}", "/api/status")
        assert status["kafka"] == {"bootstrap.servers": place, "embedded": True}
        assert program.end(signal.SIGINT, seconds=20) == 0
    assert running_broker(tmp_path / "data" / "kafka") is None


def test_told_to_stop_while_its_kafka_starts(tmp_path: Path) -> None:
    with serve(write_config(tmp_path, None)) as program:
        program.address("admin")
        assert program.end(signal.SIGTERM, seconds=60) == 0
    assert program.out[1:] == ["stopping"]
    assert program.err == []
    assert running_broker(tmp_path / "data" / "kafka") is None


def test_told_to_stop_while_kafka_is_away(tmp_path: Path) -> None:  # design D3
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        config = write_config(tmp_path, f"127.0.0.1:{nobody.getsockname()[1]}")
        with serve(config) as program:
            url = f"http://{program.address('admin')}"
            assert get_json(url, "/livez") == {"live": True}
            assert get_json(url, "/api/status")["ready"] is False
            assert program.end(signal.SIGTERM, seconds=10) == 0
    assert program.out[1:] == ["stopping"]


# -- what a user does wrong -------------------------------------------------------------------


def one_line(errors: str) -> str:
    """The error; the log before it tells what went well."""
    lines = [line for line in errors.splitlines() if '"level": "INFO"' not in line]
    assert len(lines) == 1, errors
    assert lines[0].startswith("msmq-bridge: error: ")
    return lines[0]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs it here, where it must end at once, and gives the one line."""
    monkeypatch.setattr(module, "setup_logging", lambda *_: None)

    def make(*arguments: str, code: int = 1) -> str:
        assert main(["serve", *arguments]) == code
        return one_line(capsys.readouterr().err)

    return make


def test_a_bad_configuration_is_one_line(tmp_path: Path, refused: Refused) -> None:
    config = write_config(tmp_path, "127.0.0.1:9")
    good = config.read_text()
    for text, word in (
        ('{"listen": {"binary": 99999}}', "bridge.yaml:1:23"),
        ('{"nothing": 1}', "nothing"),
        ("listen: [", "bridge.yaml:"),
        (good.replace("mappings.yaml", "none.yaml"), "none.yaml"),
        (good.replace(': "data"', ': "bridge.yaml/data"'), "data: cannot write to"),
    ):
        config.write_text(text)
        assert word in refused("--config", str(config))


def test_no_configuration_is_one_line(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "none.yaml"
    assert f"{path}: no such file" in refused("--config", str(path))


def test_an_unknown_log_level_is_one_line(refused: Refused) -> None:
    assert "'loud' is not one of" in refused("--log-level", "loud", code=2)


@pytest.mark.parametrize("name", ["binary", "admin"])
def test_a_busy_port_is_one_line(kafka: EmbeddedKafka, tmp_path: Path, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = write_config(tmp_path, kafka.bootstrap_servers, listen={name: port})
        done = run("serve", "--config", str(config))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "stopping"
    assert f"listen.{name}: cannot listen on 127.0.0.1:{port}" in one_line(done.stderr)


@pytest.mark.parametrize(
    ("section", "arguments", "expected"),
    [
        ({}, [], ("INFO", "auto")),
        ({}, ["--live"], ("WARNING", "auto")),
        ({"level": "debug", "format": "json"}, ["--live"], ("debug", "json")),
        ({"level": "debug", "format": "json"}, ["--log-level", "error"], ("ERROR", "json")),
        ({"format": "json"}, ["--log-format", "TEXT"], ("INFO", "text")),
    ],
)
def test_the_log_by_option_by_file_by_default(
    tmp_path: Path,
    section: dict[str, str],
    arguments: list[str],
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = write_config(tmp_path, "127.0.0.1:9")
    text = json.loads(config.read_text())
    config.write_text(json.dumps(text | {"log": section, "data": "bridge.yaml/data"}))
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(module, "setup_logging", lambda *given: found.append(given))
    assert main(["serve", "--config", str(config), *arguments]) == 1  # there is no such folder
    assert found == [expected]


def test_a_bug_is_a_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_config: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(module, "setup_logging", lambda *_: None)
    monkeypatch.setattr(module, "Appliance", fail)
    assert main(["serve", "--config", str(write_config(tmp_path, "127.0.0.1:9"))]) == 1
    (record,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert record.exc_info is not None
    assert "a bug of ours" in str(record.exc_info[1])


def test_a_reader_of_our_output_that_is_gone_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else SIGTERM would end in an exception, and the appliance would go on listening."""

    class Gone:
        def write(self, _text: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    module._announce("stopping")
