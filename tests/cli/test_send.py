"""`msmq-bridge send` against a running appliance: what arrives, and what it says if not."""

import io
import json
import os
import pty
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from ruamel.yaml import YAML

from bridge.adapters.config_files import load_config
from bridge.adapters.net import binary_client
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url
from bridge.cli import send as module
from bridge.cli.app import main
from bridge.cli.batch import MAX_BODY
from tests.cli.conftest import Served
from tests.cli.program import command
from tests.support.kafka import read_topic
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def send(appliance: Served, capsys: pytest.CaptureFixture[str]) -> Any:
    """Sends and gives back what was told and the records it became."""

    def make(queue: str, *options: str, to: str = "") -> tuple[dict[str, Any], list[Message]]:
        where = ["--to", to] if to else ["--queue", f"private$\\{queue}"]
        arguments = ["send", "--host", appliance.binary, *where, "-o", "json", *options]
        assert main(arguments) == 0, capsys.readouterr().err
        printed = capsys.readouterr()
        assert printed.err == ""
        told = json.loads(printed.out)
        return told, eventually(lambda: records(appliance, queue, told["source"], told["sent"]))

    return make


def records(appliance: Served, queue: str, source: str, count: int) -> list[Message]:
    """Those of one sender, when all have come: nobody waits for an express message."""
    found = [
        record
        for record in read_topic(appliance.bootstrap, appliance.topic(queue))
        if headers(record)["msmq.source"] == source.encode()
    ]
    return found if len(found) >= count else []


def headers(record: Message) -> dict[str, Any]:
    return dict(record.headers() or [])


def bodies(found: list[Message]) -> list[bytes]:
    assert len({record.partition() for record in found}) == 1  # one stream, one partition
    return [record.value() or b"" for record in found]


@pytest.mark.parametrize(
    ("delivery", "queue", "options"),
    [
        ("express", "plain", []),
        ("recoverable", "plain", ["--recoverable"]),
        ("transactional", "orders", ["--transactional"]),
    ],
)
def test_all_arrive_in_order(send: Any, delivery: str, queue: str, options: list[str]) -> None:
    told, found = send(queue, "--count", "200", *options)
    assert list(told) == ["sent", "to", "source", "delivery", "seconds", "per_second"]
    assert (told["sent"], told["delivery"]) == (200, delivery)
    assert told["to"] == f"DIRECT=TCP:127.0.0.1\\private$\\{queue}"
    assert told["seconds"] > 0
    assert told["per_second"] > 0
    assert bodies(found) == [b"message %d" % n for n in range(1, 201)]


def test_transactions_of_several_messages(send: Any) -> None:
    _, found = send("orders", "--transactional", "--count", "5", "--per-transaction", "2")
    assert bodies(found) == [b"message %d" % n for n in range(1, 6)]
    tx = [headers(record) for record in found]
    assert [h["msmq.tx.seq"] for h in tx] == [b"1", b"2", b"3", b"4", b"5"]
    assert [h["msmq.tx.id"].rpartition(b"\\")[2] for h in tx] == [b"1", b"1", b"2", b"2", b"3"]
    assert ["msmq.tx.first" in h for h in tx] == [True, False, True, False, True]
    assert ["msmq.tx.last" in h for h in tx] == [False, True, False, True, True]


# -- streams and final acks -------------------------------------------------------------------


def test_two_runs_of_one_source_in_the_same_second(
    send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # QB-96: the second sequence is greater, so nothing of it is a duplicate
    clock = [1_800_000_000_000_000_000]

    class Clock:
        monotonic, time = staticmethod(time.monotonic), staticmethod(time.time)

        @staticmethod
        def time_ns() -> int:
            clock[0] += 5_000_000
            return clock[0]

    monkeypatch.setattr(module, "time", Clock)
    source = "77777777-2222-3333-4444-555555555555"
    for run in (1, 2):
        _, found = send("orders", "--transactional", "--count", str(3 * run), "--source", source)
    assert bodies(found)[:3] == [b"message 1", b"message 2", b"message 3"]
    sequences = [int(headers(record)["msmq.tx.seqid"]) for record in found]
    assert len(found) == 9
    assert len(set(sequences)) == 2
    assert sequences == sorted(sequences)
    assert {sequence >> 32 for sequence in sequences} == {1_800_000_000}


def test_final_acks_are_waited_for(send: Any) -> None:  # QB-91, QB-98, QB-99
    told, found = send("orders", "--transactional", "--wait-final", "--count", "100")
    assert told["final_acks"] == {"ACK_RECEIVE": 100}
    assert all(headers(record)["msmq.tx.final-ack"] == b"1" for record in found)


def test_a_dead_letter_that_is_none(send: Any) -> None:  # QB-91: journaling asks for it, too
    told, found = send("orders", "--transactional", "--dead-letter", "--count", "3")
    assert told["final_acks"] == {"ACK_RECEIVE": 3}
    assert all(headers(record)["msmq.journal"] == b"1" for record in found)


def test_nobody_is_left_waiting_for_our_ack(appliance: Served, send: Any) -> None:  # QB-6
    send("orders", "--transactional", "--wait-final", "--count", "40")
    url = find_admin_url(load_config(appliance.config))
    eventually(lambda: get_json(url, "/api/status")["waiting_acks"] == 0)


def test_a_refused_message_is_an_error_when_it_is_waited_for(
    appliance: Served, capsys: pytest.CaptureFixture[str]
) -> None:  # QB-90
    arguments = ["--queue", "private$\\none", "--transactional", "--wait-final", "--count", "3"]
    assert main(["send", "--host", appliance.binary, *arguments, "-o", "json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["final_acks"] == {"NACK_BAD_DST_Q": 3}
    (line,) = printed.err.splitlines()
    assert line == (
        "msmq-bridge: error: 3 of 3 messages were refused: NACK_BAD_DST_Q (there is no such queue)"
    )


def test_every_property_arrives(send: Any) -> None:
    source, correlation = "11111111-2222-3333-4444-555555555555", "00ff" * 10
    told, (record,) = send(
        *("plain", "--source", source, "--recoverable", "--label", "order {n} €", "--body", "b{n}"),
        *("--priority", "7", "--app", "4711", "--body-type", "8", "--correlation", correlation),
        *("--ttrq", "60", "--ttbr", "3600", "--ack", "full-reach"),
        *("--admin-queue", r"DIRECT=OS:me\private$\admin"),
        *("--response-queue", r"DIRECT=OS:me\answers"),
    )
    assert told["source"] == source
    assert record.value() == b"b1"
    found = headers(record)
    assert found["msmq.id"] == f"{source}\\1".encode()
    expected = {
        "label": "order 1 €".encode(),
        "priority": b"7",
        "app": b"4711",
        "body-type": b"8",
        "correlation": bytes.fromhex(correlation),
        "ttrq": b"60",
        "ttbr": b"3600",
        "ack": b"5",
        "admin": rb"DIRECT=OS:me\private$\admin",
        "response": rb"DIRECT=OS:me\answers",
        "delivery": b"1",
    }
    assert {name: found[f"msmq.{name}"] for name in expected} == expected


def test_a_format_name_instead_of_a_queue(send: Any) -> None:
    told, (record,) = send("plain", "--recoverable", to=r"DIRECT=OS:BRIDGE01\private$\plain")
    assert told["to"] == r"DIRECT=OS:BRIDGE01\private$\plain"
    assert headers(record)["msmq.dest"] == told["to"].encode()


def test_a_host_by_name(appliance: Served, send: Any) -> None:
    port = appliance.binary.rpartition(":")[2]
    told, _ = send("plain", "--host", f"localhost:{port}", "--recoverable")
    assert told["to"] == r"DIRECT=OS:localhost\private$\plain"


# -- bodies -----------------------------------------------------------------------------------


def test_labels_and_bodies_are_numbered_and_padded(send: Any) -> None:
    _, found = send(
        *("plain", "--count", "3", "--recoverable", "--label", "{n} of 3"),
        *("--body", "no. {n}", "--size", "10"),
    )
    assert bodies(found) == [b"no. 1.....", b"no. 2.....", b"no. 3....."]
    assert [headers(r)["msmq.label"] for r in found] == [b"1 of 3", b"2 of 3", b"3 of 3"]


def test_size_alone(send: Any) -> None:
    _, (record,) = send("plain", "--recoverable", "--size", "100000")
    assert record.value() == b"message 1".ljust(100_000, b".")


def test_a_file_goes_out_as_it_is(send: Any, tmp_path: Path) -> None:
    path = tmp_path / "body.bin"
    path.write_bytes(bytes(range(256)) + b"{n}")
    _, found = send("plain", "--recoverable", "--file", str(path), "--count", "2")
    assert bodies(found) == [path.read_bytes()] * 2


def test_standard_input(send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff from a pipe")))
    _, (record,) = send("plain", "--recoverable", "--file", "-")
    assert record.value() == b"\xff from a pipe"


def test_the_largest_body(send: Any, tmp_path: Path) -> None:
    path = tmp_path / "body.bin"
    path.write_bytes(os.urandom(MAX_BODY))
    _, (record,) = send("plain", "--recoverable", "--file", str(path), "--label", "x" * 249)
    assert record.value() == path.read_bytes()
    assert headers(record)["msmq.label"] == b"x" * 249


def test_bytes_of_the_command_line_that_are_no_text(send: Any) -> None:
    _, (record,) = send("plain", "--recoverable", "--body", os.fsdecode(b"\xff\xfe"))
    assert record.value() == b"\xff\xfe"


# -- what it prints ---------------------------------------------------------------------------


def test_yaml_and_a_table(appliance: Served, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["send", "--host", appliance.binary, "--queue", "private$\\plain"]
    assert main([*arguments, "-o", "yaml"]) == 0
    told = YAML(typ="safe", pure=True).load(capsys.readouterr().out)
    assert (told["sent"], told["delivery"]) == (1, "express")
    assert main(arguments) == 0
    table = capsys.readouterr().out
    for word in ("acknowledged", "sent", "express", "DIRECT=TCP:127.0.0.1\\private$\\plain"):
        assert word in table


def test_a_progress_bar_for_people_does_not_spoil_the_answer(appliance: Served) -> None:
    master, slave = pty.openpty()
    done = subprocess.run(
        [
            *command("send", "--host", appliance.binary, "--queue", "private$\\orders"),
            *("--transactional", "--count", "300", "-o", "json"),
        ],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
        timeout=60,
        check=False,
    )
    os.close(slave)
    screen = os.read(master, 1 << 16)
    os.close(master)
    assert done.returncode == 0
    assert json.loads(done.stdout)["sent"] == 300
    assert b"sending" in screen


def test_the_example_shows_them(appliance: Served, send: Any) -> None:
    told, _ = send("orders", "--transactional", "--count", "7")
    done = subprocess.run(
        [
            *(sys.executable, str(EXAMPLES / "consume.py"), appliance.topic("orders")),
            *("--config", str(appliance.config), "--last", "3"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert f"records in {appliance.topic('orders')}" in lines[-1]
    shown = [line for line in lines if line.startswith(f"{appliance.topic('orders')}-")]
    assert len(shown) == 3
    assert any(told["source"] in line for line in lines)


# -- what goes wrong --------------------------------------------------------------------------

Q = ["--queue", "private$\\plain"]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ([], 1, "give either --queue or --to"),
        ([*Q, "--to", r"DIRECT=OS:h\q"], 1, "give either --queue or --to"),
        (["--queue", "private$\\"], 1, "--queue: 'DIRECT=TCP:127.0.0.1\\\\private$\\\\' is no"),
        (["--to", "orders"], 1, "--to: 'orders' is no format name"),
        (["--to", "PUBLIC=11111111-2222-3333-4444-555555555555"], 1, "is not a direct name"),
        ([*Q, "--host", "a:b:c"], 1, "--host: 'a:b:c'"),
        ([*Q, "--host", ""], 1, "--host: ''"),
        ([*Q, "--host", "host:99999"], 1, "--host: 'host:99999': no such port"),
        ([*Q, "--host", "a..b"], 1, "--host: 'a..b'"),
        ([*Q, "--host", "x" * 64 + ".example"], 1, "--host: 'xxx"),
        ([*Q, "--count", "0"], 2, "'--count'"),
        ([*Q, "--per-transaction", "0"], 2, "'--per-transaction'"),
        ([*Q, "--file", "/no/such/file"], 1, "--file: /no/such/file: No such file"),
        ([*Q, "--file", "/"], 1, "--file: /: Is a directory"),
        ([*Q, "--file", "/dev/full/x"], 1, "Not a directory"),
        ([*Q, "--size", "-1"], 2, "'--size'"),
        ([*Q, "--size", str(MAX_BODY + 1)], 2, "'--size'"),
        ([*Q, "--label", "x" * 250], 1, "--label: has 250 characters; an MSMQ label has at most"),
        ([*Q, "--label", "x" * 248 + "{n}", "--count", "10"], 1, "--label: has 250 characters"),
        ([*Q, "--label", "\U0001f600" * 125], 1, "--label: has 250 characters"),
        ([*Q, "--body-type", "-1"], 2, "'--body-type'"),
        ([*Q, "--priority", "8"], 2, "'--priority'"),
        ([*Q, "--app", "4294967296"], 2, "'--app'"),
        ([*Q, "--correlation", "xyz"], 1, "--correlation: 'xyz' is not hex"),
        ([*Q, "--correlation", "00"], 1, "--correlation: has 1 bytes; give 20"),
        ([*Q, "--ttrq", "-1"], 2, "'--ttrq'"),
        ([*Q, "--ttbr", "4294967296"], 2, "'--ttbr'"),
        ([*Q, "--admin-queue", "x"], 1, "--admin-queue: 'x' is no format name"),
        ([*Q, "--response-queue", "x"], 1, "--response-queue: 'x' is no format name"),
        ([*Q, "--ack", "maybe"], 2, "'--ack'"),
        ([*Q, "--wait-final"], 1, "--wait-final: only a transactional message has a final"),
        ([*Q, "--source", "me"], 1, "--source: not a GUID: 'me'"),
        ([*Q, "--timeout", "0"], 2, "'--timeout'"),
        ([*Q, "--timeout", "nan"], 2, "'--timeout'"),
        ([*Q, "--output", "xml"], 2, "'xml'"),
        ([*Q, "--count", "many"], 2, "'--count'"),
        ([*Q, "more"], 2, "more"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("msmq-bridge: error: ")
    assert word in line


def test_a_file_that_is_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "body.bin"
    path.write_bytes(bytes(MAX_BODY + 1))
    assert main(["send", *Q, "--file", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"has {MAX_BODY + 1} bytes; an MSMQ body has at most {MAX_BODY}" in line


def test_no_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["send", *Q, "--file", "-"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "--file: standard input is closed" in line


def test_nobody_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(binary_client, "RETRY_S", 0.02)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        assert main(["send", *Q, "--host", host, "--timeout", "0.3"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert f"{host}: 1 messages are not acknowledged after 0.3 s (Connection refused)" in line


def test_a_message_that_is_refused_is_taken_all_the_same(
    appliance: Served, capsys: pytest.CaptureFixture[str]
) -> None:  # QB-62: a session ack says nothing of the queue
    arguments = ["--queue", "private$\\none", "--recoverable", "-o", "json"]
    assert main(["send", "--host", appliance.binary, *arguments]) == 0
    source = json.loads(capsys.readouterr().out)["source"].encode()
    rejects = read_topic(appliance.bootstrap, f"{appliance.prefix}.rejects")
    assert any(headers(record)["msmq.source"] == source for record in rejects)
