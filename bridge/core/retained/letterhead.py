"""What an ack repeats of its message, so that the body can stay in Kafka. SR-48, QB-92

Only a message that asked to hear of its end has one. Its form is that of a record's headers: what
`mapping` reads back from a record, it reads back from here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bridge.core.mapping import headers_of, message_from_record
from bridge.core.ports import Record
from bridge.core.posted import Posted
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import NO_CORRELATION, Message, Srmp


class Letterhead(msgspec.Struct, frozen=True):
    """A message without its body, who handed it to us, and the stream that it is in (SRMP)."""

    message: Message
    via: Guid = NULL_GUID
    stream: Posted | None = None

    def encode(self) -> bytes:
        bare = msgspec.structs.replace(
            self.message,
            body=b"",
            wire=b"",
            extension=b"",
            certificate=b"",
            signature=b"",
            correlation_id=NO_CORRELATION,
            soap="",
            soap_compound=b"",
        )
        stream = self.stream and msgspec.structs.replace(self.stream, past=())
        srmp = self.message.srmp and msgspec.structs.replace(self.message.srmp, peer_names=())
        return _encode(_Wire(headers_of(bare), bytes(self.via), srmp, stream))


class _Wire(msgspec.Struct, frozen=True, array_like=True):
    headers: dict[str, bytes]
    via: bytes
    srmp: Srmp | None
    stream: Posted | None


def read_letterhead(data: bytes, now_ms: int) -> Letterhead:
    """As of now: that is when the ack is made."""
    wire = _decode(data)
    message = message_from_record(Record("", b"", headers=wire.headers, timestamp_ms=now_ms))
    message = msgspec.structs.replace(message, srmp=wire.srmp, arrived_ms=now_ms)
    return Letterhead(message, Guid(wire.via), wire.stream)


def _guid(kind: type, value: Any) -> Any:
    return kind(value)


_encode: Final = msgspec.msgpack.Encoder(enc_hook=bytes).encode
_decode: Final = msgspec.msgpack.Decoder(_Wire, dec_hook=_guid).decode
