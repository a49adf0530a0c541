"""Completion: the scripts of three shells, and what they are answered (design 3.1)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from bridge.cli import app as module
from bridge.cli.app import COMMANDS, COMPLETE, main
from tests.cli.program import PROGRAM

SHELLS = ("bash", "zsh", "fish")


def asked(line: str, shell: str) -> dict[str, str]:
    """The variables that a shell's script sets for a line with the cursor at its end."""
    words = line.split(" ")
    if shell == "bash":
        return {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command modules that were needed."""
    names: list[str] = []

    def watched(name: str) -> object:
        names.append(name.rpartition(".")[2])
        return import_module(name)

    monkeypatch.setattr(module, "import_module", watched)
    return names


def complete(
    line: str, shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setenv(COMPLETE, f"complete_{shell}")
    for name, value in asked(line, shell).items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "words", "not_words"),
    [
        ("msmq-bridge ma", ["map"], ["serve", "send"]),
        ("msmq-bridge ", [*COMMANDS], ["list"]),
        ("msmq-bridge map ", ["list", "add", "plan", "apply", "schema"], ["serve"]),
        ("msmq-bridge map pl", ["plan"], ["list"]),
        ("msmq-bridge send --wa", ["--wait-final"], ["--queue"]),
        ("msmq-bridge status -o ", ["table", "json", "yaml"], ["status"]),
        ("msmq-bridge serve --log-level W", ["WARNING"], ["DEBUG"]),
    ],
)
def test_completed(
    shell: str,
    line: str,
    words: list[str],
    not_words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = complete(line, shell, monkeypatch, capsys)
    if shell == "zsh":
        candidates = [row.split('"')[1] for row in found.splitlines() if '"' in row]
    else:
        candidates = [row.partition("\t")[0] for row in found.splitlines()]
    assert set(words) <= set(candidates)
    assert not set(not_words) & set(candidates)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "modules"),
    [
        ("msmq-bridge map ", ["map"]),
        ("msmq-bridge kafka st", ["kafka"]),
        ("msmq-bridge kafka", [*COMMANDS]),  # may go on
        ("msmq-bridge ", [*COMMANDS]),
        ("msmq-bridge no-such ", [*COMMANDS]),
        ("", [*COMMANDS]),
    ],
)
def test_only_what_is_needed_is_loaded(
    shell: str,
    line: str,
    modules: list[str],
    loaded: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    complete(line, shell, monkeypatch, capsys)
    assert loaded == modules


def test_a_command_alone_loads_itself(loaded: list[str]) -> None:
    assert main(["kafka", "--help"]) == 0
    assert loaded == ["kafka"]


# -- the scripts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", ["complete -o default -F _msmq_bridge_completion msmq-bridge"]),
        ("zsh", ["#compdef msmq-bridge", "compdef _msmq_bridge_completion msmq-bridge"]),
        ("fish", ["complete --command msmq-bridge --no-files"]),
    ],
)
def test_the_script_of_a_shell(
    shell: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(COMPLETE, f"source_{shell}")
    assert main([]) == 0
    printed = capsys.readouterr()
    assert f"{COMPLETE}=complete_{shell}" in printed.out
    for word in words:
        assert word in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("instruction", ["source_tcsh", "nonsense", "jump_bash"])
def test_a_shell_that_nobody_knows(
    instruction: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMPLETE, instruction)
    assert main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def detected(monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    for name in ("typer.completion", "typer._completion_shared"):
        monkeypatch.setattr(f"{name}._get_shell_name", lambda: shell)


@pytest.mark.parametrize("shell", SHELLS)
def test_show_completion(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    detected(monkeypatch, shell)
    assert main(["--show-completion"]) == 0
    assert f"{COMPLETE}=complete_{shell}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/msmq-bridge.sh"),
        ("zsh", ".zfunc/_msmq-bridge"),
        ("fish", ".config/fish/completions/msmq-bridge.fish"),
    ],
)
def test_install_completion(
    shell: str,
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    detected(monkeypatch, shell)
    assert main(["--install-completion"]) == 0
    assert str(tmp_path / file) in capsys.readouterr().out.replace("\n", "")
    assert f"complete_{shell}" in (tmp_path / file).read_text()


# -- a real shell -----------------------------------------------------------------------------

BASH = r"""
set -e
source <(_MSMQ_BRIDGE_COMPLETE=source_bash msmq-bridge)
ask() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _msmq_bridge_completion msmq-bridge
  echo "${COMPREPLY[@]}"
}
ask msmq-bridge ma
ask msmq-bridge kafka st
ask msmq-bridge trace --la
complete -p msmq-bridge
"""


def test_bash_itself(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "Debian without bash"
    program = tmp_path / "msmq-bridge"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    program.chmod(0o755)
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    done = subprocess.run(
        [bash, "--norc", "-c", BASH],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": root},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, installed = done.stdout.splitlines()
    assert first == "map"
    assert set(second.split()) == {"start", "stop", "status"}
    assert third == "--label"
    assert "_msmq_bridge_completion" in installed
