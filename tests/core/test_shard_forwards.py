"""Messages for other hosts in a shard: SR-13, SR-15, SR-61 to SR-65; design D1, D6."""

from typing import Any
from zlib import crc32

import pytest
from msgspec.structs import replace

from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue
from bridge.core.forwards import MAX_BYTES, Ending, Refused, Room
from bridge.core.mapping import size_of
from bridge.core.mapping_rules import Defaults, Mappings
from bridge.core.ports import Forward, Snapshot, Unit
from bridge.core.shard import Shard
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict
from tests.core.letters import FAR, envelope, letter, step, waiting
from tests.core.messages import LOCAL, NOW, catalogue, receipts
from tests.core.posts import PEER, mail, posting_shard
from tests.core.units import entries, restarted
from tests.wire.srmp.build import QM, SERVICES, TO

WAITS = Verdict(Outcome.FORWARDED, 0, "waits-for-the-next-hop")
LATER = NOW * 1000 + 5000
ID = f"{QM}\\7"


def decide(one: Shard, message: Message) -> Verdict:
    (verdict,) = one.admit([message])
    return verdict


def unit_of(one: Shard) -> Unit:
    return one.take_unit(NOW)[1]


def rows_of(unit: Unit) -> dict[str, bytes | None]:
    return {key: value for key, value in unit.state.items() if key != "unit"}


def test_it_is_stored_and_nothing_else_happens() -> None:  # SR-15: no further processing
    one = posting_shard()
    message = letter(envelope(7, SERVICES, step(1)))
    assert decide(one, message) == WAITS
    unit = unit_of(one)
    forward = waiting(message)
    assert unit.forwards == [forward]  # once committed it may leave
    assert rows_of(unit) == {"forward/7001": forward.encode()}
    assert (unit.records, unit.rejects, unit.acks, unit.due, unit.seen) == ([], [], [], [], {})
    assert unit_of(one).forwards == []


def test_its_verdict_says_where_to() -> None:  # design D6
    one = posting_shard()
    decide(one, letter())
    (entry,) = entries(unit_of(one))
    assert entry == {
        "id": ID,
        "verdict": "forwarded",
        "reason": "waits-for-the-next-hop",
        "at": NOW * 1000,
        "dest": f"DIRECT={FAR}",
        "peer": PEER,
        "transport": "http",
        "label": "a",
        "crc32": crc32(letter().body),
    }


def test_no_rule_of_a_queue_is_asked() -> None:
    """It may bear the name of one of ours, be of any kind, and be wrongly signed: routing comes
    first (SR-1)."""
    one = posting_shard()
    changes: list[dict[str, Any]] = [{"flaw": "digest"}, {"is_known": False}, {"starts": True}]
    for number, change in enumerate(changes, 1):
        message = letter(envelope(number), url="http://far02/msmq/private$/plain")
        assert message.srmp is not None
        assert decide(one, replace(message, srmp=replace(message.srmp, **change))) == WAITS
    assert len(unit_of(one).forwards) == 3


def test_no_duplicate_is_suppressed() -> None:
    one = posting_shard()
    assert [decide(one, letter()) for _ in range(2)] == [WAITS, WAITS]
    assert [forward.ordinal for forward in unit_of(one).forwards] == [7001, 7002]


def test_a_stream_message_whose_copy_waits_is_not_stored_again() -> None:
    one = posting_shard()
    first = letter(envelope(7, step(1)))
    assert decide(one, first) == WAITS
    again = Verdict(Outcome.DUPLICATE, 0, "waits-for-the-next-hop")
    assert decide(one, first) == again
    unit = unit_of(one)
    assert len(unit.forwards) == 1
    assert [entry["verdict"] for entry in entries(unit)] == ["forwarded", "duplicate"]
    one.ended(7001, Ending.TAKEN, LATER)
    assert decide(one, first) == WAITS


def test_a_stranger_s_copy_does_not_stand_for_the_sender_s_message() -> None:
    """Else 200 would leave for a message that is stored nowhere."""
    one = posting_shard()
    strange = replace(letter(envelope(7, step(2))), peer="10.66.6.6", body=b"other")
    assert decide(one, strange) == WAITS
    assert decide(one, letter(envelope(7, step(2)))) == WAITS
    assert len(unit_of(one).forwards) == 2


REFUSED = Verdict(Outcome.REJECTED, 0x8000, "refused-by-the-next-hop")


def test_what_the_next_hop_refused_is_refused_when_it_comes_again() -> None:
    """MC-MQSRM 3.1.7.2.5: on 400 "the sending QM MUST delete the message". It has heard 200 from us
    and gets no receipt from there: it sends message 2 again."""
    one = posting_shard()
    assert decide(one, letter(envelope(7, step(2)))) == WAITS
    one.ended(7001, Ending.REFUSED, LATER)
    assert decide(one, letter(envelope(7, step(2)))) == REFUSED
    unit = unit_of(one)
    assert rows_of(unit).get("forward/7001") is None
    assert len(unit.rejects) == 2
    assert decide(one, letter(envelope(8, step(3)))) == WAITS  # the next one goes on


@pytest.mark.parametrize("change", [{"peer": "10.66.6.6"}, {"body": b"other"}, {"ordinal": 9}])
def test_another_s_message_is_not_refused_for_it(change: dict[str, Any]) -> None:
    """A stranger may use the stream id and the number of an honest sender."""
    one = posting_shard()
    assert decide(one, letter(envelope(7, step(2)))) == WAITS
    one.ended(7001, Ending.REFUSED, LATER)
    assert decide(one, replace(letter(envelope(7, step(2))), **change)) == WAITS


@pytest.mark.parametrize("ending", [Ending.TAKEN, Ending.EXPIRED])
def test_only_a_400_is_repeated(ending: Ending) -> None:
    one = posting_shard()
    assert decide(one, letter(envelope(7, step(2)))) == WAITS
    one.ended(7001, ending, LATER)
    assert decide(one, letter(envelope(7, step(2)))) == WAITS


def test_a_plain_message_is_asked_for_again() -> None:
    """Its sender has forgotten it since our 200: the same id is another message."""
    one = posting_shard()
    assert decide(one, letter()) == WAITS
    one.ended(7001, Ending.REFUSED, LATER)
    assert decide(one, letter()) == WAITS


def test_refusals_of_next_hops_are_bounded() -> None:
    known = Refused(most=3)
    messages = [letter(envelope(n, step(n))) for n in range(1, 6)]
    for message in messages:
        known.add(message)
    assert [known.has(message) for message in messages] == [False, False, True, True, True]
    known.add(letter())
    assert len(known) == 3


def test_no_topic_is_made_for_it() -> None:  # wildcards: find() knows any name
    anything = Catalogue.of(LOCAL, Mappings(defaults=Defaults(unknown="auto-create")), {}, "own.")
    one = Shard(anything, Policy(), receipts())
    assert one.unknown_topics([mail(1)]) != set()
    assert one.unknown_topics([letter()]) == set()


@pytest.mark.parametrize(
    "via",
    [[f"1.1 {LOCAL}"], ["1.1 other", f"1.0 {LOCAL} (x)"], [f"1.1 h{n}" for n in range(29)]],
)
def test_what_goes_round_ends(via: list[str]) -> None:  # RFC 9110 7.6.3; QB: 29 hops
    one = posting_shard()
    assert decide(one, letter(via=via)) == Verdict(Outcome.REJECTED, 0x8005, "too-many-hops")
    unit = unit_of(one)
    assert (rows_of(unit), unit.forwards) == ({}, [])
    (reject,) = unit.rejects
    assert reject.headers["__connect.errors.stage"] == b"ADMISSION"


def test_a_long_way_is_no_circle() -> None:
    assert decide(posting_shard(), letter(via=[f"1.1 h{n}" for n in range(28)])) == WAITS


LATE = letter(envelope(expires="20231114T221319"))  # a second before it came


def test_what_is_late_is_dropped_if_asked_for() -> None:  # SR-61: 200
    one = posting_shard(discards_expired=True)
    assert decide(one, LATE).outcome is Outcome.EXPIRED
    unit = unit_of(one)
    assert (unit.forwards, len(unit.rejects)) == ([], 1)
    assert decide(posting_shard(), LATE) == WAITS


# -- bounds ---------------------------------------------------------------------------------


def test_the_quota_of_the_machine() -> None:  # SR-6: 500, no change
    size = waiting().size
    one = posting_shard(quota_kb=2 * size // 1024 + 1)
    assert [decide(one, letter()) for _ in range(2)] == [WAITS, WAITS]
    assert decide(one, letter()) == Verdict(Outcome.BUSY, 0, "machine-quota")
    unit = unit_of(one)
    assert len(unit.forwards) == 2
    assert entries(unit)[-1]["verdict"] == "busy"
    one.ended(7001, Ending.TAKEN, LATER)
    assert decide(one, letter()) == WAITS


def test_shards_share_the_quota() -> None:
    room = Room(waiting().size)
    one, two = (Shard(catalogue(), Policy(), receipts(), room) for _ in range(2))
    assert decide(one, letter()) == WAITS
    assert decide(two, letter()).outcome is Outcome.BUSY
    one.restore(Snapshot({}, []))  # it was not committed
    assert room.used == 0
    assert decide(two, letter()) == WAITS


def test_no_row_is_larger_than_the_state_topic_takes() -> None:  # it would stop the shard
    one = posting_shard()
    message = letter()
    assert message.srmp is not None
    assert message.srmp.onward is not None
    huge = replace(message.srmp.onward, packet=bytes(MAX_BYTES))
    verdict = decide(one, replace(message, srmp=replace(message.srmp, onward=huge)))
    assert (verdict.outcome, verdict.message_class) == (Outcome.REJECTED, 0x8003)  # 400
    assert unit_of(one).forwards == []


def test_the_largest_request_fits() -> None:  # 5 MiB, of which 4 are the envelope
    soap = envelope().replace(b"<se:Body>", b"<se:Body>" + b"x" * ((4 << 20) - 2000))
    one = posting_shard()
    assert decide(one, letter(soap, bytes(1 << 20))) == WAITS
    (row,) = rows_of(unit_of(one)).values()
    assert row is not None
    assert len(row) < 8 << 20
    one.ended(7001, Ending.REFUSED, LATER)
    (reject,) = unit_of(one).rejects
    assert size_of(reject) < 8 << 20


def test_no_reject_over_http_is_larger_than_our_topics_take() -> None:
    """What the envelope says is in headers too; twice four megabytes and the body."""
    names = " ".join(["http://a/" + "x" * 2000] * 2080)
    soap = envelope(flags=f"<DeadLetter/><DestinationMqf>{names}</DestinationMqf>")
    one = posting_shard(discards_expired=True)
    message = replace(letter(soap, bytes(900_000)), srmp=LATE.srmp, expires=NOW - 1)
    assert decide(one, message).outcome is Outcome.EXPIRED
    unit = unit_of(one)
    for record in (*unit.rejects, *unit.records):
        assert size_of(record) < 8 << 20
        assert record.headers["msmq.soap"] == soap
        assert record.value == bytes(900_000)
    assert (len(unit.rejects), len(unit.records)) == (1, 1)


# -- how it ends ----------------------------------------------------------------------------


def kept(message: Message | None = None) -> Shard:
    """A shard in which it waits, committed."""
    one = posting_shard()
    decide(one, message or letter())
    unit_of(one)
    return one


def test_taken() -> None:
    one = kept()
    one.ended(7001, Ending.TAKEN, LATER)
    unit = unit_of(one)
    assert rows_of(unit) == {"forward/7001": None}
    (entry,) = entries(unit)
    assert (entry["verdict"], entry["reason"]) == ("forwarded", "taken-by-the-next-hop")
    assert (entry["id"], entry["at"], entry["label"]) == (ID, LATER, "a")
    assert (unit.rejects, unit.records) == ([], [])
    assert len(one.forwards) == 0


@pytest.mark.parametrize(
    ("ending", "verdict", "message_class", "name", "reason"),
    [
        (Ending.REFUSED, "rejected", 0x8000, b"NACK_BAD_DST_Q", "refused-by-the-next-hop"),
        (
            Ending.EXPIRED,
            "expired",
            0x8002,
            b"NACK_REACH_QUEUE_TIMEOUT",
            "time-to-reach-queue-over",
        ),
    ],
)
def test_not_taken(
    ending: Ending, verdict: str, message_class: int, name: bytes, reason: str
) -> None:  # design D6: row, reject and verdict in one transaction
    soap = envelope(label="lost", expires="20231114T221420")
    one = kept(letter(soap, b"the body"))
    one.ended(7001, ending, LATER)
    unit = unit_of(one)
    assert rows_of(unit) == {"forward/7001": None}
    (entry,) = entries(unit)
    assert (entry["verdict"], entry["class"]) == (verdict, message_class)
    assert (entry["reason"], entry["at"], entry["dest"]) == (reason, LATER, f"DIRECT={FAR}")
    (reject,) = unit.rejects
    assert (reject.key, reject.value, reject.timestamp_ms) == (ID.encode(), b"the body", LATER)
    errors = {k: v for k, v in reject.headers.items() if k.startswith("__connect")}
    assert errors == {
        "__connect.errors.topic": b"",
        "__connect.errors.connector.name": b"msmq-bridge",
        "__connect.errors.stage": b"FORWARDING",
        "__connect.errors.exception.class.name": name,
        "__connect.errors.exception.message": reason.encode(),
    }
    assert reject.headers["msmq.soap"] == soap  # with `<to>` as it came
    assert TO.encode() in soap
    assert reject.headers["msmq.dest"] == f"DIRECT={FAR}".encode()
    assert unit.records == []  # it asked for no dead letter


@pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.EXPIRED])
def test_a_dead_letter_for_who_asked_for_it(ending: Ending) -> None:  # SR-65
    one = kept(letter(envelope(flags="<DeadLetter/>")))
    one.ended(7001, ending, LATER)
    (record,) = unit_of(one).records
    assert (record.topic, record.value) == ("dead", b"body")
    stream = kept(letter(envelope(7, step(1), flags="<DeadLetter/>")))
    stream.ended(7001, ending, LATER)
    assert unit_of(stream).records == []  # its sender still has it


def test_an_end_is_told_once() -> None:
    one = kept()
    for ending in (Ending.TAKEN, Ending.REFUSED):
        one.ended(7001, ending, LATER)
    one.ended(9999, Ending.EXPIRED, LATER)
    unit = unit_of(one)
    assert len(entries(unit)) == 1
    assert unit.rejects == []


def test_after_a_restart_all_that_waits_is_there_in_order() -> None:
    one = posting_shard()
    units = []
    for number in range(1, 5):
        decide(one, letter(envelope(number, step(number)), b"%d" % number))
        units.append(unit_of(one))
    one.ended(7002, Ending.TAKEN, LATER)
    units.append(unit_of(one))
    fresh = restarted(one, units)
    forwards: list[Forward] = [forward for unit in units for forward in unit.forwards]
    assert list(fresh.forwards) == [forwards[0], *forwards[2:]]
    assert len(fresh.outbox) == 0
    assert fresh.forwards.size == one.forwards.size
    assert decide(fresh, letter(envelope(3, step(3)))).outcome is Outcome.DUPLICATE
