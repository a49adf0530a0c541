"""The words of a report, for the page, the terminal and JUnit alike. Design 3.5

They take the findings as plain data, so the command can use them before anything is rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msmq_jobs.reconcile.rules import BREAKING, DELIVERED, LAWFUL
from msmq_jobs.reconcile.thresholds import holds

Findings = Mapping[str, Any]  # the body of report.json


class Explained(NamedTuple):
    meaning: str
    what_to_do: str


_EXPLAINED: Final = {
    "delivered_once": Explained(
        "In its topic once, unaltered and in order.",
        "Nothing to do.",
    ),
    "missing": Explained(
        "Sent or accepted, but in no topic.",
        "Bring in what has a copy with backfill and the plan. What has no copy must be sent again"
        " by its application; the ids below say what.",
    ),
    "duplicated": Explained(
        "In its topic more than once.",
        "A log cannot be undone. Consumers skip the surplus copies, which are listed by topic,"
        " partition and offset, or remember the ids (header msmq.id) that they have handled.",
    ),
    "out_of_order": Explained(
        "In its topic behind a later message of its stream.",
        "A log cannot be undone. Consumers that need the order sort by the headers msmq.tx.seqid"
        " and msmq.tx.seq within msmq.source and the queue, or set the ids below aside.",
    ),
    "altered": Explained(
        "In its topic, but its body or a property differs from what was sent.",
        "The reason names what differs. Look for a producer other than the appliance, a mapping"
        " that changed in between, or a source that was edited. The record itself stays; read the"
        " original in the source.",
    ),
    "unexpected": Explained(
        "In a topic, though no ledger knows it, or the audit says it was refused.",
        "Either a ledger was left out (add its --source, or an earlier --from), or somebody else"
        " writes to the topic: take that right away.",
    ),
    "expired": Explained(
        "Its time ran out before it arrived, as its sender wished.",
        "Nothing to do, unless you want it all the same: backfill --include-expired brings it from"
        " the dead letters.",
    ),
    "rejected": Explained(
        "Refused by a rule; its sender can know.",
        "The class says why. Its packet is in the rejects topic; mend the rule or the sender, then"
        " send it again.",
    ),
    "dead_lettered": Explained(
        "Given up by its sender, and kept among the dead letters.",
        "If it is still wanted, backfill brings it in from the dead-letter queue.",
    ),
    "in_flight": Explained(
        "Too young to be judged when the inputs end.",
        "Reconcile again later; it will have another verdict then.",
    ),
}


def explain(verdict: str) -> Explained:
    """What it means, and what to do about it."""
    return _EXPLAINED[verdict]


def name(verdict: str) -> str:
    return {"dead_lettered": "dead-lettered"}.get(verdict, verdict.replace("_", " "))


def kind(verdict: str) -> str:
    if verdict == DELIVERED:
        return "parity"
    return "breaks parity" if verdict in BREAKING else "lawful"


def total(counts: Mapping[str, int], verdicts: Iterable[str]) -> int:
    return sum(counts.get(verdict, 0) for verdict in verdicts)


def allowed(findings: Findings, verdict: str) -> bool:
    """Are there no more of these than the threshold lets pass? Lawful ones always are."""
    limit = findings.get("thresholds", {}).get(verdict)
    return verdict not in BREAKING or holds(
        findings["verdicts"][verdict], findings["messages"], limit
    )


def sentence(findings: Findings) -> str:
    """The answer."""
    counts, messages = findings["verdicts"], findings["messages"]
    broken = total(counts, BREAKING)
    among = f"{messages:,} {_plural(messages, 'message')}"
    queues = findings["queues_total"]
    where = f"{among} in {queues:,} {_plural(queues, 'queue')}"
    what = counted(counts, BREAKING)
    if findings["parity"] and broken:
        return f"Parity within the thresholds: {broken:,} of {where} {_breaks(broken)} it ({what})."
    if findings["parity"] and messages:
        subject = "the only one" if messages == 1 else f"all {where}"
        return f"Parity: {subject} {'is' if messages == 1 else 'are'} accounted for."
    if findings["parity"]:
        return "Nothing to compare: these inputs have no message."
    if broken:
        return f"No parity: {broken:,} of {where} {_breaks(broken)} it ({what})."
    return f"No parity could be shown for {where}."


def totals(findings: Findings) -> list[str]:
    """The sentences that follow the answer."""
    counts = findings["verdicts"]
    once, lawful = counts[DELIVERED], total(counts, LAWFUL)
    told = [f"{once:,} {_was(once)} delivered once."]
    if lawful:
        told.append(f"{lawful:,} {_was(lawful)} not, which is lawful: {counted(counts, LAWFUL)}.")
    if unseen := findings.get("unseen", 0):
        told.append(
            f"Of those delivered, {unseen:,} {_has(unseen)} no record that could be looked at"
            " (compacted, aged, or a mapping leaves out id or queue): only the audit says so."
        )
    if foreign := findings.get("foreign", 0):
        told.append(
            f"{foreign:,} {_plural(foreign, 'record')} without an MSMQ id"
            f" {_was(foreign)} not counted."
        )
    sources = findings["inputs"].get("sources", ())
    if unreadable := sum(source.get("unreadable", 0) for source in sources):
        told.append(
            f"{unreadable:,} {_plural(unreadable, 'entry', 'entries')} of the sources"
            f" cannot be read and {_was(unreadable)} not compared."
        )
    return told


def counted(counts: Mapping[str, int], verdicts: Sequence[str]) -> str:
    """`3 missing, 2 duplicated and 1 altered`; empty when there are none."""
    each = [f"{counts[v]:,} {name(v)}" for v in verdicts if counts.get(v, 0)]
    return " and ".join([", ".join(each[:-1]), each[-1]]) if len(each) > 1 else "".join(each)


def quickness(findings: Findings) -> str:
    """`Half of 1,200 messages landed within 50 ms, 99 % within 2 s.`"""
    buckets = findings["latency"]["buckets"]
    measured = sum(bucket["count"] for bucket in buckets)
    if not measured:
        return "No message has both times, so there is no latency to show."
    half, most = _within(buckets, measured, 50), _within(buckets, measured, 99)
    ninety_nine = f", 99 % {most}" if most != half else ", and so did 99 %"
    return f"Half of {measured:,} {_plural(measured, 'message')} landed {half}{ninety_nine}."


def duration(milliseconds: float) -> str:
    """Short: `5 ms`, `1.5 s`, `2 min`, `3 h`."""
    for size, unit in ((3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"


def _within(buckets: Sequence[Mapping[str, Any]], measured: int, percent: int) -> str:
    seen = 0
    for bucket in buckets:
        seen += bucket["count"]
        if seen * 100 >= measured * percent and bucket["le_ms"] is not None:
            return f"within {duration(bucket['le_ms'])}"
    bounds = [bucket["le_ms"] for bucket in buckets if bucket["le_ms"] is not None]
    return f"after more than {duration(bounds[-1])}" if bounds else "at some time"


def _plural(count: int, word: str, several: str = "") -> str:
    return word if count == 1 else several or f"{word}s"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _breaks(count: int) -> str:
    return "breaks" if count == 1 else "break"
