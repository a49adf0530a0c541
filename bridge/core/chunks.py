"""A record that is larger than its topic takes: `oversize: chunk` and `oversize: claim-check`.

Chunks are records of the same topic, partition, key and timestamp, one after the other. Each has

| Header | |
|---|---|
| msmq.chunk.id | the message id: which chunks belong together |
| msmq.chunk.index | 0, 1, … |
| msmq.chunk.count | how many there are |
| msmq.chunk.size | bytes of the whole value |
| msmq.chunk.sha256 | of the whole value, hex |

and the first has all other headers too. Values put together in this order are the whole value.
These headers are added last: no rule of the mapping renames them.

A claim check leaves the value in a store, under its own SHA-256 (so the same value is stored once
and a repeated write changes nothing), and the record says where: `{"claim": "<sha256>", "size":
n}`, with the headers msmq.claim.sha256, msmq.claim.size and msmq.claim.path.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.core.mapping import size_of
from bridge.core.mapping_rules import QueueSettings
from bridge.core.ports import Claim, Headers, Record

MAX_CHUNKS: Final = 10_000  # a limit that needs more is a mistake

ID: Final = "msmq.chunk.id"
INDEX: Final = "msmq.chunk.index"
COUNT: Final = "msmq.chunk.count"
SIZE: Final = "msmq.chunk.size"
SHA256: Final = "msmq.chunk.sha256"
CHUNK_HEADERS: Final = (ID, INDEX, COUNT, SIZE, SHA256)

CLAIM_SHA256: Final = "msmq.claim.sha256"
CLAIM_SIZE: Final = "msmq.claim.size"
CLAIM_PATH: Final = "msmq.claim.path"
CLAIM_HEADERS: Final = (CLAIM_SHA256, CLAIM_SIZE, CLAIM_PATH)


def fit(
    record: Record, max_bytes: int, mapping: QueueSettings, message_id: str = ""
) -> tuple[list[Record], list[Claim]]:
    """What goes into the topic in place of a record, by the mapping's `oversize`, and what goes
    to a store before it. No records: refuse the message."""
    if size_of(record) <= max_bytes:
        return [record], []
    match mapping.oversize:
        case "chunk":
            try:
                return split(record, max_bytes, message_id), []
            except ValueError:  # no room even for the headers
                return [], []
        case "claim-check":
            small, left = claim(record, mapping.claims or "")
            if size_of(small) <= max_bytes:
                return [small], [left]
    return [], []


def split(record: Record, max_bytes: int, message_id: str = "") -> list[Record]:
    """Records that fit, one if it fits as it is.

    `message_id` when the rules of the mapping took `msmq.id` out of the record. Raises ValueError
    if there is no room for the headers, or for too little beside them.
    """
    if size_of(record) <= max_bytes:
        return [record]
    value = record.value
    whole = sha256(value).hexdigest().encode()
    marks: Headers = {
        ID: message_id.encode() or record.headers.get("msmq.id") or whole,
        INDEX: b"%d" % MAX_CHUNKS,  # as wide as it may become
        COUNT: b"%d" % MAX_CHUNKS,
        SIZE: b"%d" % len(value),
        SHA256: whole,
    }
    first = max_bytes - size_of(replace(record, value=b"", headers=record.headers | marks))
    others = max_bytes - size_of(replace(record, value=b"", headers=marks))
    if first < 0:
        raise ValueError(f"the headers alone are {-first} bytes over the limit of {max_bytes}")
    count = 1 + -(-(len(value) - first) // max(others, 1))
    if others <= 0 or count > MAX_CHUNKS:
        raise ValueError(f"{len(value)} bytes do not fit {MAX_CHUNKS} records of {max_bytes}")
    marks[COUNT] = b"%d" % count
    starts = [0, *range(first, len(value), others)]
    return [
        replace(
            record,
            value=value[start:end],
            headers=(marks if index else record.headers | marks) | {INDEX: b"%d" % index},
        )
        for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(value)], strict=True))
    ]


def join(records: Sequence[Record]) -> Record:
    """The record that `split` was given. Raises ValueError if these are not all its chunks."""
    if not records:
        raise ValueError("there are no chunks")
    first = records[0]
    if ID not in first.headers and len(records) == 1:
        return first  # it fitted
    count = _number(first, COUNT)
    if len(records) != count:
        raise ValueError(f"there are {len(records)} chunks of {count}")
    for index, record in enumerate(records):
        _check(record, first, index)
    value = b"".join(record.value for record in records)
    if len(value) != _number(first, SIZE):
        raise ValueError(f"the chunks have {len(value)} bytes of {_number(first, SIZE)}")
    if sha256(value).hexdigest().encode() != first.headers.get(SHA256):
        raise ValueError("the chunks do not have the SHA-256 of the whole")
    return replace(first, value=value, headers=_without(first.headers, CHUNK_HEADERS))


def _check(record: Record, first: Record, index: int) -> None:
    for name in (ID, COUNT, SIZE, SHA256):
        if name not in record.headers or record.headers[name] != first.headers.get(name):
            raise ValueError(f"chunk {index} has another {name} than the first")
    if (found := _number(record, INDEX)) != index:
        raise ValueError(f"chunk {found} stands where {index} should be")
    if (record.topic, record.partition, record.key) != (first.topic, first.partition, first.key):
        raise ValueError(f"chunk {index} has another topic, partition or key than the first")


def _number(record: Record, name: str) -> int:
    data = record.headers.get(name, b"")
    if not data.isdigit() or len(data) > 18:
        raise ValueError(f"{name} is not a number: {data[:40]!r}")
    return int(data)


def _without(headers: Headers, names: Sequence[str]) -> Headers:
    return {name: value for name, value in headers.items() if name not in names}


def claim(record: Record, store: str = "") -> tuple[Record, Claim]:
    """The small record that goes to Kafka, and what goes to the store before it."""
    digest = sha256(record.value).hexdigest()
    name = f"{digest[:2]}/{digest[2:4]}/{digest}"
    size = len(record.value)
    marks = {
        CLAIM_SHA256: digest.encode(),
        CLAIM_SIZE: b"%d" % size,
        CLAIM_PATH: name.encode(),
    }
    reference = msgspec.json.encode({"claim": digest, "size": size})
    small = replace(record, value=reference, headers=record.headers | marks)
    return small, Claim(name, record.value, store)


def redeem(record: Record, data: bytes) -> Record:
    """The record that `claim` was given. Raises ValueError if `data` is not what was left."""
    wanted = record.headers.get(CLAIM_SHA256, b"")
    if sha256(data).hexdigest().encode() != wanted:
        raise ValueError(f"the {len(data)} bytes are not those of claim {wanted.decode()!r}")
    return replace(record, value=data, headers=_without(record.headers, CLAIM_HEADERS))
