"""`msmq-bridge demo` as a newcomer runs it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka, running_broker
from bridge.cli import demo as module
from bridge.cli.app import main
from tests.cli.program import SOON_S, Serve, command, run
from tests.cli.test_live import Screen
from tests.support.config import topic, write_config
from tests.support.kafka import read_topic, unique

pytestmark = pytest.mark.kafka
QUESTIONS = ["1. What came in?", "2. Where is it in Kafka?", "3. What was the sender told?"]


@contextmanager
def demo(*options: str, stdout: int = subprocess.PIPE, **environment: str) -> Iterator[Serve]:
    process = subprocess.Popen(
        command("demo", *options),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
    )
    try:
        yield Serve(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SOON_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def complaints(lines: list[str]) -> list[str]:
    """A busy broker may need a second attempt at the start; the log says so."""
    return [line for line in lines if not line.endswith("; trying again")]


# -- the answers ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str, str]:
    """The answers as data; where the Kafka is; the prefix of the topics."""
    prefix = unique("demo")
    folder = tmp_path_factory.mktemp(prefix)
    listen = {"srmp": 0}
    config = write_config(folder, kafka.bootstrap_servers, topic_prefix=prefix, listen=listen)
    done = run("demo", "--config", str(config), "--once", "--count", "7", "-o", "json")
    assert (done.returncode, complaints(done.stderr.splitlines())) == (0, [])
    return json.loads(done.stdout), kafka.bootstrap_servers, prefix


def test_what_came_in(told: tuple[dict[str, Any], str, str]) -> None:
    came_in = told[0]["came_in"]
    assert Counter((row["sender"], row["verdict"], row["class"]) for row in came_in) == {
        ("shop", "accepted", None): 7,
        ("sensor", "accepted", None): 7,
        ("billing", "accepted", None): 7,
        ("web", "accepted", None): 14,
        ("careless", "rejected", "NACK_NOT_TRANSACTIONAL_MSG"): 1,
        ("sleeper", "expired", "NACK_REACH_QUEUE_TIMEOUT"): 1,
        ("typo", "rejected", "NACK_BAD_DST_Q"): 1,
        ("billing", "duplicate", None): 1,
    }
    assert {row["delivery"] for row in came_in} == {"express", "recoverable", "transactional"}
    shop = [row["label"] for row in came_in if row["sender"] == "shop"]
    assert shop == [f"order {n}" for n in range(1, 8)]
    web = [row["label"] for row in came_in if row["delivery"] == "transactional"]
    assert [label for label in web if label.startswith("web")] == [
        f"web order {n}" for n in range(1, 8)
    ]


def test_the_transport_of_each(told: tuple[dict[str, Any], str, str]) -> None:
    answers = told[0]
    senders = {(row["sender"] == "web", row["transport"]) for row in answers["came_in"]}
    assert senders == {(True, "http"), (False, "binary")}
    over_http = {row["message_id"] for row in answers["came_in"] if row["transport"] == "http"}
    for record in answers["in_kafka"]:
        transport = "http" if record["message_id"] in over_http else "binary"
        assert record["headers"]["msmq.transport"] == transport


def test_where_it_is_in_kafka(told: tuple[dict[str, Any], str, str]) -> None:
    answers, bootstrap, prefix = told
    names = (topic(prefix, "orders"), topic(prefix, "plain"), f"{prefix}.rejects")
    really = {
        (name, message.partition(), message.offset()): message
        for name in names
        for message in read_topic(bootstrap, name)
    }
    found = {(r["topic"], r["partition"], r["offset"]): r for r in answers["in_kafka"]}
    assert found.keys() == really.keys()  # all that is there, and each once
    assert len(found) == 38
    for place, record in found.items():
        headers = dict(really[place].headers() or [])
        assert record["message_id"].encode() == headers["msmq.id"]
        assert record["value"].encode() == really[place].value()
        assert record["key"].encode() == really[place].key()
        assert set(record["headers"]) == set(headers) - {"msmq.wire", "msmq.soap"}
    judged = {r["message_id"] for r in answers["came_in"]}
    assert {r["message_id"] for r in answers["in_kafka"]} == judged


def test_what_the_sender_was_told(told: tuple[dict[str, Any], str, str]) -> None:
    rows = [
        (r["sender"], r["sent"], r["session_acked"], r["order_acked"], r["final_acks"])
        for r in told[0]["told"]
    ]
    assert rows == [
        ("shop", 7, 7, 7, {"ACK_RECEIVE": 7}),
        ("sensor", 7, 7, 0, {}),
        ("billing", 7, 7, 0, {}),
        ("web", 7, 7, 7, {}),  # 200, and the stream's receipt
        ("web", 7, 7, 0, {}),
        ("careless", 1, 1, 0, {}),
        ("sleeper", 1, 1, 0, {}),
        ("typo", 1, 1, 1, {"NACK_BAD_DST_Q": 1}),  # QB-87, QB-90
        ("billing", 1, 1, 0, {}),
    ]
    assert [r["admin_acks"] for r in told[0]["told"]] == [
        {"ACK_RECEIVE": 7},
        {},
        {"ACK_REACH_QUEUE": 7},
        {},
        {"ACK_REACH_QUEUE": 7},
        {"NACK_NOT_TRANSACTIONAL_MSG": 1},
        {"NACK_REACH_QUEUE_TIMEOUT": 1},
        {},
        {},  # QB-71
    ]


# -- as it is ---------------------------------------------------------------------------------


def test_with_a_kafka_of_its_own_and_a_folder_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = run("demo", "--data", str(folder), "--once", timeout=100)
    assert (done.returncode, complaints(done.stderr.splitlines())) == (0, [])
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert [line[: len(q)] for q in QUESTIONS for line in lines if line.startswith(q)] == QUESTIONS
    arrived = [line for line in lines if re.match(r"\d{4}-\d\d-\d\dT\S+ accepted: ", line)]
    assert len(arrived) == 25
    assert sum(" over http to " in line for line in arrived) == 10
    assert lines[-1] == "stopping"
    assert running_broker(folder / "kafka") is None
    assert (folder / "demo.yaml").is_file()
    valid = run("map", "validate", "--config", str(folder / "demo.yaml"), "-o", "json")
    assert json.loads(valid.stdout)["queues"] == 3


def test_it_stays_on_a_terminal_until_ctrl_c(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("demo")
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix)
    master, slave = pty.openpty()
    try:
        with demo("--config", str(config), stdout=slave) as program:
            os.close(slave)
            screen = Screen(master)
            screen.wait(lambda text: "what arrives now" in text)
            assert all(question in screen.text for question in QUESTIONS)
            assert "15 accepted" in screen.text
            found = re.search(r"msmq-bridge (send --host \S+ --queue)", screen.text)
            assert found is not None
            words = [*found[1].split(), "private$\\orders", "--transactional", "--count", "2"]
            assert main([*words, "--label", "my own {n}"]) == 0  # what it invites to
            screen.wait(lambda text: "my own 2" in text)
            assert program.end(signal.SIGINT, seconds=20) == 0
            while screen.read(0.5):
                pass
        assert complaints(program.err) == []
    finally:
        os.close(master)
    assert screen.text.rstrip().splitlines()[-1] == "stopping"
    assert screen.raw.rfind("\x1b[?25h") > screen.raw.rfind("\x1b[?25l")  # the cursor is back


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_before_it_has_answered(tmp_path: Path, number: signal.Signals) -> None:
    with demo(TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1") as program:
        program.wait_line("listening: admin on ")
        assert program.end(number, seconds=SOON_S) == 130
    assert complaints(program.err) == []
    assert program.out[1:] == ["stopping"]
    assert list(tmp_path.iterdir()) == []  # the folder is gone, too


def test_a_reader_that_goes_away(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka.bootstrap_servers)
    read_end, write_end = os.pipe()
    with demo("--config", str(config), stdout=write_end, PYTHONUNBUFFERED="1") as program:
        os.close(write_end)
        heard = b""
        while b"ready: " not in heard:
            heard += os.read(read_end, 4096)
        os.close(read_end)  # as `| head -4` does
        assert program.process.wait(SOON_S) == 1
        for reader in program._readers:
            reader.join(SOON_S)
    assert complaints(program.err) == []


# -- what a user does wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "changes", "code", "word"),
    [
        (["--count", "0"], {}, 2, "'--count'"),
        (["--count", "1001"], {}, 2, "'--count'"),
        ([], {"listen": {"binary": None}}, 1, "listen.binary is null"),
        ([], {"listen": {"binary": 99999}}, 1, "bridge.yaml:1:"),
        ([], {"mappings": "none.yaml"}, 1, "none.yaml"),
        ([], {"mappings": "empty.yaml"}, 1, "nowhere to send to"),
        (["--data", "/dev/null/x"], {}, 1, "cannot write to /dev/null/x"),
    ],
)
def test_one_line(
    options: list[str],
    changes: dict[str, Any],
    code: int,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "setup_logging", lambda *_: None)
    (tmp_path / "empty.yaml").write_text("queues: []\n")
    config = write_config(tmp_path, "127.0.0.1:9", **changes)
    assert main(["demo", "--config", str(config), "--once", *options]) == code
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("msmq-bridge: error: ")
    assert word in line
