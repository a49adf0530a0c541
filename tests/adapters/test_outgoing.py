"""An outgoing queue over HTTP: SR-63, SR-70, SR-75 to SR-78. Its use: test_postman, test_forwarder.

Here only what both of them rely on, with a delivery that the test decides.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from bridge.adapters import outgoing as module
from bridge.adapters.outgoing import Carrier, OutgoingQueue
from bridge.adapters.receipt_targets import Target
from bridge.wire.srmp.head import Endpoint
from tests.adapters.receiver import SOON, Receiver


class Item(msgspec.Struct, frozen=True):
    name: str
    expires: int = 0


class World:
    def __init__(self, retransmission_s: float = 0.0) -> None:
        self.sent: list[str] = []
        self.expired: list[str] = []
        self.plan: deque[bool | BaseException] = deque()
        self.left = asyncio.Event()
        self._news = asyncio.Condition()
        self.queue = OutgoingQueue[str, Item](
            Carrier(None),
            self._deliver,
            lambda item: self.expired.append(item.name),
            self.left.set,
            retransmission_s,
        )

    async def _deliver(self, _carrier: Carrier, item: Item) -> bool:
        async with self._news:
            self.sent.append(item.name)
            self._news.notify_all()
        answer = self.plan.popleft() if self.plan else True
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def put(self, *names: str, expires: int = 0) -> None:
        for name in names:
            self.queue.put(name, Item(name, expires))

    async def until(self, *sent: str) -> None:
        async with asyncio.timeout(SOON), self._news:
            await self._news.wait_for(lambda: self.sent == list(sent))


def play(scene: Callable[[World], Awaitable[None]], retransmission_s: float = 0.0) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):
            world = World(retransmission_s)
            try:
                await scene(world)
            finally:
                world.queue.task.cancel()
                await asyncio.gather(world.queue.task, return_exceptions=True)
            return world

    return asyncio.run(run())


def test_nothing_overtakes_one_that_is_tried_again() -> None:  # SR-75, SR-76
    async def scene(world: World) -> None:
        world.plan.extend([True, False, False])
        world.put("a", "b", "c")
        await world.until("a", "b", "b", "b", "c")
        world.put("d")
        await world.until("a", "b", "b", "b", "c", "d")
        assert not world.queue.is_inactive

    assert play(scene).queue.waiting == {}


def test_a_queue_that_failed_is_inactive() -> None:  # SR-75
    async def scene(world: World) -> None:
        world.plan.append(False)
        world.put("a", "b")
        await world.until("a")
        await asyncio.sleep(0)
        assert world.queue.is_inactive
        assert list(world.queue.waiting) == ["a", "b"]

    play(scene, retransmission_s=1000.0)


def test_whose_time_is_over_is_not_sent() -> None:  # SR-63: strictly later
    async def scene(world: World) -> None:
        now = int(time.time())
        world.put("late", expires=now - 1)
        world.put("early", expires=now + 1000)
        world.put("never")
        await world.until("early", "never")
        assert world.expired == ["late"]

    play(scene)


def test_whose_time_is_over_need_not_wait_for_those_before_it() -> None:
    async def scene(world: World) -> None:
        world.plan.append(False)
        world.put("never")
        world.put("late", "later", expires=int(time.time()) - 1)
        world.put("last")
        await world.until("never")
        await asyncio.sleep(0)
        assert world.expired == ["late", "later"]
        assert list(world.queue.waiting) == ["never", "last"]

    play(scene, retransmission_s=1000.0)


def test_a_newer_one_of_the_same_key_follows() -> None:
    async def scene(world: World) -> None:
        world.queue.put("key", Item("old"))
        await world.until("old")
        world.queue.put("key", Item("new"))
        await world.until("old", "new")

    play(scene)


def test_without_work_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-78
    monkeypatch.setattr(module, "CLEANUP_S", 0.0)

    async def scene(world: World) -> None:
        world.put("a")
        async with asyncio.timeout(SOON):
            await world.left.wait()
        assert world.sent == ["a"]
        await world.queue.task

    play(scene)


def test_a_bug_is_told(caplog: pytest.LogCaptureFixture) -> None:  # style 5
    async def scene(world: World) -> None:
        world.plan.append(ValueError("a bug of ours"))
        world.put("a")
        async with asyncio.timeout(SOON):
            await world.left.wait()
            with pytest.raises(ValueError, match="ours"):
                await world.queue.task

    with caplog.at_level(logging.ERROR):
        play(scene)
    assert "has stopped" in caplog.text


def test_a_carrier_keeps_its_connection_while_the_place_is_the_same() -> None:  # SR-70
    async def run() -> None:
        one, two = Receiver("127.0.0.1"), Receiver("127.0.0.2")
        await one.start()
        await two.start()
        carrier = Carrier(None)
        try:
            for receiver in (one, one, two, one):
                endpoint = Endpoint(scheme="http", host="far", port=80, target="/q")
                target = Target(endpoint, receiver.host, receiver.port)
                assert await carrier.post(target, "text/xml", b"abc", ("1.1 x",)) == 200
        finally:
            carrier.close()
            carrier.close()
            await one.stop()
            await two.stop()
        assert [request.line for request in one.got] == [1, 1, 2]
        assert [request.line for request in two.got] == [1]
        assert one.got[0].headers == {
            "Host": "far",
            "Content-Type": "text/xml",
            "Content-Length": "3",
            "SOAPAction": '"MSMQMessage"',
            "Proxy-Accept": "NonInteractiveClient",
            "Via": "1.1 x",
        }

    asyncio.run(run())
