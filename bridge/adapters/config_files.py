"""The files a user writes: `bridge.yaml` and the secrets it points to.

The mappings have a file of their own, `mapping_files`; `load_mappings` is here for its users.
"""

from __future__ import annotations

import os
from pathlib import Path

from bridge.adapters.mapping_files import load_mappings
from bridge.adapters.masking import SECRETS, is_sensitive
from bridge.adapters.yaml_structs import read_struct
from bridge.adapters.yaml_tree import MAX_BYTES, Mark, Node, read_yaml
from bridge.config import Config, Secret
from bridge.model.errors import ConfigError

__all__ = ["kafka_properties", "load_config", "load_mappings"]


def load_config(path: Path | None) -> Config:
    """The settings of a file; without one every default, relative to the current folder."""
    if path is None:
        return read_struct(Node(Mark("(defaults)", 1, 1), None), Config, base=Path.cwd())
    return read_struct(read_yaml(path), Config, base=path.parent.absolute())


def kafka_properties(config: Config) -> dict[str, str | int | float | bool]:
    """The `kafka` section with its secrets looked up; keep it out of logs."""
    found = {
        name: _secret(name, value) if isinstance(value, Secret) else value
        for name, value in config.kafka.items()
    }
    for name, value in found.items():
        if is_sensitive(name) or isinstance(config.kafka[name], Secret):
            SECRETS.add(value)
    return found


def _secret(name: str, secret: Secret) -> str:
    where = f"kafka.{name}"
    if secret.file is None:
        value = os.environ.get(secret.env or "")
        if value is None:
            what = f"the environment variable {secret.env!r} is not set"
            raise ConfigError(what, where=where, mend="set it before the start")
        return value
    try:
        with secret.file.open(encoding="utf-8") as file:
            return file.read(MAX_BYTES).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        what = f"the secret {str(secret.file)!r} cannot be read ({reason})"
        raise ConfigError(what, where=where, mend="check the path and its rights") from error


def read_token(path: Path, *, mend: str = "check its rights") -> str:
    """The admin token; read at every use, so that a new one counts at once."""
    try:
        with path.open("rb") as file:
            token = file.read(MAX_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not ASCII text"
        what = f"{str(path)!r} cannot be read ({reason})"
        raise ConfigError(what, where="admin.token_file", mend=mend) from error
    if not token or not token.isprintable():
        what = f"{str(path)!r} holds no token"
        raise ConfigError(what, where="admin.token_file", mend="write the token on one line")
    SECRETS.add(token)
    return token
