"""Names of an XML document, resolved as pairs of namespace and local name.

expat can resolve them itself, but it writes the whole namespace URI into every name that it
reports: a URI of 64 KiB on 20,000 elements is a gigabyte. Here expat reports names as they are
written, and each is looked up in the declarations that are in scope. A pair refers to the URI of
its declaration, so nothing is repeated, and the time is linear in the size of the document.

`read_xml` also bounds a single tag: expat reads all attributes of an element before it reports the
first one.
"""

from __future__ import annotations

from typing import Final, NoReturn
from xml.parsers import expat

Name = tuple[str, str]  # namespace and local name; an attribute without prefix has no namespace

MAX_URI: Final = 4096  # characters of one namespace
MAX_TAG: Final = 256 << 10  # bytes of one tag with its attributes, or of one comment

_CHUNK: Final = 64 << 10
_XML: Final = "http://www.w3.org/XML/1998/namespace"
_XMLNS: Final = "http://www.w3.org/2000/xmlns/"
_NOT_FIRST: Final = frozenset("-.0123456789")  # of a local name


class BadXml(ValueError):
    """The text is not well-formed XML with namespaces."""


class HugeXml(ValueError):
    """A single tag, comment or namespace is longer than its bound."""


def read_xml(parser: expat.XMLParserType, data: bytes) -> None:
    """Run a parser over a document; raises BadXml, HugeXml and what its handlers raise."""
    place = 0
    try:
        while len(data) - place > _CHUNK:
            parser.Parse(data[place : place + _CHUNK], False)
            place += _CHUNK
            if place - parser.CurrentByteIndex > MAX_TAG:  # where the unfinished tag begins
                raise HugeXml(f"a tag of more than {MAX_TAG} bytes")
        parser.Parse(data[place:], True)
    except expat.ExpatError as error:
        raise BadXml(expat.ErrorString(error.code)) from None


class Names:
    """The namespace declarations in scope. Namespaces in XML 1.0 (third edition)"""

    __slots__ = ("_known", "_scope", "_undo")

    def __init__(self) -> None:
        self._scope: dict[str, str] = {"": "", "xml": _XML}
        self._undo: list[list[tuple[str, str | None]] | None] = []
        self._known: dict[str, Name] = {}  # elements by the name as written, in this scope

    def open(self, tag: str, attributes: dict[str, str]) -> tuple[Name, dict[Name, str]]:
        """The names of an element that starts, and of its attributes without declarations."""
        undo: list[tuple[str, str | None]] | None = None
        if attributes:
            undo = self._declare(attributes) or None
        self._undo.append(undo)
        name = self._known.get(tag)
        if name is None:
            name = self._known[tag] = self._resolve(tag, self._scope[""])
        return name, self._attributes(attributes) if attributes else {}

    def close(self) -> None:
        """The element that was opened last has ended, and its declarations with it."""
        undo = self._undo.pop()
        if undo is None:
            return
        for prefix, before in reversed(undo):
            if before is None:
                del self._scope[prefix]
            else:
                self._scope[prefix] = before
        self._known.clear()

    def _declare(self, attributes: dict[str, str]) -> list[tuple[str, str | None]]:
        undo = []
        for name, uri in attributes.items():
            if name == "xmlns":
                prefix = ""
            elif name.startswith("xmlns:"):
                prefix = _checked(name, name[6:])
            else:
                continue
            _check_declaration(prefix, uri)
            undo.append((prefix, self._scope.get(prefix)))
            self._scope[prefix] = uri
        if undo:
            self._known.clear()
        return undo

    def _attributes(self, attributes: dict[str, str]) -> dict[Name, str]:
        found: dict[Name, str] = {}
        for name, value in attributes.items():
            if ":" not in name:
                if name != "xmlns":
                    found["", name] = value
            elif not name.startswith("xmlns:"):
                key = self._resolve(name, "")
                if key in found:
                    _refuse(name, "the same attribute twice")
                found[key] = value
        return found

    def _resolve(self, name: str, default: str) -> Name:
        prefix, colon, local = name.partition(":")
        if not colon:
            return default, name
        uri = self._scope.get(prefix) if prefix else None
        if uri is None:
            _refuse(name, "its prefix is not declared")
        return uri, _checked(name, local)


def _checked(name: str, local: str) -> str:
    if not local or ":" in local or local[0] in _NOT_FIRST:
        _refuse(name, "not a prefix and a local name")
    return local


def _check_declaration(prefix: str, uri: str) -> None:
    if len(uri) > MAX_URI:
        raise HugeXml(f"a namespace of more than {MAX_URI} characters")
    if prefix and not uri:
        _refuse(prefix, "a prefix is declared with an empty namespace")
    if prefix == "xmlns" or uri == _XMLNS or (prefix == "xml") != (uri == _XML):
        _refuse(prefix, "xml and xmlns are reserved")


def _refuse(name: str, why: str) -> NoReturn:
    raise BadXml(f"{name[:40]}: {why}")
