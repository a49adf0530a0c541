"""What is wrong on a job's line, or around it: found before Spark takes its seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bridge.model.errors import ConfigError
from msmq_jobs.place import look_around
from msmq_jobs.sources.locator import parse_source


def check(config: Path | None, sources: Iterable[str], password_file: str, **folders: str) -> None:
    """`folders` by option. Raises ConfigError, or Unavailable when there is no Kafka."""
    for option, folder in folders.items():
        if not folder.strip():
            raise ConfigError("is empty", where=f"--{option}", mend="name a folder")
    for text in sources:
        parse_source(text)
    if password_file:
        try:
            Path(password_file).read_bytes()
        except OSError as error:
            what = f"{password_file}: {error.strerror}"
            mend = "name a file that this user can read"
            raise ConfigError(what, where="--password-file", mend=mend) from error
    look_around(config)


def check_file(option: str, path: str) -> None:
    """Whether a file can be written there, on a disk of this machine."""
    if not path or "://" in path:
        return
    mend = "name a file in a folder of yours"
    if Path(path).is_dir():
        raise ConfigError(f"{path} is a folder", where=option, mend=mend)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", where=option, mend=mend) from error
    if not os.access(Path(path).parent, os.W_OK):
        raise ConfigError(f"{path} cannot be written", where=option, mend=mend)
