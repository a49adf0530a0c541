"""Large bodies that a mapping reads: beside the event loop, before their messages are decided."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from bridge.adapters import intake as module
from bridge.adapters.intake import Intake, ShardPump
from bridge.core import readings
from bridge.core.admission import Policy
from bridge.core.body import Decoded, decode
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.core.mapping_rules import Key, Mappings, QueueMapping, QueuePath, Topic
from bridge.core.readings import INLINE
from bridge.core.shard import Shard
from tests.adapters.test_intake import World, play
from tests.core.messages import LOCAL, plain, step

MAPPINGS = Mappings(
    queues=(
        QueueMapping(
            queue=QueuePath("private$\\orders"), topic=Topic("o"), transactional=True, value="json"
        ),
        QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("p"), key=Key("json:$.a.b")),
    )
)
LARGE = b"<a>" + b"<b>1</b>" * INLINE + b"</a>"
SMALL = b"<a><b>2</b></a>"


class Bodies(World):
    def __init__(self, plan: Sequence[str] = ()) -> None:
        super().__init__(plan)
        limits = {"o": TopicLimits(1), "p": TopicLimits(1)}
        catalogue = Catalogue.of(LOCAL, MAPPINGS, limits, "_own.")
        self.pump = ShardPump(Shard(catalogue, Policy()), self.sink, self.telemetry)
        self.pumps = [self.pump]
        self.intake = Intake(self.pumps, lambda _, jammed: self.jams.append(jammed))


class Reader:
    """Stands for `decode`: says which thread reads, and can hold it."""

    def __init__(self) -> None:
        self.inner = decode
        self.threads: list[bool] = []  # whether each was the loop's own
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def __call__(self, body: bytes, body_type: int) -> Decoded:
        is_loop = threading.current_thread() is threading.main_thread()
        self.threads.append(is_loop)
        if not is_loop:
            self.begun.set()
            assert self.go_on.wait(30)
        return self.inner(body, body_type)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setattr(module, "RETRY_S", (0.0,))
    made = Reader()
    monkeypatch.setattr(readings, "decode", made)
    return made


def as_json(body: bytes) -> bytes:
    return readings.read((body, 0, "json", "")).json or b""


def test_a_small_body_is_read_at_once(reader: Reader) -> None:
    async def scene(world: World) -> None:
        world.submit(step(1, body=SMALL))
        await world.drain()
        assert world.log.records[0].value == b'{"a":{"b":"2"}}'

    play(scene, Bodies)
    assert reader.threads == [True]


def test_a_large_body_is_read_beside_the_loop_and_in_order(reader: Reader) -> None:
    async def scene(world: World) -> None:
        reader.go_on.clear()
        world.submit(step(1, body=LARGE))
        world.submit(step(2, body=SMALL))
        assert await asyncio.to_thread(reader.begun.wait, 30)  # the loop goes on
        assert (world.answers, world.intake.pending) == ([], 2)
        reader.go_on.set()
        await world.drain()
        assert [r.value for r in world.log.records] == [as_json(LARGE), b'{"a":{"b":"2"}}']

    play(scene, Bodies)
    assert reader.threads[:2] == [False, True]


def test_many_small_bodies_are_a_large_one(reader: Reader) -> None:
    body = b"<a>" + b"<b>1</b>" * 100 + b"</a>"
    count = INLINE // len(body) + 1

    async def scene(world: World) -> None:
        world.submit(*(step(n, body=body + b" " * n) for n in range(1, count + 1)))
        await world.drain()
        assert len(world.log.records) == count

    play(scene, Bodies)
    assert reader.threads == [False] * count


def test_a_key_in_a_large_body(reader: Reader) -> None:
    async def scene(world: World) -> None:
        body = b"<a><b>k</b><c>" + bytes(INLINE).replace(b"\0", b"x") + b"</c></a>"
        world.submit(plain(1, body=body))
        await world.drain()
        assert (world.log.records[0].key, world.log.records[0].value) == (b"k", body)

    play(scene, Bodies)
    assert reader.threads == [False]


def test_what_is_decided_again_is_read_again(reader: Reader) -> None:
    async def scene(world: World) -> None:
        world.submit(step(1, body=LARGE))
        await world.drain()
        assert [r.value for r in world.log.records] == [as_json(LARGE)]

    play(scene, lambda: Bodies(["before"]))
    assert reader.threads[:2] == [False, False]
