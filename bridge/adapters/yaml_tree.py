"""YAML text -> a tree of plain values that know where they were written.

Nothing is constructed from tags, and everything is bounded: the file's size, its depth, and the
number of values after aliases are followed (an alias bomb is only a large number of values).
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode
from ruamel.yaml.reader import ReaderError

from bridge.model.errors import ConfigError

MAX_BYTES: Final = 1 << 20
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 32

Scalar = str | int | float | bool | None

_TAG: Final = "tag:yaml.org,2002:"
_RADIX: Final = {"0x": 16, "0o": 8, "0b": 2}


class Mark(NamedTuple):
    """A place in a file, counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Node(NamedTuple):
    """A value and where it begins."""

    mark: Mark
    value: Scalar | list[Node] | dict[str, tuple[Mark, Node]]


def quoted(text: str) -> str:
    """For a message: short, on one line, backslashes as they are."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return f"'{printable(shown)}'"


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def read_yaml(path: Path) -> Node:
    """The one document of a file; an empty file is null. Any fault is a ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError("no such file", where=str(path), mend="check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"cannot be read ({reason})"
        raise ConfigError(what, where=str(path), mend="check that it is a readable file") from error
    if len(data) > MAX_BYTES:
        raise ConfigError("larger than 1 MiB", where=str(path), mend="split it or make it smaller")
    return parse_yaml(data, str(path))


def parse_yaml(data: bytes, file: str) -> Node:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        where = str(Mark(file, line, column))
        raise ConfigError("not UTF-8 text", where=where, mend="save it as UTF-8") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root = YAML(typ="safe", pure=True).compose(text)
    except RecursionError as error:
        where = str(_deepest(text, file))
        raise ConfigError("nested too deeply", where=where, mend="make it flatter") from error
    except (YAMLError, ValueError, IndexError) as error:
        _raise_not_yaml(error, text, file)
    if root is None:
        return Node(Mark(file, 1, 1), None)
    return _Tree(file).convert(root, 0)


def _deepest(text: str, file: str) -> Mark:
    """Where the depth is first exceeded; the parser of events does not recurse."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        depth += isinstance(event, CollectionStartEvent)
        depth -= isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            return Mark(file, event.start_mark.line + 1, event.start_mark.column + 1)
    return Mark(file, 1, 1)


def _raise_not_yaml(error: Exception, text: str, file: str) -> NoReturn:
    where, problem, mend = file, "it cannot be parsed", "check it at this line"
    if isinstance(error, ReaderError):
        line = text.count("\n", 0, error.position) + 1
        where = str(Mark(file, line, error.position - text.rfind("\n", 0, error.position)))
        problem, mend = f"character {error.character!r} is not allowed", "remove it"
    elif isinstance(error, MarkedYAMLError):
        mark, begun = error.problem_mark or error.context_mark, error.context_mark
        problem = " ".join(str(error.problem or error.context or problem).split())
        if begun is not None and begun.line < mark.line and _UNCLOSED.search(problem):
            problem += f", noticed in line {mark.line + 1}"
            mark = begun
        if mark is not None:
            where = str(Mark(file, mark.line + 1, mark.column + 1))
    for sign, advice in _ADVICE.items():
        if sign in problem:
            mend = advice
    raise ConfigError(f"not YAML: {problem[:200]}", where=where, mend=mend) from error


# What the parser notices further down; the line to mend is the one where it begins.
_UNCLOSED: Final = re.compile("unexpected end of stream|expected ',' or|expected ':'")
_ADVICE: Final = {
    "unexpected end of stream": "close the quotes that are opened here",
    "expected ',' or": "close the bracket or brace that is opened here",
    "expected ':'": "write 'key: value'",
    "escape": "leave out the double quotes, or write \\\\ for each backslash",
    "\\t": "indent with spaces, not with tabs",
    "another document": "keep one document, without a second ---",
    "mapping values are not allowed": "check the indentation, and quote text that has ': ' in it",
    "expected <block end>": "check the indentation of this line",
    "undefined alias": "text that begins with * needs quotes",
}


class _Tree:
    def __init__(self, file: str) -> None:
        self._file, self._values = file, 0

    def convert(self, node: YamlNode, depth: int) -> Node:
        mark = self._mark(node)
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise ConfigError("too many or too deep values", where=str(mark), mend="use no aliases")
        match node:
            case ScalarNode():
                return Node(mark, _scalar(node, mark))
            case SequenceNode():
                return Node(mark, [self.convert(item, depth + 1) for item in node.value])
            case MappingNode():
                return Node(mark, self._mapping(node, depth))
        raise ConfigError("not a value", where=str(mark), mend="use text, lists and keys")

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, tuple[Mark, Node]]:
        found: dict[str, tuple[Mark, Node]] = {}
        for key_node, value_node in node.value:
            mark = self._mark(key_node)
            if not isinstance(key_node, ScalarNode):
                mend = "use text; quote it if it begins with [ or {"
                raise ConfigError("a key must be text", where=str(mark), mend=mend)
            key = str(key_node.value)
            if key in found:
                what = f"key {quoted(key)} is there twice, first in line {found[key][0].line}"
                raise ConfigError(what, where=str(mark), mend="keep one of them")
            value = self.convert(value_node, depth + 1)
            if value.value is None and value_node.start_mark.index == value_node.end_mark.index:
                value = Node(self._end(key_node), None)  # the parser has gone on to what follows
            found[key] = (mark, value)
        return found

    def _end(self, key: YamlNode) -> Mark:
        """Of the colon after a key."""
        return Mark(self._file, key.end_mark.line + 1, key.end_mark.column + 2)

    def _mark(self, node: YamlNode) -> Mark:
        return Mark(self._file, node.start_mark.line + 1, node.start_mark.column + 1)


def _scalar(node: ScalarNode, mark: Mark) -> Scalar:
    text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
    try:
        match kind:
            case "str" | "timestamp":  # a date is text to us
                return text
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int":
                return _integer(text)
            case "float":
                return _float(text)
    except (ValueError, KeyError) as error:
        what = f"{quoted(text)} is not a value of type {kind}"
        raise ConfigError(what, where=str(mark), mend="quote it if it is text") from error
    what = f"the tag {quoted(str(node.tag))} is not supported"
    raise ConfigError(what, where=str(mark), mend="quote the value if it begins with !")


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    unsigned = digits.lstrip("+-")
    value = int(unsigned[2:], _RADIX[unsigned[:2]]) if unsigned[:2] in _RADIX else int(unsigned)
    return -value if digits.startswith("-") else value


def _float(text: str) -> float:
    bare = text.replace("_", "").lower()
    return float(bare.replace(".inf", "inf").replace(".nan", "nan"))
