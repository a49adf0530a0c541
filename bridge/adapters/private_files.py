"""Files and folders that only the user of the appliance may read, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
PRIVATE_UMASK: Final = 0o077  # of programs that we start and that write files
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(path: Path) -> None:
    """Make the folder and its missing parents with mode 0700. An existing folder keeps its mode."""
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not missing and not path.is_dir():
        path.mkdir()  # raises the error that says what is there instead


def touch_private(path: Path) -> None:
    """Make an empty file with mode 0600 unless there is one, and tighten the mode of that one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    os.close(os.open(path, flags, FILE_MODE))
    tighten([path])


def tighten(paths: Iterable[Path]) -> None:
    """Take the rights of group and others away from files and folders that exist and are ours.

    A symbolic link is left alone, and so is what belongs to another user."""
    for path in paths:
        with suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
                continue
            if found.st_mode & _OTHERS:
                path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
