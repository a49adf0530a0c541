"""The example mappings: valid, tested, and true: `map test` says what a running appliance does."""

import json
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.cli.app import main
from bridge.core.trial import readable
from tests.cli.program import serve
from tests.docs.runner import ROOT
from tests.outside.rawmsmq import Message, Tx, build, direct, sequence_id
from tests.outside.rawsender import LOCAL, RawSender
from tests.outside.records import Record, read_topic
from tests.support.captures import pcap, segment
from tests.support.config import write_config
from tests.support.kafka import create_topic

FOLDER = ROOT / "examples" / "mappings"
SAMPLES = ROOT / "examples" / "samples"
NAMES = ("orders", "fan-out", "nservicebus", "claim-check", "cloudevents")
LIMIT = 1_048_588  # of a topic, when nobody says otherwise
TOPICS = ("orders", "orders.journal", "events.invoice", "sales", "documents", "shipments")
Printed = pytest.CaptureFixture[str]


def told(capsys: Printed, *arguments: str) -> Any:
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_valid_and_its_tests_pass(name: str, capsys: Printed) -> None:
    file = str(FOLDER / f"{name}.yaml")
    assert told(capsys, "map", "validate", file)["valid"]
    results = told(capsys, "map", "test", "-m", file)
    assert results["ok"]
    assert len(results["tests"]) >= 2
    assert (FOLDER / f"{name}.yaml").read_text().startswith("# ")
    assert f"[{name}.yaml]" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("folder", ["examples/mappings", "mappings"])
def test_they_work_together(folder: str, capsys: Printed) -> None:
    assert told(capsys, "map", "validate", str(ROOT / folder))["valid"]
    assert told(capsys, "map", "test", "-m", str(ROOT / folder))["ok"]


def test_the_samples_of_one_order_become_one_record(capsys: Printed) -> None:
    body = str(SAMPLES / "order.body")
    common = ("map", "test", "-m", str(FOLDER))
    records = [
        told(capsys, *common, str(SAMPLES / "order.yaml"))[0]["records"],
        told(capsys, *common, str(SAMPLES / "order.hex"))[0]["records"],
        told(capsys, *common, str(SAMPLES / "order.wire"), "--body", body)[0]["records"],
    ]
    assert records[0] == records[1] == records[2]
    orders = told(capsys, *common, str(SAMPLES / "orders.pcap"))
    assert [order["message_id"][-2:] for order in orders] == ["41", "42"]


def messages(source: UUID) -> Mapping[str, Message]:
    """One for each mapping, by the topic it goes to; two streams, each at its start."""
    sent = int(time.time())
    tx = Tx(sequence_id=sequence_id(sent, 1), number=1, previous=0)

    def message(number: int, queue: str, **fields: Any) -> Message:
        name = direct(f"OS:BRIDGE01\\private$\\{queue}")
        known = {"recoverable": True, "sent_time": sent}
        return Message(source=source, message_id=number, destination=name, **{**known, **fields})

    headers = b"<ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value>b</Value></HeaderInfo>"
    return {
        "orders": message(1, "orders", tx=tx, label="order 1", body=b"<Order><Id>1</Id></Order>"),
        "events.invoice": message(2, "events", label="invoice", body=b'{"customer": "C-17"}'),
        "sales": message(
            3,
            "sales",
            tx=tx,
            app=1,
            body=b"<PlaceOrder><OrderId>42</OrderId></PlaceOrder>",
            extension=headers + b"</ArrayOfHeaderInfo>",
            response=direct("OS:WEB01\\private$\\shop"),
        ),
        "documents": message(4, "documents", label="scan", body=source.bytes * 125_000),
        "shipments": message(5, "shipments", correlation=bytes(range(20)), body=b'{"parcel": 7}'),
    }


@pytest.mark.kafka
def test_map_test_says_what_the_appliance_does(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: Printed
) -> None:
    bootstrap, source = kafka.bootstrap_servers, uuid4()
    for topic in TOPICS:
        create_topic(bootstrap, topic, 4, max_message_bytes=str(LIMIT))
    config = write_config(tmp_path, bootstrap, mappings=str(FOLDER))
    sent = messages(source)
    with serve(config) as program:
        program.wait_line("ready: ")
        host, _, port = program.address("binary").rpartition(":")
        sender = RawSender((host, int(port)), source)
        sender.connect().handshake()
        sender.send_all_windowed(sent.values())
        sender.close()
    for topic, message in sent.items():
        [record] = read_topic(bootstrap, topic)
        foretold = _foretell(tmp_path, config, message, record, capsys)
        assert [_shown(topic, record)] == foretold["records"]
    [copy] = read_topic(bootstrap, "orders.journal")
    assert copy.value == sent["orders"].body
    _check_claim(tmp_path / "data" / "documents", sent["documents"].body)


def _foretell(
    folder: Path, config: Path, message: Message, record: Record, capsys: Printed
) -> dict[str, Any]:
    """What `map test` makes of a capture of the same packet at the same time."""
    file = folder / "capture.pcap"
    data = build(message)
    parts = [data[at : at + 30_000] for at in range(0, len(data), 30_000)]
    packets = [
        segment(part, 1 + 30_000 * index, source=LOCAL, target="127.0.0.1")
        for index, part in enumerate(parts)
    ]
    file.write_bytes(pcap(packets, at_ms=record.timestamp_ms - len(packets) + 1))
    limits = ("--partitions", "4", "--max-bytes", str(LIMIT))
    [made] = told(capsys, "map", "test", str(file), "--config", str(config), *limits)
    assert isinstance(made, dict)
    return made


def _shown(topic: str, record: Record) -> dict[str, Any]:
    moment = time.gmtime(record.timestamp_ms // 1000)
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{record.timestamp_ms % 1000:03}Z"
    return {
        "topic": topic,
        "partition": record.partition,
        "key": None if record.key is None else readable(record.key),
        "timestamp": stamp,
        "headers": {name: readable(data) for name, data in record.headers},
        "value": readable(record.value),
        "size": len(record.value),
    }


def _check_claim(folder: Path, body: bytes) -> None:
    name = sha256(body).hexdigest()
    assert (folder / name[:2] / name[2:4] / name).read_bytes() == body
