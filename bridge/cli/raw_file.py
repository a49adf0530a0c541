"""`--raw FILE`: the bytes of a body, and nothing else, in a file or on stdout."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from bridge.model.errors import ConfigError


class RawFile:
    """Open from `with` on: a path that is wrong is found before a message is taken.

    A file that was there keeps what it has until something is written; one that was not there is
    gone again if nothing was.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._is_written = path, False
        self._file: BinaryIO | None = None
        self._is_new = False

    @property
    def is_stdout(self) -> bool:
        return str(self._path) == "-"

    def write(self, data: bytes) -> None:
        self._is_written = True
        try:
            if self._file is None:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
                return
            if self._path.is_file():  # a device or a pipe has no end to cut off
                self._file.truncate(0)
            self._file.write(data)
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._fault(error) from error

    def __enter__(self) -> Self:
        if not self.is_stdout:
            try:
                self._is_new = not self._path.exists()
                self._file = self._path.open("ab")
            except OSError as error:
                raise self._fault(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # `write` has flushed, and told
                self._file.close()
        if self._is_new and not self._is_written:
            self._path.unlink(missing_ok=True)

    def _fault(self, error: OSError) -> ConfigError:
        what = f"{str(self._path)!r} cannot be written ({error.strerror or error})"
        return ConfigError(what, where="--raw", mend="name another file")
