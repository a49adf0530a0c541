"""What `--source` names: an export, a folder of exports, or a queue of an MSMQ host. Design 3.5"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import msgspec

from bridge.model.errors import ConfigError

SCHEME: Final = "msmq://"
JSON_LINES: Final = (".jsonl", ".ndjson", ".json")
PARQUET: Final = (".parquet",)
SUFFIXES: Final = (*JSON_LINES, *PARQUET)
MACHINE_QUEUES: Final = ("journal", "deadletter", "deadxact")
_WHERE: Final = re.compile(
    r"(?:(?P<user>[^@/]*)@)?(?P<host>[^@/:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?"
)
_NO_FILES: Final = re.compile(r"(?:https?|ftp)://", re.IGNORECASE)
_MEND: Final = "write msmq://user@host/private$/orders;journal or msmq://host/;deadletter"


class Export(msgspec.Struct, frozen=True):
    """A file or a folder, on whatever file system Spark reaches."""

    text: str

    @property
    def is_file(self) -> bool:
        """A folder that Spark wrote as `x.parquet` is one export, too."""
        return self.text.rstrip("/").lower().endswith(SUFFIXES)

    @property
    def is_parquet(self) -> bool:
        return self.text.rstrip("/").lower().endswith(PARQUET)


class LiveQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that is read by MS-MQRR."""

    text: str
    host: str
    port: int | None = None
    user: str = ""
    queue: str = ""  # path name; empty: one of the machine's own
    suffix: str = ""  # journal, deadletter, deadxact or a subqueue

    @property
    def path(self) -> str:
        r"""As messages say where they were read: `private$\orders;journal`, `;deadletter`."""
        return f"{self.queue};{self.suffix}" if self.suffix else self.queue


Source = Export | LiveQueue


def parse_source(text: str) -> Source:
    """Raises ConfigError: what is wrong with it, and how it is written."""
    if not text.lower().startswith(SCHEME):
        if not text.strip():
            what = (
                "name an export, a folder of exports, or a queue like msmq://host/private$/orders"
            )
            raise ConfigError("is empty", where="--source", mend=what)
        if _NO_FILES.match(text):
            what = f"{text!r}: exports are not read from the web"
            raise ConfigError(what, where="--source", mend="download it first")
        return Export(text)
    where, _, path = text[len(SCHEME) :].partition("/")
    found = _WHERE.fullmatch(where)
    if found is None or (found["port"] and not 1 <= int(found["port"]) <= 65535):
        raise ConfigError(f"{text!r} names no host", where="--source", mend=_MEND)
    if ":" in (found["user"] or ""):
        what = "a password is not for the command line"
        raise ConfigError(what, where="--source", mend="use --password-file")
    queue, _, suffix = unquote(path).partition(";")
    queue = queue.strip("/\\").replace("/", "\\")
    if not queue and suffix.lower() not in MACHINE_QUEUES:
        raise ConfigError(f"{text!r} names no queue", where="--source", mend=_MEND)
    return LiveQueue(
        text=text,
        host=found["host"].strip("[]"),
        port=int(found["port"]) if found["port"] else None,
        user=unquote(found["user"] or ""),
        queue=queue,
        suffix=suffix.lower() if suffix.lower() in MACHINE_QUEUES else suffix,
    )
