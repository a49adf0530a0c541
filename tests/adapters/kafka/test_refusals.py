"""The end of the rejects topic, looked at again and again."""

import asyncio

import pytest
from confluent_kafka import Producer

from bridge.adapters.kafka import refusals as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.refusals import KEPT, LatestRefusals
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, unique

pytestmark = pytest.mark.kafka


def write(bootstrap: str, topic: str, *numbers: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in numbers:
        headers: dict[str, str | bytes | None] = {
            "msmq.id": f"11111111-2222-3333-4444-555555555555\\{number}",
            "msmq.outcome": "32768",
            "msmq.dest": "DIRECT=OS:bridge01\\private$\\odrers",
            "msmq.label": "x" * 1000,
            "msmq.peer": b"10.0.0.7\xff",
            "__connect.errors.exception.message": "unknown-queue",
        }
        producer.produce(topic, b"body", partition=number % 2, headers=headers, timestamp=number)
    assert producer.flush(30) == 0


async def first_look(latest: LatestRefusals) -> list[dict[str, object]]:
    """A partition that was just made may not have its leader yet."""
    while True:
        try:
            return await latest.rows()
        except SinkUnavailable as error:
            assert "leader" in str(error)  # noqa: PT017 - anything else is none of a new topic's


def test_newest_first_and_only_the_last(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    topic = create_topic(kafka.bootstrap_servers, unique("rejects"), 2)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}

    async def run() -> None:
        latest = LatestRefusals(settings, topic, 2)
        assert await first_look(latest) == []
        write(kafka.bootstrap_servers, topic, 1, 2, 3)
        rows = await latest.rows()
        assert [row["at"] for row in rows] == [3, 2, 1]
        assert rows[0] == {
            "at": 3,
            "id": "11111111-2222-3333-4444-555555555555\\3",
            "queue": "DIRECT=OS:bridge01\\private$\\odrers",
            "class": "NACK_BAD_DST_Q",
            "words": "there is no such queue",
            "reason": "unknown-queue",
            "label": "x" * 500,  # names come from outside
            "peer": "10.0.0.7\ufffd",
            "transport": "",
        }
        write(kafka.bootstrap_servers, topic, *range(4, 1000))
        rows = await latest.rows()
        assert len(rows) == KEPT
        assert rows[0]["at"] == 999
        assert len(await latest.rows()) == KEPT
        latest.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_topic_that_is_not_there(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}

    async def run() -> None:
        latest = LatestRefusals(settings, unique("none"), 1)
        with pytest.raises(SinkUnavailable, match="Kafka: reading none"):
            await latest.rows()
        latest.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
