"""What becomes of a message over HTTP: srmp.md 3.1 to 3.5, 3.9; tables 5.1 and 5.3."""

from typing import Any

import msgspec
import pytest

from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.core.mapping import size_of
from bridge.core.mapping_headers import HeaderRules
from bridge.core.mapping_rules import Defaults, Mappings
from bridge.core.ports import Unit
from bridge.core.posted import Due
from bridge.core.shard import SWEEP_S, Shard
from bridge.model.guid import NULL_GUID
from bridge.model.message import INFINITE, JOURNAL_NEGATIVE, JOURNAL_POSITIVE, Message
from bridge.model.verdict import Outcome, Verdict
from tests.core.messages import (
    LOCAL,
    NOW,
    OTHER,
    SENDER,
    catalogue,
    plain,
    queue,
    receipts,
    step,
)
from tests.core.posts import KEY, PEER, RECEIPTS, STREAM, TO, TO_PLAIN, mail, part, posting_shard
from tests.core.units import entries, restarted

DELIVERED, COMMITTED = "http://sender01/msmq/d", "http://sender01/msmq/c"
BOTH = {"delivery_to": DELIVERED, "commitment_to": COMMITTED, "positive": True, "negative": True}
NOBODY = "http://bridge01/msmq/private$/nobody"
WRONG_QUEUE = "transactional-message-to-plain-queue"
WRONG_MESSAGE = "plain-message-to-transactional-queue"
UNKNOWN_TYPE = "class-and-receipt-do-not-match"
FLAW = "signature-is-wrong"
REJECTS_LIMIT = 8 << 20  # max.message.bytes of our own topics
LATE: dict[str, Any] = {"sent_time": NOW - 100, "time_to_reach_queue": 10}


def decide(one: Shard, message: Message) -> Verdict:
    (verdict,) = one.admit([message])
    return verdict


def outcomes(one: Shard, *messages: Message) -> list[str]:
    return [str(decide(one, message).outcome) for message in messages]


def unit_of(one: Shard, now: int = NOW) -> Unit:
    return one.take_unit(now)[1]


def values(unit: Unit) -> list[bytes]:
    return [record.value for record in unit.records]


def due(number: int, *, again: bool = False, stream: int = STREAM) -> Due:
    return Due(
        key=KEY,
        id=stream,
        text=f"uid:{SENDER}\\{stream}",
        number=number,
        receipts_to=RECEIPTS,
        peer=PEER,
        is_repeated=again,
    )


def state_of(unit: Unit) -> dict[str, bytes | None]:
    """What the unit says of streams, ids and receipts."""
    told = {key: value for key, value in unit.state.items() if key != "unit"}
    return told | dict(unit.seen)


# -- table 5.3 ------------------------------------------------------------------------------


def test_a_regular_message() -> None:  # 5.3: ok
    one = posting_shard()
    assert decide(one, mail(1)) == Verdict(Outcome.ACCEPTED)
    unit = unit_of(one)
    (record,) = unit.records
    assert (record.topic, record.value) == ("plain", b"mail 1")
    assert record.headers["msmq.transport"] == b"http"
    assert record.headers["msmq.id"] == f"{SENDER}\\1".encode()
    assert (unit.acks, unit.due, unit.rejects) == ([], [], [])
    (entry,) = entries(unit)
    assert (entry["verdict"], entry["transport"], entry["peer"]) == ("accepted", "http", PEER)


def test_a_known_id_is_dropped() -> None:  # SR-21
    one = posting_shard()
    assert outcomes(one, mail(1), mail(1), mail(2), mail(1, source=OTHER)) == [
        "accepted",
        "duplicate",
        "accepted",
        "accepted",
    ]
    unit = unit_of(one)
    assert values(unit) == [b"mail 1", b"mail 2", b"mail 1"]
    assert entries(unit)[1]["reason"] == "id-seen"


def test_without_msmq_nothing_is_a_duplicate() -> None:  # SR-21: {NULL GUID, 1}
    one = posting_shard()
    nobody = mail(1, source=NULL_GUID)
    assert outcomes(one, nobody, nobody) == ["accepted", "accepted"]
    assert unit_of(one).seen == {}
    assert outcomes(one, *[mail(2, source=NULL_GUID)] * 2) == ["accepted", "duplicate"]
    assert outcomes(one, *[mail(1, source=OTHER)] * 2) == ["accepted", "duplicate"]


def test_one_message_to_several_queues_is_several() -> None:  # QB-70: a copy to each
    one = posting_shard(queue("private$\\plain", transactional=False))
    both = f"DIRECT={TO_PLAIN},DIRECT={TO_PLAIN.upper()}"
    messages = [mail(1, to, destination_multi=both) for to in (TO_PLAIN, TO_PLAIN.upper())]
    assert outcomes(one, *messages, messages[0]) == ["accepted", "accepted", "duplicate"]


@pytest.mark.parametrize("http_first", [True, False])
def test_ids_over_http_say_nothing_of_those_of_sessions(http_first: bool) -> None:
    """A session proves its GUID a little, an envelope does not: it must not use up an id."""
    one = posting_shard()
    pair = [mail(7), plain(7)] if http_first else [plain(7), mail(7)]
    assert outcomes(one, *pair) == ["accepted", "accepted"]
    again = restarted(one, [unit_of(one)])
    assert outcomes(again, mail(7), plain(7)) == ["duplicate", "duplicate"]


def test_streams_of_binary_and_http_do_not_mix() -> None:  # 3.5: the key is the name as sent
    one = posting_shard()
    assert (
        outcomes(one, step(1, sequence=STREAM), part(1), step(2, sequence=STREAM), part(2))
        == ["accepted"] * 4
    )
    assert outcomes(one, step(1, sequence=STREAM), part(1)) == ["duplicate", "duplicate"]


# -- SR-1: the order ------------------------------------------------------------------------

FULL = queue("private$\\plain", transactional=False, quota_kb=1)
CLOSED = queue("private$\\plain", transactional=False, access=AccessList([]))
SIGNED = queue("private$\\plain", transactional=False, authenticate="required")
LARGE = bytes(2000)
NOT_HERE, ODD, FLAWED = {"is_here": False}, {"is_known": False}, {"flaw": "DigestValue is wrong"}


@pytest.mark.parametrize(
    ("message", "message_class", "reason"),
    [
        (mail(asks=NOT_HERE), 0x8000, "other-queue-manager"),  # SR-13
        (part(1, asks=NOT_HERE), 0x8000, "other-queue-manager"),
        (mail(to=NOBODY), 0x8000, "unknown-queue"),  # SR-16
        (part(1, to=NOBODY), 0x8000, "unknown-queue"),
        (mail(to=f"{TO_PLAIN};journal"), 0x8000, "unknown-queue"),
        (mail(destination="MULTICAST=234.1.1.1:8001"), 0x8000, "unknown-queue"),  # SR-12
        (part(1, to=TO_PLAIN), 0x8009, WRONG_QUEUE),  # SR-17
        (mail(to=TO), 0x800A, WRONG_MESSAGE),
        (mail(asks=ODD), 0, UNKNOWN_TYPE),  # 3.3: anything else is ignored
        (part(1, asks=ODD), 0, UNKNOWN_TYPE),
        (mail(asks=FLAWED), 0x8006, FLAW),  # SR-40, SR-41
        (part(1, asks=FLAWED), 0x8006, FLAW),
        # The one that comes first decides.
        (mail(to=NOBODY, asks=NOT_HERE), 0x8000, "other-queue-manager"),
        (mail(to=TO, asks={**NOT_HERE, **ODD}), 0x8000, "other-queue-manager"),
        (mail(to=NOBODY, asks={**ODD, **FLAWED}), 0x8000, "unknown-queue"),
        (mail(to=TO, asks={**ODD, **FLAWED}), 0x800A, WRONG_MESSAGE),
        (mail(asks={**ODD, **FLAWED}), 0, UNKNOWN_TYPE),
        (part(5, asks=FLAWED), 0x8006, FLAW),  # signature before the stream
        (mail(asks=FLAWED, **LATE), 0x8006, FLAW),
    ],
)
def test_what_is_refused_changes_nothing(
    message: Message, message_class: int, reason: str
) -> None:  # SR-5, SR-24, SR-26
    one = posting_shard()
    wanted = {**BOTH, "to": message.srmp.to} if message.srmp else {}
    assert message.srmp is not None
    asking = msgspec.structs.replace(message.srmp, **wanted)
    message = msgspec.structs.replace(message, srmp=asking, ack=0x0F, journal=3)
    for _ in range(2):  # again the same: it was not recorded
        assert decide(one, message) == Verdict(Outcome.REJECTED, message_class, reason)
    unit = unit_of(one)
    assert state_of(unit) == {}
    assert (unit.records, unit.acks, unit.due) == ([], [], [])
    assert len(unit.rejects) == 2  # design D6: not without a trace
    assert [entry["reason"] for entry in entries(unit)] == [reason, reason]


def test_signature_then_duplicate() -> None:  # SR-1
    one = posting_shard()
    assert outcomes(one, mail(1), mail(1, asks=FLAWED)) == ["accepted", "rejected"]


def test_access_before_what_is_known() -> None:
    """A stranger learns and changes nothing. The answer to a duplicate is the same, 200."""
    one = posting_shard()
    decide(one, mail(1))
    again = restarted(one, [unit_of(one)])
    unit_of(again)  # has a snapshot of the ids
    again.use(Catalogue(LOCAL, [CLOSED]))
    assert decide(again, mail(1)).reason == "sender-not-allowed"
    assert decide(again, mail(2)).reason == "sender-not-allowed"
    assert unit_of(again).seen == {}


def test_access_before_the_stream() -> None:
    shut = queue(access=AccessList(["10.9.0.0/16"]))
    one = posting_shard(shut)
    assert decide(one, part(1)) == Verdict(Outcome.REJECTED, 0x8004, "sender-not-allowed")
    assert decide(one, part(5)).outcome is Outcome.REJECTED
    assert state_of(unit_of(one)) == {}
    assert decide(one, part(1, peer="10.9.1.1")).outcome is Outcome.ACCEPTED
    unit_of(one)
    assert decide(one, part(1)).outcome is Outcome.REJECTED
    assert state_of(unit_of(one)) == {}
    assert decide(one, part(2)).outcome is Outcome.REJECTED
    assert decide(one, part(2, peer="10.9.1.1")).outcome is Outcome.ACCEPTED


ELSEWHERE = ["10.9.0.0/16"], ["S-1-5-21-1-2-3-1001"]  # a network, and users: HTTP proves none


@pytest.mark.parametrize("allowed", ELSEWHERE)
def test_what_may_not_enter_is_acknowledged_in_its_stream(allowed: list[str]) -> None:
    """MC-MQSRM 3.1.5.1.6: "Processing stream messages" comes before "Inserting the message into its
    destination queue", where 3.1.5.1.12 checks access. The sender gets its receipt and goes on."""
    one = posting_shard()
    assert outcomes(one, part(1), part(2)) == ["accepted", "accepted"]
    taken = unit_of(one)
    one.use(Catalogue(LOCAL, [queue(access=AccessList(allowed))]))
    denied = Verdict(Outcome.REJECTED, 0x8004, "sender-not-allowed")
    assert [decide(one, part(n, asks=BOTH)) for n in (3, 4)] == [denied, denied]
    assert outcomes(one, part(4), part(9)) == ["duplicate", "out_of_order"]
    unit = unit_of(one)
    assert unit.due == [due(3), due(4), due(4, again=True)]
    assert (unit.records, unit.acks, len(unit.rejects)) == ([], [], 2)  # it was not delivered
    again = restarted(one, [taken, unit])
    again.use(catalogue())  # a right was given
    assert outcomes(again, part(4), part(5)) == ["duplicate", "accepted"]
    assert values(unit_of(again)) == [b"part 5"]


def test_its_next_stream_is_acknowledged_too() -> None:
    one = posting_shard()
    decide(one, part(1))
    one.use(Catalogue(LOCAL, [queue(access=AccessList(["10.9.0.0/16"]))]))
    unit_of(one)
    assert decide(one, part(1, stream=9)).reason == "sender-not-allowed"
    assert unit_of(one).due == [due(1, stream=9)]


def test_without_the_certificate_no_stream_moves() -> None:
    """Two senders may share an address (NAT): the one that shows no certificate is a stranger."""
    shown = {"peer_names": ("cn:orders",)}
    one = posting_shard(queue(access=AccessList(["cn:orders"])))
    assert outcomes(one, part(1, asks=shown), part(2, asks=shown)) == ["accepted", "accepted"]
    unit_of(one)
    for message in (part(3), part(3, asks={"peer_names": ("cn:other",)}), part(1, stream=9)):
        assert decide(one, message).reason == "sender-not-allowed"
    unit = unit_of(one)
    assert (state_of(unit), unit.due, len(unit.rejects)) == ({}, [], 3)
    assert outcomes(one, part(3, asks=shown)) == ["accepted"]


@pytest.mark.parametrize("allowed", ELSEWHERE)
@pytest.mark.parametrize(
    "message",
    [
        part(3, peer="10.66.6.6"),  # from another address
        part(3, source=OTHER),  # in the name of another queue manager
        part(2, peer="10.66.6.6"),
        part(9, peer="10.66.6.6"),
        part(1, stream=9, peer="10.66.6.6"),
        part(1, stream=9, to=f"{TO}2"),  # a stream that has no row
        mail(3),
    ],
)
def test_who_is_kept_out_moves_no_stream_of_others(message: Message, allowed: list[str]) -> None:
    """What `allow` keeps out leaves a verdict and a reject, and nothing that a later message of the
    named source depends on."""
    shut = [
        queue(f"private$\\{name}", transactional=name != "plain", access=AccessList(allowed))
        for name in ("orders", "orders2", "plain")
    ]
    one = posting_shard()
    assert outcomes(one, part(1), part(2)) == ["accepted", "accepted"]
    unit_of(one)
    one.use(Catalogue(LOCAL, shut))
    for _ in range(2):
        assert decide(one, message).reason == "sender-not-allowed"
    unit = unit_of(one)
    assert state_of(unit) == {}
    assert (unit.due, unit.acks, len(unit.rejects)) == ([], [], 2)
    one.use(catalogue())
    assert outcomes(one, part(3), part(1, stream=9)) == ["accepted", "accepted"]


@pytest.mark.parametrize("allowed", ["S-1-1-0", "S-1-5-7", str(SENDER), "10.1.0.0/16"])
def test_who_may_send(allowed: str) -> None:  # SR-26: as Everyone
    shut = queue("private$\\plain", transactional=False, access=AccessList([allowed]))
    assert decide(posting_shard(shut), mail()).outcome is Outcome.ACCEPTED


def test_a_queue_that_wants_signatures_refuses_what_cannot_be_verified() -> None:  # SR-41
    for message in (mail(), mail(signature=bytes(64))):
        verdict = decide(posting_shard(SIGNED), message)
        assert verdict == Verdict(Outcome.REJECTED, 0x8006, "queue-wants-signed-messages")


def test_a_good_digest_is_no_proof() -> None:  # SR-41: marked not authenticated
    one = posting_shard()
    assert decide(one, mail(signature=bytes(64))).outcome is Outcome.ACCEPTED
    (record,) = unit_of(one).records
    assert "msmq.auth" not in record.headers
    assert record.headers["msmq.signature"] == bytes(64)


# -- quotas ---------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [mail(body=LARGE, asks=BOTH), part(1, body=LARGE, asks=BOTH)])
@pytest.mark.parametrize("whole", [True, False])
def test_over_quota_comes_later(message: Message, whole: bool) -> None:  # SR-6, SR-7
    """500 and nothing changed: the sender keeps it, and it is new when it comes again."""
    name = "orders" if message.transaction else "plain"
    settings: dict[str, Any] = {} if whole else {"quota_kb": 1}
    place = queue(f"private$\\{name}", transactional=bool(message.transaction), **settings)
    one = Shard(Catalogue(LOCAL, [place]), Policy(quota_kb=1 if whole else 99), receipts())
    assert [decide(one, message).outcome for _ in range(2)] == [Outcome.BUSY, Outcome.BUSY]
    unit = unit_of(one)
    assert state_of(unit) == {}
    assert (unit.records, unit.rejects, unit.acks, unit.due) == ([], [], [], [])
    assert [entry["verdict"] for entry in entries(unit)] == ["busy", "busy"]
    small = msgspec.structs.replace(message, body=b"")
    assert decide(one, small).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"body": bytes(1000), "soap": "x" * 24}, True),
        ({"body": bytes(1000), "soap": "x" * 25}, False),
        ({"body": b"", "soap": "x" * 1000, "extension": bytes(25)}, False),
        ({"body": b"", "soap": "", "extension": bytes(1024)}, True),
    ],
)
def test_what_counts_against_a_quota(fields: dict[str, Any], fits: bool) -> None:
    """All that it brings: the envelope, the body and the extension."""
    expected = Outcome.ACCEPTED if fits else Outcome.BUSY
    assert decide(posting_shard(FULL), mail(**fields)).outcome is expected


def test_a_duplicate_is_no_matter_of_room() -> None:  # SR-1: the duplicate check comes first
    one = posting_shard()
    decide(one, mail(1))
    one.use(Catalogue(LOCAL, [FULL]))
    assert decide(one, mail(1, body=LARGE)).outcome is Outcome.DUPLICATE


# -- table 5.1 through the shard ------------------------------------------------------------


def test_a_stream_in_order() -> None:  # SR-30, SR-33: rows and messages in one unit
    one = posting_shard()
    assert outcomes(one, part(1), part(2), part(5, 2), part(6)) == ["accepted"] * 4
    unit = unit_of(one)
    assert values(unit) == [b"part 1", b"part 2", b"part 5", b"part 6"]
    assert len({record.partition for record in unit.records}) == 1
    assert unit.due == [due(1), due(2), due(5), due(6)]
    (key,) = state_of(unit)
    assert key == f"posted/{SENDER}/DIRECT={TO}"
    row = msgspec.json.decode(unit.state[key] or b"")
    assert (row["id"], row["number"], row["receipts_to"]) == (STREAM, 6, RECEIPTS)
    assert unit.seen == {}  # SR-25: they skip the table of ids


def test_a_receipt_is_due_with_the_unit_that_holds_its_message() -> None:  # SR-36, design D1
    one = posting_shard()
    decide(one, part(1))
    first = unit_of(one)
    decide(one, part(2))
    assert (first.due, unit_of(one).due, unit_of(one).due) == ([due(1)], [due(2)], [])


@pytest.mark.parametrize(
    ("before", "message", "outcome", "told"),
    [
        ([], part(1, start=None), "out_of_order", []),
        ([], part(2, 0), "out_of_order", []),
        ([part(1)], part(1), "duplicate", [due(1, again=True)]),
        ([part(1), part(2)], part(1), "duplicate", [due(2, again=True)]),
        ([part(1)], part(3), "out_of_order", []),
        ([part(1)], part(2, stream=9), "out_of_order", []),
        ([part(1), part(1, stream=9)], part(1), "duplicate", [due(1, again=True)]),
        ([part(1), part(2), part(1, stream=9)], part(3), "duplicate", [due(2, again=True)]),
        ([part(1)], part(1, stream=9), "accepted", [due(1, stream=9)]),
    ],
)
def test_rows_of_the_table(
    before: list[Message], message: Message, outcome: str, told: list[Due]
) -> None:
    one = posting_shard()
    assert outcomes(one, *before) == ["accepted"] * len(before)
    taken = unit_of(one)
    assert outcomes(one, message) == [outcome]
    unit = unit_of(one)
    assert unit.due == told
    assert len(unit.records) == (outcome == "accepted")
    assert unit.rejects == []
    again = restarted(one, [taken])  # restore gives the same decision
    assert outcomes(again, message) == [outcome]
    assert unit_of(again).due == told


def test_nothing_is_kept_of_a_stream_that_has_no_start() -> None:  # None stays None
    one = posting_shard()
    outcomes(one, part(2), part(1, start=None))
    assert state_of(unit_of(one)) == {}


def test_a_stream_in_the_table_of_ids_would_be_lost() -> None:  # SR-25; V4: one <id> for three
    one = posting_shard()
    same = {"ordinal": 1}
    assert outcomes(one, mail(1)) == ["accepted"]
    parts = [msgspec.structs.replace(part(n), **same) for n in (1, 2, 3)]
    assert outcomes(one, *parts) == ["accepted"] * 3
    assert outcomes(one, mail(2)) == ["accepted"]


def test_two_spellings_are_two_streams() -> None:  # 3.5 D: <to> text as sent
    one = posting_shard()
    other = TO.replace("bridge01", "BRIDGE01.example.com")
    assert outcomes(one, part(1), part(1, to=other), part(2), part(2, to=other)) == ["accepted"] * 4
    assert len(one.posted) == 2


def test_a_redirected_stream_goes_by_what_its_sender_wrote() -> None:  # SR-14, 3.5
    one = posting_shard()
    ext = "http://nat/msmq/ext/a"
    where: dict[str, Any] = {"destination": f"DIRECT={TO}"}
    assert (
        outcomes(one, part(1, to=ext, **where), part(1), part(2, to=ext, **where))
        == ["accepted"] * 3
    )
    unit = unit_of(one)
    assert {record.topic for record in unit.records} == {"orders"}
    assert [due.key[1] for due in unit.due] == [f"DIRECT={ext}", f"DIRECT={TO}", f"DIRECT={ext}"]


def test_the_source_may_change_within_a_stream() -> None:  # 4.4: the GUID of the stream counts
    one = posting_shard()
    assert outcomes(one, part(1), part(2, source=OTHER), part(3)) == ["accepted"] * 3
    records = unit_of(one).records
    assert len({record.partition for record in records}) == 1  # design D2
    assert len({record.key for record in records}) == 1
    assert [record.headers["msmq.source"] for record in records] == [
        str(source).encode() for source in (SENDER, OTHER, SENDER)
    ]


def test_a_receipt_is_told_once_taken() -> None:  # SR-81
    one = posting_shard()
    outcomes(one, part(1), part(2))
    first = unit_of(one)
    assert restarted(one, [first]).posted.unreceipted() == [due(2)]
    one.posted.receipted(due(2))
    assert restarted(one, [first, unit_of(one)]).posted.unreceipted() == []


def test_a_stream_that_nobody_used_ends() -> None:  # SR-84
    one = posting_shard()
    decide(one, part(1))
    first = unit_of(one)
    again = restarted(one, [first])
    assert state_of(unit_of(again, NOW + 91 * 86_400)) == {}  # at the start: is the clock right?
    unit = unit_of(again, NOW + 92 * 86_400)
    assert state_of(unit) == {f"posted/{SENDER}/DIRECT={TO}": None}
    decide(one, part(2))
    assert None not in state_of(unit_of(one, NOW + SWEEP_S)).values()


def test_a_clock_that_was_set_ends_no_stream() -> None:  # SR-84
    one = posting_shard()
    decide(one, part(1))
    for days in (0, 200, 100, 300):
        assert None not in state_of(unit_of(one, NOW + days * 86_400)).values()


def test_state_of_others_is_not_touched() -> None:
    one = posting_shard()
    one.put("identity", b"1")
    outcomes(one, step(1), part(1), mail(1, asks=BOTH), plain(1))
    again = restarted(one, [unit_of(one)])
    assert (len(again.streams), len(again.posted), len(again.outbox)) == (1, 1, 2)
    assert again.kept["identity"] == b"1"
    assert outcomes(again, step(1), part(1), mail(1), plain(1)) == ["duplicate"] * 4


# -- receipts -------------------------------------------------------------------------------


def urls(unit: Unit) -> list[str]:
    return [entry.url for entry in unit.acks]


def test_receipts_are_in_the_unit_of_their_message() -> None:  # SR-42, SR-46, SR-83, design D5
    one = posting_shard()
    decide(one, mail(1, asks=BOTH))
    unit = unit_of(one)
    assert urls(unit) == [DELIVERED, COMMITTED]
    assert [entry.ordinal for entry in unit.acks] == [7001, 7002]
    assert b"<Class>2</Class>" in unit.acks[0].packet
    assert b"<Class>16384</Class>" in unit.acks[1].packet
    for entry in unit.acks:
        assert unit.state[entry.key] == entry.encode()
        assert f"@{LOCAL}".encode() in entry.packet
    assert list(restarted(one, [unit]).outbox.values()) == unit.acks


def test_a_duplicate_gets_no_receipt_again() -> None:  # 5.3: on entry into the queue
    one = posting_shard()
    outcomes(one, mail(1, asks=BOTH), part(1, asks=BOTH))
    unit_of(one)
    assert outcomes(one, mail(1, asks=BOTH), part(1, asks=BOTH)) == ["duplicate", "duplicate"]
    assert unit_of(one).acks == []


def test_no_ack_of_the_binary_protocol_for_what_came_over_http() -> None:
    one = posting_shard()
    admin: dict[str, Any] = {"ack": 0x0F, "admin_queue": "DIRECT=OS:sender01\\private$\\admin"}
    outcomes(one, mail(1, **admin), part(1, journal=JOURNAL_POSITIVE, **admin))
    outcomes(one, mail(2, to=NOBODY, **admin), part(2, to=TO_PLAIN, **admin))
    assert unit_of(one).acks == []


def test_dead_letter_asks_for_a_final_receipt() -> None:  # SR-45
    one = posting_shard()
    outcomes(one, part(1), part(2, journal=JOURNAL_NEGATIVE), part(3, asks=BOTH, journal=1))
    unit = unit_of(one)
    assert urls(unit) == [RECEIPTS, DELIVERED, COMMITTED, RECEIPTS]  # url of message 1
    assert b"<lastOrdinal>2</lastOrdinal>" in unit.acks[0].packet
    assert b"<lastOrdinal>3</lastOrdinal>" in unit.acks[3].packet
    assert f"<streamId>uid:{SENDER}\\{STREAM}</streamId>".encode() in unit.acks[0].packet
    again = restarted(one, [unit])  # the url came only in message 1
    decide(again, part(4, journal=JOURNAL_NEGATIVE))
    assert urls(unit_of(again)) == [RECEIPTS]


def test_a_trace_has_nowhere_to_go() -> None:
    one = posting_shard()
    assert decide(one, mail(1, trace_queue=NULL_GUID)).outcome is Outcome.ACCEPTED
    assert unit_of(one).acks == []


# -- expiry ---------------------------------------------------------------------------------

EXPIRED = [
    LATE,
    {"sent_time": NOW - 11, "time_to_reach_queue": 10},
    {"expires": NOW - 1},
    {"expires": NOW - 1, "time_to_reach_queue": INFINITE},
    {"expires": NOW + 9, **LATE},  # SR-62: the earlier one counts
    {"expires": NOW - 1, "time_to_reach_queue": 345_600},
]
IN_TIME: list[dict[str, Any]] = [
    {"sent_time": NOW - 10, "time_to_reach_queue": 10},
    {"expires": NOW},
    {"expires": 0, "time_to_reach_queue": INFINITE},
    {"sent_time": NOW + 500, "time_to_reach_queue": 0},
]


@pytest.mark.parametrize("late", EXPIRED)
def test_what_comes_late_is_delivered(late: dict[str, Any]) -> None:  # SR-61: the default
    one = posting_shard()
    assert outcomes(one, mail(1, **late), part(1, **late)) == ["accepted", "accepted"]


@pytest.mark.parametrize("late", EXPIRED)
def test_what_comes_late_is_discarded(late: dict[str, Any]) -> None:  # SR-61: the option
    one = posting_shard(discards_expired=True)
    for message in (mail(1, **late), part(1, **late)):
        verdict = decide(one, message)
        assert (verdict.outcome, verdict.message_class) == (Outcome.EXPIRED, 0x8002)
    unit = unit_of(one)
    assert unit.records == []
    assert len(unit.rejects) == 2
    assert unit.due == [due(1)]  # still advanced and acknowledged
    assert outcomes(one, mail(1, **late), part(1), part(2)) == ["duplicate"] * 2 + ["accepted"]


@pytest.mark.parametrize("timely", IN_TIME)
def test_what_comes_in_time_is_not_discarded(timely: dict[str, Any]) -> None:  # SR-62
    one = posting_shard(discards_expired=True)
    assert outcomes(one, mail(1, **timely), part(1, **timely)) == ["accepted", "accepted"]


def test_the_sender_s_clock_may_differ() -> None:
    one = posting_shard(discards_expired=True, clock_skew_s=90)
    assert outcomes(one, mail(1, **LATE), mail(2, expires=NOW - 90)) == ["accepted", "accepted"]
    assert outcomes(one, mail(3, expires=NOW - 91)) == ["expired"]


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ({"commitment_to": COMMITTED, "negative": True}, [COMMITTED]),
        ({"commitment_to": COMMITTED, "positive": True}, []),
        ({"delivery_to": DELIVERED}, []),  # it never was in the queue
        (BOTH, [COMMITTED]),
    ],
)
@pytest.mark.parametrize("late", [LATE, {"expires": NOW - 1}])  # TTrq, expiresAt
def test_receipts_for_what_was_discarded(
    asks: dict[str, Any], told: list[str], late: dict[str, Any]
) -> None:
    """MC-MQSRM 3.1.5.1.5: MQMSG_CLASS_NACK_RECEIVE_TIMEOUT, "the message expired"."""
    one = posting_shard(discards_expired=True)
    outcomes(one, mail(1, asks=asks, **late), mail(1, asks=asks, **late))
    unit = unit_of(one)
    assert urls(unit) == told
    assert all(b"<Class>49154</Class>" in entry.packet for entry in unit.acks)
    assert all(b"<decision>negative</decision>" in entry.packet for entry in unit.acks)
    decide(one, part(1, asks=asks, journal=JOURNAL_NEGATIVE, **late))
    unit = unit_of(one)
    assert urls(unit) == [*told, RECEIPTS]  # and a negative final receipt
    assert b"<Class>49154</Class>" in unit.acks[-1].packet
    assert b"<lastOrdinal>1</lastOrdinal>" in unit.acks[-1].packet


def test_dead_letters() -> None:  # SR-66: non-stream, with DeadLetter
    one = posting_shard(discards_expired=True)
    outcomes(one, mail(1, **LATE), mail(2, journal=JOURNAL_POSITIVE, **LATE))
    outcomes(one, part(1, journal=JOURNAL_NEGATIVE, **LATE))
    assert unit_of(one).records == []
    decide(one, mail(3, journal=JOURNAL_NEGATIVE, **LATE))
    (record,) = unit_of(one).records
    assert (record.topic, record.value) == ("dead", b"mail 3")


# -- topics and sizes -----------------------------------------------------------------------


def open_ended(**limits: TopicLimits) -> Shard:
    defaults = Defaults(unknown="auto-create")
    made = Catalogue.of(LOCAL, Mappings(defaults=defaults), limits, "_msmq-bridge.")
    return Shard(made, Policy(), receipts())


def test_a_queue_that_is_made_for_its_name() -> None:
    one = open_ended()
    (topic,) = one.unknown_topics([mail(to=NOBODY)])
    one._catalogue.learn(topic, TopicLimits(3))
    assert outcomes(one, mail(to=NOBODY), part(1, to=NOBODY)) == ["accepted", "accepted"]


@pytest.mark.parametrize("asks", [NOT_HERE, ODD, FLAWED])
def test_nobody_makes_topics_for_what_is_refused_anyway(asks: dict[str, Any]) -> None:
    one = open_ended()
    assert one.unknown_topics([mail(to=NOBODY, asks=asks)]) == set()
    assert one.unknown_topics([part(1, to=NOBODY, asks=asks)]) == set()


def test_a_topic_that_cannot_be_made_leaves_the_stream_as_it_is() -> None:  # SR-24
    one = open_ended()
    for _ in range(2):
        assert decide(one, part(1, to=NOBODY, asks=BOTH)).reason == "topic-cannot-be-made"
        assert decide(one, mail(1, to=NOBODY, asks=BOTH)).reason == "topic-cannot-be-made"
    unit = unit_of(one)
    assert state_of(unit) == {}
    assert (unit.acks, unit.due) == ([], [])


def test_what_no_topic_takes_leaves_the_stream_as_it_is() -> None:  # SR-24
    one = posting_shard(queue(max_bytes=2000))
    verdict = decide(one, part(1, body=bytes(3000)))
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, "larger-than-the-topic-takes")
    assert state_of(unit_of(one)) == {}
    assert decide(one, part(1)).outcome is Outcome.ACCEPTED


def test_the_envelope_counts_against_the_topic() -> None:  # msmq.soap is a header
    one = posting_shard(queue(max_bytes=2000))
    assert decide(one, part(1, soap="x" * 2000)).reason == "larger-than-the-topic-takes"


COMPOUND = HeaderRules(include=("msmq.id", "msmq.soap.compound"))


@pytest.mark.parametrize("late", [{}, LATE])
def test_no_reject_is_larger_than_our_topics_take(late: dict[str, Any]) -> None:
    """A whole request repeats the body; both together would stop the shard for good."""
    place = queue("private$\\plain", transactional=False, max_bytes=6 << 20, headers=COMPOUND)
    one = posting_shard(place, discards_expired=True)
    body = bytes(4 << 20)
    message = mail(body=body, soap_compound=b"POST / HTTP/1.1\r\n" + body, journal=1, **late)
    assert decide(one, message).outcome is (Outcome.EXPIRED if late else Outcome.REJECTED)
    unit = unit_of(one)
    (reject,) = unit.rejects
    assert reject.value == body
    assert reject.headers["msmq.soap"] == b"<se:Envelope/>"
    for record in (reject, *unit.records):
        assert size_of(record) < REJECTS_LIMIT
    assert len(unit.records) == bool(late)  # the dead letter
