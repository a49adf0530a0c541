"""Options of `send` become messages; what a running appliance makes of them is in test_send."""

from pathlib import Path

import pytest
from msgspec import structs

from bridge.cli.batch import (
    ACK_FLAGS,
    Ack,
    Batch,
    address_of,
    bodies,
    correlation_of,
    destination,
    format_name,
    source_of,
)
from bridge.config import Address
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import EXPRESS, JOURNAL_NEGATIVE, RECOVERABLE, Message

SOURCE = Guid.parse("11111111-2222-3333-4444-555555555555")
HERE = Address("127.0.0.1", 1801)


def batch(count: int = 1, *, label: str = "", delivery: int = EXPRESS, **options: int) -> Batch:
    template = Message(source=SOURCE, ordinal=0, destination="DIRECT=OS:h\\q", delivery=delivery)
    body_of = bodies("", None, 0)
    return Batch(template=template, count=count, label=label, body_of=body_of, **options)  # type: ignore[arg-type]


def test_numbered() -> None:
    made = list(batch(3, label="no. {n}").messages())
    assert [m.ordinal for m in made] == [1, 2, 3]
    assert [m.label for m in made] == ["no. 1", "no. 2", "no. 3"]
    assert [m.body for m in made] == [b"message 1", b"message 2", b"message 3"]
    assert all(m.transaction is None for m in made)
    assert all(m.destination == "DIRECT=OS:h\\q" for m in made)


def test_transactions() -> None:  # MS-MQMQ 2.2.20.5
    found = [m.transaction for m in batch(5, per_transaction=2, final_ack=1).messages()]
    assert [(t.index, t.first, t.last) for t in found if t] == [
        (1, True, False),
        (1, False, True),
        (2, True, False),
        (2, False, True),
        (3, True, True),
    ]
    assert all(t and t.final_ack for t in found)


def test_who_waits_for_final_acknowledgments() -> None:  # QB-91, SR-53
    assert not batch(per_transaction=1).awaits_final
    assert batch(per_transaction=1, final_ack=1).awaits_final
    dead_letter = structs.replace(batch().template, journal=JOURNAL_NEGATIVE)
    assert structs.replace(batch(per_transaction=1), template=dead_letter).awaits_final
    assert not structs.replace(batch(), template=dead_letter).awaits_final


def test_the_transaction_index_has_20_bits() -> None:
    assert batch()._transaction is not None
    whole = batch(1 << 21, per_transaction=1)
    assert whole._transaction((1 << 20) - 1).index == 0xFFFFF
    assert whole._transaction(1 << 20).index == 0


@pytest.mark.parametrize(
    ("delivery", "per_transaction", "word"),
    [(EXPRESS, 0, "express"), (RECOVERABLE, 0, "recoverable"), (RECOVERABLE, 1, "transactional")],
)
def test_delivery(delivery: int, per_transaction: int, word: str) -> None:
    assert batch(delivery=delivery, per_transaction=per_transaction).delivery == word


def test_only_transactional_messages_have_a_final_ack() -> None:  # QB-91
    with pytest.raises(ConfigError, match=r"--wait-final: .*; add --transactional"):
        batch(final_ack=1)


def test_acks() -> None:  # MS-MQMQ 2.2.19.3: MQMSG_ACKNOWLEDGMENT_*
    assert [ACK_FLAGS[ack] for ack in Ack] == [0, 1, 2, 5, 0xE, 0xC]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("10.0.0.7", "DIRECT=TCP:10.0.0.7\\private$\\q"),
        ("host1", "DIRECT=OS:host1\\private$\\q"),
    ],
)
def test_destination(host: str, name: str) -> None:
    assert destination("private$\\q", "", Address(host)) == name
    assert destination("", name, HERE) == name


def test_a_name_stays_as_it_was_written() -> None:  # half of a stream's key
    assert format_name("--to", "direct=os:Host1\\Private$\\Q") == "direct=os:Host1\\Private$\\Q"
    assert format_name("--admin-queue", "") == ""


@pytest.mark.parametrize(
    ("queue", "to"), [("", ""), ("q", "DIRECT=OS:h\\q"), ("", "q"), ("a;b\\", "")]
)
def test_no_destination(queue: str, to: str) -> None:
    with pytest.raises(ConfigError):
        destination(queue, to, HERE)


def test_an_address_and_a_source() -> None:
    assert address_of("host1") == Address("host1", 1801)
    assert source_of(str(SOURCE)) == SOURCE
    assert source_of("") != source_of("")
    with pytest.raises(ConfigError, match="--source"):
        source_of("{11111111-2222-3333-4444-555555555555}")
    with pytest.raises(ConfigError, match="--host"):
        address_of("a b")


def test_correlation() -> None:
    assert correlation_of("") == bytes(20)
    assert correlation_of("ab" * 20) == b"\xab" * 20


def test_a_file_is_not_numbered(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"{n}")
    assert bodies("", path, 5)(7) == b"{n}.."
    assert bodies("b{n}", None, 4)(7) == b"b7.."
