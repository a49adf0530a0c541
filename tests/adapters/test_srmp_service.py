"""HTTP as a whole, on memory in place of Kafka: a POST in, a status and receipts out."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.net.http_client import HttpConnection, HttpFault
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import client_context, server_context
from bridge.adapters.srmp_service import SrmpService
from bridge.adapters.telemetry import Telemetry
from bridge.config import (
    Address,
    Config,
    DefaultPort,
    ListenConfig,
    ReceiptTarget,
    Redirect,
    SrmpConfig,
)
from bridge.core import receipt_timers
from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.ports import OutboxEntry
from bridge.core.shard import Shard
from bridge.model.errors import ConfigError
from bridge.wire.srmp.head import request_headers
from tests.adapters.receiver import SOON, Receiver
from tests.core.messages import LOCAL, catalogue, queue, receipts
from tests.support.certificates import Authority
from tests.wire.srmp.build import MSMQ, PATH, PROPERTIES, SERVICES, STREAM, TO, good, soap

TO_ORDERS = "http://bridge/msmq/private$/orders"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_timers, "DELAY_S", 0.0)


class World:
    def __init__(self, config: Config, allow: Sequence[str] | None = None) -> None:
        access = None if allow is None else AccessList(allow)
        queues = catalogue(queue("private$\\q", transactional=False, access=access), queue())
        self.log, self.telemetry = MemoryLog(), Telemetry()
        shard = Shard(queues, Policy(), receipts())
        self.pump = ShardPump(shard, MemoryShardSink(self.log), self.telemetry)
        intake = Intake([self.pump], lambda _shard, _jammed: None)
        self.service = SrmpService(
            config,
            ["bridge"],
            LOCAL,
            count(9001).__next__,
            intake,
            lambda: queues,
            self.telemetry,
        )
        self.pump.on_acks, self.pump.on_due = self.service.postman.take, self.service.postman.due
        self.pump.on_forwards = self.service.forwarder.take

    async def post(self, address: str, data: bytes, **more: Any) -> int:
        to = Address.parse(address)
        line = HttpConnection((to.host, to.port), **more)
        try:
            return await line.post("/msmq", request_headers("bridge", "text/xml", len(data)), data)
        finally:
            line.close()


def config(data: Path = Path("nowhere"), **settings: Any) -> Config:
    listen = {"host": "127.0.0.1", "srmp": 0, **settings.pop("listen", {})}
    return Config(
        listen=ListenConfig(**listen), srmp=SrmpConfig(**settings.pop("srmp", {})), data=data
    )


def play(
    scene: Callable[[World, dict[str, str]], Awaitable[None]],
    settings: Config | None = None,
    allow: Sequence[str] | None = None,
) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):
            world = World(settings or config(), allow)
            await world.pump.open()
            task = asyncio.create_task(world.pump.run())
            try:
                await scene(world, await world.service.start())
            finally:
                world.service.stop_listening()
                await world.service.stop()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await world.pump.close()
            return world

    return asyncio.run(run())


def test_messages_in_and_receipts_out() -> None:  # SR-3, SR-35, SR-42, SR-44
    async def scene(world: World, ready: dict[str, str]) -> None:
        receiver, changed = Receiver(), asyncio.Event()
        world.pump.on_change = changed.set  # after every commit
        await receiver.start()
        try:
            head = PATH.replace(TO, TO_ORDERS)
            parts = head + PROPERTIES + SERVICES + STREAM + MSMQ
            data = soap(parts.replace("http://a/", receiver.url("/")))
            assert await world.post(ready["srmp"], data) == 200
            found = await receiver.wait(3)
            assert sorted(request.first.split()[1] for request in found) == [
                "/msmq/c",
                "/msmq/d",
                "/msmq/o",
            ]
            async with asyncio.timeout(SOON):
                while world.pump.shard.outbox or world.pump.shard.posted.unreceipted():
                    changed.clear()
                    await changed.wait()
        finally:
            await receiver.stop()

    world = play(scene)
    assert len(world.log.records) == 1
    assert not [key for key in world.log.state if key.startswith("outbox/")]


def test_what_is_ready() -> None:
    async def scene(world: World, ready: dict[str, str]) -> None:
        assert list(ready) == ["srmp"]
        assert await world.post(ready["srmp"], good(MSMQ)) == 200
        assert await world.post(ready["srmp"], b"rubbish") == 400

    play(scene)

    async def nothing(world: World, ready: dict[str, str]) -> None:
        assert ready == {}

    play(nothing, config(listen={"srmp": None}))


def test_with_a_certificate_of_our_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # srmp.md 1.5
    async def scene(world: World, ready: dict[str, str]) -> None:
        assert list(ready) == ["srmp", "srmp_tls"]
        trust = client_context(tmp_path / "tls.crt")
        tls = {"tls": trust, "server_name": "bridge"}
        assert await world.post(ready["srmp_tls"], good(MSMQ), **tls) == 200
        assert world.log.records[0].headers["msmq.transport"] == b"https"

    with caplog.at_level(logging.WARNING):
        play(scene, config(tmp_path, listen={"srmp_tls": 0}))
    assert "srmp.certificate is not set" in caplog.text


def test_with_a_given_certificate(tmp_path: Path) -> None:
    certificate, key = self_signed(["bridge"], tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(certificate.read_bytes() + key.read_bytes())

    async def scene(world: World, ready: dict[str, str]) -> None:
        tls = {"tls": client_context(certificate), "server_name": "bridge"}
        assert await world.post(ready["srmp_tls"], good(MSMQ), **tls) == 200

    for srmp in ({"certificate": certificate, "key": key}, {"certificate": both}):
        settings = config(listen={"srmp": None, "srmp_tls": 0}, srmp=srmp)
        play(scene, settings)  # its data folder is nowhere


def test_client_certificates(tmp_path: Path) -> None:
    """`srmp.client_ca`: who shows one is known by its names, and `allow` can have them."""
    certificate, key = self_signed(["bridge"], tmp_path)
    authority = Authority(tmp_path)
    clients = {name: authority.sign(name) for name in ("orders", "other")}

    async def scene(world: World, ready: dict[str, str]) -> None:
        for shows in clients.values():
            trust = client_context(certificate)
            trust.load_cert_chain(shows)
            tls = {"tls": trust, "server_name": "bridge"}
            assert await world.post(ready["srmp_tls"], good(MSMQ), **tls) == 200
        assert await world.post(ready["srmp"], good(MSMQ)) == 200  # without names
        bare = {"tls": client_context(certificate), "server_name": "bridge"}
        with pytest.raises((OSError, HttpFault)):
            await world.post(ready["srmp_tls"], good(MSMQ), **bare)
        (record,) = world.log.records
        assert record.headers["msmq.transport"] == b"https"
        reasons = [
            record.headers["__connect.errors.exception.message"] for record in world.log.rejects
        ]
        assert reasons == [b"sender-not-allowed"] * 2

    srmp = {"certificate": certificate, "key": key, "client_ca": authority.file}
    play(scene, config(tmp_path, listen={"srmp_tls": 0}, srmp=srmp), ["cn:Orders"])


def test_client_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    async def scene(world: World, ready: dict[str, str]) -> None:
        raise AssertionError

    srmp = {"client_ca": tmp_path / "none.pem"}
    with pytest.raises(ConfigError, match=r"none\.pem"):
        play(scene, config(tmp_path, listen={"srmp_tls": 0}, srmp=srmp))


OLD = pytest.mark.skipif(not ssl.HAS_TLSv1, reason="this OpenSSL has it not")


@OLD
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_receipts_to_old_windows(tmp_path: Path) -> None:
    """`srmp.tls: legacy` counts for what we send, too."""
    certificate, key = self_signed(["127.0.0.1"], tmp_path)
    server = server_context(certificate, key, "legacy")
    server.maximum_version = ssl.TLSVersion.TLSv1

    async def run() -> None:
        receiver = Receiver(tls=server)
        await receiver.start()
        loopback = (ReceiptTarget("loopback"),)
        srmp = {"tls": "legacy", "ca_file": certificate, "receipt_targets": loopback}
        world = World(config(tmp_path, srmp=srmp))
        try:
            entry = OutboxEntry(
                ordinal=1, host="127.0.0.1", url=receiver.url(), packet=b"<receipt/>"
            )
            world.service.postman.take([entry], world.pump)
            await receiver.until(lambda: bool(receiver.got))
            assert receiver.got[0].body == b"<receipt/>"
        finally:
            await world.service.stop()
            await receiver.stop()

    asyncio.run(run())


def test_a_port_that_nobody_asked_for_may_be_taken(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        async def scene(world: World, ready: dict[str, str]) -> None:
            assert ready == {}

        with caplog.at_level(logging.WARNING):
            play(scene, config(listen={"srmp": DefaultPort(port)}))
        assert "messages over HTTP are off" in caplog.text
        with pytest.raises(ConfigError, match=str(port)):
            play(scene, config(listen={"srmp": port}))


def test_the_port_of_the_defaults_is_one_that_nobody_asked_for() -> None:
    assert isinstance(ListenConfig().srmp, DefaultPort)
    assert not isinstance(msgspec.convert({"srmp": 80}, ListenConfig).srmp, DefaultPort)
    assert isinstance(msgspec.convert({}, ListenConfig).srmp, DefaultPort)


def redirect(source: str, target: str) -> Redirect:
    return msgspec.convert({"from": source, "to": target}, Redirect)


def test_redirects() -> None:  # SR-13, SR-14
    table = (redirect("http://nat/msmq/in/*", TO),)

    async def scene(world: World, ready: dict[str, str]) -> None:
        for url, status in (
            ("http://nat/msmq/in/x", 200),
            ("http://nat/msmq/private$/q", 200),
            ("http://stranger/msmq/private$/q", 400),
        ):
            data = soap(PATH.replace(TO, url) + PROPERTIES)
            assert await world.post(ready["srmp"], data) == status

    play(scene, config(srmp={"redirect_in": table}))


def test_a_redirect_to_another_host_is_forwarded() -> None:  # SR-15
    async def run() -> None:
        receiver = Receiver()
        await receiver.start()
        table = (redirect("http://nat/in/*", TO), redirect("http://nat/b", "http://far/msmq/q"))
        out = (redirect("http://far/*", receiver.url("/")),)
        world = World(config(srmp={"redirect_in": table, "redirect_out": out}))
        await world.pump.open()
        task = asyncio.create_task(world.pump.run())
        try:
            ready = await world.service.start()
            text = soap(PATH.replace(TO, "http://NAT/B") + PROPERTIES + SERVICES + STREAM + MSMQ)
            assert await world.post(ready["srmp"], text) == 200
            (request,) = await receiver.wait(1)
            assert request.body == text.replace(b"http://NAT/B", b"http://far/msmq/q")
            assert (request.first.split()[1], request.headers["Host"]) == ("/msmq/q", "far")
            await asyncio.wait_for(world.pump.drain(), SOON)
            assert len(receiver.got) == 1  # no receipt of ours: that is for the next hop
        finally:
            world.service.stop_listening()
            await world.service.stop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await receiver.stop()
        assert world.log.records == []
        assert not [key for key in world.log.state if not key.startswith(("unit", "forward/"))]

    asyncio.run(run())


@pytest.mark.parametrize("target", ["http://a..b/q", "http://far:99999/q", "http://f\u00e4r/q"])
def test_a_redirect_to_nowhere_is_refused(target: str) -> None:  # it would wait for ever
    table = (redirect("http://nat/a", TO), redirect("http://nat/b", target))
    with pytest.raises(ConfigError, match="nothing can be sent to") as caught:
        World(config(srmp={"redirect_in": table}))
    assert caught.value.where == "srmp.redirect_in[1]"


def test_stop_ends_all() -> None:
    async def scene(world: World, ready: dict[str, str]) -> None:
        to = Address.parse(ready["srmp"])
        reader, writer = await asyncio.open_connection(to.host, to.port)
        data = good(MSMQ)
        head = (
            f"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: {len(data)}"
        )
        writer.write(f"{head}\r\n\r\n".encode() + data)
        assert await reader.readuntil(b"\r\n\r\n") != b""
        assert world.service.connections == 1
        world.service.stop_listening()
        await world.service.stop()
        assert await reader.read() == b""
        assert world.service.connections == 0
        writer.close()
        with pytest.raises(OSError, match=r"."):
            await asyncio.open_connection(to.host, to.port)

    play(scene)
