"""What becomes an event: chunks, claims, renamed headers, records of others."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.core.mapping_rules import HeaderRules
from msmq_jobs.reconcile import ledgers
from msmq_jobs.reconcile.events import HASHES
from msmq_jobs.reconcile.ledgers import HeaderNames
from msmq_jobs.reconcile.rules import Kind
from tests.spark.letters import mappings
from tests.spark.reconcile.world import PLAIN, RECORD, SENDERS, Copy, Place, Seen, record

SEEN = Seen(7, PLAIN)
NONSENSE = {
    "x-sent": b"9" * 19,
    "x-arrived": b"9" * 18,
    "x-class": b"?",
    "x-tx.seqid": b"9" * 20,
    "x-tx.seq": b"\xff",
}


def made(offset: int, headers: dict[str, bytes], value: bytes) -> tuple[Any, ...]:
    row = list(record(Place(SEEN, Copy(), "plain", 0, offset)))
    row[1] = bytearray(value)
    row[6] = [{"key": k, "value": bytearray(v)} for k, v in headers.items()]
    return tuple(row)


def chunk(offset: int, index: int, part: bytes, whole: bytes, count: int = 3) -> tuple[Any, ...]:
    marks = {
        "msmq.chunk.id": SEEN.id.encode(),
        "msmq.chunk.index": b"%d" % index,
        "msmq.chunk.count": b"%d" % count,
        "msmq.chunk.size": b"%d" % len(whole),
        "msmq.chunk.sha256": sha256(whole).hexdigest().encode(),
    }
    first = {"msmq.id": SEEN.id.encode(), "msmq.queue": PLAIN.encode(), "msmq.sent": b"5"}
    return made(offset, (first if index == 0 else {}) | marks, part)


def test_landed_records(spark: SparkSession) -> None:
    """All cases in one pass: Spark's plans cost more than its rows."""
    renamed = HeaderNames.of(mappings(headers=HeaderRules(rename={"msmq.id": "id"}, prefix="x-")))
    rows = [
        made(1, {"id": SEEN.id.upper().encode(), "x-queue": PLAIN.encode()}, b"v"),
        made(2, {"id": b"a\\1"}, b"v"),  # its topic has one queue
        made(3, {"other": b"x"}, b"of somebody else"),
        (*made(4, {}, b"v")[:6], None),  # no headers at all
        made(5, {"msmq.backfill": b'{"run": "r", "id": "b\\\\2", "queue": "q"}'}, b"v"),
        made(6, {"id": b"c\\3", "x-queue": b"q"} | NONSENSE, b"v"),
        (None, None, *made(7, {"id": b"d\\4", "x-queue": b"q"}, b"")[2:]),
    ]
    frame = spark.createDataFrame(rows, RECORD)
    found = ledgers.landed(frame, renamed, {"plain": "private$\\Plain"}).collect()
    told = {row["offset"]: (row["message_id"], row["name"], row["run"]) for row in found}
    assert told == {
        1: (SEEN.id, PLAIN, None),
        2: ("a\\1", "private$\\Plain", None),
        5: ("b\\2", "q", "r"),
        6: ("c\\3", "q", None),
        7: ("d\\4", "q", None),
    }
    (none,) = (row for row in found if row["offset"] == 7)  # no value is compared, too
    assert (none["body_crc"], none["body_sha"] is None) == (0, False)
    (odd,) = (row for row in found if row["offset"] == 6)  # one that anybody may write ends no run
    assert [odd[name] for name in ("sent", "sequence", "number", "class")] == [None, None, None, 0]
    assert odd["at"] == SEEN.at
    assert ledgers.foreign(frame, renamed).count() == 2


def test_chunks_are_one_copy_when_whole(spark: SparkSession) -> None:
    whole = b"abcdefgh"
    parts = [whole[:3], whole[3:6], whole[6:]]
    rows = [chunk(10 + n, n, part, whole) for n, part in enumerate(parts)]
    again = [chunk(20 + n, n, part, whole) for n, part in enumerate(parts)]
    plain = made(30, {"msmq.id": SEEN.id.encode(), "msmq.queue": PLAIN.encode()}, whole)
    frame = spark.createDataFrame([*rows, *again[:2], plain], RECORD)
    found = ledgers.joined(frame).collect()
    kinds = sorted((row["offset"], row["kind"]) for row in found)
    assert kinds == [(10, Kind.LANDED), (20, Kind.PARTIAL)]
    (same,) = ledgers.landed(frame).collect()
    first = next(row for row in found if row["offset"] == 10)
    assert (first["body_sha"], first["body_crc"]) == (same["body_sha"], same["body_crc"])
    assert first["message_id"] == SEEN.id
    # Half of it is compared with nothing: a backfill may bring it whole.
    half = next(row for row in found if row["offset"] == 20)
    assert {half[name] for name in (*HASHES, "domain")} == {None}


def test_a_claim_is_compared_by_its_hash(spark: SparkSession) -> None:
    body = b"far away"
    known = {"msmq.id": SEEN.id.encode(), "msmq.queue": PLAIN.encode()}
    claim = known | {"msmq.claim.sha256": sha256(body).hexdigest().encode()}
    frame = spark.createDataFrame([made(1, known, body), made(2, claim, b"{}")], RECORD)
    one, two = ledgers.landed(frame).orderBy("offset").collect()
    assert one["body_sha"] == two["body_sha"]
    assert two["body_crc"] is None
    # That of an envelope is not the body's.
    _, inside = ledgers.landed(frame, is_envelope=F.lit(True)).orderBy("offset").collect()
    assert inside["body_sha"] is None


def test_a_stream_that_headers_do_not_tell(spark: SparkSession) -> None:
    """A mapping may leave out the source: the id has it. Without destination or transport nobody
    can tell streams apart, so order is judged within a sequence."""
    whole = {"msmq.queue": b"q", "msmq.dest": b"d", "msmq.transport": b"binary"}
    cases: list[tuple[bytes, bytes, dict[str, bytes]]] = [
        *((b"a\\1", b"1", whole), (b"a\\2", b"2", whole), (b"b\\1", b"1", whole)),
        *((b"a\\3", n, {"msmq.queue": b"q", "msmq.dest": b"d"}) for n in (b"1", b"2")),
        *((b"a\\4", n, {"msmq.queue": b"q", "msmq.transport": b"binary"}) for n in (b"1", b"2")),
    ]
    rows = [
        made(at, known | {"msmq.id": id_, "msmq.tx.seqid": sequence, "msmq.tx.seq": b"1"}, b"v")
        for at, (id_, sequence, known) in enumerate(cases)
    ]
    found = ledgers.landed(spark.createDataFrame(rows, RECORD)).orderBy("offset").collect()
    domains = [row["domain"] for row in found]
    assert domains[0] == domains[1]
    assert len(set(domains[1:])) == 6


def test_headers_of_other_names_are_those_that_mappings_make() -> None:
    assert HeaderNames.of(mappings()).names["msmq.id"] == ("msmq.id",)
    assert replace(SEEN, sender=SENDERS[1]).id.startswith(SENDERS[1])
