"""Samples for `map test`: a YAML file, a captured packet as hex, a pcap, or `msmq.wire`.

What a file is, its content says; only YAML is known by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from bridge.adapters.capture_frames import is_capture
from bridge.adapters.captures import messages_in
from bridge.adapters.hex_text import bytes_of
from bridge.adapters.sample_message import SampleMessage
from bridge.adapters.yaml_structs import read_struct
from bridge.adapters.yaml_tree import Node, read_yaml
from bridge.model.errors import ConfigError, WireError
from bridge.model.message import Message
from bridge.wire.binary.base import BaseHeader
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import PacketReader, UserMessage, restore

MAX_SAMPLE: Final = 64 << 20
_YAML: Final = (".yaml", ".yml")
_SIGNATURE: Final = b"LIOR"


class Sample(msgspec.Struct, frozen=True):
    """A message and where it was found."""

    where: str
    message: Message


def read_samples(path: Path, body: Path | None = None) -> Iterator[Sample]:
    """The messages of one file (`-` is standard input); ConfigError if it is broken.

    `body`: the file with the body, when the sample is the header `msmq.wire` of a record.
    """
    where = str(path)
    if path.suffix in _YAML:
        if body is not None:
            what = "--body goes with msmq.wire only"
            raise ConfigError(what, where=where, mend="write body_file into the sample")
        yield Sample(where, sample_message(read_yaml(path), path.parent))
        return
    data = _read(path)
    if is_capture(data):
        for number, message in enumerate(messages_in(data, where), 1):
            yield Sample(f"{where}#{number}", message)
        return
    packets = data if _is_packet(data) else bytes_of(_text(data, where), where)
    content = None if body is None else _read(body)
    found = list(_packets(packets, content, where))
    for number, message in enumerate(found, 1):
        yield Sample(where if len(found) == 1 else f"{where}#{number}", message)


def first_samples(paths: list[Path], body: Path | None, limit: int) -> tuple[list[Sample], bool]:
    """At most `limit` of all files, and whether there are more."""
    found = list(islice((s for path in paths for s in read_samples(path, body)), limit + 1))
    return found[:limit], len(found) > limit


def sample_message(node: Node, folder: Path, name: str = "") -> Message:
    """From YAML; paths in it count from `folder`."""
    written = read_struct(node, SampleMessage, base=folder, name=name)
    try:
        return written.message()
    except ConfigError as error:
        raise ConfigError(error.what, where=str(node.mark), mend=error.mend) from error


def _packets(data: bytes, body: bytes | None, where: str) -> Iterator[Message]:
    """What lies before the first packet belongs to the frame it was captured in."""
    start = data.find(_SIGNATURE, 4) - 4
    if start < 0:
        what = f"has no MSMQ packet in its {len(data)} bytes"
        raise ConfigError(what, where=where, mend="copy the whole TCP payload, from 10 .. 4c494f52")
    data = data[start:]
    try:
        if body is not None:
            data = restore(data, body)
        size, reader = BaseHeader.unpack(data).packet_size, PacketReader()
        packets = list(reader.feed(data))
    except WireError as error:
        mend = "is --body the value of the same record?" if body is not None else "copy it whole"
        raise ConfigError(f"is no MSMQ packet: {error.detail}", where=where, mend=mend) from error
    if not packets:
        what = f"has {len(data)} bytes of a packet of {size}"
        mend = "copy it whole; a msmq.wire header needs the record's value in --body FILE"
        raise ConfigError(what, where=where, mend=mend)
    found = [packet for packet in packets if isinstance(packet, UserMessage)]
    if not found:
        kind = type(packets[0]).__name__
        raise ConfigError(f"is no user message but {kind}", where=where, mend="take another packet")
    for packet in found:
        # It does not say when it arrived: as soon as it was sent.
        yield message_from_packet(packet, "", packet.user.sent_time * 1000)


def _is_packet(data: bytes) -> bool:
    return data[4:8] == _SIGNATURE


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mend = "use a .yaml sample, a packet in hex or base64, or a pcap or pcapng capture"
        raise ConfigError("is no sample that can be read", where=where, mend=mend) from error


def _read(path: Path) -> bytes:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_SAMPLE + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_SAMPLE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"cannot be read ({reason})"
        raise ConfigError(what, where=str(path), mend="check the path") from error
    if len(data) > MAX_SAMPLE:
        what = f"is larger than {MAX_SAMPLE >> 20} MiB"
        raise ConfigError(what, where=str(path), mend="export only TCP port 1801")
    return data
