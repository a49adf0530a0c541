"""`*.test.yaml`: messages and the records that the mappings beside it must make of them.

    assume: {partitions: 4, max_bytes: 1000000}     # of every topic; both have defaults
    tests:
      - name: an order goes to its topic
        message: {queue: private$\\orders, transactional: true, body: hello}
        expect: {topic: orders, value: hello, headers: {msmq.label: null}}

What an expectation does not name may be anything; a header that is null must not be there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from bridge.adapters.sample_message import When
from bridge.adapters.samples import sample_message
from bridge.adapters.yaml_structs import Gathering, items_of, keys_of, read_struct
from bridge.adapters.yaml_tree import Mark, Node, read_yaml
from bridge.core.trial import Assumed, Fate, readable
from bridge.core.wanted import LARGE_BYTES
from bridge.model.classes import MessageClass
from bridge.model.errors import ConfigError
from bridge.model.message import Message

_SUFFIXES: Final = (".test.yaml", ".test.yml")
_REFUSALS: Final = tuple(c.name for c in MessageClass if c & 0x8000)

Count = Annotated[int, Meta(ge=1, le=100_000, description="a number from 1 to 100000")]
Bytes = Annotated[int, Meta(ge=0, le=1 << 30, description="a size in bytes")]
Partition = Annotated[int, Meta(ge=0, le=100_000, description="the number of a partition")]


class Anything(str):
    """What is not written need not be so."""

    __slots__ = ()


class RefusalClass(str):
    """The name of a class, like NACK_BAD_DST_Q."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> RefusalClass:
        if text not in _REFUSALS:
            raise ConfigError("is no class of a refusal", mend=f"one of {', '.join(_REFUSALS)}")
        return cls(text)


class Assumption(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of every topic: what the cluster would say."""

    partitions: Count = Assumed().partitions
    max_bytes: Bytes = LARGE_BYTES


class Expectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the record; of the first one when there are chunks."""

    topic: str | None = None
    partition: Partition | None = None
    key: str | None = Anything("anything")
    """null: there is none. Bytes that are no text are written 0x…, here as everywhere."""
    timestamp: When | None = None
    headers: Mapping[str, str | int | None] = {}
    value: str | None = None
    value_json: str | None = None
    """JSON that says the same, however it is written."""
    value_size: Bytes | None = None
    records: Count | None = None
    """How many there are: chunks."""
    journal: str | None = None
    """The topic of the journal's copy."""
    refused: RefusalClass | None = None
    reason: str | None = None
    """Of the refusal."""

    def __post_init__(self) -> None:
        if not self.named():
            raise ConfigError("expects nothing", mend="add 'topic: ...' or 'refused: ...'")
        of_record = [name for name in self.named() if name not in ("refused", "reason")]
        if (self.refused or self.reason) and of_record:
            what = f"a message that is refused has no {of_record[0]}"
            raise ConfigError(what, where=of_record[0], mend="leave it out")
        if self.value_json is not None:
            try:
                msgspec.json.decode(self.value_json)
            except msgspec.DecodeError as error:
                what = f"value_json is no JSON: {error}"
                raise ConfigError(what, where="value_json", mend="correct it") from error

    def named(self) -> list[str]:
        """What is written."""
        nothing = {field.name: field.default for field in msgspec.structs.fields(Expectation)}
        nothing["headers"] = {}
        return [
            name
            for name in self.__struct_fields__
            if getattr(self, name) != nothing[name]
            or (name == "key" and not isinstance(self.key, Anything))
        ]


class Difference(Struct, frozen=True):
    what: str
    expected: str
    found: str


class Case(Struct, frozen=True, kw_only=True):
    """One test."""

    name: str
    where: Mark
    message: Message
    expect: Expectation

    def differences(self, fate: Fate) -> list[Difference]:
        """None: it is as expected."""
        return [
            Difference(what, expected, found)
            for what, expected, found in _compare(self.expect, fate)
            if expected != found
        ]


class Suite(Struct, frozen=True, kw_only=True):
    """One file."""

    file: Path
    assumed: Assumed
    cases: tuple[Case, ...]


def suites_beside(mappings: Path) -> list[Path]:
    """Those of a folder of mappings; of one mapping file that of its name."""
    if mappings.is_dir():
        try:
            names = sorted(mappings.iterdir())
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            raise ConfigError(what, where=str(mappings), mend="check its rights") from error
        return [name for name in names if name.name.endswith(_SUFFIXES)]
    stem = mappings.name.removesuffix(mappings.suffix)
    beside = [mappings.with_name(stem + suffix) for suffix in _SUFFIXES]
    return [file for file in beside if file.exists()]


def read_suite(file: Path) -> Suite:
    """Raises ConfigError, with every fault that there is."""
    root = read_yaml(file)
    gathering = Gathering()
    sections = keys_of(root, "", known=("assume", "tests"))
    assumed, cases = Assumption(), tuple[Case, ...]()
    with gathering:
        if "assume" in sections:
            node = sections["assume"][1]
            assumed = read_struct(node, Assumption, base=file.parent, name="assume")
    if "tests" not in sections:
        what, mend = "has no tests", "add a list 'tests:' of name, message and expect"
        gathering.faults.append(ConfigError(what, where=str(root.mark), mend=mend))
    else:
        cases = tuple(_cases(sections["tests"][1], file.parent, gathering))
    gathering.check()
    return Suite(
        file=file,
        assumed=Assumed(partitions=assumed.partitions, max_bytes=assumed.max_bytes),
        cases=cases,
    )


def _cases(node: Node, folder: Path, gathering: Gathering) -> Iterator[Case]:
    names: dict[str, Mark] = {}
    for index, item in enumerate(items_of(node, "tests")):
        with gathering:
            yield _case(item, f"tests[{index}]", folder, names)


def _case(node: Node, name: str, folder: Path, names: dict[str, Mark]) -> Case:
    gathering = Gathering()
    entries = keys_of(node, name, known=("name", "message", "expect"))
    for key in ("name", "message", "expect"):
        if key not in entries:
            what, mend = f"'{name}.{key}' is missing", f"add a line '{key}: ...'"
            raise ConfigError(what, where=str(node.mark), mend=mend)
    mark, title = entries["name"][1]
    if not isinstance(title, str) or not title.strip():
        what = f"'{name}.name' must be text"
        raise ConfigError(what, where=str(mark), mend="say in a few words what it shows")
    if first := names.get(title):
        what = f"a test in line {first.line} has this name already"
        raise ConfigError(what, where=str(mark), mend="give it another")
    names[title] = mark
    message = expect = None
    with gathering:
        message = sample_message(entries["message"][1], folder, f"{name}.message")
    with gathering:
        node = entries["expect"][1]
        expect = read_struct(node, Expectation, base=folder, name=f"{name}.expect")
    gathering.check()
    assert message is not None
    assert expect is not None
    return Case(name=title, where=mark, message=message, expect=expect)


def _compare(expect: Expectation, fate: Fate) -> Iterator[tuple[str, str, str]]:
    """What, as expected, as found: of everything that is named."""
    if expect.refused or expect.reason:
        for what, wanted, found in (
            ("refused", expect.refused, fate.refused),
            ("reason", expect.reason, fate.verdict.reason),
        ):
            if wanted:
                yield what, wanted, _shown(found)
    elif not fate.accepted:
        yield "refused", _shown(None), f"{fate.refused} ({fate.verdict.reason})"
    else:
        for name in expect.named():
            if name == "headers":
                yield from _headers(expect.headers, fate.records[0].headers)
            else:
                wanted = getattr(expect, name)
                if name == "value_json":
                    wanted = _canonical(wanted.encode())
                yield name, _shown(wanted), _shown(_FOUND[name](fate))


def _key(fate: Fate) -> str | None:
    key = fate.records[0].key
    return None if key is None else readable(key)


_FOUND: Final[Mapping[str, Callable[[Fate], str | int | None]]] = {
    "topic": lambda fate: fate.records[0].topic,
    "partition": lambda fate: fate.records[0].partition,
    "key": _key,
    "timestamp": lambda fate: fate.records[0].timestamp_ms,
    "value": lambda fate: readable(fate.records[0].value),
    "value_json": lambda fate: _canonical(fate.records[0].value),
    "value_size": lambda fate: len(fate.records[0].value),
    "records": lambda fate: len(fate.records),
    "journal": lambda fate: fate.journal[0].topic if fate.journal else None,
}


def _headers(
    wanted: Mapping[str, str | int | None], found: Mapping[str, bytes]
) -> Iterator[tuple[str, str, str]]:
    for name, text in wanted.items():
        data = found.get(name)
        shown = None if data is None else readable(data)
        yield f"headers.{name}", _shown(text), _shown(shown)


def _shown(value: str | int | None) -> str:
    return "(none)" if value is None else f"{value:d}" if isinstance(value, int) else value


def _canonical(data: bytes) -> str:
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return readable(data)
    ordered = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(ordered, indent=2).decode()


def as_lines(differences: Iterable[Difference]) -> list[str]:
    """As a diff: what was expected with -, what was found with +; equal lines of a text once."""
    lines = []
    for difference in differences:
        expected, found = difference.expected.splitlines(), difference.found.splitlines()
        if len(expected) <= 1 and len(found) <= 1:
            lines += [f"- {difference.what}: {difference.expected}"]
            lines += [f"+ {difference.what}: {difference.found}"]
        else:
            lines.append(f"  {difference.what}:")
            lines += [f"{line[0]}   {line[2:]}" for line in _diff(expected, found)]
    return lines


def _diff(expected: list[str], found: list[str]) -> Iterator[str]:
    return (line for line in difflib.ndiff(expected, found) if line[0] in "-+ ")
