"""A located tree -> frozen structs; a fault names its line, what is wrong and how to mend it.

The structs are the schema: their types say what is allowed (`Meta` rules, `Literal`, a class with
`parse`), the `Meta` description says it in words, their defaults are offered as the way out.
All faults are looked for; when there are several, `Faults` reads as the first of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
from msgspec.structs import FieldInfo

from bridge.adapters.yaml_tree import Mark, Node, printable, quoted
from bridge.model.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)

_WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "null",
}


class Faults(ConfigError):
    """Several faults; to whoever wants one line it is the first of them."""

    def __init__(self, faults: Sequence[ConfigError]) -> None:
        first = faults[0]
        super().__init__(first.what, where=first.where, mend=first.mend)
        self.faults = tuple(faults)


class Gathering:
    """Goes on after a fault; `check` at the end raises what was found."""

    def __init__(self) -> None:
        self.faults: list[ConfigError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, ConfigError):
            return False
        self.faults += faults_of(error)
        return True

    def check(self) -> None:
        if len(self.faults) == 1:
            raise self.faults[0]
        if self.faults:
            raise Faults(self.faults)


def faults_of(error: ConfigError) -> tuple[ConfigError, ...]:
    return error.faults if isinstance(error, Faults) else (error,)


def read_struct(
    node: Node, kind: type[S], *, base: Path, name: str = "", inherit: msgspec.Struct | None = None
) -> S:
    """`base`: the folder of relative paths; `inherit`: gives the values that are not written."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    gathering = Gathering()
    with gathering:
        keys_of(node, name, known=fields)
    entries = node.value if isinstance(node.value, dict) else {}
    values: dict[str, Any] = {}
    for key, field in fields.items():
        if key in entries:
            with gathering:
                values[field.name] = _Reader(base, field).read(entries[key][1], _join(name, key))
        elif inherit is not None and hasattr(inherit, field.name):
            values[field.name] = getattr(inherit, field.name)
        elif field.required and isinstance(node.value, dict | None):
            what = f"{quoted(_join(name, key))} is missing"
            mend = f"add a line '{key}: ...'"
            gathering.faults.append(ConfigError(what, where=str(node.mark), mend=mend))
        elif isinstance(field.default, Path):
            values[field.name] = base / field.default
    gathering.check()
    try:
        return kind(**values)
    except ConfigError as error:
        where = str(_find(node, error.where))
        raise ConfigError(printable(error.what), where=where, mend=error.mend) from error


class _Reader:
    """Reads the value of one field."""

    def __init__(self, base: Path, field: FieldInfo) -> None:
        self._base, self._field = base, field

    def read(self, node: Node, name: str) -> Any:
        return self._read(node, self._field.type, name, words=None)

    def _read(self, node: Node, kind: Any, name: str, words: str | None) -> Any:
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(node, kind, name, words)
        if origin in (Union, UnionType):
            return self._union(node, kind, name, words)
        if origin is tuple:
            return self._items(node, args[0], name)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._entries(node, args[0], args[1], name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not _parses(kind):
            return read_struct(node, kind, base=self._base, name=name)
        if kind is Path:
            return self._path(node, name)
        if _parses(kind):
            return self._parsed(node, kind, name, words)
        return self._plain(node, kind, name, words)

    def _annotated(self, node: Node, kind: Any, name: str, words: str | None) -> Any:
        inner = get_args(kind)[0]
        words = words or _description(kind)
        if _is_plain(inner):
            return self._plain(node, kind, name, words)
        return self._read(node, inner, name, words)

    def _union(self, node: Node, kind: Any, name: str, words: str | None) -> Any:
        members = get_args(kind)
        words = words or " or ".join(_words(member) for member in members)
        if node.value is None and type(None) in members:
            return None
        for member in members:
            if isinstance(node.value, dict) and _is_struct(member):
                return self._read(node, member, name, words)
            if isinstance(node.value, list) and get_origin(member) is tuple:
                return self._read(node, member, name, words)
        rest = [m for m in members if m is not type(None) and not _is_struct(m)]
        scalars = [m for m in rest if get_origin(m) is not tuple] or rest
        if len(scalars) == 1:
            return self._read(node, scalars[0], name, words)
        return self._plain(node, reduce(or_, scalars), name, words)

    def _items(self, node: Node, kind: Any, name: str) -> tuple[Any, ...]:
        gathering = Gathering()
        found = []
        for index, item in enumerate(items_of(node, name)):
            with gathering:
                found.append(self._read(item, kind, f"{name}[{index}]", words=None))
        gathering.check()
        return tuple(found)

    def _entries(self, node: Node, key_kind: Any, kind: Any, name: str) -> dict[Any, Any]:
        gathering = Gathering()
        found: dict[Any, Any] = {}
        for key, (mark, value) in keys_of(node, name).items():
            with gathering:
                made = self._read(Node(mark, key), key_kind, f"{name}.{key}", words=None)
                if made in found:
                    what = f"key {quoted(key)} is there twice, in upper and lower case"
                    raise ConfigError(what, where=str(mark), mend="keep one of them")
                found[made] = self._read(value, kind, f"{name}.{key}", words=None)
        gathering.check()
        return found

    def _path(self, node: Node, name: str) -> Path:
        text = node.value
        if not isinstance(text, str) or not text or "\0" in text:
            raise self._fault(node, name, "a path", Path)
        try:
            return self._base / Path(text).expanduser()
        except RuntimeError as error:
            raise self._fault(node, name, "a path of a user that exists") from error

    def _parsed(self, node: Node, kind: Any, name: str, words: str | None) -> Any:
        if not isinstance(node.value, str):
            raise self._fault(node, name, words or "text", kind)
        try:
            return kind.parse(node.value)
        except ConfigError as error:
            what = f"{quoted(name)} {printable(error.what)}"
            raise ConfigError(what, where=str(node.mark), mend=error.mend) from error
        except ValueError as error:
            raise self._fault(node, name, words or "text") from error

    def _plain(self, node: Node, kind: Any, name: str, words: str | None) -> Any:
        if not isinstance(node.value, dict | list):
            try:
                return msgspec.convert(node.value, kind)
            except msgspec.ValidationError:
                pass
        raise self._fault(node, name, words or _words(kind), kind)

    def _fault(self, node: Node, name: str, words: str, kind: Any = None) -> ConfigError:
        what = f"{quoted(name)} must be {words}, not {_shown(node)}"
        return ConfigError(what, where=str(node.mark), mend=_mend(node, _bare(kind), self._field))


def keys_of(
    node: Node, name: str, *, known: Iterable[str] | None = None
) -> dict[str, tuple[Mark, Node]]:
    """The entries of a group of keys, all of them known."""
    if node.value is None:  # a section whose lines are all commented out
        return {}
    if not isinstance(node.value, dict):
        what = f"{quoted(name) if name else 'the file'} must have keys, not {_shown(node)}"
        raise ConfigError(what, where=str(node.mark), mend="write 'key: value' lines")
    if known is not None:
        gathering = Gathering()
        for key, (mark, _) in node.value.items():
            if key not in known:
                with gathering:
                    _raise_unknown(key, mark, name, known)
        gathering.check()
    return node.value


def items_of(node: Node, name: str) -> list[Node]:
    """The items of a list."""
    if node.value is None:
        return []
    if not isinstance(node.value, list):
        mend = "write [a, b], or each item on a line of its own that begins with '- '"
        what = f"{quoted(name)} must be a list, not {_shown(node)}"
        raise ConfigError(what, where=str(node.mark), mend=mend)
    return node.value


def _raise_unknown(key: str, mark: Mark, name: str, fields: Iterable[str]) -> NoReturn:
    known = list(fields)
    near = difflib.get_close_matches(key.lower(), known, n=1)
    mend = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
    inside = f" in {quoted(name)}" if name else ""
    raise ConfigError(f"unknown key {quoted(key)}{inside}", where=str(mark), mend=mend)


def _find(node: Node, option: str) -> Mark:
    """The place of an option that a struct's own check complains about."""
    for step in filter(None, option.split("/")):
        if isinstance(node.value, dict) and step in node.value:
            node = node.value[step][1]
        elif isinstance(node.value, list) and step.isdecimal() and int(step) < len(node.value):
            node = node.value[int(step)]
        else:
            break
    return node.mark


def _mend(node: Node, kind: Any, field: FieldInfo) -> str:
    choices = _choices(kind)
    if choices and isinstance(node.value, str):
        near = difflib.get_close_matches(node.value.lower(), choices, n=1)
        if near:
            return f"did you mean {near[0]!r}?"
    if (kind in (str, Path) or _parses(kind)) and isinstance(node.value, int | float):
        return "put it in quotes"
    if field.required:
        return "correct it"
    if default := _default(field):
        return f"correct it, or leave it out for the default {default}"
    return "correct it, or leave it out"


def _default(field: FieldInfo) -> str:
    default = field.default
    if default in (msgspec.NODEFAULT, ()):
        return ""
    if default is None or isinstance(default, bool):
        return {None: "", True: "true", False: "false"}[default]
    if isinstance(default, tuple):
        return f"[{', '.join(map(str, default))}]"
    return f"{default:g}" if isinstance(default, float) else str(default)


def _shown(node: Node) -> str:
    match node.value:
        case dict():
            return "a group of keys"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(node.value).lower()
        case str() as text:
            return f"the text {quoted(text)}"
        case value:
            return str(value)[:80]


def _words(kind: Any) -> str:
    """What a type allows, for people."""
    if described := _description(kind):
        return described
    if choices := _choices(kind):
        return "one of " + ", ".join(choices)
    if get_origin(kind) is tuple:
        return "a list"
    return _WORDS.get(kind, "a value")


def _description(kind: Any) -> str | None:
    notes = (note for note in get_args(kind)[1:] if isinstance(note, msgspec.Meta))
    return next((note.description for note in notes if note.description), None)


def _choices(kind: Any) -> list[str]:
    return [str(choice) for choice in get_args(kind)] if get_origin(kind) is Literal else []


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _parses(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "parse")


def _is_plain(kind: Any) -> bool:
    return kind in (bool, int, float, str)


def _join(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key
