"""checkov, a policy checker, in an environment of its own: its pins would fight with ours.

`checkov.lock` says what is in it, `make lock` makes that; it is kept in the user's cache folder.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bridge.adapters.kafka.jars import cache_root

LOCK: Final = Path(__file__).with_name("checkov.lock")
UV: Final = Path(sys.executable).with_name("uv")
INSTALL_S: Final = 600
SCAN_S: Final = 300
UNREACHABLE: Final = "client error (Connect)"  # what uv says of an index that it cannot reach
# It would ask its maker's servers for guidelines, and the package index whether it is new.
OFFLINE: Final = ("--skip-download",)
SILENT: Final = {"SKIP_PACKAGE_UPDATE_CHECK": "true", "LOG_LEVEL": "ERROR"}
FOUND: Final = 1  # its exit code when a check failed


class IndexUnreachable(Exception):
    """The package index cannot be reached."""


def environment() -> Path:
    """Its Python, installed first if need be."""
    tag = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_root() / f"checkov-{tag}"
    if not home.exists():
        _install(home)
    return home / "bin" / "python"


def _install(home: Path) -> None:
    """Beside its place, and moved there when it is whole."""
    home.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        _uv("venv", "--allow-existing", "--relocatable", "--python", sys.executable, str(part))
        into = ["--python", str(part / "bin" / "python"), "--require-hashes"]
        _uv("pip", "install", "--compile-bytecode", *into, "--requirements", str(LOCK))
        if not home.exists():  # another run has just done it
            part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _uv(*arguments: str) -> None:
    done = subprocess.run(
        [UV, "--quiet", *arguments], capture_output=True, text=True, timeout=INSTALL_S
    )
    if UNREACHABLE in done.stderr:
        raise IndexUnreachable(done.stderr)
    assert done.returncode == 0, done.stderr


def failed_checks(python: Path, folder: Path) -> list[dict[str, Any]]:
    """What it has against the manifests in a folder."""
    done = subprocess.run(
        [
            *(python, "-m", "checkov.main", "--directory", folder, *OFFLINE),
            *("--framework", "kubernetes", "--compact", "--quiet", "--output", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=SCAN_S,
        env={**os.environ, **SILENT},
    )
    assert done.returncode == FOUND, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0, report
    found: list[dict[str, Any]] = report["results"]["failed_checks"]
    return found
