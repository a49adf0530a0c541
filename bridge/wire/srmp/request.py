"""An SRMP request: the envelope and the attachments that its body carries. Digest srmp.md 1.3"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.errors import WireError
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.head import (
    MULTIPART,
    XML,
    ContentType,
    RequestHead,
    content_length,
    pack_head,
    parse_content_type,
    read_head,
    request_headers,
)
from bridge.wire.srmp.mime import Part, pack_parts, read_parts
from bridge.wire.srmp.reader import read_envelope
from bridge.wire.srmp.signature import BODY, EXTENSION
from bridge.wire.srmp.writer import STREAM_TAG, write_envelope

MAX_BODY: Final = 5 << 20  # 4 MB of message data, its envelope and the framing. MC-MQSRM 1.6

_BOUNDARY: Final = "MSMQ - SOAP boundary, "


class SrmpRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`soap` is the envelope as sent; `body` and `extension` are None if there is no such part.

    `others` are attachments that mean nothing to MSMQ and are legal.
    """

    envelope: Envelope
    soap: bytes
    body: bytes | None = None
    extension: bytes | None = None
    others: tuple[Part, ...] = ()
    body_offset: int = 0  # of the body in what was read, for a compound message

    @property
    def attachments(self) -> dict[str, bytes]:
        """What a signature may refer to."""
        found = {BODY: self.body, EXTENSION: self.extension}
        return {kind: content for kind, content in found.items() if content is not None}


def read_request(content_type: str, data: bytes) -> SrmpRequest:
    """The body of a POST; WireError means 400 (SR-5)."""
    if len(data) > MAX_BODY:
        raise WireError("request", len(data), f"MC-MQSRM 1.6: at most {MAX_BODY} bytes")
    kind = parse_content_type(content_type)
    if not kind.multipart:
        return SrmpRequest(envelope=read_envelope(data), soap=data)
    parts = read_parts(data, kind.boundary)
    if not parts:
        raise WireError("multipart", 0, "SR-5: no envelope")
    envelope = read_envelope(parts[0].content)
    if envelope.is_receipt and len(parts) > 1:
        raise WireError("receipt", len(parts) - 1, "SR-5: a receipt has no attachment (2.2.2)")
    return _with_attachments(envelope, parts)


def _with_attachments(envelope: Envelope, parts: list[Part]) -> SrmpRequest:
    rest = parts[1:]
    extension = _take(rest, EXTENSION)
    body = _take(rest, BODY)
    if body is None and len(rest) == 1:  # 1.3: the only attachment is the body
        body = rest.pop()
    return SrmpRequest(
        envelope=envelope,
        soap=parts[0].content,
        body=None if body is None else body.content,
        extension=None if extension is None else extension.content,
        others=tuple(rest),
        body_offset=0 if body is None else body.offset,
    )


def _take(parts: list[Part], kind: str) -> Part | None:
    found = [part for part in parts if part.kind == kind]
    if len(found) > 1:
        raise WireError("Content-Id", kind, "SR-5: the same attachment twice")
    if found:
        parts.remove(found[0])
    return found[0] if found else None


def read_whole_request(data: bytes) -> tuple[RequestHead, SrmpRequest]:
    """With its head: a PGM message, or one that was kept. The head must tell the true length."""
    head, start = read_head(data)
    length = content_length(head.headers)
    if length != len(data) - start:
        raise WireError("Content-Length", length, f"srmp.md 1.6: {len(data) - start} bytes follow")
    return head, read_request(head.headers.get("content-type", ""), data[start:])


def pack_body(
    envelope: Envelope,
    *,
    body: bytes | None = None,
    extension: bytes | None = None,
    number: int = 1,
    stream_tag: str = STREAM_TAG,
) -> tuple[str, bytes]:
    """Content-Type and body of a POST. Without attachments, as in a receipt, a bare envelope."""
    soap = write_envelope(envelope, stream_tag)
    if body is None and extension is None:
        return XML, soap
    boundary = f"{_BOUNDARY}{number}"
    owner = envelope.identifier[0]
    found = ((f"{BODY}@{owner}", body), (f"{EXTENSION}@{owner}", extension))
    attachments = [(name, content) for name, content in found if content is not None]
    content_type = ContentType(media=MULTIPART, boundary=boundary)
    return str(content_type), pack_parts(soap, attachments, boundary)


def pack_request(target: str, host: str, content_type: str, data: bytes) -> bytes:
    """The whole POST as Windows writes it."""
    return pack_head(target, request_headers(host, content_type, len(data))) + data
