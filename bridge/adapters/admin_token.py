"""The token of the admin port: one that the operator names, else one that we generate."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from bridge.adapters.config_files import read_token
from bridge.adapters.private_files import make_private_folder, tighten
from bridge.config import Config

TOKEN_FILE: Final = "admin.token"  # noqa: S105
_BYTES: Final = 32


def token_path(config: Config) -> Path:
    """`admin.token_file`, else the generated one in the data folder."""
    return config.admin.token_file or config.data / TOKEN_FILE


def is_generated(config: Config) -> bool:
    return config.admin.token_file is None


def make_token(path: Path) -> None:
    """Make a random token with mode 0600 unless there is a file. Raises OSError.

    The file appears with its content: no reader finds an empty one, and of two processes that
    make it at once both use the same token."""
    tighten([path])
    if os.path.lexists(path):
        return
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # O_EXCL, 0600
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        _publish(part, path)
    finally:
        part.unlink(missing_ok=True)


def _publish(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        part.replace(path)


def read_admin_token(config: Config) -> str:
    """The token of this configuration. Raises ConfigError, FileNotFoundError as its cause."""
    if is_generated(config):
        mend = "run the command as the user of the appliance, or set admin.token_file"
        return read_token(token_path(config), mend=mend)
    return read_token(token_path(config))
