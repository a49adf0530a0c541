"""The unit for systemd, read by systemd itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_help import parsed

UNIT = Path(__file__).parents[2] / "examples" / "systemd" / "msmq-bridge.service"
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSURE = 16  # of 100, as systemd counts

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not here")


def settings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@needs_systemd
def test_systemd_takes_it(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8")
    copy.write_text(text.replace("/opt/msmq-bridge/bin/msmq-bridge", "/bin/true"))
    assert ANALYZE is not None
    done = subprocess.run([ANALYZE, "verify", copy], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_it_is_little_exposed() -> None:
    assert ANALYZE is not None
    options = ["--offline=true", f"--threshold={MOST_EXPOSURE}", str(UNIT)]
    command = [ANALYZE, "security", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-200:]


def test_a_fault_costs_the_host_no_memory_and_leaves_no_body_on_its_disk() -> None:
    found = settings()
    assert found["MemoryMax"] == ["2G"]
    assert found["LimitCORE"] == ["0"]
    assert found["MemorySwapMax"] == ["0"]
    assert int(found["TasksMax"][0]) <= 1024


def test_what_it_starts() -> None:
    [line] = settings()["ExecStart"]
    program, *arguments = line.split()
    assert program.endswith("/bin/msmq-bridge")
    assert parsed(arguments) == ("serve",)


def test_it_may_bind_its_ports_and_nothing_else() -> None:
    found = settings()
    assert found["User"] == ["msmq-bridge"]
    assert found["AmbientCapabilities"] == ["CAP_NET_BIND_SERVICE"]
    assert found["CapabilityBoundingSet"] == ["CAP_NET_BIND_SERVICE"]
    assert found["NoNewPrivileges"] == ["yes"]
    assert found["ProtectSystem"] == ["strict"]
    assert found["StateDirectory"] == ["msmq-bridge"]  # `data` of bridge.yaml, by default
    assert int(found["TimeoutStopSec"][0]) > 13  # DRAIN_S and CLOSE_S of bridge/app.py
