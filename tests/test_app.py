"""The appliance as a whole, in this process, on a real broker: start, what it says, stop."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import Any

import pytest

from bridge import app as module
from bridge.adapters.config_files import load_config
from bridge.adapters.kafka import health as health_module
from bridge.adapters.kafka import reader as reader_module
from bridge.adapters.kafka import stable_offsets as stable_module
from bridge.adapters.kafka.client import producer
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.lease import Lease, LeaseLost
from bridge.adapters.kafka.topics import ensure_topics
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.net.binary_client import send_all
from bridge.adapters.runtime import RUNTIME_FILE
from bridge.app import Appliance
from bridge.model.errors import ConfigError, SinkUnavailable, Unavailable
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import RECOVERABLE, Message, Transaction
from bridge.protocol.binary.outgoing import Outgoing
from tests.support.config import topic, write_config
from tests.support.kafka import read_topic, unique
from tests.support.waiting import until

pytestmark = pytest.mark.kafka

ID = "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77"
SOON_S = 60.0


@asynccontextmanager
async def running(config: Path, said: list[str] | None = None) -> AsyncIterator[Appliance]:
    appliance = Appliance(load_config(config))
    try:
        async with asyncio.timeout(SOON_S):
            await appliance.start((said if said is not None else []).append)
        yield appliance
    finally:
        async with asyncio.timeout(SOON_S):
            await appliance.stop()


def identity(config: Path) -> str:
    """Start it, ask who it is, stop it."""

    async def ask() -> str:
        async with running(config) as appliance:
            return str(appliance.id)

    return asyncio.run(ask())


def test_a_generated_id_survives_the_data_folder(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("identity")  # design 3.2: it is kept in Kafka
    made = [
        identity(write_config(tmp_path / name, kafka.bootstrap_servers, topic_prefix=prefix))
        for name in ("first", "second")
    ]
    assert Guid.parse(made[0]) != NULL_GUID
    assert made[0] == made[1]
    other = identity(write_config(tmp_path / "other", kafka.bootstrap_servers))
    assert other != made[0]


def test_a_configured_id_wins_and_is_kept(
    kafka: EmbeddedKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = unique("identity")
    free = write_config(tmp_path / "free", kafka.bootstrap_servers, topic_prefix=prefix)
    generated = identity(free)
    fixed = write_config(
        tmp_path / "fixed",
        kafka.bootstrap_servers,
        topic_prefix=prefix,
        queue_manager={"id": ID, "names": ["BRIDGE01"]},
    )
    assert identity(fixed) == ID
    assert f"queue manager id changes from {generated} to {ID}" in caplog.text
    assert identity(free) == ID


def test_what_it_says_while_it_starts_and_stops(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka.bootstrap_servers)
    said: list[str] = []

    async def test() -> None:
        async with running(config, said) as appliance:
            admin, binary = appliance.listeners["admin"], appliance.listeners["binary"]
            assert said == [
                f"listening: admin on {admin}",
                f"listening: binary on {binary}",
                f"ready: queue manager {appliance.id} as BRIDGE01, 127.0.0.1",
            ]
            assert not {"127.0.0.1:0", ""} & {admin, binary}
            assert appliance.ready() == (True, [])
            told = json.loads((tmp_path / "data" / RUNTIME_FILE).read_text())
            assert told["admin_url"] == f"http://{admin}"
            assert await asyncio.to_thread(get_json, told["admin_url"], "/readyz") == {
                "ready": True,
                "reasons": [],
            }
        assert appliance.ready() == (False, ["stopping"])
        assert not (tmp_path / "data" / "runtime.json").exists()
        for address in (admin, binary):
            host, port = address.split(":")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(host, int(port))

    asyncio.run(test())


def test_the_status_of_the_design(kafka: EmbeddedKafka, tmp_path: Path) -> None:  # 3.2
    config = write_config(tmp_path, kafka.bootstrap_servers)

    async def test() -> None:
        async with running(config) as appliance:
            host, port = appliance.listeners["binary"].split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            await until(lambda: appliance.status()["sessions"])
            status = appliance.status()
            assert status == json.loads(json.dumps(status))
            assert status["ready"] is True
            assert status["queue_manager"] == {
                "id": str(appliance.id),
                "names": ["BRIDGE01", "127.0.0.1"],
            }
            assert status["listeners"] == appliance.listeners
            assert status["kafka"] == {
                "bootstrap.servers": kafka.bootstrap_servers,
                "embedded": False,
            }
            assert (status["waiting_forwards"], status["forwards"]) == (0, [])
            assert status["session_count"] == 1
            assert status["sessions"] == [
                {
                    "peer": "{}:{}".format(*writer.get_extra_info("sockname")),
                    "queue_manager": str(NULL_GUID),
                    "state": "WAITING_EC_MSG",
                    "received": 0,
                    "decided": 0,
                }
            ]
            writer.close()
            await writer.wait_closed()

    asyncio.run(test())


def test_listeners_that_are_off(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka.bootstrap_servers, listen={"binary": None, "admin": None})
    said: list[str] = []

    async def test() -> None:
        async with running(config, said) as appliance:
            assert appliance.listeners == {}
            assert len(said) == 1
            assert appliance.ready() == (True, [])
            assert not list((tmp_path / "data").glob("*.json"))  # nobody is told where to ask

    asyncio.run(test())


def test_without_names_it_has_those_of_the_host(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka.bootstrap_servers, queue_manager=None)
    appliance = Appliance(load_config(config))
    assert appliance.names[0] == socket.gethostname()
    assert appliance.id == NULL_GUID
    assert appliance.ready() == (False, ["starting"])
    assert appliance.status()["ready"] is False


# -- what keeps it from starting --------------------------------------------------------------


def refusal(config: Path) -> ConfigError:
    async def test() -> None:
        async with running(config):
            raise AssertionError("it runs")

    with pytest.raises(ConfigError) as caught:
        asyncio.run(test())
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


@pytest.mark.parametrize("name", ["binary", "admin"])
def test_a_busy_port(kafka: EmbeddedKafka, tmp_path: Path, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = write_config(tmp_path, kafka.bootstrap_servers, listen={name: port})
        error = refusal(config)
    assert error.where == f"listen.{name}"
    assert f"cannot listen on 127.0.0.1:{port}" in error.what


def test_a_busy_admin_port_leaves_the_other_ones_folder_alone(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = write_config(tmp_path, kafka.bootstrap_servers, listen={"admin": port})
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / RUNTIME_FILE).write_text("{}")
        refusal(config)
    assert (tmp_path / "data" / RUNTIME_FILE).read_text() == "{}"


def test_a_data_folder_that_cannot_be(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka.bootstrap_servers, data="bridge.yaml/data")
    error = refusal(config)
    assert error.where == "data"
    assert "Not a directory" in error.what


def test_it_waits_for_a_kafka_that_is_away(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # design D3
    monkeypatch.setattr(module, "RETRY_S", 0.05)
    tried: list[int] = []

    def not_yet(*arguments: Any, **options: Any) -> object:
        tried.append(len(tried))
        if len(tried) < 3:
            raise SinkUnavailable("Kafka: nobody there")
        return ensure_topics(*arguments, **options)

    monkeypatch.setattr(module, "ensure_topics", not_yet)
    config = write_config(tmp_path, kafka.bootstrap_servers)

    async def test() -> None:
        appliance = Appliance(load_config(config))
        start = asyncio.create_task(appliance.start(lambda _: None))
        try:
            await until(lambda: "Kafka: nobody there" in appliance.ready()[1])
            await start
            assert appliance.ready() == (True, [])
        finally:
            await appliance.stop()

    asyncio.run(asyncio.wait_for(test(), SOON_S))
    assert tried == [0, 1, 2]


def test_a_task_that_fails_ends_the_run(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    async def test() -> None:
        async with running(write_config(tmp_path, kafka.bootstrap_servers)) as appliance:

            async def fail() -> None:
                raise ZeroDivisionError

            appliance._tasks.append(asyncio.create_task(fail()))
            with pytest.raises(ZeroDivisionError):
                await appliance.run()

    asyncio.run(test())


# -- one in the place of another --------------------------------------------------------------


def test_the_next_one_goes_on_where_the_last_one_stopped(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:  # design 3.2: nothing in a data folder is needed
    prefix = unique("again")
    source = Guid.random()

    async def test() -> None:
        for name in ("first", "second"):  # the second sees only duplicates
            config = write_config(tmp_path / name, kafka.bootstrap_servers, topic_prefix=prefix)
            async with running(config) as appliance:
                await send(appliance.listeners["binary"], source, 20)
                assert appliance.status()["streams"] == 1

    asyncio.run(test())
    records = read_topic(kafka.bootstrap_servers, topic(prefix, "orders"))
    assert [record.value() for record in records] == [b"%d" % n for n in range(1, 21)]


# -- one that waits for the other -------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def pair(folder: Path, kafka: EmbeddedKafka, **changes: Any) -> list[Path]:
    """One configuration for two, but for the data folders: they are on one host here."""
    prefix = unique("pair")
    return [
        write_config(
            folder / name, kafka.bootstrap_servers, topic_prefix=prefix, standby=True, **changes
        )
        for name in ("first", "second")
    ]


def test_the_standby_takes_over_when_the_leader_stops(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    port, source = free_port(), Guid.random()
    first, second = pair(tmp_path, kafka, listen={"binary": port})
    said: list[str] = []

    async def test() -> None:
        standby = Appliance(load_config(second))
        async with running(first) as leader:
            assert (leader.role, leader.ready()) == ("leader", (True, []))
            await send(leader.listeners["binary"], source, 10)
            waiting = asyncio.create_task(standby.start(said.append))
            await until(lambda: "standby: waiting for the lease" in said)
            admin = f"http://{standby.listeners['admin']}"
            assert await asyncio.to_thread(get_json, admin, "/livez") == {"live": True}
            told = await asyncio.to_thread(get_json, admin, "/api/status")
            assert (told["ready"], told["reasons"]) == (False, ["standby"])
            assert (told["role"], list(told["listeners"])) == ("standby", ["admin"])
            assert standby._leadership is not None
            assert standby._leadership.lifeline is not None  # bound, not open
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", standby._leadership.lifeline.port))
            with pytest.raises(Unavailable, match="503 Service Unavailable"):
                await asyncio.to_thread(get_json, admin, "/readyz")
            with pytest.raises(SinkUnavailable, match="not yet: standby"):
                await standby.trace("label", "x")
            assert leader.ready() == (True, [])  # nobody was fenced
        try:
            async with asyncio.timeout(SOON_S):
                await waiting
            assert (standby.role, standby.ready()) == ("leader", (True, []))
            assert standby.id == leader.id
            await send(f"127.0.0.1:{port}", source, 20)  # ten of them are duplicates
        finally:
            await standby.stop()

    asyncio.run(test())
    prefix = load_config(first).topic_prefix
    records = read_topic(kafka.bootstrap_servers, topic(prefix, "orders"))
    assert [record.value() for record in records] == [b"%d" % n for n in range(1, 21)]
    assert said[1:3] == ["standby: waiting for the lease", "leading: taking over"]


def test_a_standby_without_a_lifeline_leads_in_its_turn(
    kafka: EmbeddedKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its address is somebody else's as yet: a virtual one, or one port for two on one host."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first, _ = pair(tmp_path, kafka, listen={"lease": taken.getsockname()[1]})

        async def test() -> None:
            async with running(first) as leader:
                assert leader._leadership is not None
                assert (leader.role, leader._leadership.lifeline) == ("leader", None)

        asyncio.run(test())
    [warning] = [line for line in caplog.messages if line.startswith("no lifeline, listen.lease: ")]
    assert "its lease has to run out first" in warning


def test_the_standby_is_told_to_stop_while_it_waits(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    first, second = pair(tmp_path, kafka)
    said: list[str] = []

    async def test() -> None:
        async with running(first) as leader:
            standby = Appliance(load_config(second))
            waiting = asyncio.create_task(standby.start(said.append))
            await until(lambda: "standby: waiting for the lease" in said)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await standby.stop()
            assert leader.ready() == (True, [])

    asyncio.run(asyncio.wait_for(test(), SOON_S))


def test_a_leader_without_its_lease_ends(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    first, _ = pair(tmp_path, kafka)

    async def test() -> None:
        async with running(first) as leader:
            assert leader._leadership is not None
            leader._leadership.lease._on_revoked()
            with pytest.raises(LeaseLost, match="start this one again and it is the standby"):
                await leader.run()

    asyncio.run(test())


def test_the_lease_is_lost_while_it_takes_over(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or two that were told to lead, one after the other, would fence each other in turn."""
    first, _ = pair(tmp_path, kafka)

    async def test() -> None:
        appliance = Appliance(load_config(first))
        cancelled = asyncio.Event()

        async def for_ever(*_: object) -> None:
            assert appliance._leadership is not None
            appliance._leadership.lease._on_revoked()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        monkeypatch.setattr(appliance, "_open_shards", for_ever)
        with pytest.raises(LeaseLost):
            await appliance.start(lambda _: None)
        assert cancelled.is_set()
        await appliance.stop()

    asyncio.run(asyncio.wait_for(test(), SOON_S))


def test_a_port_that_somebody_else_keeps(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PORTS_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        first, _ = pair(tmp_path, kafka, listen={"binary": port})
        assert refusal(first).where == "listen.binary"


def test_mappings_are_read_again_when_it_leads(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have been changed while it waited: `map apply` reaches only the leader."""
    config, _ = pair(tmp_path, kafka)
    won = Lease.won

    async def later(self: Lease) -> None:
        file = config.with_name("mappings.yaml")
        text = json.loads(file.read_text())
        text["queues"].append({"queue": "private$\\late", "topic": unique("late")})
        file.write_text(json.dumps(text))
        await won(self)

    monkeypatch.setattr(Lease, "won", later)

    async def test() -> None:
        async with running(config) as appliance:
            assert "private$\\late" in [entry.queue for entry in appliance.mappings.queues]

    asyncio.run(test())


async def send(address: str, source: Guid, number: int) -> None:
    """The same messages of the same sequence each time."""
    outgoing = Outgoing(local=source, sequence_timestamp=1, ordinals=count(1000).__next__)
    outgoing.add(
        [
            Message(
                source=source,
                ordinal=n,
                destination="DIRECT=OS:bridge01\\private$\\orders",
                delivery=RECOVERABLE,
                transaction=Transaction(sequence_id=0, number=0),
                sent_time=int(time()),
                body=b"%d" % n,
            )
            for n in range(1, number + 1)
        ]
    )
    host, port = address.split(":")
    await send_all(outgoing, host, int(port), deadline_s=30)


# -- a shard that hangs ---------------------------------------------------------------------------


def test_a_shard_that_cannot_be_read_does_not_hold_up_the_others(
    kafka: EmbeddedKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another producer's transaction is open in the state of shard 1."""
    monkeypatch.setattr(module, "SHARDS_S", 0.5)
    monkeypatch.setattr(reader_module, "_QUIET_S", 0.1)
    prefix = unique("hanging")
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix, shards=2)
    identity(config)  # makes the topics
    hanging = producer({"bootstrap.servers": kafka.bootstrap_servers}, unique("hanging"))
    hanging.init_transactions(20)
    hanging.begin_transaction()
    hanging.produce(f"{prefix}.state", b"1", b"nothing", 1)
    hanging.flush(20)

    async def test() -> None:
        async with running(config) as appliance:
            ready, reasons = appliance.ready()
            assert ready
            assert reasons == ["shard 1: starting"]
            assert await asyncio.to_thread(
                get_json, f"http://{appliance.listeners['admin']}", "/readyz"
            ) == {
                "ready": True,
                "reasons": reasons,
            }
            await asyncio.to_thread(hanging.abort_transaction, 20)
            await until(lambda: appliance.ready() == (True, []))

    asyncio.run(test())
    assert f"{prefix}.state-1 cannot be read beyond offset" in caplog.text


def test_ready_is_what_commits(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that Kafka does not commit makes it unready; a broker that does not answer does not,
    while commits go on."""
    config = write_config(tmp_path, kafka.bootstrap_servers, shards=2)

    async def test() -> None:
        async with running(config) as appliance:
            health = appliance._health
            assert health is not None
            health.up, health.why, health.asked_at = False, "does not answer", monotonic()
            assert not appliance.ready()[0]
            appliance._pumps[1].committed_at = monotonic()
            assert appliance.ready() == (True, [])
            health.up, health.why = True, ""
            for number, pump in enumerate(appliance._pumps):
                pump._publishing = monotonic() - 4.2
                ready, reasons = appliance.ready()
                assert ready is (number == 0)  # one of two is still of use
                assert reasons[-1] == f"shard {number}: Kafka has not committed for 4 s"
            for pump in appliance._pumps:
                pump._publishing = inf
            assert appliance.ready() == (True, [])

    monkeypatch.setattr(health_module, "EVERY_S", 600)
    asyncio.run(test())


def test_a_transaction_that_hangs_in_a_data_topic_is_named(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Senders notice nothing: what is acknowledged is in the topic, and no consumer sees it."""
    monkeypatch.setattr(stable_module, "EVERY_S", 0.05)
    monkeypatch.setattr(stable_module, "STUCK_AFTER_S", 0.3)
    config = write_config(tmp_path, kafka.bootstrap_servers)
    hanging = producer({"bootstrap.servers": kafka.bootstrap_servers}, unique("hanging"))

    async def test() -> None:
        async with running(config) as appliance:
            name = topic(appliance.config.topic_prefix, "orders")
            await asyncio.to_thread(hanging.init_transactions, 20)
            hanging.begin_transaction()
            hanging.produce(name, b"1", b"nothing", 0)
            await asyncio.to_thread(hanging.flush, 20)
            await until(lambda: appliance.ready()[1] != [])
            ready, (reason,) = appliance.ready()
            assert ready
            assert reason.startswith(f"topic {name}-0: consumers see nothing behind offset 0 for")
            shown = appliance.telemetry.exposition()[0].decode()
            assert "msmq_bridge_hanging_partitions 1.0" in shown
            assert "msmq_bridge_invisible_records 1.0" in shown
            await asyncio.to_thread(hanging.abort_transaction, 20)
            await until(lambda: appliance.ready() == (True, []))

    asyncio.run(test())
