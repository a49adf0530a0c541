"""What the demo's senders send: every delivery mode, and what goes wrong in practice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import msgspec

from bridge.core.mapping_rules import Mappings
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    EXPRESS,
    NACK_ARRIVAL,
    NACK_RECEIVE,
    RECOVERABLE,
    Message,
    Transaction,
)

FULL_REACH: Final = ACK_ARRIVAL | NACK_ARRIVAL
FULL_RECEIVE: Final = ACK_RECEIVE | NACK_ARRIVAL | NACK_RECEIVE
TYPO: Final = "private$\\odrers"
AN_HOUR_S: Final = 3600
A_MINUTE_S: Final = 60
PER_TRANSACTION: Final = 2
MOST_OVER_HTTP: Final = 20  # one after the other, each waits for its commit


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One sender on one session."""

    sender: str
    queue: str
    delivery: str
    transport: str = "binary"
    about: str  # why it is in the demo
    messages: tuple[Message, ...]
    answers: int = 0  # that its administration queue should get


Act = tuple[Part, ...]  # parts that go on at the same time


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The queues to send to; an empty name leaves out whoever needs it."""

    transactional: str = ""
    express: str = ""
    recoverable: str = ""

    @classmethod
    def of(cls, mappings: Mappings) -> Stage:
        """The first queues of each kind that are spelled out."""
        exact = [mapping for mapping in mappings.queues if not mapping.queue.has_wildcard]
        transactional = [str(mapping.queue) for mapping in exact if mapping.transactional]
        plain = [str(mapping.queue) for mapping in exact if not mapping.transactional]
        if not exact:
            raise ConfigError(
                "no queue is mapped by its full name, so the demo has nowhere to send to",
                mend=r"try msmq-bridge map add 'private$\demo', or leave --config out",
            )
        return cls(
            transactional=transactional[0] if transactional else "",
            express=plain[0] if plain else "",
            recoverable=plain[1 if len(plain) > 1 else 0] if plain else "",
        )


def acts(stage: Stage, count: int, now: int, http: str = "") -> tuple[Act, ...]:
    """Whoever sends well, then whoever does not, then one who sends again.

    `http` is where messages over HTTP are taken, as HOST:PORT; without it nobody sends any.
    """
    accepted: list[Part] = []
    refused: list[Part] = []
    again: list[Part] = []
    if stage.transactional:
        accepted.append(_shop(stage.transactional, count, now))
        refused.append(_careless(stage.transactional, now))
    if stage.express:
        accepted.append(_sensor(stage.express, count, now))
    if stage.recoverable:
        billing = _billing(stage.recoverable, count, now)
        accepted.append(billing)
        refused.append(_sleeper(stage.recoverable, now))
        again.append(_again(billing))
    refused.append(_typo(now))
    if http:
        accepted += _web(stage, count, now, http)
    return tuple(tuple(act) for act in (accepted, refused, again) if act)


def _shop(queue: str, count: int, now: int) -> Part:
    source = Guid.random()
    return Part(
        sender="shop",
        queue=queue,
        delivery="transactional",
        about="exactly once, in order",
        messages=tuple(
            _message(
                source,
                n,
                queue,
                now,
                label=f"order {n}",
                body=_json(order=n, tea=2 * n),
                delivery=RECOVERABLE,
                priority=0,
                ack=FULL_RECEIVE,
                transaction=Transaction(
                    sequence_id=0,
                    number=0,
                    first=n % PER_TRANSACTION == 1,
                    last=n % PER_TRANSACTION == 0 or n == count,
                    index=(n + 1) // PER_TRANSACTION,
                    final_ack=True,
                ),
            )
            for n in range(1, count + 1)
        ),
        answers=count,
    )


def _sensor(queue: str, count: int, now: int) -> Part:
    source = Guid.random()
    return Part(
        sender="sensor",
        queue=queue,
        delivery="express",
        about="fast, at most once",
        messages=tuple(
            _message(source, n, queue, now, label=f"reading {n}", body=_json(celsius=20 + n % 7))
            for n in range(1, count + 1)
        ),
    )


def _billing(queue: str, count: int, now: int) -> Part:
    source = Guid.random()
    return Part(
        sender="billing",
        queue=queue,
        delivery="recoverable",
        about="survives restarts",
        messages=tuple(
            _message(
                source,
                n,
                queue,
                now,
                label=f"invoice {n}",
                body=_json(euro=10 * n),
                delivery=RECOVERABLE,
                ack=FULL_REACH,
            )
            for n in range(1, count + 1)
        ),
        answers=count,
    )


def _web(stage: Stage, count: int, now: int, http: str) -> Iterator[Part]:
    """One who has only HTTP: a stream to the one queue, single messages to the other."""
    source, count = Guid.random(), min(count, MOST_OVER_HTTP)
    if stage.transactional:
        yield Part(
            sender="web",
            queue=stage.transactional,
            delivery="transactional",
            transport="http",
            about="a stream over HTTP",
            messages=tuple(
                _message(
                    source,
                    n,
                    stage.transactional,
                    now,
                    destination=_url(http, stage.transactional),
                    label=f"web order {n}",
                    body=_json(order=n, coffee=n),
                    delivery=RECOVERABLE,
                    priority=0,
                    transaction=Transaction(sequence_id=0, number=0, first=True, last=True),
                )
                for n in range(1, count + 1)
            ),
        )
    if stage.recoverable:
        yield Part(
            sender="web",
            queue=stage.recoverable,
            delivery="recoverable",
            transport="http",
            about="durable, over HTTP",
            messages=tuple(
                _message(
                    source,
                    count + n,
                    stage.recoverable,
                    now,
                    destination=_url(http, stage.recoverable),
                    label=f"web invoice {n}",
                    body=_json(euro=100 * n),
                    delivery=RECOVERABLE,
                    ack=ACK_ARRIVAL,
                )
                for n in range(1, count + 1)
            ),
            answers=count,
        )


def _url(http: str, queue: str) -> str:
    return f"DIRECT=http://{http}/msmq/{queue.replace(chr(92), '/')}"


def _typo(now: int) -> Part:
    return Part(
        sender="typo",
        queue=TYPO,
        delivery="transactional",
        about="no such queue",
        messages=(
            _message(
                Guid.random(),
                1,
                TYPO,
                now,
                label="order for nobody",
                body=b"{}",
                delivery=RECOVERABLE,
                priority=0,
                transaction=Transaction(sequence_id=0, number=0, first=True, last=True, index=1),
            ),
        ),
    )


def _sleeper(queue: str, now: int) -> Part:
    """QB-101: an hour under way, with a minute to reach the queue."""
    return Part(
        sender="sleeper",
        queue=queue,
        delivery="recoverable",
        about="comes an hour late",
        messages=(
            _message(
                Guid.random(),
                1,
                queue,
                now - AN_HOUR_S,
                label="old invoice",
                body=b"{}",
                delivery=RECOVERABLE,
                time_to_reach_queue=A_MINUTE_S,
                ack=FULL_REACH,
            ),
        ),
        answers=1,
    )


def _careless(queue: str, now: int) -> Part:
    """QB-64: nacks of this class are not kept from a stranger."""
    return Part(
        sender="careless",
        queue=queue,
        delivery="recoverable",
        about="no transaction",
        messages=(
            _message(
                Guid.random(),
                1,
                queue,
                now,
                label="loose order",
                body=b"{}",
                delivery=RECOVERABLE,
                ack=FULL_REACH,
            ),
        ),
        answers=1,
    )


def _again(billing: Part) -> Part:
    """QB-70, QB-71: the same id on another session; it is session-acked and no more."""
    return msgspec.structs.replace(
        billing, about="sends one again", messages=billing.messages[:1], answers=0
    )


def _message(source: Guid, ordinal: int, queue: str, sent: int, **properties: object) -> Message:
    fields: dict[str, object] = {"admin_queue": f"PRIVATE={source}\\00000001"}
    if not properties.get("ack"):
        fields.clear()
    fields |= {"destination": f"DIRECT=TCP:127.0.0.1\\{queue}", "delivery": EXPRESS}
    return Message(
        source=source,
        ordinal=ordinal,
        sent_time=sent,
        **{**fields, **properties},  # type: ignore[arg-type]
    )


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()
