"""Samba's Python client, where the system has it: a stranger for our RPC server."""

import subprocess
from pathlib import Path

import pytest

PYTHON = Path("/usr/bin/python3")  # it has Debian's packages; ours has not


def _has_samba() -> bool:
    if not PYTHON.exists():
        return False
    command = [str(PYTHON), "-c", "import samba.dcerpc.base, samba.dcerpc.echo"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_samba = pytest.mark.skipif(
    not _has_samba(), reason="the system's Python has no Samba (apt-get install python3-samba)"
)
