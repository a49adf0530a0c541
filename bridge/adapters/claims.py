"""Where bodies lie that are too large for their topic: `oversize: claim-check`.

A folder, or an object store (`s3://bucket/prefix`; needs `pip install msmq-bridge[s3]`, and takes
credentials, region and endpoint from where the AWS client looks for them).
What we make there is for our own user only; in a folder that the operator made, also for the group
that may read the folder. Names are made from the content, so a repeated write changes nothing, and
nothing is ever removed here: how long bodies are kept is the owner's rule, as a topic's retention
is.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import get_ident
from typing import Any, Final

from bridge.adapters.private_files import FILE_MODE, FOLDER_MODE, make_private_folder
from bridge.core.ports import Claim
from bridge.model.errors import ConfigError, SinkUnavailable

CLAIMS: Final = "claims"  # below the data folder
_GROUP: Final = stat.S_IRGRP | stat.S_IXGRP
_S3: Final = "s3://"


class ClaimStore:
    """All stores that the mappings name."""

    def __init__(self, data: Path) -> None:
        self._data = data

    async def store(self, claims: Sequence[Claim]) -> None:
        """Return once all of them are durable. Raises SinkUnavailable: try again later."""
        await asyncio.to_thread(self.store_now, claims)

    def store_now(self, claims: Iterable[Claim]) -> None:
        """`store`, for who may block."""
        for claim in claims:
            try:
                if _is_object_store(claim.store):
                    _upload(claim)
                else:
                    _write(self._folder(claim.store), claim.name, claim.data)
            except Exception as error:  # every object store has errors of its own
                where = claim.store or str(self._folder(""))
                raise SinkUnavailable(f"claim check: {where}: {error}") from error

    def check(self, stores: Iterable[str]) -> None:
        """At the start: a store that cannot work is refused before a message needs it."""
        for store in sorted(set(stores)):
            if _is_object_store(store):
                _client()
                continue
            folder = self._folder(store)
            try:
                make_private_folder(folder)
            except OSError as error:
                what = f"the folder {str(folder)!r} cannot be made ({error.strerror})"
                raise ConfigError(what, where="claims", mend="choose one of this user's") from error
            if not os.access(folder, os.W_OK | os.X_OK):
                what = f"the folder {str(folder)!r} cannot be written to"
                raise ConfigError(what, where="claims", mend="choose one of this user's")

    def _folder(self, store: str) -> Path:
        return self._data / (store or CLAIMS)  # an absolute one stays what it is


def _is_object_store(store: str) -> bool:
    return store.startswith(_S3)


def _write(store: Path, name: str, data: bytes) -> None:
    """Whole or not at all, and on the disk when this returns."""
    path = store / name
    with suppress(OSError):
        if path.stat().st_size == len(data):
            return  # the same content: the name says so
    make_private_folder(store)
    group = store.stat().st_mode & _GROUP
    for folder in reversed([f for f in path.parents if store in f.parents]):
        if not folder.exists():
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            folder.chmod(FOLDER_MODE | group)
    part = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}.part")  # shards have threads
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, FILE_MODE | group & stat.S_IRGRP)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _upload(claim: Claim) -> None:
    bucket, _, prefix = claim.store.removeprefix(_S3).partition("/")
    key = f"{prefix.rstrip('/')}/{claim.name}".lstrip("/")
    client = _client()
    client.put_object(Bucket=bucket, Key=key, Body=claim.data)  # appears whole, or not at all


@lru_cache(maxsize=1)
def _client() -> Any:
    try:
        return importlib.import_module("boto3").client("s3")
    except ImportError as error:
        mend = "pip install msmq-bridge[s3], or use a folder"
        raise ConfigError("s3:// needs the package boto3", where="claims", mend=mend) from error
    except Exception as error:  # a profile or an endpoint that is none
        what = " ".join(f"s3:// cannot be used: {error}".split())
        raise ConfigError(what, where="claims", mend="check the AWS_ variables") from error
