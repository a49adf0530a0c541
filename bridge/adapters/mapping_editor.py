"""Adds and removes entries of a mapping file and leaves every other byte as it is.

The YAML parser tells where things are; the change itself is made in the text, because a dump of
the parsed file would set its own indentation, quotes and comment columns. The result is parsed
again: it must differ from the original by exactly the one entry, or nothing is written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from bridge.adapters.yaml_tree import Node, parse_yaml
from bridge.model.errors import ConfigError

_BOM: Final = b"\xef\xbb\xbf"
_INDENT: Final = 2
Entry = Mapping[str, str]  # key -> its value as YAML on one line


def yaml_scalar(text: str) -> str:
    """Text as it is written in YAML, in a block and between braces: without quotes if it can be."""
    for written in (text, "'" + text.replace("'", "''") + "'"):
        with suppress(ConfigError):
            plain = _value(f"k: {written}", "")
            inside = _value(f"[{{k: {written}}}]", "")
            if plain == {"k": text} and inside == [{"k": text}]:
                return written
    raise ConfigError(f"{text!r} cannot be written on one line", mend="leave out what is unusual")


def one_line_value(written: str, where: str) -> str:
    """YAML of a value as somebody typed it, if it can stand behind a key and between braces."""
    try:
        values = _value(f"k: {written}", where), _value(f"{{k: {written}}}", where)
    except ConfigError as error:
        raise ConfigError(error.what, where=where, mend="quote the value") from error
    if len(written.splitlines()) != 1 or values[0] != values[1] or list(values[0]) != ["k"]:
        what = f"{written!r} is not one value on one line"
        raise ConfigError(
            what, where=where, mend="try quota_kb=1024 or 'headers={cloudevents: true}'"
        )
    return written.strip()


def with_entry(data: bytes, entry: Entry, file: str) -> bytes:
    """The file with one more entry at the end of `queues`."""
    text = _decode(data, file)
    wanted = {key: _value(value, file) for key, value in entry.items()}
    before = _tree(data, file)
    after = _encode(_Text(text).add(entry), data)
    _require(
        _tree_or_none(after, file) == before | {"queues": [*(before["queues"] or []), wanted]}, file
    )
    return after


def without_entry(data: bytes, queue: str, file: str) -> bytes:
    """The file without the entry of a queue, its lines and the comment right above them."""
    text = _decode(data, file)
    before = _tree(data, file)
    entries = before["queues"] or []
    index = next(
        i for i, item in enumerate(entries) if str(item.get("queue", "")).lower() == queue.lower()
    )
    after = _encode(_Text(text).remove(index), data)
    left = entries[:index] + entries[index + 1 :]
    found = _tree_or_none(after, file)
    _require(
        found is not None
        and found | {"queues": found["queues"] or []} == before | {"queues": left},
        file,
    )
    return after


def write_atomically(path: Path, data: bytes) -> None:
    """All or nothing, with the rights the file had; a link stays a link."""
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(real.stat().st_mode & 0o7777 if real.exists() else 0o644)
        Path(name).replace(real)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> ConfigError:
    what = f"cannot be written ({error.strerror})"
    return ConfigError(what, where=str(path), mend="check its rights")


class _Text:
    """A document and where the parts of its `queues` are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._root: YamlNode | None = YAML(typ="safe", pure=True).compose(text)
        self._key, self._queues = self._find_queues()

    def _find_queues(self) -> tuple[YamlNode | None, YamlNode | None]:
        if isinstance(self._root, MappingNode):
            for key, value in self._root.value:
                if key.value == "queues":
                    return key, value
        return None, None

    def add(self, entry: Entry) -> str:
        match self._queues:
            case SequenceNode(value=items) if items and self._queues.flow_style:
                return self._insert(items[-1].end_mark.index, f", {_flow(entry)}")
            case SequenceNode(value=items) if items:
                return self._add_to_block(items, entry, self._queues.start_mark.column)
            case None if self._root is None or not _is_flow(self._root):
                column = 0 if self._root is None else self._root.start_mark.column
                lines = [" " * column + "queues:", *_block(entry, column + _INDENT)]
                return self._append(lines)
        if self._queues is None or _is_flow(self._root):
            return self._text  # {} and the like: the caller sees that nothing has changed
        return self._add_first(entry)

    def _add_first(self, entry: Entry) -> str:
        """`queues:` is there, but empty: null, ~ or []."""
        assert self._key is not None
        assert self._queues is not None
        start, end = self._queues.start_mark.index, self._queues.end_mark.index
        column = self._key.start_mark.column + _INDENT
        if start == end:  # nothing is written, so the parser has gone on to what follows
            start = end = self._key.end_mark.index + 1
        text = self._text[:start].rstrip(" ") + self._text[end:]
        return _Lines(text, self._newline).insert_after(start - 1, _block(entry, column))

    def _add_to_block(self, items: list[YamlNode], entry: Entry, column: int) -> str:
        last = items[-1]
        gap = last.start_mark.column - column - 1
        if _is_flow(last):
            lines = [" " * column + "-" + " " * gap + _flow(entry)]
        else:
            lines = _block(entry, column, gap)
        if len(items) > 1 and self._has_blank_between(*items[-2:]):
            lines.insert(0, "")
        whole = _Lines(self._text, self._newline)
        end = whole.end_of_comments(self._last(last), deeper_than=column)
        return whole.insert_after(end, lines)

    def _has_blank_between(self, one: YamlNode, other: YamlNode) -> bool:
        between = self._text[self._last(one) : other.start_mark.index].splitlines()
        return any(not line.strip() for line in between[1:])

    def remove(self, index: int) -> str:
        assert isinstance(self._queues, SequenceNode)
        items = self._queues.value
        item = items[index]
        if not self._queues.flow_style:
            whole = _Lines(self._text, self._newline)
            column = self._queues.start_mark.column
            end = whole.end_of_comments(self._last(item), deeper_than=column)
            return whole.without(self._dash(item), end, column, is_first=not index)
        start, end = item.start_mark.index, item.end_mark.index
        if index + 1 < len(items):
            end = items[index + 1].start_mark.index
        elif index:
            start = items[index - 1].end_mark.index
        return self._text[:start] + self._text[end:]

    def _dash(self, item: YamlNode) -> int:
        """Where the item's dash is: before it, perhaps on a line of its own."""
        head = self._text[: item.start_mark.index].rstrip()
        return len(head) - 1 if head.endswith("-") else int(item.start_mark.index)

    def _last(self, node: YamlNode) -> int:
        """The index after the last character of a value; the parser's own end is what follows."""
        if _is_flow(node):
            return int(node.end_mark.index)
        if isinstance(node, ScalarNode):
            return len(self._text[: node.end_mark.index].rstrip())
        last = node.value[-1]
        key, value = last if isinstance(node, MappingNode) else (None, last)
        if key is not None and value.start_mark.index == value.end_mark.index:
            return int(key.end_mark.index) + 1  # `key:` and nothing
        return self._last(value)

    def _insert(self, index: int, text: str) -> str:
        return self._text[:index] + text + self._text[index:]

    def _append(self, lines: list[str]) -> str:
        text = self._text
        if text and not text.endswith("\n"):
            text += self._newline
        return text + "".join(line + self._newline for line in lines)


class _Lines:
    """Text by its lines, addressed by the index of any character in them."""

    def __init__(self, text: str, newline: str) -> None:
        self._text, self._newline = text, newline

    def _start(self, index: int) -> int:
        return self._text.rfind("\n", 0, index) + 1

    def _end(self, index: int) -> int:
        """After the line end."""
        found = self._text.find("\n", index)
        return len(self._text) if found < 0 else found + 1

    def end_of_comments(self, index: int, deeper_than: int) -> int:
        """Past the comment lines below that are indented as what belongs to the entry."""
        end = self._end(index)
        while end < len(self._text):
            line = self._text[end : self._end(end)]
            bare = line.lstrip(" ")
            if not bare.startswith("#") or len(line) - len(bare) <= deeper_than:
                break
            end = self._end(end)
        return max(index, end - 1)

    def insert_after(self, index: int, lines: list[str]) -> str:
        end = self._end(index)
        head = self._text[:end]
        if head and not head.endswith("\n"):
            head += self._newline
        return head + "".join(line + self._newline for line in lines) + self._text[end:]

    def without(self, first: int, last: int, column: int, *, is_first: bool) -> str:
        """Without whole lines, the comment that touches them from above, and one blank line."""
        start, end = self._start(first), self._end(last)
        while start and self._is_comment(start - 1, column):
            start = self._start(start - 1)
        above = self._text[self._start(start - 1) : start] if start else ""
        below = self._text[end : self._end(end)]
        if (is_first or not above.strip()) and below and not below.strip():
            end = self._end(end)
        return self._text[:start] + self._text[end:]

    def _is_comment(self, index: int, column: int) -> bool:
        line = self._text[self._start(index) : self._end(index)]
        bare = line.lstrip(" ")
        return bare.startswith("#") and len(line) - len(bare) == column


def _block(entry: Entry, column: int, gap: int = 1) -> list[str]:
    first = " " * column + "-" + " " * gap
    rest = " " * len(first)
    return [
        f"{rest if number else first}{key}: {value}"
        for number, (key, value) in enumerate(entry.items())
    ]


def _flow(entry: Entry) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in entry.items()) + "}"


def _is_flow(node: YamlNode | None) -> bool:
    return isinstance(node, SequenceNode | MappingNode) and bool(node.flow_style)


def _decode(data: bytes, file: str) -> str:
    parse_yaml(data, file)  # any fault is named with its place
    return data.decode("utf-8-sig")


def _encode(text: str, like: bytes) -> bytes:
    return (_BOM if like.startswith(_BOM) else b"") + text.encode()


def _value(written: str, file: str) -> Any:
    data = written.encode("utf-8", "surrogatepass")  # half a pair is refused as no UTF-8
    return _strip(parse_yaml(data, file))


def _tree(data: bytes, file: str) -> dict[str, Any]:
    tree = _strip(parse_yaml(data, file))
    return {"queues": None} | (tree if isinstance(tree, dict) else {})


def _tree_or_none(data: bytes, file: str) -> dict[str, Any] | None:
    with suppress(ConfigError):
        return _tree(data, file)
    return None


def _strip(node: Node) -> Any:
    """The values without their places."""
    if isinstance(node.value, dict):
        return {key: _strip(value) for key, (_, value) in node.value.items()}
    return [_strip(item) for item in node.value] if isinstance(node.value, list) else node.value


def _require(is_right: bool, file: str) -> None:
    if not is_right:
        what = "is written in a way that cannot be edited without rewriting it"
        raise ConfigError(what, where=file, mend="make this change by hand")
