"""Whether Kafka answers, also when there is nothing to commit."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from confluent_kafka import KafkaException

from bridge.adapters.kafka.client import Settings, admin_client

_log = logging.getLogger(__name__)
EVERY_S: Final = 1.0
PATIENCE_S: Final = 3.0


class KafkaHealth:
    """Asks for the metadata of a topic once a second; for one that we may see, or brokers that
    check rights would write a line each time."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._client, self._topic = admin_client(settings), topic
        self.up = True
        self.why = ""

    async def run(self) -> None:
        while True:
            up, why = await asyncio.to_thread(self._ask)
            if up != self.up:
                _log.log(logging.INFO if up else logging.ERROR, "Kafka %s", why or "is back")
            self.up, self.why = up, why
            await asyncio.sleep(EVERY_S)

    def _ask(self) -> tuple[bool, str]:
        try:
            self._client.list_topics(topic=self._topic, timeout=PATIENCE_S)
        except KafkaException as error:
            return False, f"does not answer: {error.args[0].str()}"
        return True, ""
