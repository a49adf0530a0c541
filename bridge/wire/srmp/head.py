"""Heads: of an HTTP request as far as SRMP cares, of a part, and the Content-Type in both.

An HTTP server brings its own parser. This one is for requests that come without a server (PGM,
captures, kept compound messages), whose target may be what no server takes (`POST
234.1.1.1:8001`), and for the Content-Type that Windows may fold over two lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import quote

import msgspec

from bridge.model.errors import WireError
from bridge.wire.srmp.values import parse_url

MAX_HEAD: Final = 65_536
MAX_HEADERS: Final = 100
MAX_BOUNDARY: Final = 200  # RFC 2046 says 70
XML: Final = "text/xml"
MULTIPART: Final = "multipart/related"

Headers: TypeAlias = dict[str, str]  # names as read are in small letters

_RULE: Final = "SR-5, srmp.md 1.2"
_LINE: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:([^\r\n\x00]*)")
_FOLD: Final = re.compile(r"\r?\n[ \t]+")
_LENGTH: Final = re.compile(r"[0-9]{1,10}")
_REQUEST: Final = re.compile(r"POST ([^\x00-\x20\x7f]{1,4096}) HTTP/1\.[01]")
_MEDIA: Final = re.compile(r"[ \t]*([^\s;,\"]+/[^\s;,\"]+)[ \t]*")
_PARAMETER: Final = re.compile(r";[ \t]*(?:([^\s;=\"]+)[ \t]*=[ \t]*(?:\"([^\"]*)\"|([^;\"]*)))?")
_BOUNDARY: Final = re.compile(r"[ -~]*[!-~]")
_HOST: Final = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[^\s:/\\?#\[\]@]+)(?::([0-9]{0,5}))?((?:[/\\?#].*)?)", re.I | re.S
)
_VIA: Final = re.compile(rb"^via:((?:[^\n]|\n[ \t])*)", re.I | re.M)
_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = "/?$;&=+,:@!'()*~-._%"


class ContentType(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`media` is in small letters; a boundary exists exactly if it is multipart."""

    media: str
    boundary: str = ""

    @property
    def multipart(self) -> bool:
        return bool(self.boundary)

    def __str__(self) -> str:
        """As Windows writes it, always quoted: a boundary has blanks and a comma."""
        return f'{self.media}; boundary="{self.boundary}"; type={XML}' if self.boundary else XML


class RequestHead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    target: str
    headers: Headers


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a URL is POSTed to."""

    scheme: str
    host: str
    port: int
    target: str
    names_port: bool = False  # it is written in the URL

    @property
    def authority(self) -> str:
        """The Host header: no port that the scheme implies."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"


def parse_content_type(value: str) -> ContentType:
    """`text/xml` or `multipart/related` with its boundary; folded or not."""
    value = _FOLD.sub(" ", value).rstrip(" \t")
    media = _MEDIA.match(value)
    if media is None:
        raise WireError("Content-Type", value[:80], _RULE)
    kind, parameters = media[1].lower(), _parameters(value, media.end())
    if kind == XML:
        return ContentType(media=kind)
    boundary = parameters.get("boundary", "")
    if kind != MULTIPART:
        raise WireError("Content-Type", kind[:80], f"{_RULE}: {XML} or {MULTIPART}")
    if len(boundary) > MAX_BOUNDARY or _BOUNDARY.fullmatch(boundary) is None:
        raise WireError("boundary", boundary[:80], _RULE)
    return ContentType(media=kind, boundary=boundary)


def _parameters(value: str, place: int) -> dict[str, str]:
    found: dict[str, str] = {}
    while place < len(value):
        match = _PARAMETER.match(value, place)
        if match is None:
            raise WireError("Content-Type", value[:80], _RULE)
        name, quoted, plain = match.groups()
        if name is not None:
            if name.lower() in found:
                raise WireError("Content-Type", name[:80], f"{_RULE}: twice")
            found[name.lower()] = plain.strip(" \t") if quoted is None else quoted
        place = match.end()
        while value[place : place + 1] in (" ", "\t"):
            place += 1
    return found


def read_headers(data: bytes, place: int, most: int) -> tuple[Headers, int]:
    """Header lines from `place` to the blank line, and where the content starts."""
    if data.startswith(b"\r\n", place):
        return {}, place + 2
    end = data.find(b"\r\n\r\n", place, place + most)
    if end < 0:
        raise WireError("head", min(len(data) - place, most), f"{_RULE}: no end of the head")
    text = _FOLD.sub(" ", data[place:end].decode("latin-1"))
    headers: Headers = {}
    for line in text.split("\r\n"):
        match = _LINE.fullmatch(line)
        if match is None or len(headers) >= MAX_HEADERS:
            raise WireError("head", line[:80], f"{_RULE}: not a header")
        name = match[1].lower()
        if name in headers and name.startswith("content-"):
            raise WireError(name, line[:80], f"{_RULE}: twice")
        headers[name] = match[2].strip(" \t")
    return headers, end + 4


def content_length(headers: Headers) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    if _LENGTH.fullmatch(text) is None:
        raise WireError("Content-Length", text[:40], _RULE)
    return int(text)


def read_head(data: bytes) -> tuple[RequestHead, int]:
    """The head of a whole request, and where its body starts."""
    line, found, _ = data[:MAX_HEAD].partition(b"\r\n")
    match = _REQUEST.fullmatch(line.decode("latin-1"))
    if match is None or not found:
        raise WireError("request line", line[:80], f"{_RULE}: POST")
    headers, start = read_headers(data, len(line) + 2, MAX_HEAD)
    return RequestHead(target=match[1], headers=headers), start


def request_headers(host: str, content_type: str, length: int, via: Sequence[str] = ()) -> Headers:
    """What Windows sends, in its order; `via` are those who only hand it on. RFC 9110 7.6.3"""
    return {
        "Host": host,
        "Content-Type": content_type,
        "Content-Length": str(length),
        "SOAPAction": '"MSMQMessage"',
        "Proxy-Accept": "NonInteractiveClient",
    } | ({"Via": ", ".join(via)} if via else {})


def hops_in(head: bytes) -> tuple[str, ...]:
    """Who has handed it on, by its Via; characters that no header of ours can hold are left out."""
    lines = ",".join(line.decode("latin-1") for line in _VIA.findall(head))
    hops = ("".join(c for c in hop if " " <= c <= "~").strip() for hop in lines.split(","))
    return tuple(hop for hop in hops if hop)


def pack_head(target: str, headers: Headers) -> bytes:
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if not all(line.isascii() and line.isprintable() for line in lines):
        raise WireError("head", target[:80], f"{_RULE}: not a line of a head")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")


def split_url(url: str) -> Endpoint:
    """As Windows: the target in small letters, its query too. MC-MQSRM 4.4"""
    match = _HOST.fullmatch(parse_url("url", url))
    port = int(match[3]) if match and match[3] else 0
    if match is None or port > 0xFFFF or not match[2].isascii():
        raise WireError("url", url[:80], _RULE)
    scheme, path = match[1].lower(), match[4].partition("#")[0].replace("\\", "/").lower()
    target = quote(path if path.startswith("/") else f"/{path}", safe=_SAFE, errors="replace")
    return Endpoint(
        scheme=scheme,
        host=match[2],
        port=port or _PORTS[scheme],
        target=target,
        names_port=port != 0,
    )
