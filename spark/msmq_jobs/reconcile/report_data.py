"""What a run found: the body of report.json, and its JSON Schema. Design 3.5

The job hands over plain data; here it gets its types. `report.schema.json` is made from them:
`python -m msmq_jobs.reconcile.report_data` prints it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, field

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

Verdict: TypeAlias = Literal[
    "delivered_once",
    "missing",
    "duplicated",
    "out_of_order",
    "altered",
    "unexpected",
    "expired",
    "rejected",
    "dead_lettered",
    "in_flight",
]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
_KEYS: Final = Meta(extra_json_schema={"propertyNames": {"enum": list(get_args(Verdict))}})
Some: TypeAlias = Annotated[dict[Verdict, Count], _KEYS]  # verdicts that are not zero
Time: TypeAlias = Annotated[str, Meta(description="ISO 8601, UTC.")]
_LONE = re.compile("[\ud800-\udfff]")  # half a pair: no UTF-8 can say it


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Totals(_Part, frozen=True):
    """Messages by verdict; all ten are always there."""

    delivered_once: Annotated[Count, Meta(description="In the topic once, unaltered, in order.")]
    missing: Annotated[Count, Meta(description="Sent or accepted, in no topic. Breaks parity.")]
    duplicated: Annotated[Count, Meta(description="There more than once. Breaks parity.")]
    out_of_order: Annotated[
        Count, Meta(description="Behind a later message of its stream. Breaks parity.")
    ]
    altered: Annotated[Count, Meta(description="Body or properties differ. Breaks parity.")]
    unexpected: Annotated[Count, Meta(description="An id that no ledger knows. Breaks parity.")]
    expired: Annotated[Count, Meta(description="Its time ran out. Lawful.")]
    rejected: Annotated[Count, Meta(description="Refused with a verdict. Lawful.")]
    dead_lettered: Annotated[Count, Meta(description="Given up by its sender. Lawful.")]
    in_flight: Annotated[Count, Meta(description="Too young to judge. Lawful.")]


class Latency(_Part, frozen=True):
    """Milliseconds until a message of this queue was in its topic."""

    p50: Annotated[float, Meta(ge=0, description="Half of the messages were at most this late.")]
    p99: Annotated[float, Meta(ge=0, description="99 of 100 were at most this late.")]
    max: Annotated[float, Meta(ge=0, description="The latest.")]


class Queue(_Part, frozen=True):
    """One queue of the mapping."""

    queue: Annotated[str, Meta(description="Its name at this queue manager.")]
    topics: Annotated[list[str], Meta(description="Where its messages go.")]
    mode: Annotated[str, Meta(description="Forward or retain, as the mapping says.")]
    messages: Annotated[Count, Meta(description="Message ids seen in any ledger.")]
    verdicts: Annotated[Some, Meta(description="Messages by verdict, without zeros.")]
    classes: Annotated[
        dict[str, Count], Meta(description="Lawful losses by MSMQ class: code and name.")
    ] = {}
    first: Annotated[Time | None, Meta(description="Time of its first message.")] = None
    last: Annotated[Time | None, Meta(description="Time of its last message.")] = None
    latency_ms: Annotated[
        Latency | None, Meta(description="How late its messages were; null: not known.")
    ] = None
    content: Annotated[str, Meta(description="`compared`, or `not compared:` and why.")] = (
        "compared"
    )


class Sender(_Part, frozen=True):
    """One source queue manager."""

    source: Annotated[str, Meta(description="Its GUID.")]
    queues: Annotated[Count, Meta(description="How many queues it sent to.")]
    messages: Annotated[Count, Meta(description="Message ids seen in any ledger.")]
    verdicts: Annotated[Some, Meta(description="Messages by verdict, without zeros.")]
    first: Annotated[Time | None, Meta(description="Time of its first message.")] = None
    last: Annotated[Time | None, Meta(description="Time of its last message.")] = None


class Point(_Part, frozen=True):
    """One bucket of the timeline."""

    at: Annotated[Time, Meta(description="Where the bucket begins.")]
    sent: Annotated[Count, Meta(description="Messages that senders say they sent.")]
    accepted: Annotated[Count, Meta(description="Messages that the wire accepted.")]
    landed: Annotated[Count, Meta(description="Messages that a reader of the topics sees.")]


class Timeline(_Part, frozen=True):
    """Sent, accepted and landed, by time."""

    bucket_s: Annotated[int, Meta(ge=1, description="Seconds in a bucket.")]
    points: Annotated[list[Point], Meta(description="By time; some 500 at most.")]


class Bucket(_Part, frozen=True):
    """One bar of the latency distribution."""

    le_ms: Annotated[
        float | None, Meta(description="At most so many milliseconds; null: more than the last.")
    ]
    count: Annotated[Count, Meta(description="Messages in this bucket and no other.")]


class Distribution(_Part, frozen=True):
    """How long messages took to land."""

    buckets: Annotated[list[Bucket], Meta(description="Ascending, log-spaced.")]


class Copy(_Part, frozen=True):
    """Where a record of the message lies, for people; nothing is computed from it."""

    topic: Annotated[str, Meta(description="Topic.")]
    partition: Annotated[int, Meta(description="Partition.")]
    offset: Annotated[int, Meta(description="Offset.")]


class Offender(_Part, frozen=True):
    """One message that is worth a look."""

    message_id: Annotated[str, Meta(description="MSMQ id: `guid\\ordinal`.")]
    queue: Annotated[str, Meta(description="Its queue.")]
    source: Annotated[str | None, Meta(description="GUID of its sender.")] = None
    reason: Annotated[str | None, Meta(description="Why it has this verdict.")] = None
    class_: Annotated[
        int | str | None, Meta(description="MSMQ message class by which it ended.")
    ] = field(default=None, name="class")
    sent_time: Annotated[Time | None, Meta(description="When it was sent.")] = None
    accepted_time: Annotated[Time | None, Meta(description="When the wire took it, or not.")] = None
    landed_time: Annotated[Time | None, Meta(description="Its first record's time.")] = None
    copies: Annotated[list[Copy], Meta(description="Its records.")] = []


class Repair(_Part, frozen=True):
    """What can be mended, and with which files of the output folder."""

    missing: Annotated[Count, Meta(description="Missing messages.")]
    with_copy: Annotated[Count, Meta(description="Of these, with a copy in a source.")]
    plan: Annotated[str | None, Meta(description="For `backfill --plan`; null: not asked for.")]
    skip: Annotated[
        str | None, Meta(description="Surplus copies as JSON lines; null: there are none.")
    ]
    surplus: Annotated[Count, Meta(description="Copies that are too many.")]


class Range(_Part, frozen=True):
    """What was read of one partition."""

    partition: Annotated[int, Meta(description="Partition.")]
    from_: Annotated[int, Meta(description="First offset.")] = field(name="from")
    to: Annotated[int, Meta(description="Offset behind the last.")]


class Read(_Part, frozen=True):
    """What was read of one topic."""

    topic: Annotated[str, Meta(description="Topic.")]
    ranges: Annotated[list[Range], Meta(description="By partition.")]


class Window(_Part, frozen=True):
    """Which messages were judged."""

    from_: Annotated[Time | None, Meta(description="Sent then or later; null: all.")] = field(
        name="from"
    )
    to: Annotated[Time | None, Meta(description="Sent before; null: all.")]
    in_flight_s: Annotated[
        float, Meta(ge=0, description="Younger than this at the watermark: in flight.")
    ]
    watermark: Annotated[Time | None, Meta(description="The newest time in the inputs.")]


class Source(_Part, frozen=True):
    """An export or a live queue."""

    source: Annotated[str, Meta(description="As the user named it.")]
    messages: Annotated[Count, Meta(description="Read from it.")]
    unreadable: Annotated[Count, Meta(description="What is no message; not compared.")] = 0
    detail: Annotated[
        str | dict[str, Any] | list[Any] | None,
        Meta(description="File hashes or queue positions."),
    ] = None


class Mapping(_Part, frozen=True):
    """The mapping that says where messages go."""

    hash: Annotated[str, Meta(description="Of its files.")]
    files: Annotated[list[str], Meta(description="Their names.")]


class Inputs(_Part, frozen=True):
    """Exactly what the answer rests on: the same inputs give the same bytes."""

    window: Window
    audit: Annotated[Read | None, Meta(description="The wire's ledger; null: not read.")]
    topics: Annotated[list[Read], Meta(description="What consumers see.")]
    sources: Annotated[list[Source], Meta(description="What senders hold or say.")]
    mapping: Mapping
    versions: Annotated[
        dict[str, str | int | None], Meta(description="Of the programs and of the message schema.")
    ]


class Findings(_Part, frozen=True, kw_only=True):
    """The report of one reconcile run."""

    version: Annotated[Literal[1], Meta(description="Of this format.")]
    parity: Annotated[bool, Meta(description="The answer, after thresholds.")]
    strict: Annotated[bool, Meta(description="The answer without thresholds.")]
    thresholds: Annotated[
        dict[Verdict, str],
        _KEYS,
        Meta(description="What was allowed: a count, or a percentage of all messages."),
    ] = {}
    verdicts: Totals
    messages: Annotated[Count, Meta(description="Message id and queue: how many pairs.")]
    unseen: Annotated[
        Count,
        Meta(
            description="Of those delivered once: no record of theirs could be looked at"
            " (compacted, aged, or the mapping leaves out id or queue); the audit alone has them."
        ),
    ] = 0
    queues: Annotated[list[Queue], Meta(description="By name; at most 5,000, the worst.")]
    queues_total: Annotated[Count, Meta(description="How many queues there are.")]
    senders: Annotated[list[Sender], Meta(description="At most 1,000, the worst.")]
    senders_total: Annotated[Count, Meta(description="How many senders there are.")]
    timeline: Timeline
    latency: Distribution
    offenders: Annotated[
        dict[Verdict, list[Offender]], _KEYS, Meta(description="At most 200 for each verdict.")
    ]
    details: Annotated[str, Meta(description="Folder with every message's verdict as Parquet.")] = (
        "verdicts/"
    )
    repair: Repair
    inputs: Inputs
    foreign: Annotated[Count, Meta(description="Records without an MSMQ id; not messages.")] = 0


def checked(findings: object) -> Findings:
    """Raises msgspec.ValidationError, which names the place."""
    return msgspec.convert(_whole(findings), Findings)


def report_json(findings: Findings) -> bytes:
    """The same findings are the same bytes: sorted keys, nothing of the moment."""
    return msgspec.json.format(msgspec.json.encode(findings, order="sorted"), indent=1) + b"\n"


def report_schema() -> dict[str, Any]:
    (ref,), parts = msgspec.json.schema_components([Findings], ref_template="#/$defs/{name}")
    return {"$schema": DRAFT, "title": "msmq-bridge parity report", **ref, "$defs": parts}


def schema_text() -> bytes:
    return msgspec.json.format(msgspec.json.encode(report_schema()), indent=2) + b"\n"


def _whole(value: object) -> object:
    """Names come from senders: UTF-16 with half a pair is text in Python, but nowhere else."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


if __name__ == "__main__":
    import sys

    sys.stdout.buffer.write(schema_text())
