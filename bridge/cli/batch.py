"""What `msmq-bridge send` was asked for, as messages; a wrong option is a ConfigError."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from bridge.config import Address
from bridge.model.errors import ConfigError, IllegalName
from bridge.model.guid import Guid
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    NACK_ARRIVAL,
    NACK_RECEIVE,
    NO_CORRELATION,
    Message,
    Transaction,
)
from bridge.model.names import Direct, parse_format_name

MAX_BODY: Final = 4 * 1024 * 1024 - 4096  # a packet holds 4 MiB with its headers
MAX_LABEL: Final = 249  # UTF-16 units. MS-MQMQ 2.2.19.3
_INDEX_BITS: Final = 0xFFFFF  # TxIndex. MS-MQMQ 2.2.20.5


class Ack(StrEnum):
    """What the sender wants to hear at its administration queue. MS-MQMQ 2.2.19.3"""

    NONE = "none"
    REACH = "reach"
    RECEIVE = "receive"
    FULL_REACH = "full-reach"
    FULL_RECEIVE = "full-receive"
    NACK_RECEIVE = "nack-receive"


ACK_FLAGS: Final = {
    Ack.NONE: 0,
    Ack.REACH: ACK_ARRIVAL,
    Ack.RECEIVE: ACK_RECEIVE,
    Ack.FULL_REACH: ACK_ARRIVAL | NACK_ARRIVAL,
    Ack.FULL_RECEIVE: ACK_RECEIVE | NACK_ARRIVAL | NACK_RECEIVE,
    Ack.NACK_RECEIVE: NACK_ARRIVAL | NACK_RECEIVE,
}


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """`count` messages like `template`; {n} in label and body is the message's number."""

    template: Message
    count: int
    label: str
    body_of: Callable[[int], bytes]
    per_transaction: int = 0  # 0: they are not transactional
    final_ack: bool = False

    def __post_init__(self) -> None:
        if self.final_ack and not self.per_transaction:
            what = "only a transactional message has a final acknowledgment"
            raise ConfigError(what, where="--wait-final", mend="add --transactional")
        longest = self.label.replace("{n}", str(self.count)).encode("utf-16-le", "surrogatepass")
        if len(longest) > 2 * MAX_LABEL:
            raise ConfigError(
                f"has {len(longest) // 2} characters",
                where="--label",
                mend=f"an MSMQ label has at most {MAX_LABEL}",
            )

    @property
    def awaits_final(self) -> bool:
        """A dead letter asks for a final acknowledgment, too. QB-91, SR-53"""
        return bool(self.per_transaction and (self.final_ack or self.template.journal))

    @property
    def delivery(self) -> str:
        if self.per_transaction:
            return "transactional"
        return "recoverable" if self.template.delivery else "express"

    def messages(self) -> Iterator[Message]:
        for n in range(1, self.count + 1):
            yield msgspec.structs.replace(
                self.template,
                ordinal=n,
                label=self.label.replace("{n}", str(n)),
                body=self.body_of(n),
                transaction=self._transaction(n) if self.per_transaction else None,
            )

    def _transaction(self, n: int) -> Transaction:
        size = self.per_transaction
        return Transaction(
            sequence_id=0,  # Outgoing gives it its place
            number=0,
            first=(n - 1) % size == 0,
            last=n % size == 0 or n == self.count,
            index=(n - 1) // size + 1 & _INDEX_BITS,
            final_ack=self.final_ack,
        )


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a batch; None is for what nobody asked for."""

    done: int
    final_acks: list[int] | None = None  # classes
    receipts: list[int] | None = None
    refused: list[str] = []  # why, for each


def destination(queue: str, to: str, address: Address) -> str:
    """The format name of the queue; only a direct one can be reached without a directory."""
    if bool(queue) == bool(to):
        raise ConfigError("give either --queue or --to", mend=r"try --queue 'private$\demo'")
    if not to:
        kind = "TCP" if address.host.replace(".", "").isdigit() or ":" in address.host else "OS"
        to = f"DIRECT={kind}:{address.host}\\{queue}"
    name = format_name("--to" if queue == "" else "--queue", to)
    if not isinstance(parse_format_name(name), Direct):
        raise ConfigError(
            f"{to} is not a direct name", where="--to", mend=r"write DIRECT=OS:host\q"
        )
    return name


def format_name(option: str, text: str) -> str:
    """As it was written: byte for byte it is half of the stream's key."""
    if not text:
        return ""
    try:
        parse_format_name(text)
    except IllegalName as error:
        raise ConfigError(
            f"{text!r} is no format name: {error.why}", where=option, mend=r"write DIRECT=OS:host\q"
        ) from error
    return text


def address_of(text: str) -> Address:
    try:
        address = Address.parse(text)
        address.host.encode("idna")  # as the resolver will
        return address
    except ValueError as error:
        raise ConfigError(
            f"{text!r}: {error}", where="--host", mend="write HOST or HOST:PORT"
        ) from error


def source_of(text: str) -> Guid:
    """A new one without a text."""
    try:
        return Guid.parse(text) if text else Guid.random()
    except ValueError as error:
        raise ConfigError(str(error), where="--source", mend="write it without braces") from error


def correlation_of(text: str) -> bytes:
    try:
        raw = bytes.fromhex(text) if text else NO_CORRELATION
    except ValueError as error:
        raise ConfigError(f"{text!r} is not hex", where="--correlation") from error
    if len(raw) != len(NO_CORRELATION):
        raise ConfigError(f"has {len(raw)} bytes", where="--correlation", mend="give 20 in hex")
    return raw


def bodies(body: str, file: Path | None, size: int) -> Callable[[int], bytes]:
    """The body of the n-th message; a file goes out as it is."""
    if file is not None:
        data = _read(file).ljust(size, b".")
        return lambda _: data
    text = (body or "message {n}").encode("utf-8", "surrogateescape")  # whatever the shell gave
    return lambda n: text.replace(b"{n}", b"%d" % n).ljust(size, b".")


def _read(file: Path) -> bytes:
    from_stdin = str(file) == "-"
    if from_stdin and sys.stdin is None:
        raise ConfigError("standard input is closed", where="--file")
    try:
        data = sys.stdin.buffer.read() if from_stdin else file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", where="--file") from error
    if len(data) > MAX_BODY:
        raise ConfigError(
            f"{file} has {len(data)} bytes",
            where="--file",
            mend=f"an MSMQ body has at most {MAX_BODY}",
        )
    return data
