"""A cut-over with messages still in a sender's outgoing queue: the stream begins in the middle.

MS-MQQB 3.1.5.8.6: without the message that it follows, a transactional message is not accepted."""

import json
import subprocess
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.outside.appliance import ROOT, Appliance, Settings, command, queue
from tests.outside.rawsender import soon
from tests.outside.strangers import (
    SEQUENCE,
    VICTIM_IP,
    Topics,
    counted,
    order_acks,
    session,
    step,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
DESTINATION = "DIRECT=OS:BRIDGE01\\private$\\orders"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(queues={})


@pytest.fixture(scope="module")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


def run(appliance: Appliance, *words: str) -> "subprocess.CompletedProcess[str]":
    line = [*command(), *words, "--config", str(appliance.config), "-o", "json"]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def told(appliance: Appliance, *words: str) -> dict[str, list[dict[str, object]]]:
    asked = run(appliance, *words)
    assert asked.returncode == 0, asked.stderr
    found: dict[str, list[dict[str, object]]] = json.loads(asked.stdout)
    return found


def test_a_stream_from_a_cut_over_waits_and_is_adopted(
    appliance: Appliance, topics: Topics
) -> None:
    source = uuid4()
    rest = [step(source, number) for number in (7, 8, 9)]
    before = counted(appliance, "stream-not-adopted")
    for _ in range(2):
        with session(appliance, source, local=VICTIM_IP) as sender:
            sender.transmit(rest, keep=False)
            sender.until(lambda: sender.acked >= 3)
            assert order_acks(sender.kept) == []
    assert counted(appliance, "stream-not-adopted") == before + 1
    assert topics.bodies("orders", source) == []

    waiting = [
        row for row in told(appliance, "stream", "list")["waiting"] if row["source"] == str(source)
    ]
    assert len(waiting) == 1
    assert (waiting[0]["destination"], waiting[0]["peer"]) == (DESTINATION, VICTIM_IP)
    assert (waiting[0]["offered_number"], waiting[0]["offered_previous"]) == (7, 6)
    examined = told(appliance, "doctor")["findings"]
    [finding] = [f for f in examined if f["id"] == "streams" and f["about"] == str(source)]
    assert finding["result"] == "warn"
    assert "stream adopt" in str(finding["mend"])

    refused = run(appliance, "stream", "adopt", str(source), DESTINATION)
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    told(appliance, "stream", "adopt", str(source), DESTINATION, "--yes")
    appliance.kill()  # the adoption is in Kafka
    appliance.start()
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([*rest, step(source, 10)], soon(20))
        assert order_acks(sender.kept)[-1] == (SEQUENCE, 10)
    assert topics.bodies("orders", source) == [b"step 7", b"step 8", b"step 9", b"step 10"]
    again = run(appliance, "stream", "adopt", str(source), DESTINATION, "--yes")
    assert (again.returncode, "no stream of" in again.stderr) == (1, True)


def test_what_may_not_come_in_does_not_wait(appliance: Appliance) -> None:
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.transmit([step(source, 7, destination=queue("nowhere"))], keep=False)
        sender.until(lambda: any(one.is_final_ack for one in sender.kept))
    listed = told(appliance, "stream", "list", "--waiting")["waiting"]
    assert str(source) not in {row["source"] for row in listed}
