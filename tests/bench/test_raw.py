import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.bench.packets import KINDS
from tests.bench.posts import KINDS as HTTP_KINDS
from tests.bench.raw import PARTITIONS, STREAMS, records
from tests.bench.scenarios import LARGE, SMALL, Flood
from tests.bench.subject import Subject, parse_settings


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("raw") / uuid4().hex
    return Subject(folder, "127.0.0.1:1", "bench", {"shards": 3})


@pytest.mark.parametrize("kind", [*KINDS, *HTTP_KINDS])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_records_are_those_of_the_bridge(subject: Subject, kind: str, size: int) -> None:
    made = records(subject.config, Flood(kind, size, 1).queue, kind, size)
    assert {len(record.value) for record in made} == {size}
    assert len({record.key for record in made}) == STREAMS
    assert {record.partition for record in made} <= set(range(PARTITIONS))
    original = "msmq.soap" if kind in HTTP_KINDS else "msmq.wire"
    wanted = {"msmq.v", "msmq.id", "msmq.source", "msmq.dest", original, "msmq.label"}
    assert wanted <= set(made[0].headers)
    assert ("msmq.tx.seq" in made[0].headers) == (kind in ("transactional", "srmp-stream"))


def test_settings_go_into_the_configuration(subject: Subject) -> None:
    assert json.loads(Path(subject.config).read_text())["shards"] == 3
    assert parse_settings(["shards=4", 'topic_prefix="x"']) == {"shards": 4, "topic_prefix": "x"}
