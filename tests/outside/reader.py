"""Many topics through one consumer that stays: cheap to ask again and again."""

from collections.abc import Sequence
from typing import Self
from uuid import UUID, uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.outside.records import Record, of_source, record_of

Place = tuple[str, int]
TIMEOUT_S = 30.0


class Reader:
    """Committed records of all these topics, from the first one on."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._committed = _consumer(bootstrap, "read_committed")
        self._ends = _consumer(bootstrap, "read_uncommitted")
        known = self._ends.list_topics(timeout=TIMEOUT_S).topics
        self._places = [(topic, part) for topic in topics for part in known[topic].partitions]
        self._seen: dict[Place, int] = {}
        self._records: dict[str, list[Record]] = {topic: [] for topic in topics}
        self._committed.assign(
            [TopicPartition(topic, part, OFFSET_BEGINNING) for topic, part in self._places]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._committed.close()
        self._ends.close()

    def of(self, source: UUID, topics: Sequence[str] | None = None) -> list[Record]:
        """What this source sent and is there now; in order of offsets per partition."""
        self._catch_up()
        wanted = self._records if topics is None else topics
        return of_source([one for topic in wanted for one in self._records[topic]], source)

    def _catch_up(self) -> None:
        """Up to the ends there are now, open transactions included: their markers will come."""
        goal = {place: self._end(place) for place in self._places}
        while behind := [place for place in goal if self._seen.get(place, -1) < goal[place]]:
            message = self._committed.poll(TIMEOUT_S)
            assert message is not None, f"not read to the end: {behind}"
            place = str(message.topic()), int(message.partition() or 0)
            error = message.error()
            if error is None:
                self._records[place[0]].append(record_of(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._seen[place] = int(message.offset() or 0)
            else:
                raise AssertionError(str(error))

    def _end(self, place: Place) -> int:
        found = self._ends.get_watermark_offsets(TopicPartition(*place), timeout=TIMEOUT_S)
        assert found is not None
        return int(found[1])


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
