"""`msmq-bridge doctor` from outside: a good set-up, broken ones, and that it writes nothing."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from ruamel.yaml import YAML

from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.cli import doctor as module
from bridge.cli.app import main
from tests.cli.conftest import Served
from tests.cli.program import run
from tests.support.config import write_config
from tests.support.kafka import create_topic, transactional_producer, unique

SOON_S = 20.0  # of the whole command, whatever is broken


def examined(config: Path) -> tuple[int, dict[str, Any]]:
    began = time.monotonic()
    done = run("doctor", "--config", str(config), "-o", "json")
    assert time.monotonic() - began < SOON_S
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["ok"] == (done.returncode == 0)
    for finding in told["findings"]:
        assert finding["mend"] or finding["result"] in ("ok", "skip")
    return done.returncode, told


def results(told: dict[str, Any], check: str) -> dict[str, str]:
    return {f["about"]: f["result"] for f in told["findings"] if f["id"] == check}


def finding(told: dict[str, Any], check: str, about: str = "") -> dict[str, Any]:
    (only,) = [f for f in told["findings"] if (f["id"], f["about"]) == (check, about)]
    return dict(only)


# -- without a broker -------------------------------------------------------------------------


def test_a_configuration_that_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("listen:\n  binray: 1801\n")
    code, told = examined(path)
    assert code == 1
    assert finding(told, "config")["result"] == "fail"
    assert f"{path}:2:3" in finding(told, "config")["found"]
    assert {f["result"] for f in told["findings"][1:]} == {"skip"}


def test_a_dead_broker_does_not_hold_it_up(tmp_path: Path) -> None:
    with socket.socket() as silent:  # listens, and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        config = write_config(tmp_path, f"127.0.0.1:{silent.getsockname()[1]}")
        code, told = examined(config)
    assert code == 1
    assert results(told, "kafka") == {"": "fail"}
    for check in ("version", "limits", "acls", "own-topics", "mapped-topics", "transactions"):
        assert results(told, check) == {"": "skip"}
    assert results(told, "appliance") == {"": "skip"}
    assert not (tmp_path / "data").exists()


def test_the_embedded_kafka_before_the_first_start(tmp_path: Path) -> None:
    code, told = examined(write_config(tmp_path, None))
    assert code == 0
    assert results(told, "java")[""] == "ok"
    assert results(told, "kafka") == {"": "skip"}
    assert not (tmp_path / "data").exists()


def test_broken_mappings_and_a_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = write_config(tmp_path, None, listen={"binary": port})
        (tmp_path / "mappings.yaml").write_text("queues:\n  - queue: 5\n")
        code, told = examined(config)
    assert code == 1
    assert "mappings.yaml:2:" in finding(told, "mappings")["found"]
    assert results(told, "ports")["binary"] == "fail"
    assert f"127.0.0.1:{port} is in use" in finding(told, "ports", "binary")["found"]


def test_one_screen_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "kafka-acls.sh --add " + "--operation Write " * 10
    findings = [
        Finding(id="config", result=Result.OK, found="in order", commands=("not shown",)),
        Finding(id="ports", about="binary", result=Result.WARN, found="so so", mend="mend it"),
        Finding(id="acls", result=Result.FAIL, found="no", mend="run", commands=(command,)),
    ]
    monkeypatch.setattr(module, "examine", lambda *_: iter(findings))
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "ok    config         in order",
        "warn  ports          binary: so so",
        "                     -> mend it",
        "fail  acls           no",
        "                     -> run",
        f"      {command}",
        "1 ok, 1 warn, 1 fail, 0 skip",
    ]
    assert printed.err == ""
    assert main(["doctor", "-o", "yaml"]) == 1
    told = YAML(typ="safe", pure=True).load(capsys.readouterr().out)
    assert told["counts"] == {"ok": 1, "warn": 1, "fail": 1, "skip": 0}
    del findings[2]
    assert main(["doctor"]) == 0  # a warning is no failure


# -- with one ---------------------------------------------------------------------------------


def ends(bootstrap: str) -> dict[tuple[str, int], int]:
    """The end of every partition of every topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=30).topics
    wanted = {
        TopicPartition(name, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for name, topic in topics.items()
        for number in topic.partitions
    }
    found = admin.list_offsets(wanted)
    return {(at.topic, at.partition): future.result(30).offset for at, future in found.items()}


@pytest.mark.kafka
def test_a_good_set_up(appliance: Served) -> None:
    code, told = examined(appliance.config)
    assert code == 0, told
    assert told["counts"]["fail"] == 0
    assert results(told, "names") == {"BRIDGE01": "warn", "127.0.0.1": "ok"}
    assert results(told, "ports") == {"binary": "ok", "ping": "skip", "admin": "ok"}
    for check in ("config", "mappings", "appliance", "kafka", "version", "acls", "own-topics"):
        assert results(told, check) == {"": "ok"}, check
    for check in ("mapped-topics", "transactions", "clock", "clones", "destinations", "streams"):
        assert results(told, check) == {"": "ok"}, check
    commands = finding(told, "acls")["commands"]
    assert any(f"--transactional-id {appliance.prefix}.shard- " in line for line in commands)


@pytest.mark.kafka
def test_it_writes_nothing(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("doctor")
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix)
    files = sorted(tmp_path.rglob("*"))
    before = {at: end for at, end in ends(kafka.bootstrap_servers).items() if prefix in at[0]}
    code, told = examined(config)
    assert code == 0
    assert results(told, "own-topics") == {"": "ok"}
    assert results(told, "mapped-topics") == {"": "warn"}
    after = {at: end for at, end in ends(kafka.bootstrap_servers).items() if prefix in at[0]}
    assert after == before == {}
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.kafka
def test_topics_that_are_not_as_they_should_be(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("doctor")
    large = {"max_message_bytes": str(8 << 20)}
    bootstrap = kafka.bootstrap_servers
    create_topic(bootstrap, f"{prefix}.state", 2, cleanup_policy="delete", **large)
    create_topic(bootstrap, f"{prefix}.seen", 1, cleanup_policy="compact,delete", **large)
    create_topic(bootstrap, f"{prefix}-orders", 1, max_message_bytes="1000")
    code, told = examined(write_config(tmp_path, bootstrap, topic_prefix=prefix))
    assert code == 1
    own = [f for f in told["findings"] if f["id"] == "own-topics" and f["result"] == "fail"]
    assert any("cleanup.policy is delete, not compact" in f["found"] for f in own)
    assert any("has 1 partitions" in f["found"] for f in own)
    assert (
        "max.message.bytes is 1000" in finding(told, "mapped-topics", f"{prefix}-orders")["found"]
    )


@pytest.mark.kafka
@pytest.mark.parametrize(("age_s", "result"), [(0, "warn"), (600, "fail")])
def test_a_transaction_that_stays_open(
    kafka: EmbeddedKafka, tmp_path: Path, age_s: int, result: str
) -> None:
    prefix = unique("doctor")
    topic = create_topic(kafka.bootstrap_servers, f"{prefix}-orders", 1)
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix)
    producer = transactional_producer(kafka.bootstrap_servers, unique("hanging"))
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0, timestamp=int((time.time() - age_s) * 1000))
    producer.flush(30)
    code, told = examined(config)
    hanging = finding(told, "transactions", f"{topic}-0")
    assert (hanging["result"], code) == (result, int(result == "fail"))
    assert f"describe-producers --topic {topic} --partition 0" in hanging["commands"][0]
    producer.abort_transaction(30)
    _, told = examined(config)
    assert results(told, "transactions") == {"": "ok"}
