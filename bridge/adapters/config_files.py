"""The files a user writes: `bridge.yaml`, the mappings, and the secrets they point to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bridge.adapters.yaml_structs import items_of, keys_of, read_struct
from bridge.adapters.yaml_tree import MAX_BYTES, Mark, Node, read_yaml
from bridge.config import Config, Secret
from bridge.core.mapping_rules import Defaults, Mappings, QueueMapping
from bridge.model.errors import ConfigError

_SUFFIXES: Final = (".yaml", ".yml")
_TEST_SUFFIXES: Final = (".test.yaml", ".test.yml")


def load_config(path: Path | None) -> Config:
    """The settings of a file; without one every default, relative to the current folder."""
    if path is None:
        return read_struct(Node(Mark("(defaults)", 1, 1), None), Config, base=Path.cwd())
    return read_struct(read_yaml(path), Config, base=path.parent.absolute())


def kafka_properties(config: Config) -> dict[str, str | int | float | bool]:
    """The `kafka` section with its secrets looked up; keep it out of logs."""
    return {
        name: _secret(name, value) if isinstance(value, Secret) else value
        for name, value in config.kafka.items()
    }


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


def load_mappings(path: Path) -> Mappings:
    """A mapping file, or all of a folder (*.yaml, without *.test.yaml), as one."""
    documents = [_document(file) for file in _mapping_files(path)]
    defaults = _defaults(documents)
    return Mappings(queues=tuple(_queues(documents, defaults)), defaults=defaults)


_Document = dict[str, tuple[Mark, Node]]


def _mapping_files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            mend = "create it, or set 'mappings' to the right file or folder"
            raise ConfigError("no such mapping file or folder", where=str(path), mend=mend)
        return [path]
    try:
        names = sorted(path.iterdir())
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise ConfigError(what, where=str(path), mend="check its rights") from error
    return [
        file
        for file in names
        if file.suffix in _SUFFIXES
        and not file.name.endswith(_TEST_SUFFIXES)
        and not file.name.startswith(".")
    ]


def _document(file: Path) -> _Document:
    return keys_of(read_yaml(file), "", known=("queues", "defaults"))


def _defaults(documents: list[_Document]) -> Defaults:
    """They count for all files, so only one of them may have some."""
    given = [document["defaults"] for document in documents if "defaults" in document]
    if len(given) > 1:
        what = f"there are 'defaults' at {given[0][0]} already"
        raise ConfigError(what, where=str(given[1][0]), mend="keep one: they count for all files")
    if not given:
        return Defaults()
    return read_struct(given[0][1], Defaults, base=Path(), name="defaults")


def _queues(documents: list[_Document], defaults: Defaults) -> Iterator[QueueMapping]:
    seen: dict[str, Mark] = {}
    topics: dict[str, tuple[Mark, QueueMapping]] = {}
    for node, name in _entries(documents):
        made = read_struct(node, QueueMapping, base=Path(), name=name, inherit=defaults)
        mark = node.value["queue"][1].mark if isinstance(node.value, dict) else node.mark
        first = seen.setdefault(made.queue.lower(), mark)
        if first is not mark:
            what = f"queue '{made.queue}' is mapped at {first} already"
            raise ConfigError(what, where=str(mark), mend="keep one; case does not count")
        _check_derived_topic(made, mark, topics)
        yield made


def _entries(documents: list[_Document]) -> Iterator[tuple[Node, str]]:
    for document in documents:
        if "queues" in document:
            for index, node in enumerate(items_of(document["queues"][1], "queues")):
                yield node, f"queues[{index}]"


def _check_derived_topic(
    made: QueueMapping, mark: Mark, topics: dict[str, tuple[Mark, QueueMapping]]
) -> None:
    """Two queues may share a topic, but not by accident: one of them only has to say so."""
    first_mark, first = topics.setdefault(made.topic_name, (mark, made))
    if first is not made and made.topic is None and first.topic is None:
        what = f"queue '{made.queue}' would share the topic of '{first.queue}' at {first_mark}"
        raise ConfigError(what, where=str(mark), mend=f"give it a 'topic: {made.topic_name}-2'")
