"""What a body says, by its BodyType and by the formatter that wrote it. Design D7

BodyType is a VARENUM (MS-MQMQ 2.2.12) that the sender may set to anything; `variant` says how its
numbers and dates are shown.

A string, a byte array and a body without type are looked into: a JSON object or array is that
value, XML is read by the rules of `xml_value`, other text is a string, "5" and "true" too (so a
queue of texts stays one of strings). `<string>` with JSON or XML in it, as .NET senders like to
write it, is the inner value. BinaryFormatter payloads are recognised and never deserialised.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from bridge.core import variant, xml_value
from bridge.core.variant import VariantRefused
from bridge.core.xml_value import XmlRefused

MAX_VALUES: Final = 100_000  # of a JSON text that is decoded; a larger one is only checked
BINARY_FORMATTER: Final = 768  # what BinaryMessageFormatter sets
_BSTR: Final = 8
_LPSTR: Final = 30
_LPWSTR: Final = 31
# VT_EMPTY, VT_NULL (no body, as a rule), VT_BLOB, a vector and an array of VT_UI1
_UNTYPED: Final = frozenset({0, 1, 65, 0x1011, 0x2011})
# VT_DISPATCH, VT_UNKNOWN, VT_STREAM, _STORAGE, _STREAMED_OBJECT, _STORED_OBJECT, _BLOB_OBJECT
_OBJECTS: Final = frozenset({9, 13, 66, 67, 68, 69, 70})

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WHITE: Final = " \t\r\n\ufeff"
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\r\n")) + b"\x7f"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_JUDGED: Final = 1 << 16  # characters at the start that tell text from other data
_CLAIMS_JSON: Final = re.compile(r'\{\s*["}]')  # and not the {GUID} that Windows likes
_DECLARED: Final = re.compile(
    rb"""\s{0,64}<\?xml\s[^>]{0,128}?encoding\s{0,8}=\s{0,8}["']([A-Za-z0-9._-]{1,20})["']"""
)
_NARROW: Final = re.compile(r"(?:iso-8859-(?:[1-9]|1[013-6])|windows-125[0-8]|us-ascii)")


class Decoded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`value` counts if `why` is empty; `text`, if there is one, counts even then.

    `formatter` says how the value was read: xml, activex, binary-formatter, text, json or bytes.
    With "json" the `text` is that JSON, to the letter.
    """

    formatter: str
    value: Any = None
    text: str | None = None
    why: str = ""


def decode(body: bytes, body_type: int) -> Decoded:
    """Never raises: what cannot be read says why."""
    if body_type in _UNTYPED:
        return _untyped(body)
    if body_type == BINARY_FORMATTER:
        return _BINARY
    if body_type in (_BSTR, _LPWSTR):
        return _wide_string(body)
    if body_type == _LPSTR:
        return _narrow_string(body)
    if body_type in _OBJECTS:
        return _refused("com-object")
    return _scalar(body, body_type)


def _scalar(body: bytes, body_type: int) -> Decoded:
    try:
        scalar = variant.read(body, body_type)
    except VariantRefused as refused:
        return _refused(refused.reason)
    if scalar is None:
        return Decoded(formatter="bytes", why=f"unknown-body-type-0x{body_type:x}")
    return Decoded(formatter="activex", value=scalar[0], text=scalar[1])


_BINARY: Final = Decoded(formatter="binary-formatter", why="binary-formatter")
_NOTHING: Final = Decoded(formatter="bytes", text="")
_NOT_TEXT: Final = Decoded(formatter="bytes", why="not-text")


def _refused(why: str) -> Decoded:
    return Decoded(formatter="activex", why=why)


def is_binary_formatted(body: bytes) -> bool:
    """A SerializationHeaderRecord: type 0, RootId, HeaderId -1, version 1.0. MS-NRBF 2.6.1"""
    return body[:1] == b"\0" and body[5:17] == b"\xff\xff\xff\xff\x01\0\0\0\0\0\0\0"


def _untyped(body: bytes) -> Decoded:
    """XmlMessageFormatter, a stream of bytes, or any program that set no type."""
    if not body:
        return _NOTHING
    if is_binary_formatted(body):
        return _BINARY
    text = _text_of(body)
    return _NOT_TEXT if text is None else _look_into(text, "text")


def _text_of(body: bytes) -> str | None:
    """The text that these bytes are, if they convince."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            text = _strictly(body[len(mark) :], codec)
            return None if text is None or "\0" in text[:-1] else text.removesuffix("\0")
    if codec := _declared_codec(body):
        return _strictly(body, codec)
    bare = body.removesuffix(b"\0")
    if not bare or b"\0" in bare:
        return _utf16_text(body)
    # Some controls are data (SOH in FIX, VT and FS in HL7); mostly controls is no text.
    if (len(bare) - len(bare.translate(None, _CONTROLS))) * 4 > len(bare):
        return None
    return _strictly(bare, "utf-8")


def _utf16_text(body: bytes) -> str | None:
    """Without a BOM: half of the characters or more must be Latin-1, and none NUL."""
    if len(body) < 4 or len(body) % 2:
        return None
    low, high = body[::2].count(0), body[1::2].count(0)
    if max(low, high) * 4 < len(body):
        return None
    text = _strictly(body, "utf-16-le" if high > low else "utf-16-be")
    if text is None:
        return None
    text = text.removesuffix("\0")
    start = text[:_JUDGED]
    if "\0" in text or _CONTROL.subn("", start)[1] * 4 > len(start):
        return None
    return text


def _declared_codec(body: bytes) -> str:
    """The 8-bit code page that an XML declaration names."""
    match = _DECLARED.match(body)
    name = match[1].decode().lower() if match else ""
    return name if _NARROW.fullmatch(name) else ""


def _strictly(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _look_into(text: str, formatter: str, *, unwrap: bool = True) -> Decoded:
    start = text.lstrip(_WHITE)
    found: Decoded | None = None
    if start[:1] in ("{", "["):
        found = _json(start)
    elif start[:1] == "<":
        found = _xml(start, unwrap=unwrap)
    return found or Decoded(formatter=formatter, value=text, text=text)


def _json(text: str) -> Decoded | None:
    """None if it only begins like JSON. Of one with very many values only the text is kept."""
    try:
        if _has_many_values(text):
            msgspec.json.decode(text, type=msgspec.Raw)
            return Decoded(formatter="json", text=text)
        return Decoded(formatter="json", value=msgspec.json.decode(text), text=text)
    except RecursionError:
        return Decoded(formatter="json", text=text, why="json-too-deep")
    except msgspec.DecodeError:
        if _CLAIMS_JSON.match(text):
            return Decoded(formatter="json", text=text, why="json-malformed")
        return None


def _has_many_values(text: str) -> bool:
    """Decoding happens in one step that nothing can interrupt: a million lists take a second."""
    if len(text) <= MAX_VALUES:
        return False
    return text.count(",") + text.count("[") + text.count("{") > MAX_VALUES


def _xml(text: str, *, unwrap: bool) -> Decoded | None:
    """None if it only begins like XML."""
    try:
        found = xml_value.read(text)
    except XmlRefused as refused:
        if refused.reason == "xml-malformed" and not text.startswith("<?xml"):
            return None
        return Decoded(formatter="xml", text=text, why=refused.reason)
    if unwrap and found.primitive == "string" and found.text:
        inner = _look_into(found.text, "xml", unwrap=False)
        if not inner.why:
            return inner
    said = text if found.text is None else found.text
    return Decoded(formatter="xml", value=found.value, text=said)


def _wide_string(body: bytes) -> Decoded:
    """UTF-16LE; .NET and COM write no terminator, C programs do."""
    text = _strictly(body, "utf-16-le")
    return _refused("not-text") if text is None else _look_into(text.removesuffix("\0"), "activex")


def _narrow_string(body: bytes) -> Decoded:
    """The sender's code page is not in the message: ASCII and UTF-8 are safe, no guess is."""
    text = _strictly(body.removesuffix(b"\0"), _declared_codec(body) or "utf-8")
    return _refused("unknown-code-page") if text is None else _look_into(text, "activex")
