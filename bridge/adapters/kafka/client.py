"""One place that knows librdkafka's settings and what its errors mean."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bridge.model.errors import SinkUnavailable

Settings = Mapping[str, Any]

MAX_MESSAGE_BYTES: Final = 8 << 20  # a 4 MiB packet, its headers twice, and room
CALL_TIMEOUT_S: Final = 20.0
# The same for a question to the leaders of partitions: the client asks the leader that it knew when
# it was asked, whatever the cluster has decided since. So it is asked anew.
ATTEMPT_S: Final = 2.0
# A broker that has not answered by then is left, and the new leader is looked for. Shorter than the
# time in which the cluster itself notices that a broker is gone (broker.session.timeout.ms, 9 s),
# and longer than a busy broker takes. Librdkafka's own 60 s outlast every deadline of ours.
REQUEST_MS: Final = 5_000
CLIENT_ID: Final = "msmq-bridge"

_log = logging.getLogger(__name__)
SAME_LINE_S: Final = 30.0
# No news at the start of a broker.
_ASKED_AGAIN: Final = ("Coordinator load in progress", "Not coordinator: retrying")


class _Calm(logging.Filter):
    """librdkafka says the same several times a second while a broker is away."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if any(phrase in text for phrase in _ASKED_AGAIN):
            return False
        kind = " ".join(text.split()[:2])  # the facility and the client
        if record.created - self._said.get(kind, 0.0) < SAME_LINE_S:
            return False
        self._said[kind] = record.created
        return True


_log.addFilter(_Calm())
_FENCED: Final = frozenset(
    (
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    )
)


def is_fenced(error: KafkaException) -> bool:
    """Somebody else holds this transactional id, or the coordinator gave our transaction up."""
    return error.args[0].code() in _FENCED


def is_too_large(error: KafkaException) -> bool:
    """A batch, if not a record: `max.message.bytes` of a topic counts for whole batches."""
    return bool(error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE)


# Of a record: Kafka will not take it tomorrow either.
_FOR_GOOD: Final = frozenset(
    (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._BAD_MSG,
        KafkaError._INVALID_ARG,
    )
)
# Of a topic: somebody has to mend something first.
_OF_TOPIC: Final = frozenset(
    (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_TOPIC_ID,
    )
)


def is_for_good(error: KafkaError) -> bool:
    """The record itself is refused."""
    return error.code() in _FOR_GOOD


def is_of_topic(error: KafkaError) -> bool:
    """The topic is gone, or we may not write to it."""
    return error.code() in _OF_TOPIC


def is_refusal(error: KafkaException) -> bool:
    """The same transaction would fail again. (_INCONSISTENT: see the delivery reports.)"""
    cause = error.args[0]
    return is_for_good(cause) or is_of_topic(cause) or cause.code() == KafkaError._INCONSISTENT


def unavailable(doing: str, error: Exception) -> SinkUnavailable:
    if not isinstance(error, KafkaException):
        return SinkUnavailable(f"Kafka: {doing}: {error}")
    reason = error.args[0].str()
    if error.args[0].code() == KafkaError.INVALID_TIMESTAMP:
        reason += " (our clock, or a broker's, is wrong: message.timestamp.after.max.ms)"
    return SinkUnavailable(f"Kafka: {doing}: {reason}")


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "client.id": CLIENT_ID,
        "socket.nagle.disable": True,
        "reconnect.backoff.max.ms": 1000,  # an appliance wants its broker back soon
        "allow.auto.create.topics": False,
        **settings,
    }


def admin_client(settings: Settings) -> AdminClient:
    return AdminClient(_common(settings), logger=_log)


def producer(settings: Settings, transactional_id: str) -> Producer:
    """Transactional, so idempotent and acks=all; batches form by load, not by waiting."""
    return Producer(
        {
            "linger.ms": 0,
            "queue.buffering.max.messages": 500_000,
            "transaction.timeout.ms": 60_000,
            "socket.timeout.ms": REQUEST_MS,
            "request.timeout.ms": REQUEST_MS,
            **_common(settings),
            "message.max.bytes": MAX_MESSAGE_BYTES,  # what admission counts on
            # One request at a time. With more, the first batch to a partition that has just been
            # made (or moved) can fail while the second is taken: a broker that does not know the
            # producer there takes any sequence number, calls the first one's retry a duplicate,
            # and the client believes it. The transaction commits without a record.
            "max.in.flight.requests.per.connection": 1,
            "transactional.id": transactional_id,
        },
        logger=_log,
    )


def consumer(settings: Settings, group: str, isolation: str = "read_committed") -> Consumer:
    """Reads by assignment, and unless told otherwise what is committed; it commits no offsets."""
    return Consumer(
        {
            "fetch.wait.max.ms": 50,
            "socket.timeout.ms": REQUEST_MS,
            "queued.max.messages.kbytes": 16 << 10,  # that many are read ahead, whatever waits
            **_common(settings),
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        },
        logger=_log,
    )


def member(
    settings: Settings, group: str, session_s: float, *, instance: str, client_id: str
) -> Consumer:
    """Of a consumer group whose members read nothing; it is soon known that one is gone.

    A static one, so that another can take its place: it leaves by `unsubscribe`, not by `close`."""
    return Consumer(
        {
            **_common(settings),
            "client.id": client_id,
            "group.id": group,
            "group.instance.id": instance,
            "group.protocol": "classic",  # in the other one brokers set the time-outs
            "session.timeout.ms": int(session_s * 1000),
            "heartbeat.interval.ms": min(200, int(session_s * 1000) // 3),
            "partition.assignment.strategy": "cooperative-sticky",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        },
        logger=_log,
    )
