"""The table of data-model.md 2.4 in its order, and what a unit carries."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bridge.core import streams
from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import private_number
from bridge.core.mapping import message_from_record, size_of
from bridge.core.ports import Snapshot, Unit
from bridge.core.shard import UNIT_KEY, Shard, committed_unit, shard_of
from bridge.model.guid import Guid
from bridge.model.message import INFINITE, Kind, Message, Transaction
from bridge.model.verdict import (
    ACCEPTED,
    NOT_OF_SESSION,
    OTHER_QUEUE_MANAGER,
    TOO_MANY_STREAMS,
    Cursor,
    Outcome,
    Verdict,
)
from tests.core.messages import (
    LOCAL,
    NOW,
    ORDERS,
    OTHER,
    PLAIN,
    SENDER,
    SEQUENCE,
    catalogue,
    plain,
    queue,
    receipts,
    shard,
    step,
)
from tests.core.units import entries, restarted

SHUT = "DIRECT=OS:bridge01\\private$\\shut"
UNKNOWN = "DIRECT=OS:bridge01\\private$\\nobody"
OTHER_QUEUE = "DIRECT=OS:bridge01\\private$\\other"
WRONG_QUEUE = "transactional-message-to-plain-queue"
WRONG_MESSAGE = "plain-message-to-transactional-queue"
FOREIGN: dict[str, Any] = {"destination_qm": OTHER}
LATE: dict[str, Any] = {"sent_time": NOW - 100, "time_to_reach_queue": 10}
REJECTS_LIMIT = 8 << 20  # max.message.bytes of our own topics


def decide(one: Shard, message: Message) -> Verdict:
    (verdict,) = one.admit([message])
    return verdict


def outcomes(one: Shard, messages: Sequence[Message]) -> list[str]:
    return [str(verdict.outcome) for verdict in one.admit(messages)]


def unit_of(one: Shard) -> Unit:
    return one.take_unit(NOW)[1]


# -- rows 1 to 5, 10, 11, 14 ----------------------------------------------------------------


def test_row_1_a_known_id_is_a_duplicate_without_effects() -> None:  # DM-10, DM-34
    one = shard()
    assert outcomes(one, [plain(1), plain(1), plain(2)]) == ["accepted", "duplicate", "accepted"]
    unit = unit_of(one)
    assert [record.value for record in unit.records] == [b"plain 1", b"plain 2"]
    assert unit.rejects == []
    assert [entry["verdict"] for entry in entries(unit)] == ["accepted", "duplicate", "accepted"]
    assert entries(unit)[1]["reason"] == "id-seen"


def test_row_1_is_by_source_and_ordinal() -> None:  # QB-70
    assert outcomes(shard(), [plain(1), plain(1, source=OTHER)]) == ["accepted", "accepted"]


def test_row_1_does_not_touch_transactional_messages() -> None:
    """Their ids may repeat: the stream alone decides."""
    verdicts = outcomes(shard(), [plain(1), step(1, ordinal=1), step(2, ordinal=1)])
    assert verdicts == ["accepted", "accepted", "accepted"]


@pytest.mark.parametrize(
    "changes",
    [
        LATE,
        {"arrived_ms": (NOW + 400_000) * 1000},  # came again after its time was over
    ],
)
def test_row_1_comes_before_all_others(changes: dict[str, Any]) -> None:  # DM-5
    one = shard()
    decide(one, plain(1))
    again = plain(1, **changes)
    assert decide(one, again) == Verdict(Outcome.DUPLICATE, 0, "id-seen")


def test_a_refused_id_has_had_its_verdict() -> None:
    one = shard()
    assert outcomes(one, [plain(1, **LATE)] * 2) == ["expired", "duplicate"]
    assert len(unit_of(one).rejects) == 1


@pytest.mark.parametrize("other", [UNKNOWN, ORDERS])
def test_an_id_counts_in_one_queue(other: str) -> None:
    """Whoever uses an id elsewhere, or nowhere, takes nothing from the queue where it belongs."""
    one = shard()
    assert outcomes(one, [plain(1, destination=other)] * 2)[0] == "rejected"
    assert decide(one, plain(1)) == ACCEPTED


@pytest.mark.parametrize(
    "message",
    [
        plain(1, destination=UNKNOWN),
        plain(1, destination=SHUT),
        step(1, destination=UNKNOWN),
        step(1, destination=SHUT),
        step(0xFFFFFFFF, 0, sequence=(1 << 64) - 1, destination=SHUT),
    ],
)
def test_what_is_kept_out_leaves_a_verdict_and_a_reject_and_nothing_else(message: Message) -> None:
    """It may come from a stranger who uses the name of another."""
    shut = queue("private$\\shut", access=AccessList([f"{SENDER}@192.0.2.0/24"]))
    one = Shard(catalogue(replace(shut, any_kind=True)), Policy())
    assert decide(one, message).outcome is Outcome.REJECTED
    unit = unit_of(one)
    assert (set(unit.state), unit.seen) == ({"unit"} | {e.key for e in unit.acks}, {})
    assert (len(unit.rejects), len(unit.audit)) == (1, 1)
    assert (len(one.streams), len(one.history)) == (0, 0)
    at_home: dict[str, Any] = {"destination": SHUT, "peer": "192.0.2.7"}
    assert outcomes(one, [step(1, **at_home), plain(1, **at_home)]) == ["accepted"] * 2


def test_the_sender_of_what_is_kept_out_hears_its_own_number() -> None:
    """MS-MQQB 2.2.4: accepted or rejected. Else it would send it again for four days."""
    one = shard()
    assert decide(one, step(5, 4, destination=UNKNOWN)).cursor == Cursor(SEQUENCE, 5)


@pytest.mark.parametrize(
    "message", [plain(1), step(1), plain(1, kind=Kind()), step(1, kind=Kind())]
)
def test_a_message_of_another_than_the_session_is_left_to_its_sender(message: Message) -> None:
    """Only a router hands on messages of others. MS-MQQB 3.1.1.5"""
    one = shard()
    (verdict,) = one.admit([message], OTHER)
    assert verdict == NOT_OF_SESSION
    unit = unit_of(one)
    assert (set(unit.state), unit.seen, unit.records, unit.rejects) == ({"unit"}, {}, [], [])
    assert len(unit.audit) == 1
    assert one.admit([message], OTHER, is_routed=True)[0].outcome is Outcome.ACCEPTED
    assert one.admit([message], SENDER)[0].outcome is Outcome.DUPLICATE


def test_no_topic_is_made_for_a_message_of_another_than_the_session() -> None:
    one = Shard(catalogue(replace(queue("private$\\*", topic="t"), topic="")), Policy())
    message = step(1, destination="DIRECT=OS:bridge01\\private$\\new")
    assert one.unknown_topics([message], SENDER) != set()
    assert one.unknown_topics([message], OTHER) == set()


def test_a_peer_with_too_many_streams_keeps_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_OF_PEER", 0)
    one = shard()
    assert decide(one, step(1)) == TOO_MANY_STREAMS
    assert len(one.streams) == 0


@pytest.mark.parametrize(
    "message",
    [
        plain(**FOREIGN),
        step(1, **FOREIGN),
        step(5, 4, **FOREIGN),
        plain(destination=UNKNOWN, **FOREIGN),
        plain(**FOREIGN, **LATE),
        plain(**FOREIGN, hops=0x1C),
    ],
)
def test_a_message_for_another_queue_manager_stays_at_its_sender(message: Message) -> None:
    """MS-MQQB 3.1.5.8.2: addressed to another queue manager, "and the protocol is unable to save
    the message locally [...], the protocol MUST disregard the message and perform no further
    processing": that is before it is counted, so no session ack covers it."""
    one = shard()
    assert decide(one, message) is OTHER_QUEUE_MANAGER
    unit = unit_of(one)
    assert (unit.records, unit.rejects, unit.acks, unit.seen) == ([], [], [], {})
    assert set(unit.state) == {"unit"}  # no stream
    [entry] = entries(unit)
    assert (entry["verdict"], entry["reason"]) == ("busy", "other-queue-manager")
    assert decide(one, plain(1)).outcome == "accepted"  # the next one is not hurt


@pytest.mark.parametrize(
    ("message", "outcome", "message_class", "reason"),
    [
        (plain(destination=UNKNOWN), "rejected", 0x8000, "unknown-queue"),
        (step(1, destination=UNKNOWN), "rejected", 0x8000, "unknown-queue"),
        (plain(destination=ORDERS + ";JOURNAL"), "rejected", 0x8000, "unknown-queue"),
        (step(1, destination=PLAIN), "rejected", 0x8009, WRONG_QUEUE),
        (plain(destination=ORDERS), "rejected", 0x800A, WRONG_MESSAGE),
        (plain(destination_qm=OTHER, hops=0x1D), "rejected", 0x8005, "too-many-hops"),
        (step(1, destination_qm=OTHER, hops=0x1D), "rejected", 0x8005, "too-many-hops"),
        (plain(encrypted=True), "rejected", 0x8007, "encrypted-body"),
        (step(1, encrypted=True, **LATE), "rejected", 0x8007, "encrypted-body"),
        (plain(time_to_be_received=0), "expired", 0xC002, "time-to-be-received-over"),
        (step(1, time_to_be_received=0), "expired", 0xC002, "time-to-be-received-over"),
        (plain(**LATE), "expired", 0x8002, "time-to-reach-queue-over"),
        (step(1, **LATE), "expired", 0x8002, "time-to-reach-queue-over"),
        # The first row that fits decides: DM-5
        (plain(destination=UNKNOWN, **FOREIGN, hops=0x1D), "rejected", 0x8005, "too-many-hops"),
        (plain(destination=UNKNOWN, **LATE), "rejected", 0x8000, "unknown-queue"),
        (step(1, destination=PLAIN, **LATE), "rejected", 0x8009, WRONG_QUEUE),
        (plain(destination=ORDERS, **LATE), "rejected", 0x800A, WRONG_MESSAGE),
        (step(5, 4, destination=UNKNOWN), "rejected", 0x8000, "unknown-queue"),  # 3 before 11
        (step(5, 4, **LATE), "expired", 0x8002, "time-to-reach-queue-over"),  # 10 before 11
    ],
)
def test_rows_2_to_10(message: Message, outcome: str, message_class: int, reason: str) -> None:
    one = shard()
    verdict = decide(one, message)
    assert (verdict.outcome, verdict.message_class, verdict.reason) == (
        outcome,
        message_class,
        reason,
    )
    unit = unit_of(one)
    assert unit.records == []  # DM-34: refused = none
    assert len(unit.rejects) == 1
    (entry,) = entries(unit)
    assert (entry["verdict"], entry["class"], entry["reason"]) == (outcome, message_class, reason)


def test_a_queue_by_guid_and_number() -> None:  # DM-33
    number = private_number("orders")
    ours, foreign = f"PRIVATE={LOCAL}\\{number:08x}", f"PRIVATE={OTHER}\\{number:08x}"
    assert decide(shard(), step(1, destination=ours, destination_qm=LOCAL)).outcome == "accepted"
    assert decide(shard(), step(1, destination=foreign)).reason == "unknown-queue"


def test_row_10_knows_the_sender_s_clock() -> None:  # 2.14: allow configured skew
    assert decide(shard(), plain(**LATE)).outcome is Outcome.EXPIRED
    assert decide(shard(clock_skew_s=90), plain(**LATE)).outcome is Outcome.ACCEPTED
    assert decide(shard(clock_skew_s=89), plain(**LATE)).outcome is Outcome.EXPIRED
    assert decide(shard(), plain(sent_time=NOW + 10**6)).outcome is Outcome.ACCEPTED
    never = plain(sent_time=0, time_to_reach_queue=INFINITE)
    assert decide(shard(), never).outcome is Outcome.ACCEPTED


def test_row_11_a_duplicate_of_a_stream_is_dropped_and_the_cursor_told() -> None:  # DM-7, QB-83
    one = shard()
    first, second, again, ahead = one.admit([step(1), step(2), step(1), step(9)])
    assert first == Verdict(Outcome.ACCEPTED, 0, "", Cursor(SEQUENCE, 1))
    assert second == Verdict(Outcome.ACCEPTED, 0, "", Cursor(SEQUENCE, 2))
    assert again == Verdict(Outcome.DUPLICATE, 0, "stream-order", Cursor(SEQUENCE, 2))
    assert ahead == Verdict(Outcome.OUT_OF_ORDER, 0, "stream-order", Cursor(SEQUENCE, 2))
    unit = unit_of(one)
    assert [record.value for record in unit.records] == [b"step 1", b"step 2"]
    assert unit.rejects == []  # no nack, no dead letter: it comes again or was taken
    assert unit.seen == {}
    assert [entry["verdict"] for entry in entries(unit)] == [
        "accepted",
        "accepted",
        "duplicate",
        "out_of_order",
    ]


def test_row_11_a_gap_that_the_sender_bridged_is_in_order() -> None:  # QB-82
    assert outcomes(shard(), [step(1), step(5, 1), step(9, 3), step(4, 3)]) == [
        "accepted",
        "accepted",
        "accepted",
        "duplicate",
    ]


def test_two_spellings_of_one_queue_are_two_streams() -> None:  # DM-8, DM-33
    one = shard()
    messages = [step(1), step(1, destination=ORDERS.upper()), step(1, source=OTHER)]
    assert outcomes(one, messages) == ["accepted"] * 3
    assert len(one.streams) == 3
    assert {record.topic for record in unit_of(one).records} == {"orders"}


@pytest.mark.parametrize(
    "changes",
    [
        {"destination": PLAIN},  # row 4
        LATE,  # row 10
        {"body": bytes(6 << 20)},  # larger than the topic takes
    ],
)
def test_a_rejected_member_moves_its_stream(changes: dict[str, Any]) -> None:  # DM-9, T-16
    one = shard()
    name = changes.get("destination", ORDERS)
    verdict = decide(one, step(1, **changes))
    assert verdict.message_class >= 0x8000
    assert verdict.cursor == Cursor(SEQUENCE, 1)
    unit = unit_of(one)
    assert unit.state[f"stream/{SENDER}/{name}"] is not None  # atomically with the reject
    assert len(unit.rejects) == 1
    # Its successor names it as the previous one and must not be refused for ever.
    successor = decide(one, step(2, destination=name))
    assert successor.cursor == Cursor(SEQUENCE, 2)
    # Sent again it is a duplicate: one verdict, one nack.
    assert decide(one, step(1, **changes)).outcome is Outcome.DUPLICATE


def test_a_rejected_member_that_is_ahead_leaves_the_cursor_alone() -> None:
    one = shard()  # MS-MQQB 3.1.6.9: never ack beyond a hole
    verdict = decide(one, step(5, 4, **LATE))
    assert verdict.cursor == Cursor()
    assert not any(key.startswith("stream/") for key in unit_of(one).state)
    assert decide(one, step(1)).cursor == Cursor(SEQUENCE, 1)


def test_a_message_for_another_queue_manager_has_no_stream_here() -> None:  # QB-88
    one = shard()
    assert decide(one, step(1, destination_qm=OTHER)).cursor is None
    assert len(one.streams) == 0


def test_a_late_copy_of_what_we_took_is_a_duplicate_whatever_happened_since() -> None:
    """Refusing it would make the sender dead-letter what was delivered."""
    one = shard()
    one.admit([step(1), plain(1)])
    units = [unit_of(one)]
    gone = Shard(catalogue(queue("private$\\else")), Policy())
    gone.restore(
        Snapshot({k: v for k, v in units[0].state.items() if v}, list(units[0].seen.values()))
    )
    for late in (step(1, **LATE), step(1), plain(1, **LATE), plain(1)):
        if late.transaction is not None:  # an id belongs to its queue, which is gone
            assert decide(gone, late).outcome is Outcome.DUPLICATE
        assert decide(restarted(one, units), late).outcome is Outcome.DUPLICATE
    assert decide(gone, step(2)).reason == "unknown-queue"
    assert unit_of(gone).rejects[0].value == b"step 2"


def test_row_14_accepted_is_exactly_one_record() -> None:  # DM-34, DM-35
    one = shard()
    message = step(1, label="L", body=b"body")
    decide(one, message)
    unit = unit_of(one)
    (record,) = unit.records
    assert message_from_record(record) == message
    (entry,) = entries(unit)
    assert (entry["queue"], entry["topic"], entry["partition"]) == (
        "private$\\orders",
        "orders",
        record.partition,
    )


def test_records_keep_the_order_of_arrival() -> None:  # DM-36
    one = shard()
    one.admit([step(1), step(2)])
    one.admit([step(3)])
    records = unit_of(one).records
    assert [record.value for record in records] == [b"step 1", b"step 2", b"step 3"]
    assert len({record.partition for record in records}) == 1


# -- sizes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "large",
    [
        {"body": bytes(20_000)},
        {"extension": bytes(20_000)},
        {"wire": bytes(20_000)},
        {"soap": "x" * 20_000},
        {"certificate": bytes(20_000)},
        {"body": bytes(9_000), "extension": bytes(9_000)},
    ],
)
def test_what_the_topic_does_not_take_is_refused_not_tried(large: dict[str, Any]) -> None:
    """Design D7. Kafka would refuse the whole unit, again and again."""
    one = shard(queue("private$\\plain", transactional=False, max_bytes=16_384))
    verdict = decide(one, plain(**large))
    assert (verdict.message_class, verdict.reason) == (0x8003, "larger-than-the-topic-takes")
    unit = unit_of(one)
    assert unit.records == []
    assert len(unit.rejects) == 1


@pytest.mark.parametrize("mode", ["forward", "retain"])
def test_what_the_topic_does_not_take_is_a_dead_letter(mode: str) -> None:
    """MS-MQQB 3.1.5.8.8: with NACK_Q_EXCEED_QUOTA a message with JN and without a TransactionHeader
    "MUST be inserted into the SystemDeadletterQueue"."""
    one = shard(
        queue("private$\\plain", transactional=False, max_bytes=16_384, mode=mode),
        queue(max_bytes=16_384, mode=mode),
    )
    message = plain(1, journal=1, body=bytes(20_000))
    assert decide(one, message).message_class == 0x8003
    (letter,) = unit_of(one).records
    assert (letter.topic, letter.value) == ("dead", message.body)
    assert letter.headers["msmq.outcome"] == b"%d" % 0x8003
    assert message_from_record(letter) == message
    for quiet in (plain(2, journal=2, body=bytes(20_000)), step(1, journal=1, body=bytes(20_000))):
        assert decide(one, quiet).message_class == 0x8003
    assert unit_of(one).records == []


def test_headers_alone_can_be_too_large() -> None:
    one = shard(queue("private$\\plain", transactional=False, max_bytes=1_000))
    assert decide(one, plain(body=b"", label="x" * 249, peer="p" * 900)).message_class == 0x8003


def test_what_fits_by_a_byte_is_taken() -> None:
    one = shard()
    decide(one, plain(1, body=bytes(10_000)))
    exact = size_of(unit_of(one).records[0])
    for limit, expected in ((exact, "accepted"), (exact - 1, "rejected")):
        small = shard(queue("private$\\plain", transactional=False, max_bytes=limit, partitions=4))
        assert outcomes(small, [plain(1, body=bytes(10_000))]) == [expected]


def test_the_largest_packet_can_be_rejected() -> None:
    """A packet has 4 MiB; when it is nearly all header, `msmq.wire` and the decoded headers make
    twice that. The rejects topic must take it, or one message would stop the shard for ever."""
    rest = (4 << 20) - 1000
    huge = plain(destination=UNKNOWN, body=b"b", extension=bytes(rest), wire=bytes(rest + 500))
    one = shard()
    decide(one, huge)
    (record,) = unit_of(one).rejects
    assert size_of(record) < REJECTS_LIMIT
    headers = record.headers
    assert headers["msmq.wire"] == huge.wire  # the extension is in there
    assert headers["msmq.id"] == huge.id.encode()
    assert headers["__connect.errors.exception.message"] == b"unknown-queue"
    assert record.value == b"b"


def test_a_quota_of_a_forward_queue_bounds_one_message() -> None:  # design 3.3, row 13
    one = shard(queue(quota_kb=2))
    verdicts = one.admit([step(1, body=bytes(2048)), step(2, body=bytes(2049)), step(3)])
    assert [str(v.outcome) for v in verdicts] == ["accepted", "rejected", "accepted"]
    assert (verdicts[1].message_class, verdicts[1].reason) == (0x8003, "over-the-queue-quota")
    assert verdicts[1].cursor == Cursor(SEQUENCE, 2)  # DM-9
    wire = step(4, body=bytes(1024), wire=bytes(1025))  # 2.5: TotalBytes is headers + body
    assert decide(one, wire).reason == "over-the-queue-quota"


# -- row 12: not now ------------------------------------------------------------------------


@pytest.mark.parametrize("large", [plain(1, body=bytes(1025)), step(1, body=bytes(1025))])
def test_row_12_busy_leaves_no_trace_but_in_the_audit(large: Message) -> None:  # DM-11, QB-67
    one = shard(quota_kb=1, acks=receipts())
    assert decide(one, large) == Verdict(Outcome.BUSY, 0, "machine-quota")
    unit = unit_of(one)
    assert (unit.records, unit.rejects, unit.acks) == ([], [], [])  # no nack
    assert set(unit.state) == {UNIT_KEY}  # the cursor stays
    assert unit.seen == {}
    assert [entry["verdict"] for entry in entries(unit)] == ["busy"]
    assert (len(one.history), len(one.streams)) == (0, 0)


def test_row_12_the_sender_tries_again_and_is_heard() -> None:
    """The appliance was given more room meanwhile."""
    one = shard(quota_kb=1)
    large = [step(1, body=bytes(1025)), plain(1, body=bytes(1025))]
    assert outcomes(one, large) == ["busy", "busy"]
    wide = Shard(one._catalogue, Policy())
    wide.restore(Snapshot(restarted(one, [unit_of(one)]).kept, []))
    assert outcomes(wide, large) == ["accepted", "accepted"]


def test_row_12_those_around_it_are_not_touched() -> None:
    one = shard(quota_kb=1)
    batch = [plain(1), plain(2, body=bytes(1025)), plain(3)]
    assert outcomes(one, batch) == ["accepted", "busy", "accepted"]
    again = restarted(one, [unit_of(one)])
    assert outcomes(again, [plain(1), plain(2), plain(3)]) == ["duplicate", "accepted", "duplicate"]


def test_row_12_comes_after_what_is_refused_for_good() -> None:  # DM-5
    one = shard(quota_kb=1)
    huge = bytes(1025)
    for message in (plain(1, destination=UNKNOWN, body=huge), step(1, body=huge, **LATE)):
        assert decide(one, message).outcome != "busy"


def test_row_12_a_late_copy_of_what_we_took_is_a_duplicate() -> None:
    one = shard()
    large = step(1, body=bytes(1025))
    decide(one, large)
    small = Shard(one._catalogue, Policy(quota_kb=1))
    state = {key: value for key, value in unit_of(one).state.items() if value}
    small.restore(Snapshot(state, []))
    assert decide(small, large).outcome is Outcome.DUPLICATE


# -- several destinations -------------------------------------------------------------------


def test_a_copy_for_each_destination() -> None:  # 2.16, QB-70, QB-124
    both = "private$\\plain", "private$\\other"
    one = shard(*(queue(name, transactional=False) for name in both))
    multi = f"{PLAIN},{OTHER_QUEUE}"
    copies = [plain(1, destination=name, destination_multi=multi) for name in (PLAIN, OTHER_QUEUE)]
    assert outcomes(one, copies) == ["accepted", "accepted"]
    assert outcomes(one, copies) == ["duplicate", "duplicate"]
    again = restarted(one, [unit_of(one)])
    assert outcomes(again, copies) == ["duplicate", "duplicate"]
    assert outcomes(again, [plain(1)]) == ["accepted"]  # one that went to a single queue


# -- acks -----------------------------------------------------------------------------------

ADMIN = "DIRECT=TCP:10.1.2.3\\private$\\admin"


def outbox_of(unit: Unit) -> dict[str, bytes | None]:
    return {key: value for key, value in unit.state.items() if key.startswith("outbox/")}


def test_acks_are_in_the_state_of_their_unit() -> None:  # DM-37, design D1
    one = shard(acks=receipts())
    one.admit([plain(1, ack=1, admin_queue=ADMIN), step(1, journal=1), plain(2)])
    unit = unit_of(one)
    assert [entry.ordinal for entry in unit.acks] == [7001, 7002]
    assert outbox_of(unit) == {entry.key: entry.encode() for entry in unit.acks}
    assert list(one.outbox.values()) == unit.acks
    second = unit_of(one)
    assert (second.acks, outbox_of(second)) == ([], {})


def test_a_nack_is_in_the_unit_of_its_reject_and_cursor() -> None:  # DM-9, QB-90
    one = shard(acks=receipts())
    one.admit([step(1, destination=PLAIN, ack=4, admin_queue=ADMIN)], OTHER, is_routed=True)
    unit = unit_of(one)
    assert len(unit.rejects) == 1
    assert f"stream/{SENDER}/{PLAIN}" in unit.state
    assert list(outbox_of(unit)) == ["outbox/7001", "outbox/7002"]  # admin and final
    assert [entry.queue_manager for entry in unit.acks] == ["", str(OTHER)]  # back by `via`


def test_what_was_dropped_gets_no_second_ack() -> None:  # QB-71, QB-83
    one = shard(acks=receipts())
    wanted: dict[str, Any] = {"ack": 0xF, "admin_queue": ADMIN, "journal": 3}
    first = [plain(1, **wanted), step(1, **wanted)]
    one.admit(first)
    unit_of(one)
    assert outcomes(one, [*first, step(9, **wanted)]) == ["duplicate", "duplicate", "out_of_order"]
    assert unit_of(one).acks == []


def test_a_taken_ack_is_removed_from_the_state() -> None:
    one = shard(acks=receipts())
    one.admit([plain(1, ack=3, admin_queue=ADMIN)])
    units = [unit_of(one)]
    one.forget([7001, 9999])
    units.append(unit_of(one))
    assert outbox_of(units[1]) == {"outbox/7001": None}  # a tombstone, once
    one.forget([7001])
    assert outbox_of(unit_of(one)) == {}
    assert list(one.outbox) == [7002]
    assert list(restarted(one, units).outbox) == [7002]


def test_an_ack_that_is_taken_before_its_unit_is_closed_leaves_nothing() -> None:
    one = shard(acks=receipts())
    one.admit([plain(1, ack=1, admin_queue=ADMIN)])
    one.forget([7001])
    assert outbox_of(unit_of(one)) == {"outbox/7001": None}


def test_a_restart_finds_the_same_acks_again() -> None:
    one = shard(acks=receipts())
    one.admit([plain(1, ack=3, admin_queue=ADMIN), step(1, journal=1)])
    committed = unit_of(one)
    one.admit([plain(2, ack=1, admin_queue=ADMIN)])
    unit_of(one)  # lost
    fresh = restarted(one, [committed])
    assert list(fresh.outbox.values()) == committed.acks  # same ids, same bytes
    assert unit_of(fresh).acks == []  # they are durable already


def test_reports_go_with_their_message() -> None:  # QB-122
    one = shard(acks=receipts(peers=[str(OTHER)]))
    one.admit([plain(1, trace_queue=OTHER), plain(2, trace_queue=OTHER, destination=UNKNOWN)])
    assert [entry.host for entry in unit_of(one).acks] == [str(OTHER)]  # of what arrived only


# -- journals and dead letters: 2.14 --------------------------------------------------------


def test_the_target_journal_is_a_copy_in_the_same_unit() -> None:  # DM-30
    one = shard(queue(journal="orders.journal", journal_partitions=2, partitions=8))
    one.admit([step(1), step(2)])
    unit = unit_of(one)
    assert [record.topic for record in unit.records] == ["orders", "orders.journal"] * 2
    for record, copy in (unit.records[:2], unit.records[2:]):
        assert record.partition is not None
        assert copy == msgspec.structs.replace(
            record, topic="orders.journal", partition=record.partition % 2
        )


def test_the_target_journal_has_what_was_taken_only() -> None:  # 2.14: not on expiry
    one = shard(queue(journal="orders.journal"))
    outcomes(one, [step(1, **LATE), step(9, 8), plain(1, destination=ORDERS)])
    assert unit_of(one).records == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (LATE, "time-to-reach-queue-over"),
        ({"time_to_be_received": 0}, "time-to-be-received-over"),
        ({"body": bytes(1025)}, "over-the-queue-quota"),
    ],
)
def test_a_dead_letter_for_who_asked(changes: dict[str, Any], reason: str) -> None:  # DM-12, QB-66
    one = shard(queue("private$\\plain", transactional=False, quota_kb=1))
    message = plain(1, journal=1, **changes)
    verdict = decide(one, message)
    assert verdict.reason == reason
    unit = unit_of(one)
    (record,) = unit.records
    assert (record.topic, record.key, record.value) == ("dead", message.id.encode(), message.body)
    assert record.headers["msmq.outcome"] == b"%d" % verdict.message_class
    assert message_from_record(record) == message
    assert len(unit.rejects) == 1


@pytest.mark.parametrize(
    "message",
    [
        plain(1, **LATE),  # did not ask
        plain(1, journal=2, **LATE),  # JP is the sender's business
        step(1, journal=1, destination=ORDERS, **LATE),  # DEADXACT is at the source
        plain(1, journal=1, destination=UNKNOWN),  # the nack makes the sender keep it
        plain(1, journal=1, destination=ORDERS),
        plain(1, journal=1),
    ],
)
def test_no_dead_letter_otherwise(message: Message) -> None:  # 2.14
    one = shard()
    decide(one, message)
    assert [record for record in unit_of(one).records if record.topic == "dead"] == []


# -- rejects --------------------------------------------------------------------------------


def test_a_reject_looks_like_kafka_connect_s() -> None:  # design D6
    one = shard()
    message = step(1, destination=PLAIN, label="L\ud800")
    decide(one, message)
    (record,) = unit_of(one).rejects
    assert (record.key, record.value) == (f"{SENDER}\\1".encode(), b"step 1")
    assert record.timestamp_ms == NOW * 1000
    headers = record.headers
    assert {k: v for k, v in headers.items() if k.startswith("__connect")} == {
        "__connect.errors.topic": b"plain",
        "__connect.errors.connector.name": b"msmq-bridge",
        "__connect.errors.stage": b"ADMISSION",
        "__connect.errors.exception.class.name": b"NACK_NOT_TRANSACTIONAL_Q",
        "__connect.errors.exception.message": b"transactional-message-to-plain-queue",
    }
    assert headers["msmq.queue"] == b"private$\\plain"
    assert headers["msmq.outcome"] == b"32777"
    assert message_from_record(record) == message  # nothing of it is lost


def test_a_reject_without_a_queue() -> None:
    one = shard()
    decide(one, plain(destination=UNKNOWN))
    headers = unit_of(one).rejects[0].headers
    assert headers["msmq.queue"] == headers["__connect.errors.topic"] == b""
    assert headers["__connect.errors.exception.class.name"] == b"NACK_BAD_DST_Q"


def test_half_surrogate_pairs_go_through() -> None:
    odd: dict[str, Any] = {"label": "\ud800", "peer": "10.1.2.3"}
    one = shard()
    one.admit([plain(1, **odd), step(1, destination=UNKNOWN + "\udfff", **odd)])
    unit = unit_of(one)
    assert [entry["verdict"] for entry in entries(unit)] == ["accepted", "rejected"]
    assert decide(restarted(one, [unit]), plain(1, **odd)).outcome is Outcome.DUPLICATE


# -- units ----------------------------------------------------------------------------------


def test_units_are_numbered_and_the_number_is_in_the_state() -> None:
    one = shard()
    for number in (1, 2, 3):
        assert one.take_unit(NOW)[0] == number
    number, unit = one.take_unit(NOW)
    assert unit.state == {UNIT_KEY: b"4"}
    assert committed_unit(Snapshot({UNIT_KEY: b"4"}, [])) == number == 4
    assert committed_unit(Snapshot({}, [])) == 0


def test_a_restart_counts_on_from_what_was_committed() -> None:
    one = shard()
    one.admit([plain(1)])
    committed = [unit_of(one), unit_of(one)]
    one.take_unit(NOW)  # never committed
    assert restarted(one, committed).take_unit(NOW)[0] == 3


def test_a_restart_forgets_what_was_not_committed() -> None:  # design D1
    one = shard()
    one.admit([step(1), plain(1)])
    committed = unit_of(one)
    one.admit([step(2), plain(2)])
    unit_of(one)  # lost
    one.admit([step(3), plain(3)])  # still being filled
    fresh = restarted(one, [committed])
    assert outcomes(fresh, [step(1), plain(1)]) == ["duplicate", "duplicate"]
    assert outcomes(fresh, [step(2), plain(2), step(3), plain(3)]) == ["accepted"] * 4
    one.restore(
        Snapshot({k: v for k, v in committed.state.items() if v}, list(committed.seen.values()))
    )
    assert outcomes(one, [step(2), plain(2), step(3), plain(3)]) == ["accepted"] * 4
    assert len(unit_of(one).records) == 4  # what was being filled is gone


def test_a_unit_carries_each_effect_once() -> None:
    one = shard()
    one.admit([plain(1), step(1)])
    first = unit_of(one)
    assert len(first.records) == 2
    second = unit_of(one)
    assert (second.records, second.seen, second.audit, second.rejects) == ([], {}, [], [])
    assert set(second.state) == {UNIT_KEY}


def test_only_the_last_cursor_of_a_stream_is_written() -> None:
    one = shard()
    one.admit([step(number) for number in range(1, 101)])
    state = unit_of(one).state
    assert set(state) == {UNIT_KEY, f"stream/{SENDER}/{ORDERS}"}


def test_what_the_owner_puts_goes_with_the_next_unit() -> None:
    one = shard()
    one.put("identity", b"me")
    assert one.kept == {"identity": b"me"}
    unit = unit_of(one)
    assert unit.state["identity"] == b"me"
    assert "identity" not in unit_of(one).state
    assert restarted(one, [unit]).kept["identity"] == b"me"


def test_seen_ids_survive_when_their_first_one_comes_again() -> None:
    """DM-10. The seen topic is compacted, so no unit may take another one's key."""
    one = shard()
    one.admit([plain(1), plain(2), plain(3)])
    units = [unit_of(one)]
    one.admit([plain(1)])
    units.append(unit_of(one))
    assert outcomes(restarted(one, units), [plain(n) for n in (1, 2, 3, 4)]) == [
        "duplicate",
        "duplicate",
        "duplicate",
        "accepted",
    ]


def test_all_of_a_sender_lives_in_one_shard() -> None:  # design D2
    assert shard_of(SENDER, 1) == 0
    for count in (2, 3, 8):
        assert 0 <= shard_of(SENDER, count) < count
    assert {shard_of(Guid.random(), 4) for _ in range(200)} == {0, 1, 2, 3}
    assert shard_of(SENDER, 8) == 6  # a new version that chose another one would split a stream


def test_no_transaction_at_all_is_plain() -> None:
    one = shard()
    assert decide(one, plain(transaction=None)).cursor is None
    assert decide(one, step(1, transaction=Transaction(sequence_id=1, number=1))).cursor == Cursor(
        1, 1
    )
