import json
import signal
from pathlib import Path

import pytest

from tests.bench.sampler import Sampler
from tests.bench.stages import analyse, name_of, stage_of

LOOP = [("/usr/lib/python3.11/asyncio/base_events.py", "BaseEventLoop._run_once")]
READ = [("/usr/lib/python3.11/asyncio/selector_events.py", "_SelectorSocketTransport._read_ready")]
ADMIT = [("/x/bridge/core/shard.py", "Shard.admit")]


@pytest.mark.parametrize(
    ("frames", "stage"),
    [
        ([("/x/bridge/wire/binary/fast.py", "read_message")], "parse"),
        ([("/x/bridge/protocol/binary/session.py", "Session.handle")], "session"),
        ([("/usr/lib/python3.11/enum.py", "x"), ("/x/bridge/core/mapper.py", "record")], "map"),
        ([("/x/bridge/core/mapping.py", "OwnHeaders.add"), *ADMIT], "map"),
        ([("/x/bridge/core/audit.py", "entry_of"), *ADMIT], "audit"),
        (ADMIT, "admit"),
        ([("/x/bridge/adapters/kafka/sink.py", "KafkaShardSink._produce")], "produce"),
        ([("/x/bridge/adapters/kafka/worker.py", "Worker.run")], "commit hand-over"),
        (READ, "sockets"),
        ([], "event loop"),
    ],
)
def test_the_innermost_known_frame_decides(frames: list[tuple[str, str]], stage: str) -> None:
    assert stage_of([*frames, *LOOP]) == stage


def test_unknown() -> None:
    assert stage_of([("/x/y.py", "f")]) == "other"


def test_names() -> None:
    assert name_of(("/x/bridge/wire/binary/fast.py", "read")) == "wire.binary.fast: read"
    assert name_of(LOOP[0]) == "asyncio.base_events: BaseEventLoop._run_once"
    assert name_of(("/v/lib/python3.11/site-packages/a/b.py", "f")) == "a.b: f"
    assert name_of(("<frozen x>", "f")) == "<frozen x>: f"


def test_analyse() -> None:
    seen = {
        "stacks": [[3, [*ADMIT, *LOOP]], [1, [*READ, *LOOP]]],
        "commit_wait": 4,
        "idle": 0,
        "threads": {},
    }
    profile = analyse(seen)
    assert profile.samples == 8
    assert dict(profile.stages) == {"admit": 3, "sockets": 1, "commit wait": 4}
    assert profile.own["core.shard: Shard.admit"] == 3
    assert profile.total["asyncio.base_events: BaseEventLoop._run_once"] == 4
    assert profile.share(4) == 0.5


def test_sampler_sees_where_the_main_thread_is(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    sampler = Sampler(tmp_path / "samples.json")
    try:
        sampler.toggle()
        signal.raise_signal(signal.SIGALRM)
        sampler.toggle()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    seen = json.loads((tmp_path / "samples.json").read_text())
    functions = [function for _, stack in seen["stacks"] for _, function in stack]
    assert "test_sampler_sees_where_the_main_thread_is" in functions
