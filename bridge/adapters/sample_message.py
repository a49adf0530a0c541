"""A message as a person writes it in YAML, with the names of design 3.6; only `queue` is needed.

It goes through a packet, as a sender's would, so that its record has the same headers.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from bridge.model.errors import ConfigError, IllegalName, WireError
from bridge.model.guid import Guid
from bridge.model.message import (
    EXPRESS,
    FOUR_DAYS,
    INFINITE,
    NO_CORRELATION,
    RECOVERABLE,
    Message,
    Transaction,
)
from bridge.model.names import parse_format_name
from bridge.wire.binary.base import MAX_PACKET
from bridge.wire.binary.convert import message_from_packet, packet_from_message
from bridge.wire.binary.packet import UserMessage

SOURCE: Final = "11111111-2222-3333-4444-555555555555"  # who sends when nobody is named
HOST: Final = "BRIDGE01"
_WIDE: Final = frozenset({8, 31})  # VT_BSTR, VT_LPWSTR: text is UTF-16
_ID: Final = re.compile(r"([0-9A-Fa-f-]{36})\\([0-9]{1,10})")

U32 = Annotated[int, Meta(ge=0, le=0xFFFFFFFF, description="a number from 0 to 4294967295")]
U16 = Annotated[int, Meta(ge=0, le=0xFFFF, description="a number from 0 to 65535")]
U64 = Annotated[int, Meta(ge=0, description="a number of 64 bits")]
Priority = Annotated[int, Meta(ge=0, le=7, description="a number from 0 to 7")]
Number = Annotated[int, Meta(ge=1, le=0xFFFFFFFF, description="a number from 1")]
Size = Annotated[int, Meta(ge=0, le=MAX_PACKET, description=f"a size up to {MAX_PACKET}")]


class Moment(int):
    """Unix milliseconds, written as ISO 8601 (UTC when it does not say) or as Unix seconds."""

    @classmethod
    def parse(cls, text: str) -> Moment:
        if text.isdecimal() and len(text) <= 12:
            made = cls(int(text) * 1000)
        else:
            moment = datetime.fromisoformat(text)
            made = cls(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
        if not 0 <= made // 1000 <= 0xFFFFFFFF:  # what a packet can say
            raise ValueError(text)
        return made


class MessageId(str):
    """`guid\\number`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> MessageId:
        found = _ID.fullmatch(text)
        if found is None or int(found[2]) > 0xFFFFFFFF:
            raise ValueError(text)
        Guid.parse(found[1])
        return cls(text)

    @property
    def source(self) -> Guid:
        return Guid.parse(self.partition("\\")[0])

    @property
    def ordinal(self) -> int:
        return int(self.partition("\\")[2])


class Correlation(bytes):
    """20 bytes: an id (`guid\\number`), 40 hex digits, or base64 as in exports."""

    @classmethod
    def parse(cls, text: str) -> Correlation:
        if _ID.fullmatch(text):
            made = MessageId.parse(text)
            return cls(made.source + made.ordinal.to_bytes(4, "little"))
        data = bytes.fromhex(text) if len(text) == 40 else Base64.parse(text)
        if len(data) != len(NO_CORRELATION):
            raise ValueError(text)
        return cls(data)


class Base64(bytes):
    @classmethod
    def parse(cls, text: str) -> Base64:
        try:
            return cls(base64.b64decode("".join(text.split()), validate=True))
        except binascii.Error as error:
            raise ValueError(text) from error


When = Annotated[Moment, Meta(description="a time like 2026-01-31T12:00:00Z")]
Encoded = Annotated[Base64, Meta(description="base64")]


class SampleMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: str = ""
    """Path name on this queue manager: private$\\orders."""
    destination: str = ""
    """Instead of `queue`: the format name as the sender wrote it."""
    message_id: Annotated[MessageId, Meta(description="an id like guid\\1")] | None = None
    source: Annotated[Guid, Meta(description="a GUID")] | None = None
    label: str = ""
    body: str | None = None
    """Text; UTF-16 if the body type is a wide string (8, 31), else UTF-8."""
    body_base64: Encoded | None = None
    body_file: Path | None = None
    body_size: Size = 0
    """The body is filled up to this many bytes."""
    body_type: U32 = 0
    extension: str | None = None
    """Text, as UTF-8."""
    extension_base64: Encoded | None = None
    extension_file: Path | None = None
    message_class: U16 = field(default=0, name="class")
    priority: Priority | None = None
    delivery: Literal["express", "recoverable", 0, 1] | None = None
    transactional: bool | None = None
    tx_sequence_id: U64 | None = None
    tx_sequence_number: Number | None = None
    sent_time: When | None = None
    arrived_time: When | None = None
    time_to_reach_queue: U32 = FOUR_DAYS
    time_to_be_received: U32 = INFINITE
    correlation_id: (
        Annotated[Correlation, Meta(description="guid\\1, or 20 bytes in hex or base64")] | None
    ) = None
    response_queue: str = ""
    admin_queue: str = ""
    app_specific: U32 = 0
    sender: str = ""
    """The SID that it claims; it is not in the packet."""
    peer: str = ""
    """The address that it comes from."""

    def __post_init__(self) -> None:
        if bool(self.queue) == bool(self.destination):
            what = "give either queue or destination"
            raise ConfigError(what, where="destination", mend=r"add a line 'queue: private$\name'")
        for part in ("body", "extension"):
            names = [part, f"{part}_base64", f"{part}_file"]
            given = [name for name in names if getattr(self, name) is not None]
            if len(given) > 1:
                what = f"{given[0]} and {given[1]} are both there"
                raise ConfigError(what, where=given[1], mend="keep one of them")
        if self.transactional is False and self._has_sequence:
            what = "a message with a sequence is transactional"
            raise ConfigError(what, where="transactional", mend="leave it out, or write true")
        if (self.tx_sequence_id or 0) >> 64:
            what = "tx_sequence_id has more than 64 bits"
            raise ConfigError(what, where="tx_sequence_id", mend="correct it, or leave it out")
        if self.message_id and self.source not in (None, self.message_id.source):
            what = "source is not that of message_id"
            raise ConfigError(what, where="source", mend="leave it out")
        for name in ("destination", "response_queue", "admin_queue"):
            _check_name(name, self.destination_name if name == "destination" else self._get(name))

    def _get(self, name: str) -> str:
        return str(getattr(self, name))

    @property
    def destination_name(self) -> str:
        return self.destination or f"DIRECT=OS:{HOST}\\{self.queue}"

    @property
    def _has_sequence(self) -> bool:
        return self.tx_sequence_id is not None or self.tx_sequence_number is not None

    def message(self) -> Message:
        """As it would arrive. Raises ConfigError when no sender could send it."""
        arrived = int(self.arrived_time or self.sent_time or time.time() * 1000)
        sent = (self.sent_time or arrived) // 1000
        transaction = self._transaction(sent)
        id_ = self.message_id or MessageId(f"{self.source or SOURCE}\\1")
        try:
            packet = packet_from_message(
                Message(
                    source=id_.source,
                    ordinal=id_.ordinal,
                    destination=self.destination_name,
                    transaction=transaction,
                    sent_time=sent,
                    body=self._body(),
                    label=self.label,
                    correlation_id=bytes(self.correlation_id or NO_CORRELATION),
                    extension=self._extension(),
                    delivery=self._delivery(transaction),
                    priority=self._priority(transaction),
                    time_to_reach_queue=self.time_to_reach_queue,
                    time_to_be_received=self.time_to_be_received,
                    body_type=self.body_type,
                    message_class=self.message_class,
                    app_specific=self.app_specific,
                    admin_queue=self.admin_queue,
                    response_queue=self.response_queue,
                )
            )
            made = message_from_packet(UserMessage.unpack(packet.pack()), self.peer, arrived)
        except WireError as error:
            what = f"no packet can carry it: {error.detail}"
            raise ConfigError(what, mend="make it as a sender could") from error
        return replace(made, sender=self.sender) if self.sender else made

    def _transaction(self, sent: int) -> Transaction | None:
        if not self.transactional and not self._has_sequence:
            return None
        number = self.tx_sequence_number or 1
        sequence = self.tx_sequence_id
        return Transaction(
            sequence_id=sent << 32 | 1 if sequence is None else sequence,
            number=number,
            previous=number - 1,
            index=1,
            first=True,
            last=True,
        )

    def _delivery(self, transaction: Transaction | None) -> int:
        if self.delivery is None:
            return EXPRESS if transaction is None else RECOVERABLE
        return RECOVERABLE if self.delivery in ("recoverable", 1) else EXPRESS

    def _priority(self, transaction: Transaction | None) -> int:
        """Transactional messages have none: it is 0 on the wire."""
        if self.priority is None:
            return 3 if transaction is None else 0
        return self.priority

    def _body(self) -> bytes:
        codec = "utf-16-le" if self.body_type in _WIDE else "utf-8"
        text = (self.body or "").encode(codec, "surrogatepass")
        return _content(self.body_base64, self.body_file, text).ljust(self.body_size, b".")

    def _extension(self) -> bytes:
        text = (self.extension or "").encode("utf-8", "surrogatepass")
        return _content(self.extension_base64, self.extension_file, text)


def _content(data: bytes | None, file: Path | None, text: bytes) -> bytes:
    if file is None:
        return text if data is None else bytes(data)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_PACKET + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"{str(file)!r} cannot be read ({reason})"
        raise ConfigError(what, mend="check the path") from error


def _check_name(option: str, text: str) -> None:
    if not text:
        return
    try:
        parse_format_name(text)
    except IllegalName as error:
        what, mend = f"{option} is no format name: {error.why}", r"write DIRECT=OS:host\queue"
        raise ConfigError(what, where=option, mend=mend) from error
