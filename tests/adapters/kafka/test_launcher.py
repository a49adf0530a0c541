"""The launcher with a small process in the broker's place."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import psutil
import pytest

from bridge.adapters.kafka import launcher
from tests.support.waiting import eventually


class Launched:
    def __init__(self, lock: Path, *command: str) -> None:
        with lock.open("w") as kept:
            self.process = subprocess.Popen(
                [sys.executable, launcher.__file__, str(kept.fileno()), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(kept.fileno(),),
                text=True,
            )
        assert self.process.stdout is not None
        self._pid = int(self.process.stdout.readline())

    @cached_property
    def broker(self) -> psutil.Process:
        return psutil.Process(self._pid)


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    launched = Launched(tmp_path / "lock", "sleep", "1000")
    assert launched.broker.is_running()
    yield launched
    with launched.process:
        launched.process.kill()


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_broker_ends_when_our_end_of_stdin_closes(launched: Launched) -> None:
    assert launched.process.stdin is not None
    launched.process.stdin.close()
    assert launched.process.wait(30) == 128 + signal.SIGTERM
    assert gone(launched.broker)


def test_the_launcher_ends_with_the_broker_and_its_code(tmp_path: Path) -> None:
    ended = Launched(tmp_path / "lock", "sh", "-c", "exit 7")
    with ended.process:
        assert ended.process.wait(30) == 7


def test_a_killed_broker_is_told_by_the_code(launched: Launched) -> None:
    launched.broker.kill()
    assert launched.process.wait(30) == 128 + signal.SIGKILL


def test_the_broker_is_killed_when_the_launcher_is(launched: Launched) -> None:
    launched.process.kill()
    eventually(lambda: gone(launched.broker))


def test_a_sigterm_for_everyone_leaves_the_launcher_to_the_broker(launched: Launched) -> None:
    launched.process.terminate()
    launched.broker.send_signal(signal.SIGTERM)
    assert launched.process.wait(30) == 128 + signal.SIGTERM


def test_the_broker_holds_the_file_it_is_given(launched: Launched, tmp_path: Path) -> None:
    held = [link.readlink() for link in Path(f"/proc/{launched.broker.pid}/fd").iterdir()]
    assert tmp_path / "lock" in held
