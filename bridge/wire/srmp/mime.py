"""The multipart body of a request, which looks like MIME and is not. Digest srmp.md 1.3

Windows writes no CRLF before a delimiter, so that parts can only be told by their own
Content-Length; the payload may hold anything, also delimiters. A part without a length comes from
somebody else: it ends at the next delimiter at the start of a line, as RFC 2046 says.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from bridge.model.errors import WireError
from bridge.wire.srmp.head import Headers, content_length, read_headers

MAX_PARTS: Final = 64
MAX_PART_HEAD: Final = 8192

ENVELOPE_TYPE: Final = "text/xml; charset=UTF-8"
ATTACHMENT_TYPE: Final = "application/octet-stream"

_RULE: Final = "SR-5, srmp.md 1.3"
_CRLF: Final = b"\r\n"
_END_OF_LINE: Final = re.compile(rb"[ \t]*\r\n")
_SHOWN: Final = 40


class Part(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`content_id` is without its angle brackets; `offset` is where the content lies."""

    content: bytes
    content_type: str = ""
    content_id: str = ""
    offset: int = 0

    @property
    def kind(self) -> str:
        """`body`, `extension` or whatever stands before the @; the GUID means nothing (4.1)."""
        return self.content_id.partition("@")[0].lower() if "@" in self.content_id else ""


def read_parts(data: bytes, boundary: str) -> list[Part]:
    """Every part up to the close delimiter; WireError for anything that does not fit."""
    delimiter = b"--" + boundary.encode("ascii")
    place = len(_CRLF) if data.startswith(_CRLF) else 0
    parts: list[Part] = []
    while True:
        place = _after_delimiter(data, place, delimiter)
        if data.startswith(b"--", place):
            if data[place + 2 :].strip(b" \t\r\n"):
                raise WireError("multipart", len(data) - place, f"{_RULE}: data behind the end")
            return parts
        if len(parts) >= MAX_PARTS:
            raise WireError("multipart", MAX_PARTS + 1, f"{_RULE}: at most {MAX_PARTS} parts")
        part, place = _read_part(data, place, delimiter)
        parts.append(part)


def _after_delimiter(data: bytes, place: int, delimiter: bytes) -> int:
    for start in (place, place + len(_CRLF) if data.startswith(_CRLF, place) else place):
        if data.startswith(delimiter, start):
            return start + len(delimiter)
    raise WireError("multipart", data[place : place + _SHOWN], f"{_RULE}: no delimiter here")


def _read_part(data: bytes, place: int, delimiter: bytes) -> tuple[Part, int]:
    line = _END_OF_LINE.match(data, place)
    if line is None:
        raise WireError("multipart", data[place : place + _SHOWN], f"{_RULE}: bad delimiter")
    headers, start = read_headers(data, line.end(), MAX_PART_HEAD)
    length = content_length(headers)
    if length is None:
        end = _next_delimiter(data, start, delimiter)
    elif length > len(data) - start:
        raise WireError("Content-Length", length, f"{_RULE}: only {len(data) - start} bytes left")
    else:
        end = start + length
    part = Part(
        content=data[start:end],
        content_type=headers.get("content-type", ""),
        content_id=headers.get("content-id", "").strip("<> \t"),
        offset=start,
    )
    return part, end


def _next_delimiter(data: bytes, start: int, delimiter: bytes) -> int:
    """Where the content ends; the CRLF belongs to the delimiter, that of the head may serve."""
    line = _CRLF + delimiter
    place = data.find(line, start - len(_CRLF))
    while place >= 0:
        behind = place + len(line)
        if data.startswith(b"--", behind) or _END_OF_LINE.match(data, behind):
            return max(place, start)
        place = data.find(line, place + 1)
    raise WireError("multipart", len(data), f"{_RULE}: a part without an end")


def pack_parts(envelope: bytes, attachments: list[tuple[str, bytes]], boundary: str) -> bytes:
    """The envelope and `(Content-Id, content)` for each attachment, byte for byte as Windows."""
    delimiter = b"--" + boundary.encode("ascii")
    pieces = [delimiter, _part_head(ENVELOPE_TYPE, len(envelope), ""), envelope]
    for content_id, content in attachments:
        pieces += (delimiter, _part_head(ATTACHMENT_TYPE, len(content), content_id), content)
    pieces += (delimiter, b"--\r\n")
    return b"".join(pieces)


def _part_head(content_type: str, length: int, content_id: str) -> bytes:
    fields: Headers = {"Content-Type": content_type, "Content-Length": str(length)}
    if content_id:
        fields["Content-Id"] = content_id
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"\r\n{lines}\r\n".encode("ascii")
