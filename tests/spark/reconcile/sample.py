"""Findings as a week of migration leaves them, made from a seed: for tests and pictures."""

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

from msmq_jobs.reconcile.rules import BREAKING, DELIVERED, LAWFUL, VERDICTS

Findings = dict[str, Any]

MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
WEEK = timedelta(days=7)
NAMES = (
    "orders", "orders.express", "invoices", "payments", "shipping", "stock", "prices", "returns",
    "customers", "loyalty", "mail.out", "edi.in", "picking", "ledger",
)  # fmt: skip
CLASSES = {
    "expired": ("0x8002 NACK_REACH_QUEUE_TIMEOUT", "its time to reach the queue was over"),
    "rejected": ("0x8004 NACK_ACCESS_DENIED", "its sender may not send to this queue"),
    "dead_lettered": ("0x8001 NACK_DELETED", "its sender removed it before it was taken"),
}
REASONS = {
    "missing": ("accepted by the wire, in no topic", "in the sender's journal, in no topic"),
    "duplicated": ("2 records", "2 records, one of them from a backfill"),
    "out_of_order": ("behind number 40213 of its stream",),
    "altered": ("body differs", "label differs", "msmq.correlation differs"),
    "unexpected": ("no ledger knows it",),
    "in_flight": ("accepted 41 s before the inputs end",),
}
FAULTS = {"missing": 23, "duplicated": 12, "out_of_order": 4, "altered": 2, "expired": 187,
          "rejected": 41, "dead_lettered": 96, "in_flight": 310}  # fmt: skip


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clean(seed: int = 7) -> Findings:
    return week(seed, faults={"expired": 12, "in_flight": 3})


def week(
    seed: int = 7,
    *,
    queues: int = len(NAMES),
    senders: int = 38,
    faults: dict[str, int] | None = None,
    shown: int = 200,
) -> Findings:
    """`shown` bounds the offenders of each verdict, as the job does."""
    random = Random(seed)
    faults = FAULTS if faults is None else faults
    names = [f"private$\\{NAMES[i % len(NAMES)]}{i // len(NAMES) or ''}" for i in range(queues)]
    guids = [str(UUID(int=random.getrandbits(128), version=4)) for _ in range(senders)]
    rows = [_queue(random, name) for name in sorted(names)]
    people = [_sender(random, guid, queues) for guid in sorted(guids)]
    _share(random, people, sum(row["verdicts"][DELIVERED] for row in rows))
    for verdict, count in faults.items():
        _spread(random, rows, verdict, count)
        _spread(random, people, verdict, count)
    for row in (*rows, *people):
        row["messages"] = sum(row["verdicts"].values())
    verdicts = {v: sum(row["verdicts"].get(v, 0) for row in rows) for v in VERDICTS}
    broken = sum(verdicts[v] for v in BREAKING)
    offenders = {
        v: _offenders(random, v, min(verdicts[v], shown), rows, guids)
        for v in (*BREAKING, *LAWFUL)
        if verdicts[v]
    }
    return {
        "version": 1,
        "parity": broken == 0,
        "strict": broken == 0,
        "thresholds": {},
        "verdicts": verdicts,
        "messages": sum(verdicts.values()),
        "queues": rows,
        "queues_total": len(rows),
        "senders": people[:1000],
        "senders_total": senders,
        "timeline": _timeline(random, sum(verdicts.values())),
        "latency": _latency(random, verdicts[DELIVERED]),
        "offenders": offenders,
        "details": "verdicts/",
        "repair": {
            "missing": verdicts["missing"],
            "with_copy": max(verdicts["missing"] - 2, 0),
            "plan": "plan.json" if verdicts["missing"] else None,
            "skip": "skip.jsonl" if verdicts["duplicated"] else None,
            "surplus": verdicts["duplicated"],
        },
        "inputs": _inputs(random, rows),
        "foreign": 17,
    }


def _queue(random: Random, name: str) -> Findings:
    p50 = round(random.uniform(8, 40), 1)
    classes: dict[str, int] = {}
    return {
        "queue": name,
        "topics": [name.removeprefix("private$\\")],
        "mode": random.choice(["forward", "forward", "forward", "retain"]),
        "messages": 0,
        "verdicts": {DELIVERED: int(random.lognormvariate(10.9, 1.2)) + 200},
        "classes": classes,
        "first": iso(MONDAY + timedelta(minutes=random.randrange(400))),
        "last": iso(MONDAY + WEEK - timedelta(minutes=random.randrange(300))),
        "latency_ms": {
            "p50": p50,
            "p99": round(p50 * random.uniform(4, 12), 1),
            "max": round(p50 * random.uniform(60, 900), 1),
        },
        "content": random.choice(["compared"] * 5 + ["not compared: value is an envelope"]),
    }


def _sender(random: Random, guid: str, queues: int) -> Findings:
    return {
        "source": guid,
        "queues": random.randrange(1, min(queues, 6) + 1),
        "messages": 0,
        "verdicts": {},
        "first": iso(MONDAY + timedelta(minutes=random.randrange(900))),
        "last": iso(MONDAY + WEEK - timedelta(minutes=random.randrange(900))),
    }


def _share(random: Random, people: list[Findings], messages: int) -> None:
    weights = [random.lognormvariate(0, 1.3) for _ in people]
    for person, weight in zip(people, weights, strict=True):
        person["verdicts"][DELIVERED] = int(messages * weight / sum(weights))
    people[-1]["verdicts"][DELIVERED] += messages - sum(p["verdicts"][DELIVERED] for p in people)


def _spread(random: Random, rows: list[Findings], verdict: str, count: int) -> None:
    """Faults come in a few places, not everywhere."""
    places = random.sample(rows, k=min(len(rows), 4 if verdict in BREAKING else 7))
    for _ in range(count):
        row = random.choice(places)
        row["verdicts"][verdict] = row["verdicts"].get(verdict, 0) + 1
        if "classes" in row and verdict in CLASSES:
            name = CLASSES[verdict][0]
            row["classes"][name] = row["classes"].get(name, 0) + 1


def _offenders(
    random: Random, verdict: str, count: int, rows: list[Findings], guids: list[str]
) -> list[Findings]:
    places = [row for row in rows if verdict in row["verdicts"]]
    return [_offender(random, verdict, random.choice(places), guids) for _ in range(count)]


def _offender(random: Random, verdict: str, row: Findings, guids: list[str]) -> Findings:
    source = random.choice(guids)
    sent = MONDAY + random.random() * WEEK
    kept = {"missing": 0, "duplicated": 2}.get(verdict, 0 if verdict in LAWFUL else 1)
    first, partition = random.randrange(1_000_000), random.randrange(12)
    reasons = (CLASSES[verdict][1],) if verdict in CLASSES else REASONS[verdict]
    return {
        "message_id": f"{source}\\{random.randrange(1, 900_000)}",
        "queue": row["queue"],
        "source": source,
        "reason": random.choice(reasons),
        "class": CLASSES[verdict][0] if verdict in CLASSES else None,
        "sent_time": iso(sent),
        "accepted_time": iso(sent + timedelta(milliseconds=30)),
        "landed_time": iso(sent + timedelta(milliseconds=75)) if kept else None,
        "copies": [
            {"topic": topic, "partition": partition, "offset": first + 913 * i}
            for topic in row["topics"]
            for i in range(kept)
        ],
    }  # fmt: skip


def _timeline(random: Random, messages: int) -> Findings:
    """Days and nights, a quiet weekend, and an outage on Wednesday that catches up."""
    step = timedelta(minutes=30)
    times = [MONDAY + i * step for i in range(int(WEEK / step))]
    weights = [_busy(at) * random.uniform(0.85, 1.15) for at in times]
    scale = messages / sum(weights)
    points, waiting = [], 0
    for at, weight in zip(times, weights, strict=True):
        sent = int(weight * scale)
        outage = (
            datetime(2026, 11, 11, 13, tzinfo=UTC) <= at < datetime(2026, 11, 11, 15, tzinfo=UTC)
        )
        accepted = sent // 25 if outage else min(sent + waiting, sent + 2_500)
        waiting += sent - accepted
        points.append({"at": iso(at), "sent": sent, "accepted": accepted, "landed": accepted})
    return {"bucket_s": 1800, "points": points}


def _busy(at: datetime) -> float:
    hour = at.hour + at.minute / 60
    day = math.exp(-((hour - 10.5) ** 2) / 9) + 0.8 * math.exp(-((hour - 15.5) ** 2) / 8)
    return 0.06 + day * (0.25 if at.weekday() >= 5 else 1.0)


def _latency(random: Random, messages: int) -> Findings:
    bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 3_600_000]
    logs = [-9.0, *(math.log(b) for b in bounds), 99.0]
    shares = [
        (math.erf((b - 3.2) / 1.3) - math.erf((a - 3.2) / 1.3)) / 2 for a, b in pairwise(logs)
    ]
    late = [0] * 11 + [int(messages * 0.004 * random.uniform(0.5, 1))] * 4 + [random.randrange(9)]
    counts = [int(messages * share) + extra for share, extra in zip(shares, late, strict=True)]
    counts[5] += messages - sum(counts)
    return {
        "buckets": [
            {"le_ms": le, "count": n} for le, n in zip([*bounds, None], counts, strict=True)
        ]
    }


def _inputs(random: Random, rows: list[Findings]) -> Findings:
    def read(topic: str, partitions: int) -> Findings:
        ranges = [(n, random.randrange(2_000), random.randrange(90_000)) for n in range(partitions)]
        return {
            "topic": topic,
            "ranges": [{"partition": n, "from": a, "to": a + more} for n, a, more in ranges],
        }

    return {
        "window": {
            "from": iso(MONDAY),
            "to": iso(MONDAY + WEEK),
            "in_flight_s": 300,
            "watermark": iso(MONDAY + WEEK - timedelta(seconds=4)),
        },
        "audit": read("_msmq-bridge.audit", 4),
        "topics": [read(topic, 12) for row in rows for topic in row["topics"]],
        "sources": [
            {
                "source": "exports/journals",
                "messages": 1_150_204,
                "detail": "14 files, sha256 5be1e9c3d0a94f7f",
            },
            {
                "source": "msmq://reader@sales01/;deadxact",
                "messages": 96,
                "detail": {"lookup_ids": [72057594037928017, 72057594037928112]},
            },
        ],
        "mapping": {"hash": "sha256:9f2c61d07ab34e18", "files": ["queues.yaml", "retained.yaml"]},
        "versions": {
            "msmq-bridge": "0.1.0", "spark": "4.0.5", "kafka_connector": "4.0.0", "schema": "1",
        },
    }  # fmt: skip


HOSTILE = "</script><img src=x onerror=alert(1)>'\"&{{7*7}}\u2028\u202e\x00\x1b[31m" + "W" * 300


def hostile(seed: int = 7) -> Findings:
    """Every text that a sender or a stranger chooses wants to be markup, code or a mile wide."""
    found = week(seed)
    for queue in found["queues"][:3]:
        queue |= {"queue": f"{queue['queue']}{HOSTILE}", "topics": [HOSTILE], "mode": HOSTILE}
        queue |= {"classes": {HOSTILE: 3}, "content": HOSTILE, "first": HOSTILE, "last": HOSTILE}
    found["senders"][0]["source"] = HOSTILE
    for rows in found["offenders"].values():
        copy = {"topic": HOSTILE, "partition": 1, "offset": 1}
        rows[0] |= {"message_id": HOSTILE, "queue": HOSTILE, "source": HOSTILE, "reason": HOSTILE}
        rows[0] |= {"class": HOSTILE, "sent_time": HOSTILE, "copies": [copy]}
    inputs = found["inputs"]
    inputs["sources"][0] |= {"source": HOSTILE, "detail": HOSTILE}
    inputs["topics"][0]["topic"] = HOSTILE
    inputs["mapping"] = {"hash": HOSTILE, "files": [HOSTILE]}
    inputs["versions"]["spark"] = HOSTILE
    inputs["window"]["from"] = HOSTILE
    found["details"] = found["repair"]["plan"] = found["repair"]["skip"] = HOSTILE
    return found
