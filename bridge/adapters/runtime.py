"""`runtime.json` in the data folder: where the running appliance can be asked."""

from __future__ import annotations

import ipaddress
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bridge.adapters.private_files import make_private_folder
from bridge.config import Address, Config
from bridge.model.errors import ConfigError, Unavailable

RUNTIME_FILE: Final = "runtime.json"
_MAX_BYTES: Final = 64 * 1024


def write_runtime(data_dir: Path, admin_url: str, pid: int) -> None:
    """Replace the file in one step: a reader sees the old one or the new one."""
    text = json.dumps({"admin_url": admin_url, "pid": pid}) + "\n"
    make_private_folder(data_dir)
    handle, name = tempfile.mkstemp(dir=data_dir, prefix=RUNTIME_FILE)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(data_dir / RUNTIME_FILE)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove_runtime(data_dir: Path) -> None:
    """At the end of a run; one that is gone already is as good."""
    with suppress(OSError):
        (data_dir / RUNTIME_FILE).unlink()


def find_admin_url(config: Config) -> str:
    """Where the appliance of this configuration can be asked."""
    port = config.listen.admin
    if port is None:
        mend = "give it a port to use this command"
        raise ConfigError("the admin port is off (null)", where="listen.admin", mend=mend)
    if port:
        scheme = "https" if config.admin.certificate else "http"
        return f"{scheme}://{Address(_reachable(config.listen.admin_host), port)}"
    return _from_file(config.data / RUNTIME_FILE)


def _reachable(host: str) -> str:
    """An address that stands for all of them is reached at loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            url = str(json.loads(file.read(_MAX_BYTES))["admin_url"])
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).port:
            raise ValueError("no address")
    except FileNotFoundError as error:
        raise Unavailable(
            f"no appliance is running with the data folder {path.parent}; "
            "start one with 'msmq-bridge serve'"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"{path} cannot be used ({error!r}); restart the appliance") from error
    return url
