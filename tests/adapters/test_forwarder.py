"""Messages on their way to other hosts, over real sockets: SR-15, SR-63, SR-70, SR-75, SR-76."""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from bridge.adapters.forwarder import Forwarder
from bridge.adapters.intake import ShardPump
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import client_context, server_context
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.config import Address
from bridge.core.forwards import Ending
from bridge.core.ports import Forward
from bridge.core.redirection import Redirects
from tests.adapters.receiver import CUT, SOON, Receiver
from tests.adapters.test_postman import Watched
from tests.core.letters import FAR, TYPE, envelope, letter, request, waiting
from tests.core.messages import LOCAL
from tests.wire.srmp.build import TO


class Owner:
    """A shard as far as forwarding sees it."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, Ending]] = []
        self._news = asyncio.Event()

    def forward_ended(self, forward: Forward, ending: Ending) -> None:
        self.ended.append((forward.ordinal, ending))
        self._news.set()

    async def until(self, *ended: tuple[int, Ending]) -> None:
        async with asyncio.timeout(SOON):
            while self.ended != list(ended):
                self._news.clear()
                await self._news.wait()


class World:
    def __init__(
        self,
        *,
        retransmission_s: float = 0.0,
        receiver: Receiver | None = None,
        ca: Path | None = None,
    ) -> None:
        self.receiver = receiver or Receiver()
        self.owner, self.telemetry = Owner(), Watched()
        self._retransmission_s, self._ca = retransmission_s, ca

    async def start(self) -> None:
        """Its host is called far02, and is where the operator says."""
        await self.receiver.start()
        there = {"far02": Address("127.0.0.1", self.receiver.port)}
        self.forwarder = Forwarder(
            ReceiptTargets((), there, Redirects([("http://out/*", self.receiver.url("/"))])),
            self.telemetry,
            client_context(self._ca) if self._ca else None,
            self._retransmission_s,
        )

    async def stop(self) -> None:
        self.forwarder.stop()
        await self.receiver.stop()
        await asyncio.sleep(0)

    def take(self, *forwards: Forward) -> None:
        self.forwarder.take(forwards, cast(ShardPump, self.owner))

    def counted(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(f"msmq_bridge_{name}_total", labels) or 0.0


def play(scene: Callable[[World], Awaitable[None]], make: Callable[[], World] = World) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):
            world = make()
            await world.start()
            try:
                await scene(world)
            finally:
                await world.stop()
            return world

    return asyncio.run(run())


def row(ordinal: int, url: str = FAR, expires: int = 0) -> Forward:
    made = waiting(letter(envelope(ordinal), b"message %d" % ordinal, url=url), ordinal)
    return replace(made, expires=expires)


def posted(ordinal: int, url: str = FAR) -> bytes:
    """Its body on the wire, spelled out."""
    soap = envelope(ordinal).replace(TO.encode(), url.encode())
    return request(soap, b"message %d" % ordinal)


TAKEN = Ending.TAKEN


def bodies(world: World) -> list[bytes]:
    return [one.body for one in world.receiver.got]


def test_a_message() -> None:  # srmp.md 1.2, 1.3
    async def scene(world: World) -> None:
        world.take(row(5))
        await world.owner.until((5, TAKEN))
        (request,) = world.receiver.got
        assert request.first == "POST /msmq/private$/orders HTTP/1.1"
        assert request.headers == {
            "Host": "far02",
            "Content-Type": TYPE,
            "Content-Length": str(len(posted(5))),
            "SOAPAction": '"MSMQMessage"',
            "Proxy-Accept": "NonInteractiveClient",
            "Via": f"1.1 {LOCAL}",
        }
        assert request.body == posted(5)
        assert world.counted("forwards", result="taken") == 1

    play(scene)


def test_in_order_on_one_connection() -> None:  # SR-70
    async def scene(world: World) -> None:
        world.take(*(row(n) for n in (3, 1, 2)))
        world.take(row(4))
        await world.owner.until((3, TAKEN), (1, TAKEN), (2, TAKEN), (4, TAKEN))
        assert bodies(world) == [posted(n) for n in (3, 1, 2, 4)]
        assert {request.line for request in world.receiver.got} == {1}

    play(scene)


@pytest.mark.parametrize("status", [500, 503, 404, 401, 302, CUT])
def test_again_until_it_is_taken(status: int) -> None:  # SR-75, SR-76; 1.4 D
    async def scene(world: World) -> None:
        world.receiver.plan.extend([200, status, status])
        world.take(*(row(n) for n in (1, 2, 3)))
        await world.owner.until((1, TAKEN), (2, TAKEN), (3, TAKEN))
        assert bodies(world) == [posted(n) for n in (1, 2, 2, 2, 3)]  # nothing overtakes
        assert world.forwarder.failing == set()

    play(scene)


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        world.receiver._server.close()
        world.take(row(1), row(2))
        await world.telemetry.until(
            lambda: world.counted("refusals", reason="forward-no-answer") >= 3
        )
        assert world.owner.ended == []
        assert world.forwarder.failing == {FAR}
        await world.receiver.listen()
        await world.owner.until((1, TAKEN), (2, TAKEN))

    with caplog.at_level(logging.WARNING):
        play(scene)
    assert caplog.text.count("trying again") == 1  # it may last for days


def test_400_is_the_last_word() -> None:  # 1.4
    async def scene(world: World) -> None:
        world.receiver.plan.extend([400, 200, 400])
        world.take(*(row(n) for n in (1, 2, 3)))
        await world.owner.until((1, Ending.REFUSED), (2, TAKEN), (3, Ending.REFUSED))
        assert len(world.receiver.got) == 3
        assert world.counted("forwards", result="refused") == 2
        assert world.counted("refusals", reason="forward-refused") == 2

    play(scene)


def test_its_time_is_over() -> None:  # SR-63
    async def scene(world: World) -> None:
        now = int(time.time())
        world.take(row(1, expires=now - 5), row(2, expires=now + 1000))
        await world.owner.until((1, Ending.EXPIRED), (2, TAKEN))
        assert bodies(world) == [posted(2)]
        assert world.counted("forwards", result="expired") == 1

    play(scene)


def test_what_is_known_is_not_taken_twice() -> None:
    """A shard that was opened anew tells all that waits."""

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(row(1))
        await world.receiver.wait(1)
        world.take(row(1), row(2))
        world.receiver.gate.set()
        await world.owner.until((1, TAKEN), (2, TAKEN))
        assert len(world.receiver.got) == 2

    play(scene)


def test_every_url_has_a_queue_of_its_own() -> None:  # SR-75: Inactive is a queue's
    other = "http://far02/msmq/private$/bad"

    async def scene(world: World) -> None:
        world.receiver.refuses["/msmq/private$/bad"] = 500
        world.take(row(1, other))
        await world.receiver.wait(1)
        world.take(row(2), row(3, FAR.upper().replace("HTTP", "http")))
        await world.owner.until((2, TAKEN), (3, TAKEN))
        assert world.forwarder.failing == {other}
        world.receiver.refuses.clear()
        await world.owner.until((2, TAKEN), (3, TAKEN), (1, TAKEN))

    play(scene)


def test_no_list_of_receipt_targets_stops_it() -> None:  # the operator named it (SR-49 does not)
    async def scene(world: World) -> None:
        world.take(row(1, world.receiver.url("/q")))
        await world.owner.until((1, TAKEN))

    play(scene)


def test_outbound_redirection() -> None:  # SR-18: another host, the message as it is
    async def scene(world: World) -> None:
        world.take(row(1, "http://out/msmq/q"))
        await world.owner.until((1, TAKEN))
        (request,) = world.receiver.got
        assert (request.first.split()[1], request.headers["Host"]) == ("/msmq/q", "out")
        assert request.body == posted(1, "http://out/msmq/q")

    play(scene)


@pytest.mark.parametrize("url", ["http://a..b/q", "http://out:99999/q", "ftp://far/q"])
def test_what_no_address_comes_of_waits(url: str) -> None:
    """A row of another configuration; whoever mends that gets it delivered."""

    async def scene(world: World) -> None:
        world.take(replace(row(1), onward=replace(row(1).onward, url=url)))
        await world.telemetry.until(
            lambda: world.counted("refusals", reason="forward-no-answer") >= 2
        )
        assert world.owner.ended == []

    play(scene)


def contexts(folder: Path) -> tuple[Path, ssl.SSLContext]:
    certificate, key = self_signed(["far02"], folder)
    return certificate, server_context(certificate, key)


def test_over_tls(tmp_path: Path) -> None:  # srmp.md 1.1
    certificate, tls = contexts(tmp_path)

    async def scene(world: World) -> None:
        world.take(row(1, FAR.replace("http:", "https:")))
        await world.owner.until((1, TAKEN))
        assert bodies(world) == [posted(1, FAR.replace("http:", "https:"))]

    play(scene, lambda: World(receiver=Receiver(tls=tls), ca=certificate))


def test_over_tls_to_a_stranger(tmp_path: Path) -> None:
    """Somebody else's certificate: it is not handed over, and not lost."""
    (tmp_path / "other").mkdir()
    other, _ = contexts(tmp_path / "other")
    _, tls = contexts(tmp_path)

    async def scene(world: World) -> None:
        world.take(row(1, FAR.replace("http:", "https:")))
        await world.telemetry.until(
            lambda: world.counted("refusals", reason="forward-no-answer") >= 2
        )
        assert (world.receiver.got, world.owner.ended) == ([], [])

    play(scene, lambda: World(receiver=Receiver(tls=tls), ca=other))


def test_stop() -> None:
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(row(1))
        await world.receiver.wait(1)
        world.forwarder.stop()
        world.receiver.gate.set()
        await world.receiver.until(lambda: world.receiver.open == 0)
        assert world.owner.ended == []  # it is in Kafka, and tried again after the start
        world.take(row(2))  # committed meanwhile: likewise
        assert world.forwarder._queues.keys() <= {FAR}
        assert len(world.receiver.got) == 1

    play(scene)
