"""Runs a page's blocks as a reader would: one after the other, in a folder like a fresh checkout.

The folder has copies of what a user edits and links to the rest, so a page can start brokers, add
mappings and leave data behind. What stays in the background gets Ctrl-C at the end.
"""

import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.docs.blocks import Block, Command, blocks_of, difference

ROOT = Path(__file__).parents[2]
COPIED = ("examples", "mappings")
LINKED = (".venv", "bridge", "tests", "Makefile", "README.md")
# `make` sees a set-up that is up to date.
DATED = ("pyproject.toml", "requirements.lock", ".ci/uv.lock")
SECONDS = 180.0  # Spark takes a while to start


class Failed(AssertionError):
    def __init__(self, page: Path, line: int, why: str) -> None:
        super().__init__(f"{page.name}:{line}: {why}")


def checkout(folder: Path) -> Path:
    """A folder like the repository, for one page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / ".ci").mkdir()
    for name in DATED:
        shutil.copy(ROOT / name, folder / name)
        os.utime(folder / name, (0, 0))
    return folder


def run_page(page: Path, folder: Path) -> list[str]:
    """Every command of the page; returns those that were run, and why others were not."""
    done: list[str] = []
    with _background() as processes:
        shell = Shell(folder)
        for block in blocks_of(page.read_text(encoding="utf-8")):
            done += _do(page, block, shell, processes)
    return done


def _do(page: Path, block: Block, shell: "Shell", processes: list["Background"]) -> list[str]:
    if block.file:
        target = shell.folder / block.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        return [f"wrote {block.file}"]
    commands = block.commands()
    if block.skip:
        return [f"skipped {command.text} ({block.skip})" for command in commands]
    stays = commands.pop() if block.until else None
    for command in commands:
        _check(page, command, shell)
    if stays is not None:
        process = Background(shell.start(stays.text))
        processes.append(process)
        if not process.wait_for(block.until):
            raise Failed(page, stays.line, f"{stays.text}\nno {block.until!r} in {process.lines}")
    return [command.text for command in [*commands, *([stays] if stays else [])]]


def _check(page: Path, command: Command, shell: "Shell") -> None:
    code, output = shell.run(command.text)
    if code != command.exit_code:
        why = f"exit code {code} instead of {command.exit_code}: {command.text}\n{output}"
        raise Failed(page, command.line, why)
    if command.shown is not None and (other := difference(command.shown, output.splitlines())):
        raise Failed(page, command.line, f"{command.text}\n{other}\n{output}")


class Shell:
    """Remembers the folder and the exported variables from command to command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / ".shell-state"
        self._state.write_text("")
        bin_ = ROOT / ".venv" / "bin"
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))},
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
        }

    def run(self, text: str) -> tuple[int, str]:
        """The exit code and all that it printed, as a terminal would show it."""
        state = shlex.quote(str(self._state))
        keep = f'export -p > {state}; printf "cd %q\\n" "$PWD" >> {state}'
        process = self._popen(f"{text}\n_code=$?\n{keep}\nexit $_code")
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return 124, f"not done after {SECONDS:.0f} s\n{output}"
        return process.returncode, output

    def start(self, text: str) -> subprocess.Popen[str]:
        return self._popen(text)

    def _popen(self, text: str) -> subprocess.Popen[str]:
        script = f"set -o pipefail\n. {shlex.quote(str(self._state))}\n{text}"
        return subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a process group of its own: what we end is ours
        )


class Background:
    """A command that stays, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process, self._is_over = process, False
        self._news = threading.Condition()
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._tell(line.rstrip("\n"))
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _tell(self, line: str) -> None:
        with self._news:
            self.lines.append(line)
            self._news.notify_all()

    def wait_for(self, text: str, seconds: float = SECONDS) -> bool:
        def has_come() -> bool:
            return any(text in line for line in self.lines)

        with self._news:
            self._news.wait_for(lambda: has_come() or self._is_over, seconds)
            return has_come()

    def stop(self) -> None:
        """Ctrl-C in its terminal; then all that it started must be gone."""
        deadline = time.monotonic() + SECONDS / 2
        for number in (signal.SIGINT, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)
            try:
                self._process.wait(max(deadline - time.monotonic(), 5))
                break
            except subprocess.TimeoutExpired:
                continue
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def _background() -> Iterator[list[Background]]:
    processes: list[Background] = []
    try:
        yield processes
    finally:
        for process in reversed(processes):
            process.stop()
