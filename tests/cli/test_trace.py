"""`msmq-bridge trace` against the real admin server with a fake appliance behind it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.runtime import write_runtime
from bridge.cli.app import main
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server

GUID = "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77"
IN_HEX = "5e0c8a3f0b6a554c9f0e0d3c2b1a4f772a000000"  # GUID\42 as it lies on the wire
VERDICTS: list[dict[str, Any]] = [
    {
        "id": f"{GUID}\\42",
        "verdict": "accepted",
        "at": 1_700_000_000_123,
        "dest": "DIRECT=OS:bridge01\\private$\\orders",
        "queue": "private$\\orders",
        "topic": "orders",
        "partition": 3,
        "offset": 17,
        "peer": "10.1.2.3",
    },
    {
        "id": f"{GUID}\\42",
        "verdict": "rejected",
        "at": 1_700_000_001_000,
        "dest": "DIRECT=OS:bridge01\\private$\\nobody",
        "class": 0x8000,
        "reason": "unknown-queue",
    },
]


@pytest.fixture
def appliance() -> FakeAppliance:
    made = FakeAppliance()
    made.verdicts = VERDICTS
    return made


def run_trace(folder: Path, appliance: FakeAppliance, *options: str) -> int:
    (folder / "bridge.yaml").write_text("data: state\nlisten: {admin: 0}\n")

    async def run() -> int:
        async with admin_server(appliance, data=folder / "state") as url:
            write_runtime(folder / "state", url, 1)
            arguments = ["trace", "--config", str(folder / "bridge.yaml"), *options]
            return await asyncio.to_thread(main, arguments)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ([f"{GUID}\\42"], ("id", f"{GUID}\\42")),
        ([f"{{{GUID.upper()}}}\\42"], ("id", f"{GUID}\\42")),  # as MSMQ shows it
        ([f"{GUID}\\0042"], ("id", f"{GUID}\\42")),
        (["--label", "Order 1 & 2 = ü/?#"], ("label", "Order 1 & 2 = ü/?#")),
        (["--label", "x" * 249], ("label", "x" * 249)),
        (["--label", "世" * 249], ("label", "世" * 249)),  # the longest MSMQ knows
        (["--correlation", f"{GUID}\\42"], ("correlation", IN_HEX)),  # MS-MQMQ 2.2.18.1.3
        (["--correlation", IN_HEX.upper()], ("correlation", IN_HEX)),
    ],
)
def test_what_is_asked(
    tmp_path: Path, appliance: FakeAppliance, options: list[str], asked: tuple[str, str]
) -> None:
    assert run_trace(tmp_path, appliance, *options, "-o", "json") == 0
    assert appliance.asked == [asked]


def test_a_label_that_is_no_text_is_asked_for_all_the_same(
    tmp_path: Path, appliance: FakeAppliance
) -> None:
    assert run_trace(tmp_path, appliance, "--label", "x\udcff") == 0
    assert appliance.asked == [("label", "x?")]


def test_json_is_the_answer_itself(
    tmp_path: Path, appliance: FakeAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_trace(tmp_path, appliance, f"{GUID}\\42", "-o", "json") == 0
    printed = capsys.readouterr()
    words = {"class_name": "NACK_BAD_DST_Q", "words": "there is no such queue"}
    assert json.loads(printed.out) == [
        verdict | words if verdict.get("class") else verdict for verdict in VERDICTS
    ]
    assert printed.err == ""


def test_a_table_for_people(
    tmp_path: Path, appliance: FakeAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_trace(tmp_path, appliance, f"{GUID}\\42") == 0
    out = capsys.readouterr().out
    for word in ("accepted", "orders-3@17", "2023-11-14T22:13:20.123+00:00", "10.1.2.3"):
        assert word in out
    for word in ("rejected", "NACK_BAD_DST_Q", "unknown-queue", "private$\\nobody"):
        assert word in out


def test_a_record_that_is_gone_and_a_class_of_tomorrow(
    tmp_path: Path, appliance: FakeAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    appliance.verdicts = [VERDICTS[0] | {"offset": None}, VERDICTS[1] | {"class": 0x8FFF}]
    assert run_trace(tmp_path, appliance, f"{GUID}\\42") == 0
    out = capsys.readouterr().out
    assert "orders-3 (no longer there)" in out
    assert "0x8fff" in out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "give a MESSAGE-ID, --label or --correlation, one of them"),
        ([f"{GUID}\\1", "--label", "x"], "one of them"),
        (["--label", "x", "--correlation", IN_HEX], "one of them"),
        (["nonsense"], "MESSAGE-ID: 'nonsense' is no message id; write guid\\ordinal"),
        ([GUID], "is no message id"),
        ([f"{GUID}\\x"], "is no message id"),
        ([f"{GUID.replace('-', '0')}\\1"], "is no message id"),
        (["--correlation", "00ff"], "--correlation: '00ff' is no message id"),
        (["--correlation", IN_HEX + "0"], "is no message id"),
    ],
)
def test_a_bad_question_is_one_line(
    tmp_path: Path,
    appliance: FakeAppliance,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    told: str,
) -> None:
    assert run_trace(tmp_path, appliance, *options) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert len(printed.err.splitlines()) == 1
    assert appliance.asked == []


def test_nothing_found_is_one_line(
    tmp_path: Path, appliance: FakeAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    appliance.verdicts = []
    assert run_trace(tmp_path, appliance, "--label", "x") == 1
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert "no verdict on label x" in printed.err


def test_kafka_is_away(
    tmp_path: Path, appliance: FakeAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    appliance.away = "Kafka: reading the trace: timed out"
    assert run_trace(tmp_path, appliance, f"{GUID}\\42") == 1
    error = capsys.readouterr().err
    assert "answers 503" in error
    assert len(error.splitlines()) == 1


def test_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("data: state\nlisten: {admin: 0}\n")
    assert main(["trace", f"{GUID}\\42", "-c", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("msmq-bridge: error: no appliance is running")
    assert len(printed.err.splitlines()) == 1
