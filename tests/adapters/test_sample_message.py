"""A message in YAML: every field, its default, and what no sender could send."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.sample_message import SOURCE
from bridge.adapters.samples import sample_message
from bridge.adapters.yaml_tree import parse_yaml
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import EXPRESS, FOUR_DAYS, INFINITE, RECOVERABLE, Message, Transaction

SENT = 1_769_860_800


def made(text: str, folder: Path = Path()) -> Message:
    return sample_message(parse_yaml(text.encode(), "s.yaml"), folder)


def of(**fields: Any) -> Message:
    lines = [r"queue: private$\q", *(f"{name}: {value}" for name, value in fields.items())]
    return made("\n".join(lines))


def test_only_the_queue_is_needed() -> None:
    message = made(r"queue: private$\orders")
    assert message.destination == r"DIRECT=OS:BRIDGE01\private$\orders"
    assert (str(message.source), message.ordinal) == (SOURCE, 1)
    assert (message.body, message.label, message.transaction) == (b"", "", None)
    assert (message.delivery, message.priority) == (EXPRESS, 3)
    assert message.time_to_reach_queue == FOUR_DAYS
    assert abs(message.sent_time - time.time()) < 60  # just now, so it is not late
    assert message.arrived_ms // 1000 - message.sent_time in (0, 1)
    assert message.wire  # as if it had come in a packet


def test_every_field() -> None:
    message = made(
        r"""
        destination: DIRECT=TCP:10.1.0.1\private$\q
        message_id: aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\7
        label: the label
        body: "\u00e4"
        body_type: 8
        extension: ext
        class: 0x100
        priority: 5
        delivery: recoverable
        sent_time: 2026-01-31T12:00:00Z
        arrived_time: 2026-01-31T13:00:05.250+01:00
        time_to_reach_queue: 60
        time_to_be_received: 90
        correlation_id: aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\1
        response_queue: DIRECT=OS:a\b
        admin_queue: PRIVATE=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\4
        app_specific: 99
        sender: S-1-5-7
        peer: 10.1.0.7
        """
    )
    source = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
    assert message == Message(
        source=source,
        ordinal=7,
        destination=r"DIRECT=TCP:10.1.0.1\private$\q",
        label="the label",
        body=b"\xe4\x00",
        body_type=8,
        extension=b"ext",
        message_class=0x100,
        priority=5,
        delivery=RECOVERABLE,
        sent_time=SENT,
        arrived_ms=(SENT + 5) * 1000 + 250,
        time_to_reach_queue=60,
        time_to_be_received=90,
        correlation_id=source + b"\1\0\0\0",
        response_queue=r"DIRECT=OS:a\b",
        admin_queue=r"PRIVATE=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\00000004",
        app_specific=99,
        sender="S-1-5-7",
        peer="10.1.0.7",
        wire=message.wire,
    )


def test_transactional_messages() -> None:
    message = of(transactional="true", sent_time=f'"{SENT}"')
    one = Transaction(sequence_id=SENT << 32 | 1, number=1, index=1, first=True, last=True)
    assert message.transaction == one
    assert (message.delivery, message.priority) == (RECOVERABLE, 0)
    later = of(tx_sequence_id=2**64 - 1, tx_sequence_number=9).transaction
    assert later is not None
    assert (later.sequence_id, later.number, later.previous) == (2**64 - 1, 9, 8)


def test_bodies(tmp_path: Path) -> None:
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    assert made("{queue: q, body_file: b.bin}", tmp_path).body == b"\0\1"
    assert made("{queue: q, extension_file: b.bin}", tmp_path).extension == b"\0\1"
    assert of(body_base64="AAE=").body == b"\0\1"
    assert of(extension_base64="AAE=").extension == b"\0\1"
    assert of(body="ab", body_size=5).body == b"ab..."
    assert of(body="\u00e4").body == b"\xc3\xa4"
    assert of(body="ab", body_type=31).body == b"a\0b\0"


@pytest.mark.parametrize(
    "text", ["0102030405060708090a0b0c0d0e0f1011121314", base64.b64encode(bytes(range(1, 21)))]
)
def test_correlation_ids(text: str | bytes) -> None:
    text = text if isinstance(text, str) else text.decode()
    assert of(correlation_id=f"'{text}'").correlation_id == bytes(range(1, 21))


def test_the_longest_times() -> None:
    message = of(time_to_reach_queue=INFINITE, time_to_be_received=0)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (INFINITE, 0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("label: x", "s.yaml:1:1: give either queue or destination; add a line"),
        ("{queue: q, destination: DIRECT=OS:a\\b}", "s.yaml:1:25: give either queue or"),
        ("{queue: q, labl: x}", "s.yaml:1:12: unknown key 'labl'; did you mean 'label'?"),
        ("{queue: q, body: 5}", "s.yaml:1:18: 'body' must be text or null, not 5; put it in"),
        ("{queue: q, body: a, body_base64: YQ==}", "s.yaml:1:34: body and body_base64 are both"),
        ("{queue: q, body_base64: '!'}", "s.yaml:1:25: 'body_base64' must be base64 or null, not"),
        ("{queue: q, body_file: gone}", "s.yaml:1:1: 'gone' cannot be read (No such file"),
        ("{queue: q, body_file: .}", "s.yaml:1:1: '.' cannot be read (Is a directory)"),
        ("{queue: q, priority: 8}", "s.yaml:1:22: 'priority' must be a number from 0 to 7 or null"),
        ("{queue: q, delivery: fast}", "s.yaml:1:22: 'delivery' must be one of express"),
        ("{queue: q, sent_time: noon}", "s.yaml:1:23: 'sent_time' must be a time like 2026"),
        ("{queue: q, sent_time: 2300-01-01}", "s.yaml:1:23: 'sent_time' must be a time like"),
        ("{queue: q, source: me}", "s.yaml:1:20: 'source' must be a GUID or null, not the"),
        ("{queue: q, message_id: me}", "s.yaml:1:24: 'message_id' must be an id like guid\\1"),
        ("{queue: q, correlation_id: aa}", "s.yaml:1:28: 'correlation_id' must be guid\\1, or 20"),
        ("{queue: q, admin_queue: q}", "s.yaml:1:25: admin_queue is no format name"),
        ("{queue: 'a;b;c'}", "s.yaml:1:1: destination is no format name"),
        ("{destination: nowhere}", "s.yaml:1:15: destination is no format name"),
        ("{destination: 'MULTICAST=239.0.0.1:80'}", "s.yaml:1:1: no packet can carry it"),
        ("{queue: q, transactional: false, tx_sequence_number: 2}", "s.yaml:1:27: a message with"),
        ("{queue: q, tx_sequence_number: 0}", "s.yaml:1:32: 'tx_sequence_number' must be a number"),
        ("{queue: q, tx_sequence_id: 18446744073709551616}", "s.yaml:1:28: tx_sequence_id has"),
        (f"{{queue: q, label: {'x' * 300}}}", "s.yaml:1:1: no packet can carry it"),
        ("{queue: q, body_size: 4194304}", "s.yaml:1:1: no packet can carry it"),
        (
            f"{{queue: q, message_id: '{SOURCE}\\1', source: {SOURCE.replace('1', 'a')}}}",
            "s.yaml:1:74: source is not that of message_id",
        ),
        ("[1]", "s.yaml:1:1: the file must have keys, not a list"),
    ],
)
def test_faults_name_their_place(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(text)
    assert str(caught.value).startswith(line)
