"""The XML of an envelope as a small tree with its namespaces resolved.

An envelope comes from anybody. No DTD, so no entities and nothing to fetch; no processing
instructions (SOAP 1.1 forbids both); bounded size, depth, number of nodes and size of a tag; names
are not expanded (see `xml_names`). The time is linear in the size.

Not lxml: libxml2 keeps every name it has ever read in a dictionary that lives as long as the
thread, and a stranger chooses the names. expat forgets them with the parser, and what we need of
a tree is thirty lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

from bridge.model.errors import WireError
from bridge.wire.xml_names import BadXml, HugeXml, Name, Names, read_xml

MAX_ENVELOPE: Final = 4 << 20  # bytes; the message data that SRMP allows. MC-MQSRM 1.6
MAX_DEPTH: Final = 64
MAX_NODES: Final = 20_000  # elements, attributes and namespace declarations

# One step per attribute and none to go back to: a step per byte costs a hundred bytes of memory.
_START_TAG: Final = re.compile(rb"""<[^>"']*+(?:(?:"[^"]*+"|'[^']*+')[^>"']*+)*+>""")


class Element:
    """`tag` and the names of attributes are pairs of namespace and local name."""

    __slots__ = ("_index", "_parts", "attributes", "children", "end", "start", "tag")

    def __init__(self, tag: Name, attributes: dict[Name, str], start: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element] = []
        self.start = start  # where it lies in the text, in bytes
        self.end = start
        self._parts: list[str] = []
        self._index: dict[Name, Element | None] | None = None

    @property
    def text(self) -> str:
        """Its own characters, white space and all, without those of its children."""
        return "".join(self._parts)

    def named(self, tag: Name) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: Name) -> Element | None:
        """The child of that name. Two are a WireError: two readers would choose differently."""
        if self._index is None:
            self._index = {}
            for child in self.children:
                self._index[child.tag] = None if child.tag in self._index else child
        found = self._index.get(tag, self)
        if found is None:
            raise WireError(tag[1][:40], "twice", "SR-5: at most once")
        return None if found is self else found


def parse_xml(data: bytes) -> Element:
    """The root; WireError for whatever is not plain, well-formed UTF-8 XML."""
    if len(data) > MAX_ENVELOPE:
        raise WireError("Envelope", len(data), f"SR-5: at most {MAX_ENVELOPE} bytes")
    _require_utf8(data)
    parser = expat.ParserCreate("utf-8")
    builder = _Builder(parser)
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.doctype
    parser.ProcessingInstructionHandler = builder.instruction
    try:
        read_xml(parser, data)
    except BadXml as error:
        raise WireError("Envelope", str(error), "MC-MQSRM 2.2: well-formed XML") from None
    except HugeXml as error:
        raise WireError("Envelope", str(error), "SOAP 1.1 section 3: too large") from None
    finally:
        builder.release()
    return builder.root


def _require_utf8(data: bytes) -> None:
    """expat is told the encoding and still believes a byte order mark, or a NUL after `<`."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise WireError("Envelope", f"byte {error.start}", "srmp.md 2: UTF-8") from None
    if b"\0" in data:
        raise WireError("Envelope", "NUL", "srmp.md 2: UTF-8")


class _Builder:
    __slots__ = ("_names", "_nodes", "_open", "_parser", "root")

    root: Element  # once it has been read

    def __init__(self, parser: expat.XMLParserType) -> None:
        self._parser = parser
        self._open: list[Element] = []
        self._names = Names()
        self._nodes = 0

    def release(self) -> None:
        """The parser holds our methods: without this each envelope waits for the collector."""
        del self._parser

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._nodes += 1 + len(attributes)
        if self._nodes > MAX_NODES:
            raise WireError("Envelope", self._nodes, f"SR-5: at most {MAX_NODES} nodes")
        if len(self._open) >= MAX_DEPTH:
            raise WireError("Envelope", MAX_DEPTH + 1, f"SR-5: at most {MAX_DEPTH} levels")
        name, named = self._names.open(tag, attributes)
        element = Element(name, named, self._parser.CurrentByteIndex)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _tag: str) -> None:
        # After `<a/>` expat stands behind the tag, before `</a>` in front of it.
        self._open.pop().end = self._parser.CurrentByteIndex
        self._names.close()

    def characters(self, text: str) -> None:
        self._open[-1]._parts.append(text)

    def doctype(self, *_: object) -> None:
        raise WireError("Envelope", "DOCTYPE", "SOAP 1.1 section 3: no DTD")

    def instruction(self, target: str, _data: str) -> None:
        raise WireError("Envelope", target[:40], "SOAP 1.1 section 3: no processing instruction")


def content_of(element: Element, data: bytes) -> slice:
    """What stands between the tags of an element that has both."""
    tag = _START_TAG.match(data, element.start)
    if tag is None or tag[0].endswith(b"/>"):
        raise WireError(element.tag[1][:40], "empty", "SR-5: a text")
    return slice(tag.end(), element.end)


def source_of(element: Element, data: bytes) -> bytes:
    """The element as its sender wrote it, tags included."""
    tag = _START_TAG.match(data, element.start)
    if tag is None or tag[0].endswith(b"/>"):
        return data[element.start : element.end]
    return data[element.start : data.index(b">", element.end) + 1]
