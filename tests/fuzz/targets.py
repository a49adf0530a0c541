"""Every parser of the bridge as a function of bytes; whatever it raises is a bug.

`make test` runs them on the seeds and on what hypothesis invents, `make fuzz` guided by coverage.
Seeds that are not here lie in tests/fuzz/corpus/<target>: what a fuzzer found and is worth keeping.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from bridge.adapters.capture_frames import is_capture
from bridge.adapters.captures import messages_in
from bridge.adapters.hex_text import bytes_of
from bridge.adapters.yaml_structs import read_struct
from bridge.adapters.yaml_tree import parse_yaml
from bridge.config import Config
from bridge.core.body import decode
from bridge.core.json_path import JsonPath, json_path
from bridge.core.mapping import headers_of, message_from_record
from bridge.core.mapping_rules import QueueMapping
from bridge.core.patterns import fill_topic, is_legal_topic
from bridge.core.ports import Record
from bridge.core.values import value_of
from bridge.model.errors import ConfigError, IllegalName, WireError
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.names import parse_format_name, parse_format_names, parse_path_name
from bridge.model.verdict import ACCEPTED
from bridge.protocol.binary.handshake import AcceptorHandshake
from bridge.protocol.binary.session import Session, SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close
from bridge.protocol.events import BytesReceived, Decided, Instant, Tick
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import Packet, PacketReader, UserMessage
from bridge.wire.binary.ping import Ping
from tests.fuzz import remote_read, rpc, srmp
from tests.vectors.binary import PACKETS

CORPUS = Path(__file__).parent / "corpus"
NOW = Instant(1000.0, 1_700_000_000.0)
LOCAL = Guid(bytes(range(16)))
MOST = 0x400010  # bytes that a reader may hold back

Target = Callable[[bytes], None]


def packets(data: bytes) -> None:
    """How the bytes are cut does not matter, and both ways to a message say the same."""
    whole = _read([data])
    step = data[0] % 61 + 1 if data else 1
    head = data[:4096]
    pieces = [head[n : n + step] for n in range(0, len(head), step)] + [data[4096:]]
    assert _read(pieces) == whole
    found: list[Message | None] = [_message(packet) for packet in whole[0]]
    reader, short = PacketReader(), list[Message | None]()
    with suppress(WireError):
        for item in reader.feed_open(data, "peer", 5):
            short += item if isinstance(item, list) else [_message(item)]
    assert short == found


def _message(packet: Packet) -> Message | None:
    return message_from_packet(packet, "peer", 5) if isinstance(packet, UserMessage) else None


def _read(chunks: list[bytes]) -> tuple[list[Packet], str]:
    reader, found = PacketReader(), list[Packet]()
    try:
        for chunk in chunks:
            found += reader.feed(chunk)
            assert len(reader._pending) <= MOST
    except WireError as fault:
        # What came before the fault depends on the cut; a generator gives it one by one.
        return _before_fault(chunks), fault.field
    return found, ""


def _before_fault(chunks: list[bytes]) -> list[Packet]:
    reader, found = PacketReader(), list[Packet]()
    with suppress(WireError):
        for chunk in chunks:
            for packet in reader.feed(chunk):
                found.append(packet)
    return found


def session(data: bytes) -> None:
    """An acceptor that is open, whatever comes: no exception, and acks only what was decided."""
    one = _open_session()
    for chunk in (data[:700], data[700:]):
        for command in one.handle(BytesReceived(chunk), NOW):
            if isinstance(command, Accept):
                one.handle(Decided(command.batch, [ACCEPTED] * len(command.messages)), NOW)
            if isinstance(command, Close):
                assert one.state is SessionState.CLOSED
        one.handle(Tick(), Instant(NOW.mono + 30, NOW.unix + 30))
    assert one.received.acked <= one.received.decided <= one.received.received


def _acceptor() -> Session:
    return Session(
        AcceptorHandshake(LOCAL, 64),
        local=LOCAL,
        peer="peer",
        ordinals=count(1).__next__,
        now=NOW,
        settings=SessionSettings(),
    )


def _open_session() -> Session:
    one = _acceptor()
    base = struct.Struct("<BBHIII")
    hello = base.pack(0x10, 0, 0x0B, 0x524F494C, 572, 0xFFFFFFFF) + struct.pack("<HH", 0, 2)
    hello += bytes(range(16, 32)) + bytes(16) + struct.pack("<IHH", 0, 0x0310, 0) + b"\x5a" * 512
    terms = base.pack(0x10, 0, 0x0B, 0x524F494C, 32, 0xFFFFFFFF) + struct.pack("<HH", 0, 3)
    one.handle(BytesReceived(hello), NOW)
    one.handle(BytesReceived(terms + struct.pack("<IIHH", 500, 20000, 0, 64)), NOW)
    assert one.state is SessionState.OPEN
    return one


def handshake(data: bytes) -> None:
    """The same before the session is open."""
    one = _acceptor()
    for n in range(0, len(data), 300):
        one.handle(BytesReceived(data[n : n + 300]), NOW)


def ping(data: bytes) -> None:
    with suppress(WireError):
        assert Ping.unpack(Ping.unpack(data).pack()) == Ping.unpack(data)


def names(data: bytes) -> None:
    """A name that is legal is legal as we write it, and the same."""
    text = data.decode("utf-16-le", "surrogatepass") if len(data) % 2 == 0 else data.decode("latin")
    for parse in (parse_format_name, parse_path_name):
        with suppress(IllegalName):
            name = parse(text)
            assert parse(str(name)) == name
    with suppress(IllegalName):
        parse_format_names(text)


def body(data: bytes) -> None:
    """What a body says, as every value a mapping can ask for."""
    kind = int.from_bytes(data[:2], "little")
    content = data[2:]
    for body_type in {kind, 0, 8, 30}:
        decode(content, body_type)
        message = Message(LOCAL, 1, "DIRECT=OS:a\\q", body=content, body_type=body_type)
        for wanted in ("text", "json", "envelope"):
            value, why = value_of(message, wanted, "q", headers_of(message))
            assert why == "" or value == content


def json_paths(data: bytes) -> None:
    path, _, value = data.partition(b"\0")
    with suppress(ConfigError, UnicodeDecodeError):
        json_path(value, JsonPath.parse(path.decode()))


def topics(data: bytes) -> None:
    """Whatever a sender writes, it becomes a topic that Kafka takes."""
    text = data.decode("utf-8", "surrogateescape") or "q"  # no queue has an empty name
    for template in ("{queue}", "{label}", "a.{label}.{source}", "x"):
        assert is_legal_topic(fill_topic(template, text, text[::-1], "source"))


def mapping_file(data: bytes) -> None:
    with suppress(ConfigError):
        read_struct(parse_yaml(data, "m.yaml"), QueueMapping, base=Path())


def config_file(data: bytes) -> None:
    with suppress(ConfigError):
        read_struct(parse_yaml(data, "bridge.yaml"), Config, base=Path("/nowhere"))


def capture(data: bytes) -> None:
    with suppress(ConfigError):
        for _ in messages_in(data, "a.pcap") if is_capture(data) else ():
            pass


def hex_text(data: bytes) -> None:
    with suppress(ConfigError):
        bytes_of(data.decode("latin"), "a.hex")


def record(data: bytes) -> None:
    """Headers that another program wrote: a message, or a plain refusal."""
    parts = data.split(b"\0")
    headers = {
        f"msmq.{name.decode('latin')}": value
        for name, value in zip(parts[::2], parts[1::2], strict=False)
    }
    with suppress(KeyError, ValueError):
        message_from_record(Record("t", data, headers=headers))


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        *(packets, session, handshake, ping, names, body, json_paths, topics),
        *(mapping_file, config_file, capture, hex_text, record),
        *srmp.TARGETS,
        *remote_read.TARGETS,
        *rpc.TARGETS,
    )
}


def seeds(name: str) -> Iterator[bytes]:
    """Where a fuzzer starts, and what was found before."""
    yield b""
    yield from _SEEDS.get(name, ())
    folder = CORPUS / name
    if folder.is_dir():
        yield from (file.read_bytes() for file in sorted(folder.iterdir()))


_VECTORS = [vector.data for vector in PACKETS.values()]
_XML = b'<?xml version="1.0"?>\r\n<Order id="1"><Line>a</Line><Line>b</Line></Order>'
_SEEDS: dict[str, list[bytes]] = {
    "packets": [*_VECTORS, b"".join(_VECTORS)],
    "session": _VECTORS,
    "handshake": _VECTORS,
    "names": [
        name.encode("utf-16-le")
        for name in (
            "DIRECT=OS:host\\private$\\q;journal",
            "DIRECT=HTTP://host:80/msmq/private$/q",
            "PRIVATE=3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77\\0000000a",
            "MULTICAST=234.1.1.1:8001",
            "MACHINE=3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77;DEADXACT",
            "host\\private$\\q",
        )
    ],
    "body": [
        b"\0\0" + _XML,
        b"\x08\0" + "text".encode("utf-16-le"),
        b"\x03\0\x05\0\0\0",
        b'\0\0{"a":[1]}',
    ],
    "json_paths": [b"$.a['b'][0]\0" + b'{"a":{"b":[1]}}'],
    "mapping_file": [
        b"queue: private$\\orders\ntopic: '{label}'\nheaders: {add: {a: b}}\nkey: json:$.a\n"
    ],
    "config_file": [
        b"listen: {binary: 1801}\nkafka: {bootstrap.servers: 'a:1'}\npeers: {a: 'b:1'}\n"
    ],
    "hex_text": [b"0000  10 00 0b 00 4c 49 4f 52\n0008  00 00\n", b"0x10, 0x20", b"10200b"],
    "record": [
        b"v\x001\0id\0a\\1\0source\x0011111111-2222-3333-4444-555555555555"
        b"\0dest\0DIRECT=OS:a\\q\0transport\0binary"
    ],
    **srmp.SEEDS,
    **remote_read.SEEDS,
    **rpc.SEEDS,
}
