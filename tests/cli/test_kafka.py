"""`msmq-bridge kafka` as a user runs it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka.embedded import stop_broker
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka

PROGRAM = "import sys; from bridge.cli.app import main; sys.exit(main())"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "kafka", *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        env={**os.environ, **environment},
    )


@pytest.fixture
def data(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "kafka")
    stop_broker(tmp_path / "kafka")


def test_a_broker_outlives_start_until_stop(data: str) -> None:
    started = run("start", "--data", data, "--port", "0", "-o", "json")
    assert started.returncode == 0, started.stderr
    told = json.loads(started.stdout)
    assert told["running"] is True
    assert psutil.pid_exists(told["pid"])
    admin = AdminClient({"bootstrap.servers": told["bootstrap.servers"]})
    assert admin.list_topics(timeout=30).cluster_id == told["cluster_id"]

    status = run("status", "--data", data, "-o", "json")
    assert (status.returncode, json.loads(status.stdout)) == (0, told)

    again = run("start", "--data", data, "--port", "0")
    assert again.returncode == 1
    assert again.stdout == ""
    assert len(again.stderr.splitlines()) == 1
    assert f"{data} is in use by the broker with pid {told['pid']}" in again.stderr

    stopped = run("stop", "--data", data, "-o", "json")
    assert stopped.returncode == 0, stopped.stderr
    assert json.loads(stopped.stdout) == {"running": False, "data": data, "stopped": True}
    eventually(lambda: _gone(told["pid"]))

    status = run("status", "--data", data, "-o", "yaml")
    assert (status.returncode, status.stdout) == (1, f"running: false\ndata: {data}\n")


def test_stop_without_a_broker_is_done_at_once(data: str) -> None:
    stopped = run("stop", "--data", data, "-o", "json")
    assert stopped.returncode == 0
    assert json.loads(stopped.stdout)["stopped"] is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_foreground_stays_until_it_is_told_to_go(data: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, "kafka", "start", "--foreground", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data", data], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = next((line for line in process.stdout if "bootstrap.servers" in line), "")
        assert "127.0.0.1:" in line, process.communicate(timeout=60)
        assert run("status", "--data", data).returncode == 0
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert run("status", "--data", data).returncode == 1


def test_a_busy_port_is_one_line(data: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = run("start", "--data", data, "--port", str(port))
    assert refused.returncode == 1
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert f"port {port} of 127.0.0.1 is in use" in line


def test_no_java_is_one_line(data: str) -> None:
    refused = run("start", "--data", data, "--port", "0", PATH="", JAVA_HOME="")
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert "no java on PATH" in line
    assert "install Java 17" in line


@pytest.mark.parametrize("command", ["start", "stop", "status"])
def test_help_has_an_example(command: str) -> None:
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert f"Example: msmq-bridge kafka {command}" in shown.stdout


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
