"""Whether Kafka answers, also when there is nothing to commit."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from confluent_kafka import KafkaException

from bridge.adapters.kafka.client import Settings, admin_client

_log = logging.getLogger(__name__)
EVERY_S: Final = 1.0
REQUEST_S: Final = 1.0
PATIENCE_S: Final = 3.0  # a request is given up up to a second late; then its broker is left
TRIES: Final = 2  # the client goes to another broker after one that was silent


class KafkaHealth:
    """Asks for the metadata of a topic once a second; for one that we may see, or brokers that
    check rights would write a line each time."""

    def __init__(self, settings: Settings, topic: str) -> None:
        # A broker that does not answer in time is left: another one is asked then.
        hasty = {"socket.timeout.ms": int(REQUEST_S * 1000), "socket.max.fails": 1}
        self._client, self._topic = admin_client({**settings, **hasty}), topic
        self.up = True
        self.why = ""
        self.asked_at = 0.0  # the last time that it was asked in vain

    async def run(self) -> None:
        while True:
            began = time.monotonic()
            up, why = await asyncio.to_thread(self._ask)
            if up != self.up:
                _log.log(logging.INFO if up else logging.ERROR, "Kafka %s", why or "is back")
            self.up, self.why = up, why
            if not up:
                self.asked_at = began
            await asyncio.sleep(EVERY_S)

    def _ask(self) -> tuple[bool, str]:
        why = ""
        for _ in range(TRIES):
            try:
                self._client.list_topics(topic=self._topic, timeout=PATIENCE_S)
            except KafkaException as error:
                why = f"does not answer: {error.args[0].str()}"
            else:
                return True, ""
        return False, why
