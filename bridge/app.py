"""The composition root: settings become a running appliance. Start and its reverse, once each."""

from __future__ import annotations

import asyncio
import glob
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from bridge.adapters import overview
from bridge.adapters.admin_token import TOKEN_FILE, is_generated, make_token, token_path
from bridge.adapters.claims import CLAIMS
from bridge.adapters.config_files import kafka_properties
from bridge.adapters.courier import Courier
from bridge.adapters.gauges import measure
from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.health import KafkaHealth
from bridge.adapters.kafka.own_broker import OwnBroker
from bridge.adapters.kafka.sink import KafkaShardSink
from bridge.adapters.kafka.stable_offsets import KafkaOffsets, StableOffsets
from bridge.adapters.kafka.topic_states import TopicStates
from bridge.adapters.kafka.topics import (
    OwnTopics,
    cluster_of,
    ensure_lease,
    ensure_topics,
    own_configs,
)
from bridge.adapters.kafka.tracer import Follower, Tracer
from bridge.adapters.kafka.worker import Worker
from bridge.adapters.leadership import Leadership, unless
from bridge.adapters.logs import say_what_was_left_out
from bridge.adapters.mapped_queues import MappedQueues
from bridge.adapters.meter import Meter
from bridge.adapters.net.admin_server import AdminServer
from bridge.adapters.net.binary_server import BinaryServer
from bridge.adapters.net.connection import Connection
from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.ping import PingServer
from bridge.adapters.net.ports import require_free
from bridge.adapters.private_files import make_private_folder, tighten
from bridge.adapters.remote_read.rpc_service import RpcService
from bridge.adapters.retained.desk import Desk
from bridge.adapters.retained.service import RetainedService
from bridge.adapters.runtime import RUNTIME_FILE, remove_runtime, write_runtime
from bridge.adapters.srmp_service import SrmpService
from bridge.adapters.store.audit_index import AuditIndex
from bridge.adapters.stream_desk import StreamDesk
from bridge.adapters.telemetry import Telemetry
from bridge.adapters.topic_watch import TopicWatch
from bridge.adapters.tracing import open_tracing
from bridge.adapters.watch import Watch
from bridge.config import Address, Config, DefaultPort
from bridge.core import outbox
from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import TopicLimits
from bridge.core.forwards import Room
from bridge.core.identity import (
    IDENTITY_KEY,
    ORDINALS_KEY,
    PEER,
    SEQUENTIAL_KEY,
    Ordinals,
    SequentialIds,
    identity_entry,
    known_identity,
    known_peers,
    peer_entry,
)
from bridge.core.known_senders import KnownSenders
from bridge.core.mapping_rules import Mappings
from bridge.core.ports import OutboxEntry
from bridge.core.receipts import Receipts
from bridge.core.reject_budget import RejectBudget
from bridge.core.shard import Shard
from bridge.model.errors import ConfigError, SinkUnavailable
from bridge.model.guid import NULL_GUID, Guid

Result = TypeVar("Result")

_log = logging.getLogger(__name__)
DRAIN_S: Final = 10.0
CLOSE_S: Final = 3.0
RETRY_S: Final = 2.0
SHARDS_S: Final = 10.0  # that a start waits for the last shards
MOST_NAMED: Final = 10
LOG_S: Final = 1.0
LAST_WORDS_S: Final = 0.5  # for peers to read our last acks
PORTS_S: Final = 10.0  # for the leader before us to be gone from this host
PORTS_LOOK_S: Final = 0.1
STANDBY: Final = "standby"
KAFKA: Final = "kafka"  # the embedded one, below the data folder
KEEPER: Final = 0  # the shard whose state holds identity and id marks


class Appliance:
    """One MSMQ queue manager. `start`, `run` until told to stop, `stop`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._queues = MappedQueues(config)
        self.telemetry = Telemetry()
        self.listeners: dict[str, str] = {}
        self.id = config.queue_manager.id or NULL_GUID
        self.names = config.queue_manager.listed_names or _host_names()
        self._kafka: OwnBroker | None = None
        self._bootstrap = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._pumps: list[ShardPump] = []
        self._server: BinaryServer | None = None
        self._srmp: SrmpService | None = None
        self._ping: PingServer | None = None
        self._rpc: RpcService | None = None
        self._retained: RetainedService | None = None
        self.desk: Desk | None = None
        self.streams = StreamDesk(lambda: self._pumps)
        self._index: AuditIndex | None = None
        self._tracer: Tracer | None = None
        self._follower: Follower | None = None
        self._health: KafkaHealth | None = None
        self._topics: TopicWatch | None = None
        self._stable: StableOffsets | None = None
        self._leadership: Leadership | None = None
        self._hall = Hall()
        self._admin = AdminServer(
            self,
            self.telemetry,
            config.admin,
            (*self.names, *_host_names(), config.listen.admin_host),
            token_path(config),
            self._hall,
        )
        self._meter = Meter(self.telemetry, self._count_pending)
        self.watch = Watch(
            config,
            self.telemetry,
            self._meter,
            figures=self._figures,
            pumps=lambda: self._pumps,
            connections=self._connections,
            mappings=lambda: self.mappings,
            desk=lambda: self.desk,
            reload=self.reload,
        )
        self._reject_budget = RejectBudget()
        self._started = time.time()
        self._starting = "starting"
        self._tracing = open_tracing(config.otel, config.topic_prefix)
        self._measure()

    @property
    def mappings(self) -> Mappings:
        return self._queues.mappings

    # -- life -------------------------------------------------------------------------------

    async def start(self, announce: Callable[[str], None]) -> None:
        """Fence, read state to the end, listen. Design D2"""
        with self._writing_data():
            self._own_data()
        await self._start_admin(announce)
        self._tasks.append(asyncio.create_task(self._meter.run()))
        self._tasks.append(asyncio.create_task(_sum_up_the_log()))
        self._tasks.append(asyncio.create_task(self.watch.run()))
        if not self.config.standby:
            self._require_ports()  # before a running twin is fenced for nothing
        settings = await self._start_kafka(announce)
        own = OwnTopics(self.config.topic_prefix)
        self._health = KafkaHealth(settings, own.state)
        self._tasks.append(asyncio.create_task(self._health.run()))
        if not self.config.standby:
            await self._take_over(settings, own, announce)
            return
        lost = await self._stand_by(settings, own, announce)
        await unless(lost, self._take_over(settings, own, announce))

    async def _stand_by(
        self, settings: dict[str, Any], own: OwnTopics, announce: Callable[[str], None]
    ) -> asyncio.Task[None]:
        """Until we lead. The task that comes back ends when we do so no more."""
        self._starting = STANDBY
        await self._ensure_topics(settings, own)  # what is wrong with them shows now
        await self._ask_kafka(partial(ensure_lease, settings, own))
        self._starting = STANDBY
        self._leadership = Leadership(settings, own, self.config)
        announce("standby: waiting for the lease")
        lost = await self._leadership.win()
        self._starting = "taking over"
        announce("leading: taking over")
        self._tasks.append(lost)
        self._queues = MappedQueues(self.config)  # the files may have changed since
        await self._await_ports()
        return lost

    async def _await_ports(self) -> None:
        """On one host the leader before us may not be quite gone."""
        deadline = time.monotonic() + PORTS_S
        while True:
            try:
                self._require_ports()
                return
            except ConfigError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(PORTS_LOOK_S)

    async def _take_over(
        self, settings: dict[str, Any], own: OwnTopics, announce: Callable[[str], None]
    ) -> None:
        facts = await self._ensure_topics(settings, own)
        self._queues.open(settings, own, self.id, facts)
        await self._open_shards(settings, own, facts[own.state].partitions)
        await self._start_retained(settings, own)
        self._start_index(settings, own)
        self.watch.open(settings, own, len(self._pumps))
        self._watch_topics(settings, own)
        assert self._topics is not None
        await self._topics.look()  # what is closed to us is not promised to senders
        await self._listen(announce)
        self._starting = ""
        announce(f"ready: queue manager {self.id} as {', '.join(self.names)}")

    def _require_ports(self) -> None:
        listen = self.config.listen
        rpc = ("rpc", "rpc_qp", "endpoint_mapper") if self.config.rpc.is_open else ()
        for name in ("binary", "srmp", "srmp_tls", *rpc):
            port = getattr(listen, name)
            if port is not None and not isinstance(port, DefaultPort):
                require_free(listen.host, port, f"listen.{name}")

    async def run(self) -> None:
        """Until a task fails: a lost shard or a bug of ours ends the process."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """The reverse of start: stop listening, drain, let go of Kafka."""
        self._starting = "stopping"
        last_words: asyncio.Task[None] | None = None
        if self._server is not None:
            self._server.stop_listening()
            if self._srmp is not None:
                self._srmp.stop_listening()
            if self._rpc is not None:
                self._rpc.stop_listening()
            if self._ping is not None:
                self._ping.stop()
            if self._health and self._health.up and not any(task.done() for task in self._tasks):
                self._intake.close()
                await self._drain()
            self._courier.stop()
            self._server.hang_up()
            last_words = asyncio.create_task(self._server.gone(LAST_WORDS_S))
            if self._srmp is not None:
                await self._srmp.stop()
            if self._rpc is not None:
                await self._rpc.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._retained is not None:
            self._retained.stop()
        closes = [asyncio.create_task(pump.close()) for pump in self._pumps]
        if closes:  # one that hangs in a call to a dead Kafka is left behind
            await asyncio.wait(closes, timeout=CLOSE_S)
        if self._leadership is not None:
            await self._leadership.leave(CLOSE_S)
        self._queues.close()
        if self._topics is not None:
            self._topics.stop()
        if self._stable is not None:
            self._stable.stop()
        if self._follower is not None:
            await asyncio.to_thread(self._follower.stop)
        if self._tracer is not None and self._health is not None and self._health.up:
            await asyncio.to_thread(self._tracer.close)
        if self._index is not None:
            self._index.close()
        self.watch.stop()
        if last_words is not None:
            await last_words
        await self._admin.stop()
        if "admin" in self.listeners:  # else it is somebody else's
            remove_runtime(self.config.data)
        if self._tracing is not None:  # a collector that is away holds us up no longer than that
            worker = Worker("tracing")
            closing = asyncio.create_task(worker.run(self._tracing.close))
            await asyncio.wait([closing], timeout=CLOSE_S)
            worker.stop()
        if self._kafka is not None:
            await self._kafka.stop()

    async def _drain(self) -> None:
        """What is committing may finish, so that its senders need not send it again."""
        drains = [asyncio.create_task(pump.drain()) for pump in self._pumps if pump.is_open]
        if drains:
            _, late = await asyncio.wait(drains, timeout=DRAIN_S)
            for task in late:
                task.cancel()

    # -- parts of the start -----------------------------------------------------------------

    async def _start_admin(self, announce: Callable[[str], None]) -> None:
        listen = self.config.listen
        if listen.admin is None:
            return
        generated = is_generated(self.config)
        if generated:
            with self._writing_data():
                make_token(token_path(self.config))
        address = await self._admin.start(listen.admin_host, listen.admin)
        self.listeners["admin"] = address
        if generated and not _is_loopback(address):
            _log.warning(
                "the admin port is open to the network at %s and admin.token_file is not set: "
                "its token is in %s",
                address,
                token_path(self.config),
            )
        with self._writing_data():
            scheme = "https" if self.config.admin.certificate else "http"
            write_runtime(self.config.data, f"{scheme}://{address}", os.getpid())
        announce(f"listening: admin on {address}")

    def _own_data(self) -> None:
        """The data folder is there, and what we keep in it is for no other user."""
        data = self.config.data
        make_private_folder(data)
        kept = (RUNTIME_FILE, TOKEN_FILE, CLAIMS, KAFKA)
        views = data.glob(f"{glob.escape(self.config.topic_prefix)}.*.sqlite*")
        tighten([*(data / name for name in kept), *views])

    @contextmanager
    def _writing_data(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"cannot write to {self.config.data} ({error.strerror})",
                where="data",
                mend="choose a folder of this user's",
            ) from error

    async def _start_kafka(self, announce: Callable[[str], None]) -> dict[str, Any]:
        settings: dict[str, Any] = dict(kafka_properties(self.config))
        if "bootstrap.servers" not in settings:
            self._kafka = OwnBroker(self.config.data / KAFKA)
            await self._kafka.start()
            settings["bootstrap.servers"] = self._kafka.bootstrap_servers
            announce(f"kafka: embedded broker on {self._kafka.bootstrap_servers}")
            self._tasks.append(asyncio.create_task(self._kafka.watch()))
        self._bootstrap = str(settings["bootstrap.servers"])
        return settings

    async def _patiently(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """Kafka may come up after us; say what is missing and try again."""
        while True:
            try:
                return await attempt()
            except SinkUnavailable as error:
                self._starting = str(error)
                _log.warning("%s; trying again", error)
                await asyncio.sleep(RETRY_S)

    async def _ensure_topics(
        self, settings: dict[str, Any], own: OwnTopics
    ) -> dict[str, TopicLimits]:
        topics = self.mappings.topics()
        kept = self.mappings.retained_topics()
        make = partial(ensure_topics, settings, own, self.config.shards, topics, kept, lenient=True)
        return await self._ask_kafka(make)

    async def _ask_kafka(self, call: Callable[[], Result]) -> Result:
        """In a worker, so that nobody who gives up waits for a Kafka that is away."""
        worker = Worker("topics")
        try:
            return await self._patiently(lambda: worker.run(call))
        finally:
            worker.stop()

    async def _open_shards(self, settings: dict[str, Any], own: OwnTopics, count: int) -> None:
        self._receipts = Receipts(
            insecure_nacks=self.config.queue_manager.insecure_nacks,
            names=self.names,
            peers=list(self.config.peers),
        )
        policy = Policy(
            discards_expired=self.config.srmp.expired == "discard",
            clock_skew_s=int(self.config.queue_manager.clock_skew_s),
            quota_kb=self.config.queue_manager.quota_kb,
            deadletter_topic=own.deadletter,
            continues_traces=self._tracing is not None,
            adopts_streams=self.config.queue_manager.adopt_streams == "first",
            outbox_bytes=outbox.MEMORY // count,
            outbox_destinations=outbox.DESTINATIONS // count,
        )
        room = Room(policy.quota_kb * 1024)
        self._pumps = [
            ShardPump(
                Shard(
                    self._queues.catalogue,
                    policy,
                    self._receipts,
                    room,
                    rejects=self._reject_budget,
                ),
                KafkaShardSink(settings, own, number, is_of_pair=self.config.standby),
                self.telemetry,
                prepare=self._queues.prepare,
                store_claims=self._queues.claims.store,
                name=str(number),
            )
            for number in range(count)
        ]
        if self._tracing is not None:
            self.telemetry.on_session = self._tracing.session
            for pump in self._pumps:
                pump.tracing = self._tracing
        self._tell_opening()
        opening = [asyncio.create_task(self._open_shard(pump)) for pump in self._pumps]
        try:
            await opening[KEEPER]
            # The others may hang in a transaction that Kafka has not ended: they come later.
            await asyncio.wait(opening, timeout=SHARDS_S)
            self._adopt_identity()
        except BaseException:
            for task in opening:
                task.cancel()
            raise
        for pump, opened in zip(self._pumps, opening, strict=True):
            self._tasks.append(asyncio.create_task(_run_when(opened, pump)))
        await self._pumps[KEEPER].drain()  # identity and id marks are durable before any session

    async def _open_shard(self, pump: ShardPump) -> None:
        """As often as it takes; `/readyz` and the log say why it takes so long."""
        began = time.monotonic()
        while True:
            try:
                await pump.open()
                self._tell_opening()
                return
            except SinkUnavailable as error:
                pump.why_closed = str(error)
                if self._starting:
                    self._starting = pump.complaint
                after = time.monotonic() - began
                _log.warning("%s; not open after %.1f s, trying again", pump.complaint, after)
                await asyncio.sleep(RETRY_S)

    def _tell_opening(self) -> None:
        waiting = [pump.name for pump in self._pumps if not pump.is_open]
        if self._starting and waiting:
            named = ", ".join(waiting[:MOST_NAMED])
            self._starting = f"taking over shards: Kafka has not answered for {named}"

    def _adopt_identity(self) -> None:
        """A configured GUID wins; else the one in Kafka; else a new one, kept there."""
        keeper = self._pumps[KEEPER]
        kept = keeper.shard.kept
        known = known_identity(kept)
        self.id = self.config.queue_manager.id or known or Guid.random()
        if known is not None and known != self.id:
            _log.warning("queue manager id changes from %s to %s", known, self.id)
        self._queues.catalogue.local = self.id
        keeper.put(IDENTITY_KEY, identity_entry(self.id))
        self._ordinals = Ordinals(
            kept.get(ORDINALS_KEY),
            lambda mark: keeper.put(ORDINALS_KEY, mark),
            lambda: keeper.has_settled(ORDINALS_KEY),
        )
        self._sequential = SequentialIds(
            kept.get(SEQUENTIAL_KEY),
            lambda mark: keeper.put(SEQUENTIAL_KEY, mark),
            lambda: keeper.has_settled(SEQUENTIAL_KEY),
        )
        for pump in self._pumps:
            pump.is_short = lambda: self._sequential.is_short or self._ordinals.is_short
        self._receipts.local, self._receipts.ordinals = self.id, self._ordinals
        self._senders = KnownSenders(
            self.config.queue_manager.pin_senders,
            {str(name): address.host for name, address in self.config.peers.items()},
            known_peers(kept),
            lambda name, host: keeper.put(PEER + name, peer_entry(host)),
            time.time(),
        )
        if self._queues.catalogue.is_open_ended:  # a queue's number is known once its name was seen
            for pump in self._pumps:
                for _, destination in (*pump.shard.streams, *pump.shard.posted):
                    self._queues.catalogue.find(destination)

    async def _start_retained(self, settings: dict[str, Any], own: OwnTopics) -> None:
        """Also without a retained queue: journals and dead letters can be read."""
        cluster = await self._ask_kafka(partial(cluster_of, settings))
        with self._writing_data():
            self._retained = RetainedService(
                self.config.data / f"{own.prefix}.retained.sqlite",
                settings,
                self._pumps[KEEPER],
                self._receipts,
                self._sequential,
                lambda: self._queues.catalogue,
                prefix=own.prefix,
                deadletter=(own.deadletter, len(self._pumps)),
                local=self.id,
                cluster=cluster,
                clock_skew_s=int(self.config.queue_manager.clock_skew_s),
                quota_kb=self.config.queue_manager.quota_kb,
                release_after_s=float(self.config.rpc.release_after_s),
                removed=self.telemetry.removal,
            )
        for pump in self._pumps:
            pump.shard.keeper = self._retained.keeper
        await self._retained.start()

    def _open_desk(self) -> None:
        """Once acks are handed out: until then one could leave before its cause is committed."""
        assert self._retained is not None
        self._tasks.append(asyncio.create_task(self._retained.run()))
        self.desk = Desk(self._retained, lambda: self._queues.catalogue, self._edit_mapping)

    async def _edit_mapping(self, queue: str, entry: dict[str, str] | None) -> None:
        if self._starting:
            raise SinkUnavailable(f"not yet: {self._starting}")
        await self._queues.edit(queue, entry, [pump.shard for pump in self._pumps])
        if self._retained is not None:
            self._retained.define()

    async def _listen(self, announce: Callable[[str], None]) -> None:
        listen = self.config.listen
        self._intake = Intake(self._pumps, self._on_jam)
        self._intake.look()
        hall = self._hall
        self._server = BinaryServer(
            self.id,
            self._ordinals,
            self._intake,
            self.telemetry,
            routers=AccessList(self.config.routers),
            senders=self._senders,
            hall=hall,
            per_address=listen.per_address,
        )
        self._srmp = SrmpService(
            self.config,
            self.names,
            self.id,
            self._ordinals,
            self._intake,
            lambda: self._queues.catalogue,
            self.telemetry,
            self._senders,
            hall,
            self._own_ports,
        )
        self._courier = Courier(
            self.id,
            self.config.peers,
            self._senders,
            self._server.dial,
            targets=self._srmp.targets,
            refusal=self.telemetry.refusal,
        )
        self._courier.intake = self._intake
        self._receipts.undeliverable = self._courier.undeliverable
        self._receipts.serves = lambda name: self._queues.catalogue.find(name) is not None
        self._server.courier = self._courier
        for pump in self._pumps:
            pump.on_acks, pump.on_due = self._take_acks, self._srmp.postman.due
            pump.on_dropped = self._drop_acks
            pump.on_forwards = self._srmp.forwarder.take
            self._srmp.postman.due(pump.shard.posted.unreceipted(), pump)
            self._take_acks(list(pump.shard.outbox.values()), pump)
            self._srmp.forwarder.take(list(pump.shard.forwards), pump)
        self._open_desk()
        if listen.binary is not None:
            address = await self._server.start(listen.host, listen.binary)
            self.listeners["binary"] = address
            announce(f"listening: binary on {address}")
        for name, address in (await self._srmp.start()).items():
            self.listeners[name] = address
            announce(f"listening: {name} on {address}")
        assert self._retained is not None
        self._rpc = RpcService(
            self.config,
            self.names,
            self.id,
            self._retained,
            lambda: self._queues.catalogue,
            lambda: self.mappings,
            self.telemetry,
            hall,
        )
        for name, address in (await self._rpc.start()).items():
            self.listeners[name] = address
            announce(f"listening: {name} on {address}")
        if self._rpc.closed:
            announce(f"closed: {', '.join(self._rpc.closed)} (no rpc.users, no rpc.keytab)")
        if listen.ping is not None:
            self._ping = PingServer(self.id, lambda: not self.ready()[0])
            address = await self._ping.start(listen.host, listen.ping)
            self.listeners["ping"] = address
            announce(f"listening: ping on {address}")

    def _own_ports(self) -> set[int]:
        """All that we and the embedded Kafka listen on, or are about to."""
        settings = msgspec.structs.asdict(self.config.listen).values()
        ports = {port for port in settings if type(port) is int}  # not a DefaultPort: it may be off
        ports |= {Address.parse(address).port for address in self.listeners.values()}
        if self._leadership is not None and self._leadership.lifeline is not None:
            ports.add(self._leadership.lifeline.port)
        if self._kafka is not None:
            ports.add(Address.parse(self._kafka.bootstrap_servers).port)
        return ports

    def _take_acks(self, entries: Sequence[OutboxEntry], pump: ShardPump) -> None:
        """By a session, or by HTTP if they have a URL."""
        assert self._srmp is not None
        self._courier.take([entry for entry in entries if not entry.url], pump)
        self._srmp.postman.take([entry for entry in entries if entry.url], pump)

    def _drop_acks(self, entries: Sequence[OutboxEntry]) -> None:
        assert self._srmp is not None
        self._courier.drop([entry for entry in entries if not entry.url])
        self._srmp.postman.drop([entry for entry in entries if entry.url])

    def _on_jam(self, shard: int, jammed: bool) -> None:
        if not self._intake.is_closing:
            what = "is jammed: its senders are not read" if jammed else "keeps up again"
            _log.warning("shard %d %s", shard, what)
        if self._server is not None:
            self._server.look_at_jam()

    def _watch_topics(self, settings: dict[str, Any], own: OwnTopics) -> None:
        self._topics = TopicWatch(
            TopicStates(settings),
            lambda: self._queues.catalogue,
            dict.fromkeys(own_configs(own), MAX_MESSAGE_BYTES),
            self._pumps,
        )
        self._tasks.append(asyncio.create_task(self._topics.run()))
        self._stable = StableOffsets(KafkaOffsets(settings), self._topics.partitions)
        self._tasks.append(asyncio.create_task(self._stable.run()))

    def _start_index(self, settings: dict[str, Any], own: OwnTopics) -> None:
        """A view of the audit topic for `trace`, which asks by the admin port."""
        if self.config.listen.admin is None:
            return
        self._index = AuditIndex(self.config.data / f"{own.audit}.sqlite")
        self._tracer = Tracer(settings, own.audit, self._index)
        self._follower = Follower(
            settings,
            own.audit,
            len(self._pumps),
            self._index,
            busy=lambda: any(pump.pending for pump in self._pumps),
        )
        self._follower.start()

    def _measure(self) -> None:
        """What the metrics look up. Any of it may be asked before we have started."""
        telemetry = self.telemetry
        measure(
            telemetry,
            self.config.data,
            {
                "retained": lambda: self._retained.lag if self._retained else 0,
                "audit": lambda: self._follower.lag if self._follower else 0,
            },
            ready=lambda: self.ready()[0],
            kafka_up=lambda: bool(self._health and self._health.up),
            leading=lambda: self.role != STANDBY,
            jammed=lambda: bool(self._server) and self._intake.jammed,
            http_connections=lambda: self._srmp.connections if self._srmp else 0,
            streams=self._count_streams,
            cloned_guids=lambda: len(self._server.clones()) if self._server else 0,
            pending_messages=self._count_pending,
            pending_bytes=lambda: sum(pump.pending_bytes for pump in self._pumps),
            oldest_pending=self._meter.oldest_s,
            waiting_acks=lambda: sum(len(pump.shard.outbox) for pump in self._pumps),
            waiting_ack_bytes=lambda: sum(pump.shard.outbox.size for pump in self._pumps),
            ack_destinations=lambda: sum(p.shard.outbox.destinations for p in self._pumps),
            stream_receipts=lambda: self._srmp.postman.stream_receipts if self._srmp else 0,
            stream_receipt_bytes=lambda: (
                self._srmp.postman.stream_receipt_bytes if self._srmp else 0
            ),
            dials=lambda: self._courier.dials if self._server else 0,
            known_peers=lambda: self._courier.known_peers if self._server else 0,
            invisible_records=lambda: self._stable.invisible if self._stable else 0,
            hanging_partitions=lambda: len(self._stable.hanging()) if self._stable else 0,
            reject_bytes=lambda: self._reject_budget.used,
            rejects_without_body=lambda: self._reject_budget.omitted,
            made_topics=lambda: self._queues.made_topics,
            stream_bytes=lambda: sum(
                p.shard.streams.size + p.shard.posted.size for p in self._pumps
            ),
            waiting_streams=lambda: self.streams.count,
            waiting_stream_bytes=lambda: self.streams.bytes,
            seen_ids=lambda: sum(len(pump.shard.history) for pump in self._pumps),
            cache_bytes=self._count_cached,
            waiting_forwards=self._count_forwards,
            waiting_forward_bytes=lambda: sum(p.shard.forwards.size for p in self._pumps),
        )
        telemetry.keep_topic(OwnTopics(self.config.topic_prefix).deadletter)
        telemetry.retained = self._depths
        telemetry.head_seconds = lambda queue: (
            self._retained.head_seconds(queue) if self._retained else None
        )

    # -- what the admin port asks -----------------------------------------------------------

    async def reload(self, force: bool) -> dict[str, object]:
        if self._starting:
            raise SinkUnavailable(f"not yet: {self._starting}")
        return await self._queues.reload([pump.shard for pump in self._pumps], force=force)

    def ready(self) -> tuple[bool, list[str]]:
        """Whether at least one queue takes messages; and all that is wrong, also if one does."""
        reasons, notes = ([self._starting], []) if self._starting else self._complaints()
        if self._health is not None and not self._health.up and not self._commits_go_on():
            reasons.append(f"Kafka {self._health.why}")
        if self._leadership is not None and self._leadership.complaint:
            reasons.append(f"lease: {self._leadership.complaint}")
        return not reasons, reasons + notes

    def _commits_go_on(self) -> bool:
        """Whatever a broker that was asked says: what senders wait for is a commit."""
        assert self._health is not None
        return self._server is not None and self._intake.committed_at > self._health.asked_at

    def _complaints(self) -> tuple[list[str], list[str]]:
        """What stops everything, and what stops some senders or queues."""
        reasons, notes = list[str](), self._intake.complaints()
        if len(notes) == len(self._pumps):
            reasons, notes = notes, []
        if self._topics is not None:
            reasons += self._topics.own_complaints()
            (reasons if self._topics.is_all_closed() else notes).extend(self._topics.complaints())
        if self._stable is not None:
            notes += self._stable.complaints()
        return reasons, notes

    @property
    def role(self) -> str:
        """`alone`, or of several: `leader` or `standby`."""
        if not self.config.standby:
            return "alone"
        return "leader" if self._leadership is not None and self._leadership.is_held else STANDBY

    def _depths(self) -> list[tuple[str, int, int]]:
        return self._retained.depths() if self._retained is not None else []

    def _count_streams(self) -> int:
        return sum(len(p.shard.streams) + len(p.shard.posted) for p in self._pumps)

    def _count_cached(self) -> int:
        of_shards = sum(pump.shard.cached_bytes for pump in self._pumps)
        return of_shards + (self._queues.catalogue.cached_bytes if self._pumps else 0)

    def _count_pending(self) -> int:
        return sum(pump.pending for pump in self._pumps)

    def _count_forwards(self) -> int:
        return sum(len(pump.shard.forwards) for pump in self._pumps)

    async def trace(self, kind: str, text: str) -> list[dict[str, Any]]:
        if self._tracer is None:
            raise SinkUnavailable(f"not yet: {self._starting}")
        return await asyncio.to_thread(self._tracer.trace, kind, text)

    def status(self) -> dict[str, object]:
        figures = self._figures()
        return {
            **figures,
            "queues": overview.queues(
                self.mappings.queues,
                figures["topics"],
                {queue: count for queue, count, _ in self._depths()},
            ),
            "sessions": overview.sessions(self._connections()),
            "stream_list": overview.streams(self._pumps),
            "waiting_stream_list": self.streams.waiting(),
            "acks_by_peer": overview.acks(self._pumps),
            "forwards": overview.forwards(
                self._pumps, self._srmp.forwarder.failing if self._srmp else ()
            ),
        }

    def _figures(self) -> dict[str, Any]:
        """What can be told every second: nothing that grows with senders or streams."""
        ready, reasons = self.ready()
        return {
            "ready": ready,
            "reasons": reasons,
            "role": self.role,
            "queue_manager": {"id": str(self.id), "names": list(self.names)},
            "listeners": dict(self.listeners),
            "kafka": {"bootstrap.servers": self._bootstrap, "embedded": self._kafka is not None},
            "kafka_state": self._kafka_state(),
            "topic_prefix": self.config.topic_prefix,
            "shards": len(self._pumps),
            "uptime_s": round(time.time() - self._started, 1),
            "session_count": len(self._connections()),
            "streams": self._count_streams(),
            "waiting_streams": self.streams.count,
            "pending_messages": self._count_pending(),
            "waiting_acks": self._courier.waiting if self._server else 0,
            "waiting_forwards": self._count_forwards(),
            "cloned_guids": self._server.clones() if self._server else {},
            "rejected_hosts": self._srmp.rejected_hosts.rows() if self._srmp else [],
            **self._meter.report(),
            "shard_states": overview.shards(self._pumps),
        }

    def _connections(self) -> set[Connection]:
        return self._server.connections if self._server else set()

    def _kafka_state(self) -> str:
        if self._health is None:
            return "starting"
        return "up" if self._health.up else self._health.why


async def _run_when(opened: asyncio.Task[None], pump: ShardPump) -> None:
    try:
        await opened
        await pump.run()
    finally:
        opened.cancel()


async def _sum_up_the_log() -> None:
    while True:
        await asyncio.sleep(LOG_S)
        say_what_was_left_out()


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(Address.parse(address).host).is_loopback


def _host_names() -> tuple[str, ...]:
    host, full = socket.gethostname(), socket.getfqdn()
    return (host,) if full in (host, "localhost") else (host, full)
