"""`msmq-bridge map test` through the real entry: samples, tests, one line per error."""

import base64
import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bridge.cli.app import main
from tests.adapters.sample_packets import order
from tests.support.captures import conversation, pcap

MAPPINGS = """\
queues:
  - {queue: private$\\orders, topic: orders, transactional: true, journal: kept}
  - {queue: private$\\plain, topic: 'by.{label}', oversize: chunk}
  - {queue: private$\\large, topic: large, oversize: claim-check}
"""
TESTS = """\
tests:
  - name: this one is right
    message: {queue: private$\\plain, label: a}
    expect: {topic: by.a}
  - name: this one is not
    message: {queue: private$\\plain, label: b}
    expect: {topic: by.c, key: null}
"""
OWN = "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77"
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.yaml").write_text(MAPPINGS)
    (tmp_path / "order.hex").write_text(order(7).hex())
    return tmp_path


def run(*arguments: str) -> int:
    return main(["map", "test", "-m", "m.yaml", *arguments])


def failed(capsys: Printed, *arguments: str) -> str:
    """The one line of the error."""
    assert run(*arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    return printed.err.removeprefix("msmq-bridge: error: ").rstrip("\n")


def test_the_record_for_people(folder: Path, capsys: Printed) -> None:
    assert run("order.hex") == 0
    out = capsys.readouterr().out
    for text in ("order.hex", "orders", "<Order><Id>7</Id></Order>", "kept", "2026-01-31T12:00"):
        assert text in out
    for header in ("msmq.label", "msmq.tx.seq", "msmq.wire", "... ("):
        assert header in out


def test_the_record_for_programs(folder: Path, capsys: Printed) -> None:
    assert run("order.hex", "-o", "json") == 0
    [told] = json.loads(capsys.readouterr().out)
    assert told["sample"] == "order.hex"
    assert told["queue"] == "private$\\orders"
    [record] = told["records"]
    assert (record["topic"], record["timestamp"]) == ("orders", "2026-01-31T12:00:00.000Z")
    assert (record["value"], record["size"]) == ("<Order><Id>7</Id></Order>", 25)
    assert record["headers"]["msmq.label"] == "order 7"
    assert told["journal"][0]["topic"] == "kept"
    assert run("order.hex", "-o", "yaml") == 0
    assert YAML(typ="safe").load(capsys.readouterr().out) == [told]


def test_partitions_are_assumed(folder: Path, capsys: Printed) -> None:
    run("order.hex", "--partitions", "1000", "-o", "json")
    assert json.loads(capsys.readouterr().out)[0]["records"][0]["partition"] > 3
    run("order.hex", "--partitions", "1", "-o", "json")
    assert json.loads(capsys.readouterr().out)[0]["records"][0]["partition"] == 0


def test_a_refusal_in_place_of_a_record(folder: Path, capsys: Printed) -> None:
    (folder / "s.yaml").write_text("queue: private$\\orders")
    assert run("s.yaml", "-o", "json") == 0
    [told] = json.loads(capsys.readouterr().out)
    reason = "plain-message-to-transactional-queue"
    refused = {"class": "NACK_NOT_TRANSACTIONAL_MSG", "code": 0x800A, "reason": reason}
    assert told["refused"] == refused
    assert "records" not in told
    assert run("s.yaml") == 0
    out = capsys.readouterr().out
    assert "NACK_NOT_TRANSACTIONAL_MSG (0x800a)" in out
    assert reason in out


def test_a_body_that_is_too_large(folder: Path, capsys: Printed) -> None:
    (folder / "s.yaml").write_text("{queue: private$\\plain, label: a, body_size: 9000}")
    assert run("s.yaml", "--max-bytes", "4000") == 0
    out = capsys.readouterr().out
    assert "s.yaml, record 1 of 3" in out
    assert "msmq.chunk.index" in out
    (folder / "s.yaml").write_text("{queue: private$\\large, body_size: 9000}")
    assert run("s.yaml", "--max-bytes", "4000") == 0
    out = capsys.readouterr().out
    assert '{"claim":' in out
    assert "(9000 bytes)" in out
    run("s.yaml", "--max-bytes", "4000", "-o", "json")
    [claim] = json.loads(capsys.readouterr().out)[0]["claims"]
    assert claim["size"] == 9000


def test_a_capture_and_its_limit(folder: Path, capsys: Printed) -> None:
    packets = b"".join(order(number) for number in range(1, 6))
    (folder / "c.pcap").write_bytes(pcap(conversation(packets, [100])))
    assert run("c.pcap", "--limit", "2", "-o", "json") == 0
    printed = capsys.readouterr()
    assert [told["sample"] for told in json.loads(printed.out)] == ["c.pcap#1", "c.pcap#2"]
    assert printed.err == "there are more messages than 2; --limit shows them\n"


def test_a_record_again_from_its_wire_header(folder: Path, capsys: Printed) -> None:
    run("order.hex", "-o", "json")
    first = json.loads(capsys.readouterr().out)[0]["records"]
    wire = bytes.fromhex(first[0]["headers"]["msmq.wire"][2:])
    (folder / "wire").write_text(base64.b64encode(wire).decode())
    (folder / "value").write_text(first[0]["value"])
    assert run("wire", "--body", "value", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["records"] == first


def test_the_appliance_decides_by_its_configuration(folder: Path, capsys: Printed) -> None:
    (folder / "bridge.yaml").write_text(
        f"queue_manager: {{id: {OWN}, quota_kb: 1}}\nmappings: m.yaml\n"
    )
    (folder / "s.yaml").write_text("{queue: private$\\plain, body_size: 2000}")
    assert main(["map", "test", "s.yaml", "-c", "bridge.yaml", "-o", "json"]) == 0
    [told] = json.loads(capsys.readouterr().out)
    assert told["refused"] == {"class": "BUSY", "code": 0, "reason": "machine-quota"}
    assert main(["map", "test", "s.yaml", "-c", "bridge.yaml"]) == 0
    assert "machine-quota" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["gone.yaml"], "gone.yaml: no such file; check the path"),
        (["gone.hex"], "gone.hex: cannot be read (No such file or directory); check the path"),
        (["m.yaml"], "m.yaml:1:1: unknown key 'queues'; did you mean 'queue'?"),
        (["order.hex", "--body", "gone"], "gone: cannot be read (No such file or directory)"),
        ([], "m.yaml: there are no *.test.yaml here; write one, or name a SAMPLE"),
        (["--partitions", "2"], "--partitions: goes with a SAMPLE; a test file has its own"),
        (["--body", "order.hex"], "--body: goes with a SAMPLE"),
    ],
)
def test_errors(folder: Path, capsys: Printed, arguments: list[str], line: str) -> None:
    assert failed(capsys, *arguments).startswith(line)


def test_tests_that_pass_and_fail(folder: Path, capsys: Printed) -> None:
    (folder / "m.test.yaml").write_text(TESTS)
    assert run() == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok     m.test.yaml:2 this one is right",
        "FAILED m.test.yaml:5 this one is not",
        "       - topic: by.c",
        "       + topic: by.b",
        "       - key: (none)",
        "       + key: 11111111-2222-3333-4444-555555555555/DIRECT=OS:BRIDGE01\\private$\\plain",
        "2 tests, 1 failed",
    ]
    (folder / "m.test.yaml").write_text(TESTS.replace("by.c, key: null", "by.b"))
    assert run() == 0


def test_results_for_programs(folder: Path, capsys: Printed) -> None:
    (folder / "m.test.yaml").write_text(TESTS)
    assert run("-o", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert [(test["name"], test["line"], test["ok"]) for test in told["tests"]] == [
        ("this one is right", 2, True),
        ("this one is not", 5, False),
    ]
    difference = {"what": "topic", "expected": "by.c", "found": "by.b"}
    assert told["tests"][1]["differences"][0] == difference


def test_a_broken_test_file_names_its_line(folder: Path, capsys: Printed) -> None:
    (folder / "m.test.yaml").write_text(TESTS.replace("topic: by.a", "topik: by.a"))
    line = "m.test.yaml:4:14: unknown key 'topik' in 'tests[0].expect'; did you mean 'topic'?"
    assert failed(capsys) == line
