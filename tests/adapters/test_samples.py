"""Samples of every kind become the same message; broken ones give one line."""

import base64
import io
import sys
from pathlib import Path

import pytest

from bridge.adapters.samples import Sample, first_samples, read_samples
from bridge.model.errors import ConfigError
from bridge.model.message import Message
from tests.adapters.sample_packets import SENDER, SENT, ack, handshake, order
from tests.adapters.test_hex_text import wireshark
from tests.outside.rawmsmq import Message as RawMessage
from tests.outside.rawmsmq import SessionHeader, build, direct
from tests.support.captures import conversation, ethernet, pcap, segment


def read(path: Path, body: Path | None = None) -> list[Sample]:
    return list(read_samples(path, body))


def message_of(folder: Path, data: bytes | str) -> Message:
    path = folder / "sample"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    [sample] = read(path)
    assert sample.where == str(path)
    return sample.message


def test_a_packet_in_every_dress(tmp_path: Path) -> None:
    packet = order(7)
    forms: list[bytes | str] = [
        packet,
        packet.hex(),
        wireshark(packet),
        wireshark(ethernet(segment(packet))),  # the whole frame
        base64.encodebytes(packet).decode(),
        "\ufeff" + packet.hex(" "),
        (handshake() + packet).hex(),  # what is no message is not shown
    ]
    made = [message_of(tmp_path, form) for form in forms]
    assert all(message == made[0] for message in made)
    assert (made[0].ordinal, made[0].label, made[0].arrived_ms) == (7, "order 7", SENT * 1000)


def test_a_packet_with_a_session_header(tmp_path: Path) -> None:
    raw = RawMessage(source=SENDER, message_id=3, destination=direct("OS:a\\q"), body=b"x")
    for counted in (True, False):  # CONFLICT-1
        packet = build(raw, SessionHeader(ack=1), counted=counted)
        assert message_of(tmp_path, packet.hex()).ordinal == 3


def test_several_packets_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "two.hex"
    path.write_text((order(1) + order(2)).hex())
    assert [(s.where, s.message.ordinal) for s in read(path)] == [
        (f"{path}#1", 1),
        (f"{path}#2", 2),
    ]


def test_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    path.write_bytes(pcap(conversation(order(1) + order(2), [30])))
    assert [(s.where, s.message.ordinal) for s in read(path)] == [
        (f"{path}#1", 1),
        (f"{path}#2", 2),
    ]


@pytest.mark.parametrize("encode", [bytes.hex, lambda data: base64.b64encode(data).decode()])
def test_the_wire_header_of_a_record(encode: object, tmp_path: Path) -> None:
    assert callable(encode)
    first = message_of(tmp_path, order(9, body=b"the body"))
    wire, body = tmp_path / "wire", tmp_path / "body"
    wire.write_text(encode(first.wire))
    body.write_bytes(b"the body")
    assert [sample.message for sample in read(wire, body)] == [first]
    with pytest.raises(ConfigError, match=r"bytes of a packet of .* needs the record's value in"):
        read(wire)
    body.write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"is no MSMQ packet.*is --body the value of the same"):
        read(wire, body)


def test_yaml(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("queue: private$\\orders\nbody_file: b")
    (tmp_path / "b").write_bytes(b"beside it")
    assert [sample.message.body for sample in read(path)] == [b"beside it"]
    with pytest.raises(ConfigError, match="--body goes with msmq"):
        read(path, path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(order(5).hex().encode())))
    assert [sample.message.ordinal for sample in read(Path("-"))] == [5]


def test_no_more_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "many.pcap"
    path.write_bytes(pcap([segment(b"".join(order(number) for number in range(1, 6)))]))
    found, is_more = first_samples([path, path], None, 3)
    assert ([sample.message.ordinal for sample in found], is_more) == ([1, 2, 3], True)
    found, is_more = first_samples([path], None, 5)
    assert (len(found), is_more) == (5, False)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "is empty; give it a packet in hex"),
        (b"\xff\xfe\x00binary", "is no sample that can be read"),
        (b"hello there", "is no sample that can be read"),
        (bytes(50).hex().encode(), "has no MSMQ packet in its 50 bytes; copy the whole"),
        (order(1)[:100], "has 100 bytes of a packet of "),
        (order(1)[:10], "is no MSMQ packet: BaseHeader=10"),
        (order(1)[:16] + bytes(400), "is no MSMQ packet"),
        (handshake() + ack(), "is no user message but EstablishConnection; take another packet"),
        (pcap([]), "has no MSMQ message in its 0 frames"),
    ],
)
def test_broken_samples(data: bytes, line: str, tmp_path: Path) -> None:
    path = tmp_path / "sample"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {line}")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "gone")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)
    monkeypatch.setattr("bridge.adapters.samples.MAX_SAMPLE", 100)
    (tmp_path / "large").write_bytes(bytes(101))
    with pytest.raises(ConfigError, match="is larger than"):
        read(tmp_path / "large")
