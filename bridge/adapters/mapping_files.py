"""`mappings/*.yaml` -> Mappings, each entry with its place; every fault of every file is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bridge.adapters.yaml_structs import Gathering, items_of, keys_of, read_struct
from bridge.adapters.yaml_tree import Mark, Node, parse_yaml, read_yaml
from bridge.core.mapping_rules import Defaults, Mappings, QueueMapping
from bridge.core.patterns import QUEUE
from bridge.model.errors import ConfigError

_SUFFIXES: Final = (".yaml", ".yml")
_TEST_SUFFIXES: Final = (".test.yaml", ".test.yml")
_SECTIONS: Final = ("queues", "defaults")


class LocatedMappings(NamedTuple):
    """What the files say, and where."""

    mappings: Mappings
    files: tuple[Path, ...]
    places: Mapping[str, Mark]  # of an entry's queue, by its name in lower case
    defaults: Mark | None


def load_mappings(path: Path, *, reserved: str = "") -> Mappings:
    """A mapping file, or all of a folder (*.yaml, without *.test.yaml), as one.

    `reserved`: how the names of topics begin that the bridge owns (`topic_prefix` and a dot).
    """
    return locate_mappings(path, reserved=reserved).mappings


def locate_mappings(
    path: Path, *, reserved: str = "", instead: Mapping[Path, bytes] | None = None
) -> LocatedMappings:
    """As `load_mappings`; `instead` is what files would hold, some of them not there yet."""
    return _Loader(path, reserved, instead or {}).load()


def mapping_files(path: Path) -> list[Path]:
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
    return [file for file in names if is_mapping_file(file)]


def is_mapping_file(file: Path) -> bool:
    """Whether a file of this name is read when its folder is."""
    return (
        file.suffix in _SUFFIXES
        and not file.name.endswith(_TEST_SUFFIXES)
        and not file.name.startswith(".")
    )


_Document = dict[str, tuple[Mark, Node]]


class _Loader:
    def __init__(self, path: Path, reserved: str, instead: Mapping[Path, bytes]) -> None:
        self._path, self._reserved, self._instead = path, reserved, instead
        self._gathering = Gathering()
        self._places: dict[str, Mark] = {}
        self._named: dict[str, tuple[Mark, QueueMapping]] = {}  # by the topic that follows from it

    def load(self) -> LocatedMappings:
        files = self._files()
        documents = [self._document(file) for file in files]
        mark, defaults = self._defaults(documents)
        queues = tuple(self._queues(documents, defaults))
        self._gathering.check()
        mappings = Mappings(queues=queues, defaults=defaults)
        return LocatedMappings(mappings, tuple(files), self._places, mark)

    def _files(self) -> list[Path]:
        there = [] if self._instead and not self._path.exists() else mapping_files(self._path)
        return sorted({*there, *self._instead})

    def _document(self, file: Path) -> _Document:
        with self._gathering:
            data = self._instead.get(file)
            node = read_yaml(file) if data is None else parse_yaml(data, str(file))
            with self._gathering:
                keys_of(node, "", known=_SECTIONS)
            return node.value if isinstance(node.value, dict) else {}
        return {}

    def _defaults(self, documents: list[_Document]) -> tuple[Mark | None, Defaults]:
        """They count for all files, so only one of them may have some."""
        given = [document["defaults"] for document in documents if "defaults" in document]
        for mark, _ in given[1:]:
            what = f"there are 'defaults' at {given[0][0]} already"
            mend = "keep one: they count for all files"
            self._gathering.faults.append(ConfigError(what, where=str(mark), mend=mend))
        if given:
            mark, node = given[0]
            with self._gathering:
                return mark, read_struct(node, Defaults, base=Path(), name="defaults")
        return None, Defaults()

    def _queues(self, documents: list[_Document], defaults: Defaults) -> Iterator[QueueMapping]:
        for node, name in self._entries(documents):
            with self._gathering:
                made = read_struct(node, QueueMapping, base=Path(), name=name, inherit=defaults)
                self._check(made, node)
                yield made

    def _entries(self, documents: list[_Document]) -> Iterator[tuple[Node, str]]:
        for document in documents:
            items: list[Node] = []
            if "queues" in document:
                with self._gathering:
                    items = items_of(document["queues"][1], "queues")
            for index, node in enumerate(items):
                yield node, f"queues[{index}]"

    def _check(self, made: QueueMapping, node: Node) -> None:
        mark = _mark(node, "queue")
        first = self._places.setdefault(made.queue.lower(), mark)
        if first is not mark:
            what = f"queue '{made.queue}' is mapped at {first} already"
            raise ConfigError(what, where=str(mark), mend="keep one; case does not count")
        self._check_reserved(made, node)
        self._check_derived_topic(made, mark)

    def _check_reserved(self, made: QueueMapping, node: Node) -> None:
        for option, template in (("topic", made.topic or ""), ("journal", made.journal or "")):
            name = template.replace(QUEUE, made.queue.name)
            if self._reserved and name.startswith(self._reserved):
                what = f"{option} '{name[:80]}' is a topic of the bridge itself"
                mend = f"names that begin with {self._reserved} are taken (topic_prefix)"
                raise ConfigError(what, where=str(_mark(node, option)), mend=mend)

    def _check_derived_topic(self, made: QueueMapping, mark: Mark) -> None:
        """Two queues may share a topic, but not by accident: one of them only has to say so."""
        if not made.topic_name:
            return
        first_mark, first = self._named.setdefault(made.topic_name, (mark, made))
        if first is not made and made.topic is None and first.topic is None:
            what = f"queue '{made.queue}' would share the topic of '{first.queue}' at {first_mark}"
            raise ConfigError(what, where=str(mark), mend=f"give it a 'topic: {made.topic_name}-2'")


def _mark(node: Node, key: str) -> Mark:
    """Of the value of a key, or of the whole entry."""
    if isinstance(node.value, dict) and key in node.value:
        return node.value[key][1].mark
    return node.mark
