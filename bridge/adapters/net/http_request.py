"""A request as the server reads it: the head by h11, the body by its length or its chunks.

h11 judges heads and chunks; it takes the folded Content-Type that Windows may write (srmp.md 1.2).
A body that has a length needs no parser. Whoever in between reads a head differently than we do
could hide a request in another's body: a length that is told twice or beside chunks is refused.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import h11
import msgspec

from bridge.model.errors import ProtocolError

MAX_LINES: Final = 200  # of a head
SLACK: Final = 32 << 10  # framing of chunks, beside as much as there is content

_LENGTHS: Final = re.compile(rb"^content-length:((?:[^\n]|\n[ \t])*)", re.I | re.M)
_TRANSFER: Final = re.compile(rb"^transfer-encoding:(?:[^\n]|\n[ \t])*\n", re.I | re.M)


class Refusal(NamedTuple):
    """The answer, 0 for none, and the reason that is counted, if any."""

    status: int
    reason: str


MALFORMED: Final = Refusal(400, "http-malformed")
METHOD: Final = Refusal(400, "http-method")
LARGE_HEAD: Final = Refusal(400, "http-large-head")
LARGE_BODY: Final = Refusal(400, "http-large-body")
TINY_CHUNKS: Final = Refusal(400, "http-tiny-chunks")


class Refused(ProtocolError):
    """This request is not served, and the connection ends."""

    def __init__(self, refusal: Refusal, detail: str = "") -> None:
        self.refusal = refusal
        super().__init__(refusal.reason, detail[:200])


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`head` is as sent, up to the blank line; if the body came in chunks, with its length."""

    method: str
    target: str
    content_type: str  # folded lines are joined
    head: bytes
    body: bytes
    peer: str  # an IP address, without port and zone
    local: str  # ours
    secure: bool
    peer_names: tuple[str, ...] = ()  # of its certificate, see `tls.names_of`


class Head(msgspec.Struct, frozen=True, kw_only=True):
    raw: bytes
    target: str
    content_type: str
    length: int  # 0 if it comes in chunks
    chunked: bool
    stays: bool  # the connection, after the answer
    modern: bool  # HTTP/1.1
    expects: bool  # a word from us before it sends the body
    parser: h11.Connection

    def request(
        self,
        body: bytes,
        peer: str,
        local: str,
        secure: bool,
        peer_names: tuple[str, ...] = (),
    ) -> HttpRequest:
        raw = self.raw
        if self.chunked:  # the chunks are gone
            raw = _TRANSFER.sub(b"Content-Length: %d\r\n" % len(body), raw)
        return HttpRequest(
            method="POST",
            target=self.target,
            content_type=self.content_type,
            head=raw,
            body=body,
            peer=peer,
            local=local,
            secure=secure,
            peer_names=peer_names,
        )


def read_head(raw: bytes, most: int) -> Head:
    """`raw` ends with its blank line; `most` is the longest body that is taken."""
    if raw.count(b"\n") > MAX_LINES:
        raise Refused(LARGE_HEAD)
    parser = h11.Connection(h11.SERVER)
    request = _parse(parser, raw)
    modern, found = request.http_version >= b"1.1", _headers(request)
    chunked, length = b"transfer-encoding" in found, int(found.get(b"content-length", 0))
    lengths = _LENGTHS.findall(raw)
    if len(lengths) > (0 if chunked else 1) or any(b"," in told for told in lengths):
        raise Refused(MALFORMED, "Content-Length twice, or beside Transfer-Encoding")
    if request.http_version[:2] != b"1." or (chunked and not modern):
        raise Refused(MALFORMED, f"HTTP/{request.http_version.decode()}")
    if request.method != b"POST":
        raise Refused(METHOD, request.method.decode())
    if length > most:
        raise Refused(LARGE_BODY, f"{length} bytes")
    wishes = {wish.strip() for wish in found.get(b"connection", b"").lower().split(b",")}
    return Head(
        raw=raw,
        target=request.target.decode("latin-1"),
        content_type=found.get(b"content-type", b"").decode("latin-1"),
        length=length,
        chunked=chunked,
        stays=b"close" not in wishes and (modern or b"keep-alive" in wishes),
        modern=modern,
        expects=parser.they_are_waiting_for_100_continue,
        parser=parser,
    )


def _parse(parser: h11.Connection, raw: bytes) -> h11.Request:
    parser.receive_data(raw)
    try:
        request = parser.next_event()
    except h11.RemoteProtocolError as fault:
        raise Refused(MALFORMED, str(fault)) from fault
    if not isinstance(request, h11.Request) or parser.trailing_data[0]:
        raise Refused(MALFORMED, "not a head")
    return request


def _headers(request: h11.Request) -> dict[bytes, bytes]:
    """The last of each name; all of `Connection`. Those that describe the body come once."""
    found: dict[bytes, bytes] = {}
    for name, value in request.headers:
        if name in found:
            if name.startswith(b"content-"):
                raise Refused(MALFORMED, f"{name.decode()} twice")
            if name == b"connection":
                value = found[name] + b"," + value
        found[name] = value
    return found


class ChunkedBody:
    """Bytes in, a body out."""

    def __init__(self, head: Head, most: int) -> None:
        self._parser, self._most = head.parser, most
        self._fed = 0
        self.body = bytearray()
        self.rest = b""  # of the next request

    def feed(self, data: bytes) -> bool:
        """Whether it is whole."""
        self._fed += len(data)
        try:
            if data:  # no bytes mean the end to h11
                self._parser.receive_data(data)
            return self._decode()
        except h11.RemoteProtocolError as fault:
            raise Refused(MALFORMED, str(fault)) from fault

    def _decode(self) -> bool:
        body = self.body
        while isinstance(event := self._parser.next_event(), h11.Data):
            body += event.data
            if len(body) > self._most:
                raise Refused(LARGE_BODY, "in chunks")
        if isinstance(event, h11.EndOfMessage):
            self.rest = self._parser.trailing_data[0]
            return True
        if self._fed - len(body) > len(body) + SLACK:  # each costs as much as a request
            raise Refused(TINY_CHUNKS)
        return False
