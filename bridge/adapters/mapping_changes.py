"""Changes of the mapping files: one entry more, or one less; nothing that is not valid."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bridge.adapters.mapping_editor import Entry, with_entry, without_entry, write_atomically
from bridge.adapters.mapping_files import (
    LocatedMappings,
    is_mapping_file,
    locate_mappings,
    mapping_files,
)
from bridge.adapters.yaml_tree import Mark
from bridge.core.mapping_rules import QueuePath
from bridge.model.errors import ConfigError


class Source(msgspec.Struct, frozen=True):
    """Where the mappings are, and which topics they must keep off."""

    path: Path
    reserved: str = ""

    def locate(self, instead: dict[Path, bytes] | None = None) -> LocatedMappings:
        return locate_mappings(self.path, reserved=self.reserved, instead=instead)


class Changed(msgspec.Struct, frozen=True):
    """Where the entry stands now, or stood, and what was in that file (None: no file)."""

    place: Mark
    before: bytes | None

    def undo(self) -> None:
        file = Path(self.place.file)
        if self.before is None:
            file.unlink(missing_ok=True)
        else:
            write_atomically(file, self.before)


def add_entry(source: Source, queue: str, entry: Entry, file: Path | None = None) -> Changed:
    target = _target(source.path, file)
    located = source.locate() if source.path.exists() else None
    path = queue_path(queue)
    first = located and located.places.get(path.lower())
    if first:
        what = f"queue '{path}' is mapped at {first} already"
        raise ConfigError(what, where="QUEUE", mend="change it there, or 'map remove' it first")
    before = target.read_bytes() if target.exists() else None
    changed = with_entry(before or b"", entry, str(target))
    try:
        place = source.locate({target: changed}).places[path.lower()]
    except ConfigError as error:  # the rest is valid, so it is about a line that is not there yet
        raise ConfigError(error.what, where=f"'{path}'", mend=error.mend) from error
    write_atomically(target, changed)
    return Changed(place, before)


def remove_entry(source: Source, queue: str) -> Changed:
    place = source.locate().places.get(queue.lower())
    if place is None:
        what = f"queue '{queue}' is not mapped in {str(source.path)!r}"
        raise ConfigError(what, where="QUEUE", mend="'msmq-bridge map list' shows what is")
    file = Path(place.file)
    before = file.read_bytes()
    changed = without_entry(before, queue, place.file)
    source.locate({file: changed})
    write_atomically(file, changed)
    return Changed(place, before)


def queue_path(text: str) -> QueuePath:
    try:
        return QueuePath.parse(text)
    except ConfigError as error:
        raise ConfigError(f"'{text}' {error.what}", where="QUEUE", mend=error.mend) from error


def _target(path: Path, file: Path | None) -> Path:
    """The file to write to: one of those that are read, or a new one beside them."""
    if not path.is_dir() and (path.exists() or is_mapping_file(path)):
        if file is not None and file.resolve() != path.resolve():
            what = f"{str(file)!r} is not read: the mappings are the file {str(path)!r}"
            raise ConfigError(what, where="--file", mend="leave it out")
        return path
    if file is not None:
        inside = file if file.parent.resolve() == path.resolve() else path / file
        if inside.parent.resolve() != path.resolve() or not is_mapping_file(inside):
            what = f"{str(file)!r} would not be read"
            mend = f"name a .yaml file in {path}, and no .test.yaml"
            raise ConfigError(what, where="--file", mend=mend)
        return path / inside.name
    files = mapping_files(path) if path.exists() else []
    if len(files) > 1:
        names = ", ".join(found.name for found in files[:5])
        what = f"there are {len(files)} mapping files in {str(path)!r}"
        raise ConfigError(what, where="--file", mend=f"say which one: {names}")
    return files[0] if files else path / "queues.yaml"
