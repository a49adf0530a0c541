"""SHA-256 of every jar that is fetched, and the check against it.

The list is in the repository, so a registry, a mirror or a proxy cannot choose what is run. A
folder is hashed once: a stamp beside it keeps size and time of each jar, which later starts
compare. A folder that cannot take a stamp is hashed at every start.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from bridge.model.errors import BrokerFailed

LISTING: Final = Path(__file__).with_name("jars.sha256")
STAMP: Final = "checked.json"  # beside the folder of the jars


class Stamp(msgspec.Struct, frozen=True):
    """What a folder was when all its hashes were right."""

    listing: str  # digest of the pins
    jars: dict[
        str, tuple[int, int]
    ]  # name -> size, time of the last change in s: layers of an image keep no more


def read_pins(folder: str, listing: Path = LISTING) -> dict[str, str]:
    """Name of each jar of a bundle -> SHA-256; lines are those of sha256sum: 'HASH  folder/jar'."""
    pins = {}
    for line in listing.read_text(encoding="ascii").splitlines():
        digest, _, path = line.partition("  ")
        if path.startswith(f"{folder}/"):
            pins[path.removeprefix(f"{folder}/")] = digest
    return pins


def check_jars(libs: Path, pins: Mapping[str, str], mend: str) -> None:
    """Refuse a folder in which a jar is another one than the list says. Raises BrokerFailed."""
    stamp = libs.with_name(STAMP)
    now = _stamp(libs, pins)
    if _read(stamp) == now:
        return
    for jar in sorted(libs.glob("*.jar")):
        if jar.name not in pins:
            raise BrokerFailed(f"{jar} is not in the list of known jars; {mend}")
    for name, wanted in pins.items():
        if not (libs / name).exists():
            raise BrokerFailed(f"{libs / name} is missing; {mend}")
        found = _digest(libs / name)
        if found != wanted:
            raise BrokerFailed(f"{libs / name} has SHA-256 {found}, expected {wanted}; {mend}")
    _write(stamp, now)


def _stamp(libs: Path, pins: Mapping[str, str]) -> Stamp:
    jars = {jar.name: jar.stat() for jar in sorted(libs.glob("*.jar"))}
    lines = "\n".join(f"{digest}  {name}" for name, digest in sorted(pins.items()))
    return Stamp(
        hashlib.sha256(lines.encode()).hexdigest(),
        {name: (stat.st_size, int(stat.st_mtime)) for name, stat in jars.items()},
    )


def _digest(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(stamp: Path) -> Stamp | None:
    try:
        return msgspec.json.decode(stamp.read_bytes(), type=Stamp)
    except (OSError, msgspec.MsgspecError):
        return None


def _write(stamp: Path, now: Stamp) -> None:
    """A cache that is read-only is hashed at every start."""
    part = stamp.with_name(f"{STAMP}.{os.getpid()}")
    try:
        part.write_bytes(msgspec.json.encode(now))
        part.rename(stamp)
    except OSError:
        with suppress(OSError):
            part.unlink()
