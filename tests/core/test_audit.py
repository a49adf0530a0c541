"""Nothing vanishes without a trace: design D6."""

import msgspec
import pytest
from hypothesis import given

from bridge.core import audit
from bridge.core.audit import PER_RECORD, AuditEntry, encode, entry_of
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, DUPLICATE, Cursor, Outcome, Verdict
from tests.core.messages import NOW, ORDERS, PLAIN, SENDER, messages, plain, step

SMALLEST_LIMIT = 1 << 20  # max.message.bytes of a topic that nobody has set


def decoded(entries: list[AuditEntry]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for value in encode(entries):
        assert len(value) < SMALLEST_LIMIT
        found += msgspec.json.decode(value, type=list[dict[str, object]])
    return found


def test_an_accepted_message() -> None:
    entry = entry_of(plain(7, body=b"123456789"), ACCEPTED, "private$\\plain", "plain", 3)
    assert decoded([entry]) == [
        {
            "id": f"{SENDER}\\7",
            "verdict": "accepted",
            "at": NOW * 1000,
            "dest": PLAIN,
            "queue": "private$\\plain",
            "topic": "plain",
            "partition": 3,
            "transport": "binary",
            "crc32": 0xCBF43926,  # the check value of CRC-32
        }
    ]


def test_an_empty_body_is_told_too() -> None:  # or reconcile could not see that one was added
    (entry,) = decoded([entry_of(plain(7, body=b""), ACCEPTED)])
    assert entry["crc32"] == 0


def test_a_record_with_another_time_than_arrival() -> None:  # how `trace` finds it
    (same,) = decoded([entry_of(plain(7), ACCEPTED, "q", "t", 3, NOW * 1000)])
    (sent,) = decoded([entry_of(plain(7), ACCEPTED, "q", "t", 3, 5000)])
    assert "stamp" not in same
    assert sent["stamp"] == 5000


def test_a_refused_transactional_message() -> None:
    body = b"123456789"
    message = step(5, 2, label="L", peer="10.1.2.3", correlation_id=bytes(range(20)), body=body)
    verdict = Verdict(Outcome.REJECTED, 0x8000, "unknown-queue", Cursor(1, 5))
    assert decoded([entry_of(message, verdict)]) == [
        {
            "id": f"{SENDER}\\5",
            "verdict": "rejected",
            "at": NOW * 1000,
            "dest": ORDERS,
            "class": 0x8000,
            "reason": "unknown-queue",
            "peer": "10.1.2.3",
            "transport": "binary",
            "label": "L",
            "correlation": bytes(range(20)).hex(),
            "tx_sequence_id": 0x65000000_00000001,
            "tx_sequence_number": 5,
            "tx_previous_number": 2,
            "crc32": 0xCBF43926,
        }
    ]


def test_partition_0_is_told() -> None:
    (entry,) = decoded([entry_of(plain(), ACCEPTED, "q", "t", 0)])
    assert entry["partition"] == 0


@pytest.mark.parametrize("count", [0, 1, PER_RECORD, PER_RECORD + 1, 3 * PER_RECORD])
def test_entries_are_cut_into_arrays(count: int) -> None:
    entries = [entry_of(plain(n), ACCEPTED) for n in range(count)]
    assert [entry["id"] for entry in decoded(entries)] == [f"{SENDER}\\{n}" for n in range(count)]
    assert len(list(encode(entries))) == -(-count // PER_RECORD)


@given(messages)
def test_any_message_can_be_told(message: Message) -> None:  # lone surrogates are no JSON
    (entry,) = decoded([entry_of(message, ACCEPTED, "q", "t", 1)])
    assert entry["id"] == message.id


def test_half_a_surrogate_pair_does_not_spoil_its_neighbours() -> None:
    odd = plain(2, label="a\ud800b", destination="DIRECT=OS:\udfff\\q")
    entries = [entry_of(plain(n, label="Grüße"), ACCEPTED) for n in (1, 3)]
    entries.insert(1, entry_of(odd, ACCEPTED))
    found = decoded(entries)
    assert [entry["label"] for entry in found] == ["Grüße", "a?b", "Grüße"]
    assert found[1]["dest"] == "DIRECT=OS:?\\q"


def test_texts_of_strangers_cannot_make_a_record_that_no_topic_takes() -> None:
    """A direct name has up to 65,535 bytes of UTF-16, and a control character takes six in JSON.
    A record that Kafka refuses for ever would stop the shard."""
    longest = "DIRECT=" + "\x01" * 32_767
    entries = [entry_of(plain(n), ACCEPTED, longest, "topic") for n in range(50)]
    assert [e["queue"] for e in decoded(entries)] == [longest] * 50


def test_one_entry_alone_always_fits() -> None:
    name = "DIRECT=" + "\x01" * 32_767
    label = "\x01" * 250
    (value,) = encode([entry_of(plain(destination=name, label=label), ACCEPTED)])
    assert len(value) < audit.MAX_BYTES < SMALLEST_LIMIT


def test_a_destination_is_cut_and_ids_are_not() -> None:
    """Senders write it as they like: 64 KiB of it for each message would fill the topic."""
    long = "DIRECT=OS:bridge01\\private$\\" + "x" * 30_000
    entry = entry_of(plain(7, destination=long), DUPLICATE, queue="q" * 30_000)
    assert (len(entry.dest), entry.dest[-1], len(entry.queue)) == (1024, "…", 1024)
    assert entry.id == plain(7).id
    taken = entry_of(plain(7), ACCEPTED, queue="q" * 3000, topic="t")
    assert taken.queue == "q" * 3000  # reconcile finds its record by it
