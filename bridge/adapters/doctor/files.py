"""The files: configuration, mappings, secrets, the data folder."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bridge.adapters.admin_token import is_generated, token_path
from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.doctor.finding import Finding, fail, ok, warn
from bridge.adapters.doctor.visit import Visit
from bridge.config import Config, Secret

LOW_SPACE: Final = 1 << 30
NO_SPACE: Final = 100 << 20
_SECRET_PROPERTIES: Final = (
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
)


def configuration(visit: Visit) -> Iterator[Finding]:
    visit.config = load_config(visit.path)
    yield ok(f"{visit.path} is in order" if visit.path else "no file given: the defaults")


def mappings(visit: Visit) -> Iterator[Finding]:
    visit.mappings = load_mappings(visit.config.mappings)
    count = len(visit.mappings.queues)
    if count == 0:
        yield warn(
            f"{visit.config.mappings} maps no queue: every message is refused",
            mend="add one with 'msmq-bridge map add'",
        )
    else:
        yield ok(f"{count} {'queue' if count == 1 else 'queues'} in {visit.config.mappings}")


def secrets(visit: Visit) -> Iterator[Finding]:
    """That they are there, and not for everybody's eyes."""
    config = visit.config
    token = token_path(config)
    made = token if not is_generated(config) or token.exists() else None
    files = {"admin.token_file": made, "admin.key": config.admin.key}
    files |= {"rpc.users": config.rpc.users, "rpc.keytab": config.rpc.keytab}
    for name, value in config.kafka.items():
        if isinstance(value, Secret):
            if value.file is not None:
                files[f"kafka.{name}"] = value.file
            else:
                yield _environment(f"kafka.{name}", value.env or "")
    given = [(option, path) for option, path in files.items() if path is not None]
    for option, path in given:
        yield _secret_file(option, path)
    yield from _plain_secrets(config, visit.path)
    if not given:
        yield ok("no secret is kept in a file")


def _environment(option: str, name: str) -> Finding:
    if name in os.environ:
        return ok(f"the environment variable {name} is set", option)
    return fail(
        f"the environment variable {name} is not set", option, mend="set it before the start"
    )


def _secret_file(option: str, path: Path) -> Finding:
    try:
        with path.open("rb") as file:
            mode, first = os.fstat(file.fileno()).st_mode, file.read(1)
    except OSError as error:
        return fail(
            f"{path} cannot be read ({error.strerror})",
            option,
            mend="check the path, and that this user may read it",
        )
    if not first:
        return fail(f"{path} is empty", option, mend="write the secret into it")
    if mode & stat.S_IWOTH:
        return fail(f"everybody may write to {path}", option, mend=f"chmod 600 {path}")
    if mode & stat.S_IROTH:
        return warn(f"everybody may read {path}", option, mend=f"chmod 600 {path}")
    return ok(f"{path} ({stat.filemode(mode)})", option)


def _plain_secrets(config: Config, path: Path | None) -> Iterator[Finding]:
    """Written into a bridge.yaml that everybody may read."""
    if path is None or not path.stat().st_mode & stat.S_IROTH:
        return
    for name in _SECRET_PROPERTIES:
        if isinstance(config.kafka.get(name), str):
            yield warn(
                f"it is written in {path}, which everybody may read",
                f"kafka.{name}",
                mend=f"chmod 600 {path}, or write {{file: path}} or {{env: NAME}}",
            )


def data_folder(visit: Visit) -> Iterator[Finding]:
    """Asked, not tried: nothing is written."""
    data = visit.config.data
    place = next((p for p in (data, *data.parents) if p.exists()), Path("/"))
    if not place.is_dir():
        yield fail(f"{place} is no folder", mend="set 'data' to a folder of this user's")
    elif not os.access(place, os.W_OK | os.X_OK):
        yield fail(
            f"this user may not write to {place}",
            mend=f"chown it to the appliance's user, or set 'data' to another folder than {data}",
        )
    else:
        yield _space(data, place, "" if place == data else ", will be made")


def _space(data: Path, place: Path, remark: str) -> Finding:
    free = shutil.disk_usage(place).free
    found = f"{data}{remark}, {_size(free)} free"
    if free < NO_SPACE:
        return fail(found, mend=f"free some space, or move 'data'; {_size(LOW_SPACE)} is enough")
    if free < LOW_SPACE:
        return warn(found, mend=f"free some space, or move 'data'; {_size(LOW_SPACE)} is enough")
    return ok(found)


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
