"""Live traffic to the same topics goes on: no copy twice, no stream or cursor disturbed."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.core.message_data import MessageData
from tests.cli.program import run, serve
from tests.outside.rawmsmq import Message, Tx, direct, sequence_id
from tests.outside.rawsender import RawSender
from tests.spark.backfill.bench import headers_of, id_of
from tests.spark.letters import ORDERS, letter, write_lines
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, read_topic, unique

LIVE = UUID("99999999-2222-3333-4444-555555555555")
NAME = f"OS:BRIDGE01\\{ORDERS}"


class Traffic(threading.Thread):
    """A sender with one stream that never rests."""

    def __init__(self, address: tuple[str, int], sequence: int, first: int = 1) -> None:
        super().__init__()
        self.sent, self._stop_now, self.error = first - 1, threading.Event(), None
        self._sequence = sequence
        self._sender = RawSender(address, LIVE)
        self._sender.connect().handshake()

    def batch(self, count: int) -> None:
        messages = [self._message(self.sent + n) for n in range(1, count + 1)]
        self._sender.send_all_windowed(messages)
        self.sent += count

    def _message(self, n: int) -> Message:
        tx = Tx(sequence_id=self._sequence, number=n, previous=n - 1)
        known: dict[str, Any] = {"recoverable": True, "sent_time": int(time.time())}
        body = b"live %d" % n
        return Message(
            source=LIVE, message_id=n, destination=direct(NAME), tx=tx, body=body, **known
        )

    def run(self) -> None:
        while not self._stop_now.is_set():
            self.batch(20)

    def end(self) -> None:
        self._stop_now.set()
        self.join(60)
        assert not self.is_alive()
        self.batch(5)  # the stream goes on where it was: its cursor is its own
        self._sender.close()


def journal_copy(n: int, sequence: int) -> MessageData:
    """As the sender's own journal has what it has sent."""
    return letter(
        n,
        ORDERS,
        str(LIVE),
        body=b"live %d" % n,
        tx_sequence_id=sequence,
        headers={"msmq.dest": f"DIRECT={NAME}"},
    )


@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_backfill_beside_live_traffic(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bootstrap, prefix = kafka.bootstrap_servers, unique("live")
    config = write_config(tmp_path, bootstrap, topic_prefix=prefix)
    orders = create_topic(bootstrap, topic(prefix, "orders"), 1)
    sequence = sequence_id(int(time.time()), 1)
    with serve(config) as program:
        program.wait_line("ready: ")
        host, _, port = program.address("binary").rpartition(":")
        traffic = Traffic((host, int(port)), sequence)
        traffic.batch(100)
        old = [letter(n, ORDERS) for n in range(1, 501)]
        copies = [journal_copy(n, sequence) for n in range(1, 101)]
        lines = write_lines(tmp_path / "journal.jsonl", [*copies, *old])
        traffic.start()
        line = ("backfill", "--config", str(config), "--source", str(lines))
        done = run(*line, "--out", str(tmp_path / "out"), "-o", "json", timeout=400)
        traffic.end()
        assert done.returncode == 0, done.stderr
        told = run("trace", old[7].message_id, "--config", str(config), "-o", "json")
        assert '"verdict": "backfilled"' in told.stdout
    found = read_topic(bootstrap, orders)
    counts = Counter(map(id_of, found))
    assert set(counts.values()) == {1}
    assert len(counts) == 500 + traffic.sent
    live = [m for m in found if headers_of(m)["msmq.source"] == str(LIVE).encode()]
    assert [int(headers_of(m)["msmq.tx.seq"]) for m in live] == list(range(1, traffic.sent + 1))
    assert all("msmq.backfill" not in headers_of(m) for m in live)
    brought = [m for m in found if "msmq.backfill" in headers_of(m)]
    assert [id_of(m) for m in brought] == [data.message_id for data in old]
