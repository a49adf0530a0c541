"""Wireshark reads what we say: every packet of a dialogue, and none of them is malformed."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.rpc.conftest import OpenReader, Send, path
from tests.outside.rpc.reader import NACK, PEEK_CURRENT, Account, FaultError
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]
NOBODY = Account(level=1)
LONG = 30_000
REQUEST, RESPONSE, FAULT, BIND, BIND_ACK = "0", "2", "3", "11", "12"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues={"kept1": {"mode": "retain"}}, listen={"rpc": 0}, rpc={"minimum_level": "none"}
    )


@contextmanager
def captured(port: int, file: Path) -> Iterator[None]:
    """Packets of this port on loopback; the capture is under way when it begins."""
    command = ["tshark", "-i", "lo", "-f", f"tcp port {port}", "-w", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "Capture started" in line or "Capturing on" in line:
                    break
            else:
                pytest.skip("tshark may not capture here")
            eventually(file.exists)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()


def read(file: Path, port: int, wanted: str, *fields: str) -> list[list[str]]:
    """The fields of the packets that a display filter lets through."""
    command = ["tshark", "-r", str(file), "-d", f"tcp.port=={port},dcerpc", "-Y", wanted]
    command += ["-T", "fields", *(word for name in fields for word in ("-e", name))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # cut off: 2
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_no_packet_is_malformed(
    appliance: Appliance, send: Send, open_reader: OpenReader, tmp_path: Path
) -> None:
    """Binds, answers of several fragments, faults; in the clear, so that all of it can be read."""
    port, file = appliance.listeners["rpc"][1], tmp_path / "lo.pcapng"
    big = bytes(range(256)) * 100
    with captured(port, file):
        reader = open_reader(NOBODY)
        queue = reader.open(path("kept1"))
        send("kept1", b"M1", big)
        reader.start(queue, PEEK_CURRENT, timeout=LONG)
        reader.start(queue, request_id=1)
        assert reader.end(queue, 1, NACK) == 0
        assert reader.take(queue) == b"M1"
        assert reader.take(queue, timeout=LONG) == big
        with pytest.raises(FaultError):
            reader.open(path("nobody"))
        reader.close_queue(queue)
        reader.close()
        eventually(lambda: read(file, port, "dcerpc.opnum == 3 && dcerpc.pkt_type == 2", "tcp.len"))
    told = [kind for row in read(file, port, "dcerpc", "dcerpc.pkt_type") for kind in row]
    kinds = {kind for found in told for kind in found.split(",")}
    assert {REQUEST, RESPONSE, FAULT, BIND, BIND_ACK} <= kinds
    assert len(read(file, port, "dcerpc.cn_flags.last_frag == 0", "frame.number")) >= 1
    bad = "_ws.malformed || _ws.expert.severity == error"
    assert read(file, port, bad, "frame.number", "_ws.expert.message") == []
