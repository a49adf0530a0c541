"""What an XML body says, as a value that JSON can hold.

XmlMessageFormatter writes a primitive as one element named after its XSD type: that becomes the
value itself (`<int>5</int>` is 5). Everything else becomes a dict with the root's name as its
only key, by these rules:

- a child element is a key (its name without namespace), a repeated one a list;
- an attribute is `@name` (`@xsi:type` and `@xml:lang` keep their prefix, `xmlns` is left out);
- an element with neither is its text, untouched: without a schema every leaf is a string;
- text beside children or attributes is `#text`, and left out if it is only white space;
- `xsi:nil="true"` is null.

A body comes from anybody: no DTD (so no entities and nothing to fetch), bounded depth and size,
names that are not expanded (see `xml_names`), and nothing stays behind: expat forgets the names
that it read, libxml2's dictionary does not.
"""

from __future__ import annotations

import re
from typing import Any, Final
from xml.parsers import expat

from msgspec import Struct

from bridge.wire.xml_names import BadXml, HugeXml, Name, Names, read_xml

MAX_DEPTH: Final = 100
MAX_NODES: Final = 200_000  # elements, attributes and namespace declarations
MAX_CHARACTERS: Final = 16 << 20

_PREFIXES: Final = {
    "": "@",
    "http://www.w3.org/2001/XMLSchema-instance": "@xsi:",
    "http://www.w3.org/XML/1998/namespace": "@xml:",
}
_NIL: Final = ("http://www.w3.org/2001/XMLSchema-instance", "nil")
_TRUE: Final = ("true", "1")
_FALSE: Final = ("false", "0")

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_FLOAT: Final = 400  # characters
_SPECIAL: Final = {"INF": "Infinity", "-INF": "-Infinity", "NaN": "NaN"}

_INTEGERS: Final = frozenset(
    {"byte", "unsignedByte", "short", "unsignedShort", "int", "unsignedInt", "long"}
    | {"unsignedLong", "integer"}
)
_FLOATS: Final = frozenset({"float", "double"})
_AS_TEXT: Final = frozenset(
    {"dateTime", "date", "time", "duration", "TimeSpan", "guid", "base64Binary", "hexBinary"}
    | {"anyURI", "QName"}
)
_PRIMITIVES: Final = (
    _INTEGERS | _FLOATS | _AS_TEXT | frozenset(("string", "boolean", "decimal", "char"))
)


class XmlRefused(ValueError):
    """`reason` is a short, countable label."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class XmlValue(Struct, frozen=True, kw_only=True, gc=False):
    """`text` is what a primitive says; None for an object."""

    value: Any
    text: str | None = None
    primitive: str = ""


def read(text: str) -> XmlValue:
    """Raises XmlRefused. `text` is already decoded: what its declaration names does not count."""
    if len(text) > MAX_CHARACTERS:
        raise XmlRefused("xml-too-large")
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = builder.doctype
    try:
        read_xml(parser, text.encode())
    except (BadXml, UnicodeEncodeError) as error:
        raise XmlRefused("xml-malformed") from error
    except HugeXml as error:
        raise XmlRefused("xml-too-large") from error
    root = builder.root
    space, local = root.tag
    if not space and local in _PRIMITIVES and root.fields is None:
        return _primitive(root)
    return XmlValue(value={local: root.value()})


class _Frame:
    """An element that is being read."""

    __slots__ = ("fields", "nil", "parts", "tag")

    def __init__(self, tag: Name) -> None:
        self.tag = tag
        self.nil = False
        self.parts: list[str] = []
        self.fields: dict[str, Any] | None = None  # attributes and children

    def add(self, name: str, value: Any) -> None:
        if self.fields is None:
            self.fields = {name: value}
        elif name not in self.fields:
            self.fields[name] = value
        elif isinstance(known := self.fields[name], list):  # no single value is a list
            known.append(value)
        else:
            self.fields[name] = [known, value]

    def value(self) -> Any:
        if self.nil:
            return None
        text = "".join(self.parts)
        if self.fields is None:
            return text
        if text and not text.isspace():
            self.fields["#text"] = text
        return self.fields


class _Builder:
    """Builds the value while the text is read, no tree between."""

    __slots__ = ("_names", "_nodes", "_open", "root")

    root: _Frame  # once it has been read

    def __init__(self) -> None:
        self._open: list[_Frame] = []
        self._names = Names()
        self._nodes = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._nodes += 1 + len(attributes)
        if self._nodes > MAX_NODES:
            raise XmlRefused("xml-too-large")
        if len(self._open) >= MAX_DEPTH:
            raise XmlRefused("xml-too-deep")
        name, named = self._names.open(tag, attributes)
        frame = _Frame(name)
        for attribute, value in named.items():
            if attribute == _NIL:
                frame.nil = value.strip() in _TRUE
            else:
                space, local = attribute
                frame.add(_PREFIXES.get(space, "@") + local, value)
        self._open.append(frame)

    def end(self, _tag: str) -> None:
        frame = self._open.pop()
        self._names.close()
        if self._open:
            self._open[-1].add(frame.tag[1], frame.value())
        else:
            self.root = frame

    def data(self, text: str) -> None:
        self._open[-1].parts.append(text)

    def doctype(self, *_: object) -> None:
        raise XmlRefused("xml-doctype")


def _primitive(root: _Frame) -> XmlValue:
    name = root.tag[1]
    if root.nil:
        return XmlValue(value=None, text="", primitive=name)
    text = "".join(root.parts)
    if name == "string":
        return XmlValue(value=text, text=text, primitive=name)
    text = text.strip()
    value = _scalar(name, text)
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int | str):
        text = str(value)
    return XmlValue(value=value, text=text, primitive=name)


def _scalar(name: str, text: str) -> str | int | float | bool:
    if name in _AS_TEXT:
        return text
    if name in _INTEGERS and _INTEGER.fullmatch(text):
        return int(text)
    if name == "boolean" and text in _TRUE + _FALSE:
        return text in _TRUE
    if name == "decimal" and _DECIMAL.fullmatch(text):
        return text  # a string: a JSON number would lose digits in most readers
    if name in _FLOATS:
        return _float(text)
    if name == "char" and _INTEGER.fullmatch(text):  # XmlSerializer writes its number
        return _character(int(text))
    raise XmlRefused("xml-malformed")


def _float(text: str) -> str | float:
    if text in _SPECIAL:
        return _SPECIAL[text]
    if len(text) <= _MAX_FLOAT and _FLOAT.fullmatch(text):
        value = float(text)
        if value - value == 0:  # finite
            return value
    raise XmlRefused("xml-malformed")


def _character(code: int) -> str:
    if 0 <= code < 0xD800 or 0xDFFF < code <= 0xFFFF:
        return chr(code)
    raise XmlRefused("xml-malformed")  # half a surrogate pair says nothing
