"""Our own reader and its commands against a real appliance: the whole chain, with crashes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.adapters.exports.lines import data_in
from bridge.adapters.exports.parquet import read_parquet
from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.async_reader import AsyncRemoteReader
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import BindRefused
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.reader.results import ACCESS_DENIED, RPC_ACCESS_DENIED, Refused
from tests.outside.appliance import Appliance, command
from tests.outside.rpc.conftest import Send

pytestmark = pytest.mark.kafka
BODIES = [b"%05d" % number for number in range(200)]


ANN = Credentials("ann", "secret")


@pytest.fixture
def fill(appliance: Appliance, send: Send) -> Send:
    """Returns when readers see them."""

    def deliver(name: str, *bodies: bytes) -> None:
        send(name, *bodies)
        with RemoteReader(place(appliance)) as reader:
            while len(list(reader.scan(name_of(name)))) < len(bodies):
                pass

    return deliver


def place(appliance: Appliance, who: Credentials = ANN) -> Place:
    host, port = appliance.listeners["rpc"]
    return Place(host=host, port=port, credentials=who)


def name_of(kept: str) -> str:
    return f"private$\\{kept}"


def drained(reader: RemoteReader, queue: str, **options: int) -> list[bytes]:
    found: list[bytes] = []
    for batch in reader.receive(queue, **options):  # type: ignore[arg-type]
        found += [read.message.body for read in batch.reads]
        batch.confirm()
    return found


def run(appliance: Appliance, *arguments: str, where: bool = True) -> subprocess.Popen[str]:
    host, port = appliance.listeners["rpc"]
    place = ("--host", f"{host}:{port}", "--user", "ann") if where else ()
    return subprocess.Popen(
        [*command(), *arguments, *place],
        env={**os.environ, "MSMQ_BRIDGE_PASSWORD": "secret"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    answer: dict[str, object] = json.loads(out)
    return answer


def exported(path: Path) -> list[bytes]:
    return [data_in(line).body for line in path.read_bytes().splitlines()]


def test_scan_then_receive(appliance: Appliance, kept: str, fill: Send) -> None:
    fill(kept, *BODIES)
    with RemoteReader(place(appliance)) as reader:
        reads = list(reader.scan(name_of(kept)))
        assert [read.message.body for read in reads] == BODIES
        some = reader.scan(name_of(kept), after=reads[49].lookup_id, until=reads[99].lookup_id)
        assert [read.message.body for read in some] == BODIES[50:100]
        assert reader.peek_at(name_of(kept), reads[7].lookup_id).message == reads[7].message
        assert drained(reader, name_of(kept)) == BODIES
        assert list(reader.scan(name_of(kept))) == []


def test_in_an_event_loop(appliance: Appliance, kept: str, fill: Send) -> None:
    fill(kept, *BODIES[:20])

    async def work() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncRemoteReader(place(appliance)) as reader:
            async for batch in reader.receive(name_of(kept), limit=10):
                found += [read.message.body for read in batch.reads]
                batch.confirm()
            await reader.purge(name_of(kept))
            assert [read async for read in reader.scan(name_of(kept))] == []
        return found

    assert asyncio.run(work()) == BODIES[:10]


def test_the_endpoint_mapper_of_the_appliance(
    appliance: Appliance, kept: str, fill: Send
) -> None:  # RR-43
    fill(kept, b"one")
    host, port = appliance.listeners["endpoint_mapper"]
    mapped = Place(host=host, mapper_port=port, credentials=ANN)
    with RemoteReader(mapped) as reader:
        assert drained(reader, name_of(kept)) == [b"one"]


def test_to_a_subqueue_and_from_there(appliance: Appliance, kept: str, fill: Send) -> None:
    fill(kept, b"one", b"two")
    with RemoteReader(place(appliance)) as reader:
        first = next(reader.scan(name_of(kept), limit=1))
        reader.move(name_of(kept), first.lookup_id, f"{name_of(kept)};retry")
        (moved,) = reader.scan(f"{name_of(kept)};retry")
        assert (moved.message.body, moved.counters["msmq.sub.moves"]) == (b"one", "1")
        assert drained(reader, name_of(kept)) == [b"two"]


def test_a_queue_for_one_reader_alone(appliance: Appliance, kept: str, fill: Send) -> None:
    """MS-MQRR 3.1.4.2, dwShareMode; the next open succeeds when the first handle is closed."""
    fill(kept, *BODIES[:5])
    alone = replace(place(appliance), exclusive=True)
    with RemoteReader(alone) as reader, RemoteReader(place(appliance)) as other:
        batches = reader.receive(name_of(kept), limit=2, window=2)
        batch = next(batches)
        with pytest.raises(Refused, match="another reader has the queue open") as caught:
            drained(other, name_of(kept))
        assert caught.value.status == 0xC00E0009
        refused = run(appliance, "queue", "receive", name_of(kept), "--exclusive", "-o", "json")
        _, err = refused.communicate(timeout=100)
        assert refused.returncode != 0
        assert "another reader has the queue open" in err
        batch.confirm()
        assert list(batches) == []
        assert drained(other, name_of(kept), limit=1) == BODIES[2:3]
    taken = run(appliance, "queue", "receive", name_of(kept), "--exclusive", "-o", "json")
    out, err = taken.communicate(timeout=100)
    assert taken.returncode == 0, err
    assert len(json.loads(out)) == 1


def test_the_dead_letters_of_the_machine(appliance: Appliance) -> None:
    with RemoteReader(place(appliance)) as reader:
        for name in (";deadletter", ";deadxact", f"MACHINE={appliance.guid};JOURNAL"):
            assert list(reader.scan(name)) == []


def test_who_may_not(appliance: Appliance, kept: str) -> None:
    bob = Credentials("bob", "hidden")
    with RemoteReader(place(appliance, bob)) as reader, pytest.raises(Refused) as no:
        list(reader.scan(name_of(kept)))
    assert no.value.status == ACCESS_DENIED
    wrong = place(appliance, Credentials("ann", "wrong"))
    with RemoteReader(wrong) as reader, pytest.raises((Refused, BindRefused)):
        list(reader.scan(name_of(kept)))
    low = place(appliance, Credentials("ann", "secret", level=AuthLevel.INTEGRITY))
    with RemoteReader(low) as reader, pytest.raises(Refused) as no:
        list(reader.scan(name_of(kept)))
    assert no.value.status == RPC_ACCESS_DENIED


def test_a_reader_that_is_killed_leaves_everything(
    appliance: Appliance, kept: str, fill: Send
) -> None:
    """RR-28: its messages are back when its connection is gone."""
    fill(kept, *BODIES[:10])
    program = (
        "import sys\n"
        "from tests.outside.rpc.test_our_client import *\n"
        f"reader = RemoteReader(Place(host='127.0.0.1', port={appliance.listeners['rpc'][1]},"
        " credentials=Credentials('ann', 'secret')))\n"
        f"for batch in reader.receive({name_of(kept)!r}):\n"
        "    print(len(batch.reads), flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert int(process.stdout.readline()) > 0
    process.kill()
    process.wait(10)
    process.stdout.close()
    process.stdin.close()
    with RemoteReader(place(appliance)) as reader:
        assert drained(reader, name_of(kept), wait_s=5, limit=10) == BODIES[:10]


def readers(appliance: Appliance, kept: str) -> int:
    status, text = appliance.get("/api/queues")
    assert status == 200, text
    found = [row for row in json.loads(text)["queues"] if row["name"] == name_of(kept)]
    return int(found[0]["readers"])


def test_ctrl_c_while_it_waits_takes_nothing(appliance: Appliance, kept: str, fill: Send) -> None:
    """RR-50, RR-56: the Start that waited is gone with its connection."""
    process = run(appliance, "receive", "--queue", name_of(kept), "--wait", "600")
    while not readers(appliance, kept):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")
    while readers(appliance, kept):
        pass
    fill(kept, b"one")
    with RemoteReader(place(appliance)) as reader:
        assert drained(reader, name_of(kept)) == [b"one"]


def test_exports_are_alike(appliance: Appliance, kept: str, fill: Send, tmp_path: Path) -> None:
    """By remote read or by the admin port; as JSON lines or as Parquet."""
    fill(kept, *BODIES[:30])
    files = [tmp_path / name for name in ("a.jsonl", "b.parquet", "c.jsonl")]
    for file in files[:2]:
        told(run(appliance, "queue", "export", name_of(kept), "--out", str(file), "-o", "json"))
    config = ("--config", str(appliance.config), "-o", "json")
    told(
        run(
            appliance,
            *("queue", "export", name_of(kept), "--out", str(files[2]), *config),
            where=False,
        )
    )
    remote = [data_in(line) for line in files[0].read_bytes().splitlines()]
    assert list(read_parquet(files[1])) == remote
    ours = [data_in(line) for line in files[2].read_bytes().splitlines()]
    assert [data.body for data in ours] == BODIES[:30]
    for one, other in zip(remote, ours, strict=True):
        assert one.headers == other.headers
        assert one.lookup_id == other.lookup_id
        assert one.message_id == other.message_id


def test_an_export_by_the_admin_port_takes_them_out(
    appliance: Appliance, kept: str, fill: Send, tmp_path: Path
) -> None:
    fill(kept, *BODIES[:30])
    out = tmp_path / "o.jsonl"
    config = ("--config", str(appliance.config), "-o", "json")
    arguments = ("queue", "export", name_of(kept), "--out", str(out), "--receive", "--yes")
    answer = told(run(appliance, *arguments, *config, where=False))
    assert (answer["messages"], answer["removed"], answer["taken_by_others"]) == (30, 30, 0)
    assert exported(out) == BODIES[:30]
    with RemoteReader(place(appliance)) as reader:
        assert list(reader.scan(name_of(kept))) == []


@pytest.mark.parametrize("kills", [1, 3])
def test_an_export_that_is_killed_again_and_again(
    appliance: Appliance, kept: str, fill: Send, tmp_path: Path, kills: int
) -> None:
    """Nothing lost, nothing twice: each message is once in the file, and none in the queue."""
    fill(kept, *BODIES)
    out = tmp_path / "o.jsonl"
    partial = tmp_path / "o.jsonl.partial"
    arguments = ("queue", "export", name_of(kept), "--out", str(out), "--receive", "--yes")
    for number in range(kills):
        process = run(appliance, *arguments, "-o", "json", "--resume")
        wanted = (number + 1) * 10
        while process.poll() is None and _lines(partial) < wanted:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)
    answer = told(run(appliance, *arguments, "-o", "json", "--resume"))
    assert answer["format"] == "jsonl"
    assert sorted(exported(out)) == BODIES
    with RemoteReader(place(appliance)) as reader:
        assert drained(reader, name_of(kept), wait_s=1) == []


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_an_appliance_that_is_killed_under_a_reader(
    appliance: Appliance, kept: str, fill: Send
) -> None:
    """The last test: the appliance is another process after it.

    A reader that has confirmed, and whose Ends went into a crash, gets the rest exactly once.
    """
    fill(kept, *BODIES)
    found: list[bytes] = []
    reader = RemoteReader(place(appliance))
    for number, batch in enumerate(reader.receive(name_of(kept), window=16), 1):
        found += [read.message.body for read in batch.reads]
        batch.confirm()
        if number == 3:
            break
    reader.close()
    thread = threading.Thread(target=lambda: appliance.restart(kill=True, empty_data=False))
    thread.start()
    thread.join(100)
    with RemoteReader(place(appliance)) as again:
        found += drained(again, name_of(kept))
    assert found == BODIES
