"""What is wrong is one clear line each, the others go on, and the exit code says so."""

import json
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from tests.adapters.reader.served import Served, closed_port
from tests.cli.program import run
from tests.spark.letters import ORDERS, PLAIN, letter, write_lines
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, read_topic, unique


@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_everything_that_can_be_wrong_at_once(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSMQ_BRIDGE_SPARK_MEMORY", "512m")
    bootstrap, prefix = kafka.bootstrap_servers, unique("lines")
    config = write_config(tmp_path, bootstrap, topic_prefix=prefix)
    orders = create_topic(bootstrap, topic(prefix, "orders"), 1)  # and none for `plain`
    ensure_topics({"bootstrap.servers": bootstrap}, OwnTopics(prefix), 1, [])
    half = write_lines(tmp_path / "half.jsonl", [letter(91, ORDERS), letter(92, PLAIN)], b'{"messa')
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and no more")
    (tmp_path / "password").write_text("secret\n")  # ann's, and not bob's
    with Served().running() as served, closed_port() as closed:
        served.fake.put(ORDERS, b"live", transactional=True)
        host = f"127.0.0.1:{served.port}"
        good = f"msmq://ann@{host}/private$/orders"
        unreachable = f"msmq://ann@127.0.0.1:{closed}/;deadletter"
        refused = f"msmq://bob@{host}/private$/orders"
        missing = f"msmq://ann@{host}/private$/none"
        line = ["backfill", "--config", str(config), "--out", str(tmp_path / "out"), "-o", "json"]
        line += ["--password-file", str(tmp_path / "password")]
        for source in (unreachable, refused, missing, str(half), str(torn), good):
            line += ["--source", source]
        done = run(*line, timeout=600)
        assert served.fake.removed == []
    assert done.returncode == 2, done.stderr
    told = json.loads(done.stdout)
    assert told["written"] == 2  # the others go on
    values = {message.value() for message in read_topic(bootstrap, orders)}
    assert values == {b"live", b"body 91"}

    problems = told["problems"]
    assert len(problems) == 6
    assert all("\n" not in text for text in problems)
    wanted = (
        (unreachable, "refused"),
        (refused, "password"),
        (missing, "no such queue"),
        (str(half), "1 cannot be read (first: "),
        (str(half), "are for a topic that is not there"),
        (str(torn), "is not a Parquet file"),
    )
    for source, words in wanted:
        found = [text for text in problems if text.startswith(source) and words in text]
        assert len(found) == 1, (source, words, problems)
    assert "secret" not in done.stdout + done.stderr
