"""`oversize: chunk | claim-check`: design 3.3, D7: a large body is never dropped."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.chunks import CHUNK_HEADERS, MAX_CHUNKS, claim, fit, join, redeem, split
from bridge.core.mapping import size_of
from bridge.core.mapping_rules import QueueSettings
from bridge.core.ports import Claim, Record

ID = b"11111111-2222-3333-4444-555555555555\\1"
BODY = bytes(range(256)) * 40
RECORD = Record(
    topic="orders",
    value=BODY,
    key=b"key",
    headers={"msmq.id": ID, "msmq.label": b"x" * 300},
    partition=3,
    timestamp_ms=1_700_000_000_000,
)


def test_a_topic_gets_what_the_mapping_says() -> None:
    most = size_of(RECORD)
    for oversize in ("reject", "chunk", "claim-check"):
        settings = QueueSettings(oversize=oversize)
        assert fit(RECORD, most, settings) == ([RECORD], [])
    assert fit(RECORD, most - 1, QueueSettings()) == ([], [])
    assert fit(RECORD, most - 1, QueueSettings(oversize="chunk")) == (split(RECORD, most - 1), [])
    small, left = claim(RECORD)
    assert fit(RECORD, most - 1, QueueSettings(oversize="claim-check")) == ([small], [left])
    for oversize in ("chunk", "claim-check"):  # no room even for the headers
        assert fit(RECORD, 100, QueueSettings(oversize=oversize)) == ([], [])  # type: ignore[arg-type]


def test_what_fits_stays_as_it_is() -> None:
    assert split(RECORD, size_of(RECORD)) == [RECORD]
    assert len(split(RECORD, size_of(RECORD) - 1)) == 2
    assert join([RECORD]) is RECORD


def test_chunks_say_where_they_belong() -> None:
    chunks = split(RECORD, 3000)
    assert b"".join(chunk.value for chunk in chunks) == BODY
    for index, chunk in enumerate(chunks):
        assert size_of(chunk) <= 3000
        assert (chunk.topic, chunk.key, chunk.partition) == ("orders", b"key", 3)
        assert chunk.timestamp_ms == RECORD.timestamp_ms
        assert {name: chunk.headers[name] for name in CHUNK_HEADERS} == {
            "msmq.chunk.id": ID,
            "msmq.chunk.index": b"%d" % index,
            "msmq.chunk.count": b"%d" % len(chunks),
            "msmq.chunk.size": b"10240",
            "msmq.chunk.sha256": sha256(BODY).hexdigest().encode(),
        }
    assert chunks[0].headers.items() >= RECORD.headers.items()
    assert all(chunk.headers.keys() == set(CHUNK_HEADERS) for chunk in chunks[1:])
    assert RECORD.headers.keys() == {"msmq.id", "msmq.label"}  # not touched


def test_the_id_when_the_record_has_none() -> None:
    bare = replace(RECORD, headers={})
    assert split(bare, 3000, "guid\\7")[1].headers["msmq.chunk.id"] == b"guid\\7"
    found = split(bare, 3000)[1].headers
    assert found["msmq.chunk.id"] == found["msmq.chunk.sha256"]


@given(
    st.binary(max_size=5000) | st.integers(0, 50_000).map(bytes),
    st.none() | st.binary(max_size=50),
    st.dictionaries(st.text(max_size=20), st.binary(max_size=100), max_size=5),
    st.integers(0, 6000),
)
def test_split_and_join(
    value: bytes, key: bytes | None, headers: dict[str, bytes], limit: int
) -> None:
    record = Record(topic="t", value=value, key=key, headers=headers, partition=1)
    try:
        chunks = split(record, limit)
    except ValueError:
        empty = replace(record, value=b"")
        assert limit < size_of(empty) + 450 or len(value) > MAX_CHUNKS
        return
    assert all(size_of(chunk) <= limit for chunk in chunks)
    assert all(chunk.value for chunk in chunks[1:])
    assert join(chunks) == record


def test_no_room() -> None:
    with pytest.raises(ValueError, match=r"the headers alone are \d+ bytes over the limit of 500"):
        split(RECORD, 500)
    bare = replace(RECORD, headers={}, value=bytes(1_000_000))
    with pytest.raises(ValueError, match=f"1000000 bytes do not fit {MAX_CHUNKS} records of 480"):
        split(bare, 480)


CHUNKS = split(RECORD, 3000)


def _with(chunk: Record, **headers: bytes) -> Record:
    marks = {f"msmq.chunk.{name}": data for name, data in headers.items()}
    return replace(chunk, headers=chunk.headers | marks)


@pytest.mark.parametrize(
    ("chunks", "what"),
    [
        ([], "there are no chunks"),
        (CHUNKS[:-1], f"there are {len(CHUNKS) - 1} chunks of {len(CHUNKS)}"),
        ([*CHUNKS, CHUNKS[-1]], f"there are {len(CHUNKS) + 1} chunks of {len(CHUNKS)}"),
        ([CHUNKS[0], CHUNKS[2], CHUNKS[1], *CHUNKS[3:]], "chunk 2 stands where 1 should be"),
        ([CHUNKS[0], CHUNKS[1], CHUNKS[1], *CHUNKS[3:]], "chunk 1 stands where 2 should be"),
        ([*CHUNKS[:-1], _with(CHUNKS[-1], id=b"other")], "another msmq.chunk.id than the first"),
        ([*CHUNKS[:-1], _with(CHUNKS[-1], sha256=b"0")], "another msmq.chunk.sha256 than"),
        ([*CHUNKS[:-1], replace(CHUNKS[-1], headers={})], "another msmq.chunk.id than the first"),
        ([*CHUNKS[:-1], replace(CHUNKS[-1], partition=0)], "another topic, partition or key"),
        ([*CHUNKS[:-1], replace(CHUNKS[-1], value=b"")], "bytes of 10240"),
        ([_with(CHUNKS[0], count=b"-1"), *CHUNKS[1:]], "msmq.chunk.count is not a number: b'-1'"),
        ([_with(CHUNKS[0], count=b"9" * 5000), *CHUNKS[1:]], "msmq.chunk.count is not a number"),
        ([RECORD, RECORD], "msmq.chunk.count is not a number: b''"),
    ],
)
def test_what_is_not_whole_is_not_joined(chunks: list[Record], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        join(chunks)


def test_an_altered_chunk() -> None:
    altered = replace(CHUNKS[1], value=bytes(len(CHUNKS[1].value)))
    with pytest.raises(ValueError, match="SHA-256"):
        join([CHUNKS[0], altered, *CHUNKS[2:]])


ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1


def test_a_claim_check() -> None:
    small, left = claim(replace(RECORD, value=b"abc"))
    assert left == Claim(name=f"ba/78/{ABC}", data=b"abc")
    assert json.loads(small.value) == {"claim": ABC, "size": 3}
    assert small.headers == RECORD.headers | {
        "msmq.claim.sha256": ABC.encode(),
        "msmq.claim.size": b"3",
        "msmq.claim.path": f"ba/78/{ABC}".encode(),
    }
    assert (small.key, small.partition, small.topic) == (b"key", 3, "orders")


@given(st.binary(max_size=300))
def test_claim_and_redeem(value: bytes) -> None:
    record = replace(RECORD, value=value)
    small, left = claim(record)
    assert redeem(small, left.data) == record
    assert claim(record) == (small, left)  # the same again: a repeated write changes nothing
    with pytest.raises(ValueError, match="are not those of claim"):
        redeem(small, value + b"x")
