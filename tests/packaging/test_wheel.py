"""The wheel: whole, and a program of its own in an environment that has nothing else."""

import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.cli.program import SOON_S, Serve

pytestmark = pytest.mark.timeout(600)  # registries and caches may be slow
ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
LONG_S = 400.0
PACKAGES = {ROOT / "bridge": "bridge", ROOT / "spark" / "msmq_jobs": "msmq_jobs"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command: list[str | Path] = [UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=SOON_S)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel and what it asks for, nothing of this one."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    locks = [ROOT / "examples/container" / name for name in ("bridge.lock", "spark.lock")]
    _install(python, "--require-hashes", "-r", locks[0], "-r", locks[1])
    _install(python, "--no-deps", wheel)
    return folder


def _install(python: Path, *what: Path | str) -> None:
    """From the cache that `make setup` has filled; else from the registry, which takes longer."""
    command = [UV, "pip", "install", "--quiet", "--python", python, *what]
    if subprocess.run([*command, "--offline"], capture_output=True, timeout=SOON_S).returncode:
        subprocess.run(command, check=True, timeout=LONG_S)


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def test_every_file_of_the_packages_is_in_it(wheel: Path) -> None:
    wanted = {
        f"{name}/{path.relative_to(folder)}"
        for folder, name in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert inside == wanted
        for name in sorted(wanted):
            if not name.endswith(".py"):  # schema, page, report, log settings
                package, _, rest = name.partition("/")
                [folder] = [f for f, n in PACKAGES.items() if n == package]
                assert archive.read(name) == (folder / rest).read_bytes()
    assert "msmq_jobs/log4j2.properties" in inside


def test_what_it_says_of_itself(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        info = f"msmq_bridge-{project['version']}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        licence = archive.read(f"{info}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert "License-Expression: Apache-2.0\n" in metadata
    assert f"Requires-Python: {project['requires-python']}\n" in metadata
    assert "msmq-bridge = bridge.cli.app:main" in scripts
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"(?m)^## {re.escape(project['version'])}\b", changes)


def test_it_has_all_that_it_asks_for(installed: Path) -> None:
    command: list[str | Path] = [UV, "pip", "check", "--python", installed / "bin/python"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    command[2:3] = ["list", "--format", "freeze"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "msmq-bridge" in listed
    assert not re.search(r"(?m)^(pytest|mypy|ruff|hypothesis)\b", listed)


def test_the_program_is_the_installed_one(installed: Path, tmp_path: Path) -> None:
    code = "import bridge, msmq_jobs; print(bridge.__file__); print(msmq_jobs.__file__)"
    done = subprocess.run(
        [installed / "bin/python", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        check=True,
    )
    assert all(Path(line).is_relative_to(installed) for line in done.stdout.splitlines())


@pytest.mark.kafka
def test_the_demo_starts_from_it(installed: Path, tmp_path: Path) -> None:
    """Its Kafka's jars are in the cache, as for everybody who has run it once."""
    process = subprocess.Popen(
        [installed / "bin/msmq-bridge", "demo", "--data", tmp_path / "demo"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    try:
        program = Serve(process)
        program.wait_line("listening: admin on ")  # each may take its time
        program.wait_line("ready: queue manager ")
        assert program.end(signal.SIGTERM, seconds=SOON_S) in (0, 130)  # 0: it has answered
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(SOON_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    assert [line for line in program.err if "Traceback" in line] == []
    assert program.out[-1] == "stopping"
