"""qm2qm, rule by rule, on queues in memory: RR-38 to RR-42, digest 2.2"""

import asyncio
from typing import Any

import pytest

from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Fault
from bridge.wire.binary.packet import UserMessage
from bridge.wire.rpc import qm2qm as wire
from bridge.wire.rpc.qmcomm import RemoteOpened
from bridge.wire.rpc.remote_read import ACK, NACK, Port
from bridge.wire.rpc.stub import Request, Result, Stub
from tests.adapters.remote_read.test_qmcomm import opened, opening
from tests.adapters.remote_read.world import World, ask, name, running, turns

RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
EMPTY = 0xC00E001B


class Client:
    """A supporting server; another machine opened the queue."""

    def __init__(self, world: World, number: int, group: int = 2, **how: Any) -> None:
        self.world, self.number, self.how = world, number, how | {"group": group}

    @classmethod
    async def at(cls, world: World, access: int = 1, **how: Any) -> "Client":
        door = await ask(world.qmcomm, opening(name(), access), RemoteOpened, **how)
        client = cls(world, door.queue, **how)
        client.session = (await client.open()).handle
        return client

    session = b""

    async def ask(self, request: Request, kind: type[Stub] = Result) -> Any:
        return await ask(self.world.qm2qm, request, kind, **self.how)

    async def fault(self, request: Request) -> int:
        with pytest.raises(Fault) as caught:
            await self.ask(request)
        return caught.value.status

    async def open(self, queue: int | None = None, context: int | None = None) -> wire.HandleGone:
        queue = self.number if queue is None else queue
        context = queue if context is None else context
        request = wire.OpenQueue(Guid(bytes(16)), 0, 5, queue, context)
        answer = await self.ask(request, wire.HandleGone)
        assert isinstance(answer, wire.HandleGone)
        return answer

    def describe(self, action: int = RECEIVE, **fields: Any) -> wire.ReadDescriptor:
        known: dict[str, Any] = {"remote_queue": self.number, "queue": self.number}
        return wire.ReadDescriptor(action=action, **known | {"request_id": 1} | fields)

    async def start(self, action: int = RECEIVE, **fields: Any) -> wire.ReadStarted2:
        described = wire.ReadDescriptor2(self.describe(action, **fields))
        answer = await self.ask(wire.StartReceive2(described), wire.ReadStarted2)
        assert isinstance(answer, wire.ReadStarted2)
        return answer

    async def look_up(self, action: int, lookup_id: int, **fields: Any) -> wire.ReadStarted2:
        described = wire.ReadDescriptor2(self.describe(action, **fields))
        request = wire.StartReceiveByLookupId(lookup_id, described)
        answer = await self.ask(request, wire.ReadStarted2)
        assert isinstance(answer, wire.ReadStarted2)
        return answer

    def begin(self, action: int = RECEIVE, **fields: Any) -> asyncio.Task[wire.ReadStarted2]:
        return asyncio.create_task(self.start(action, timeout_ms=0xFFFFFFFF, **fields))

    async def end(self, read: bytes, ack: int = ACK) -> wire.HandleGone:
        answer = await self.ask(wire.EndReceive(read, ack), wire.HandleGone)
        assert isinstance(answer, wire.HandleGone)
        return answer

    async def cancel(self, request_id: int, queue: int | None = None) -> int:
        queue = self.number if queue is None else queue
        request = wire.CancelReceive(self.number, queue, request_id)
        return int((await self.ask(request)).status)


def body(answer: wire.ReadStarted2) -> bytes:
    assert answer.status == 0, hex(answer.status)
    described = answer.descriptor.descriptor
    assert described is not None
    assert described.packet is not None
    return UserMessage.unpack(described.packet[0]).properties.body


@running
async def test_receive() -> None:
    """2.2: the bare packet, the arrival time, the low 7 bytes; a handle for the read alone"""
    world = World()
    row = world.put(b"M1", priority=7)
    client = await Client.at(world)
    given = await client.start()
    assert body(given) == b"M1"
    described = given.descriptor.descriptor
    assert described is not None
    assert (described.arrived, described.reserved) == (1_700_000_000, 1)
    assert given.descriptor.sequence_id == row.lookup_id & 0x00FFFFFFFFFFFFFF
    assert await client.end(given.handle) == wire.HandleGone(bytes(20), 0)
    assert world.waiting() == []
    assert await client.fault(wire.EndReceive(given.handle, ACK)) == 0x1C00001A


@running
async def test_the_old_form() -> None:
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    answer = await client.ask(wire.StartReceive(client.describe()), wire.ReadStarted)
    assert answer.status == 0
    assert b"M1" in answer.descriptor.packet[0]
    assert (await client.end(answer.handle, NACK)).status == 0
    assert world.waiting() == [b"M1"]


@running
async def test_peeks_and_failures_have_no_handle() -> None:
    world = World()
    client = await Client.at(world)
    failed = await client.start()
    assert (failed.handle, failed.status) == (bytes(20), EMPTY)
    world.put(b"M1")
    peeked = await client.start(PEEK_CURRENT)
    assert (peeked.handle, body(peeked)) == (bytes(20), b"M1")
    assert (await client.end(bytes(20))).status == 0xC00E0007  # NULL


@running
async def test_parameters_of_start() -> None:
    """2.2, in its order"""
    world = World()
    client = await Client.at(world)
    number = client.number
    nothing = await client.ask(wire.StartReceive2(wire.ReadDescriptor2(None)), wire.ReadStarted2)
    assert nothing == wire.ReadStarted2(bytes(20), wire.ReadDescriptor2(None), 0xC00E0007)
    by_id = wire.StartReceiveByLookupId(1, wire.ReadDescriptor2(None))
    assert (await client.ask(by_id, wire.ReadStarted2)).status == 0xC00E0007
    for fields, status in (
        ({"queue": 0, "remote_queue": 0}, 0xC00E0006),
        ({"queue": number ^ 1}, 0xC00E0006),
        ({"queue": number ^ 1, "remote_queue": number ^ 1}, 0xC00E0006),  # no session
        ({"cursor": 99}, 0xC000000D),
        ({"action": PEEK_NEXT}, 0xC000000D),
        ({"action": PEEK_NEXT, "queue": number ^ 1, "remote_queue": number ^ 1}, 0xC000000D),
        ({"action": 0x40000010}, 0xC00E0006),
        ({"action": 7}, 0xC00E0006),
    ):
        assert (await client.start(**fields)).status == status, fields


@running
async def test_lookups() -> None:
    """2.2 op 10: 0 with *_NEXT is the first, all ones with *_PREV the last"""
    world = World()
    rows = [world.put(b"M%d" % number) for number in (1, 2, 3)]
    client = await Client.at(world)
    assert body(await client.look_up(0x40000011, 0)) == b"M1"
    assert body(await client.look_up(0x40000012, 2**64 - 1)) == b"M3"
    assert body(await client.look_up(0x40000010, rows[1].lookup_id)) == b"M2"
    for action, number, fields in (
        (0x40000010, 0, {}),
        (0x40000012, 0, {}),
        (0x40000010, 1, {"cursor": 1}),
        (0x40000010, 1, {"timeout_ms": 1}),
        (RECEIVE, 1, {}),
        (0x40000010, 1, {"queue": 0, "remote_queue": 0}),
    ):
        assert (await client.look_up(action, number, **fields)).status == 0xC00E0006
    taken = await client.look_up(0x40000021, rows[0].lookup_id)
    assert body(taken) == b"M2"
    assert (await client.end(taken.handle)).status == 0
    assert world.waiting() == [b"M1", b"M3"]


@running
async def test_a_number_is_used_up_by_the_open_that_succeeds() -> None:
    """Decisions at the end of the digest; a refused one leaves it"""
    world = World()
    number = (await opened(world)).queue
    client = Client(world, number)
    for queue, context in ((0, 0), (number, number ^ 1), (number ^ 1, number ^ 1)):
        assert (await client.open(queue, context)).status == 0xC00E0006
    ready = await client.open()
    assert ready.status == 0
    assert ready.handle != bytes(20)
    assert (await client.open()).status == 0xC00E0006
    assert (await Client(world, number, group=3).open()).status == 0xC00E0006


@running
async def test_a_queue_that_is_open_to_peek() -> None:
    """D-5: the spec forgets to check"""
    world = World()
    world.put(b"M1")
    client = await Client.at(world, access=0x20)
    assert (await client.start()).status == 0xC00E0025
    assert (await client.ask(wire.PurgeQueue(client.number))).status == 0xC00E0025
    assert body(await client.start(PEEK_CURRENT)) == b"M1"


@running
async def test_purge_is_for_the_session_alone() -> None:
    """A DWORD alone must not purge; without a session it is a fault (QP <18>)"""
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    stranger = Client(world, client.number, group=3)
    assert await stranger.fault(wire.PurgeQueue(client.number)) == 0xC00E0007
    closing = wire.CloseCursor(client.number, 1)
    assert (await stranger.ask(closing)).status == 0xC00E0007
    assert (await client.ask(closing)).status == 0xC00E0007
    assert await stranger.fault(wire.CloseQueue(client.session)) == 0x1C00001A
    assert (await client.ask(wire.PurgeQueue(client.number))).status == 0
    assert world.waiting() == []


@running
async def test_cancel() -> None:
    """2.2 op 5: the blocked Start ends with 400E03E9, a success, without a message"""
    world = World()
    client = await Client.at(world)
    assert await client.cancel(1) == 0xC00E0007  # nothing waits
    read = client.begin(request_id=1)
    await turns()
    assert await client.cancel(2) == 0xC00E0001
    assert await client.cancel(1, queue=0) == 0xC00E0006
    assert await client.cancel(1, queue=client.number ^ 1) == 0xC00E0006
    assert await Client(world, client.number, group=3).cancel(1) == 0xC00E0007
    assert await client.cancel(1) == 0
    ended = await read
    assert (ended.handle, ended.status) == (bytes(20), 0x400E03E9)
    assert ended.descriptor.descriptor is not None
    assert ended.descriptor.descriptor.packet is None


@running
async def test_cancel_sees_only_what_waits() -> None:
    """RR-39: two lifetimes; a delivered read keeps its message, and its id is free again"""
    world = World()
    for text in (b"M1", b"M2"):
        world.put(text)
    client = await Client.at(world)
    first = await client.start(request_id=1)
    second = await client.start(request_id=1)
    assert (body(first), body(second)) == (b"M1", b"M2")
    assert await client.cancel(1) == 0xC00E0007
    waiting = client.begin(request_id=1)
    await turns()
    assert (await client.start(request_id=1)).status == 0xC00E0006  # in use
    assert (await client.end(first.handle, NACK)).status == 0
    again = await waiting
    assert body(again) == b"M1"
    assert (await client.end(again.handle)).status == 0
    assert (await client.end(second.handle)).status == 0
    assert world.waiting() == []


@running
async def test_cancel_while_the_message_is_on_its_way() -> None:
    world = World()
    world.put(b"M1")
    client, gate = await Client.at(world), asyncio.Event()
    world.owner.read_gate = gate
    read = client.begin()
    await turns()
    assert await client.cancel(1) == 0xC00E0001
    gate.set()
    assert body(await read) == b"M1"


@running
async def test_close() -> None:
    """op 3: waits end with C00E0008, un-acked reads are released, the queue is closed"""
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    taken, waiting = await client.start(request_id=1), client.begin(request_id=2)
    await turns()
    closed = await client.ask(wire.CloseQueue(client.session), wire.HandleGone)
    assert closed == wire.HandleGone(bytes(20), 0)
    assert (await waiting).status == 0xC00E0008
    assert await client.fault(wire.EndReceive(taken.handle, ACK)) == 0x1C00001A
    assert (await client.ask(wire.CloseQueue(bytes(20)), wire.HandleGone)).status == 0xC00E0007
    assert world.waiting() == [b"M1"]
    other = await Client.at(world)
    assert body(await other.start()) == b"M1"


@running
async def test_a_read_goes_with_the_association_that_got_it() -> None:
    """RR-40: even if the session lives elsewhere"""
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    elsewhere = Client(world, client.number, group=3)
    taken = await elsewhere.start()
    assert body(taken) == b"M1"
    assert await client.fault(wire.EndReceive(taken.handle, ACK)) == 0x1C00001A
    world.qm2qm.rundown(3)
    assert body(await client.start()) == b"M1"


@running
async def test_rundown_of_a_session_is_a_close() -> None:
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    await client.start()
    world.qm2qm.rundown(2)
    assert len(world.doors) == len(world.owner.queues.handles) == 0
    assert (await client.start()).status == 0xC00E0006


@running
async def test_a_session_is_its_users() -> None:
    world = World(has_users=True, allow_read=("*",))
    world.put(b"M1")
    client = await Client.at(world, user="ann")
    other = Client(world, client.number, group=3, user="bob")
    assert (await other.start()).status == 0xC00E0006
    same = Client(world, client.number, group=4, user="ann")
    assert body(await same.start()) == b"M1"


@running
async def test_what_is_not_ended_goes_back_with_its_connection() -> None:
    """MS-MQQP 3.1.2 has a timer for waits only. 3.1.6.2: "the connection between the client and
    server is severed before the context handle is closed [...]. The server MUST
    set the dwAck parameter to RR_NACK"."""
    world = World(release_after_s=300.0)
    world.put(b"M1")
    world.put(b"M2")
    client = await Client.at(world)
    taken, waiting = await client.start(), client.begin(request_id=2)
    assert body(await waiting) == b"M2"
    later = client.begin(request_id=3)
    await turns()
    world.owner.tick(1_000_000)
    world.put(b"M3")
    other = await Client.at(world, group=3)
    assert body(await later) == b"M3"
    assert (await other.start()).status == EMPTY
    assert await client.end(taken.handle) == wire.HandleGone(bytes(20), 0)
    world.qm2qm.rundown(2)
    assert body(await other.start()) == b"M2"
    assert body(await other.start()) == b"M3"


@running
async def test_a_wait_has_a_timer() -> None:
    """MS-MQQP 3.1.2, Call Timer: ulTimeout."""
    world = World(release_after_s=300.0)
    client = await Client.at(world)
    waiting = asyncio.create_task(client.start(timeout_ms=5000))
    await turns()
    world.owner.tick(4)
    assert not waiting.done()
    world.owner.tick(6)
    assert (await waiting).status == EMPTY


@running
async def test_a_packet_that_is_too_large_for_the_buffer() -> None:
    """RR-41: 0x420000 bytes; only what came by HTTP can be so large"""
    world = World()
    world.put(bytes(0x420000))
    client = await Client.at(world)
    assert (await client.start()).status == 0xC00E001A
    assert (await client.start(PEEK_CURRENT)).status == 0xC00E001A
    assert len(world.waiting()) == 1


@running
async def test_read_handles_have_a_limit() -> None:
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    world.qm2qm._held._most = world.qm2qm._sessions._most = 0
    assert (await client.start()).status == 0xC00E0027
    number = (await opened(world)).queue
    assert (await client.open(number)).status == 0xC00E0027
    world.qm2qm._held._most = 1
    assert body(await client.start()) == b"M1"


@running
async def test_levels_ports_and_version() -> None:
    """Port queries are never restricted; readers of 5.1 and later use op 9"""
    world = World(minimum=AuthLevel.INTEGRITY)
    client = Client(world, 1)
    for kind, port in ((0, 2103), (1, 2105), (2, 0), (3, 0)):
        assert (await client.ask(wire.GetServerPort(kind), Port)).port == port
    version = await client.ask(wire.GetVersion(), wire.Version)
    assert (version.major, version.minor) == (6, 1)
    assert version.build >= 6531
    assert await client.fault(wire.PurgeQueue(1)) == 5
    strong = await Client.at(world, level=AuthLevel.PRIVACY)
    weak = Client(world, strong.number, level=AuthLevel.INTEGRITY)
    assert await weak.fault(wire.CloseQueue(strong.session)) == 5  # RR-16
    with pytest.raises(Fault):
        await weak.start()


@running
async def test_the_supporting_server_has_a_level_of_its_own() -> None:
    """MS-MQMP 4.2: the application opens the queue (step 5); "the supporting server binds to the
    remote queue manager and utilizes the qm2qm RPC protocol" (step 8)."""
    world = World(minimum=AuthLevel.CONNECT)
    world.put(b"M1")
    application = await opened(world, level=AuthLevel.PRIVACY, user="ann")
    server = Client(world, application.queue, level=AuthLevel.CONNECT, user="HOST$")
    answer = await server.open()
    assert answer.status == 0
    given = await server.start()
    assert body(given) == b"M1"
    assert (await server.end(given.handle, NACK)).status == 0
    assert (await server.ask(wire.PurgeQueue(server.number))).status == 0
    cursor = wire.CloseCursor(server.number, 99)
    assert (await server.ask(cursor)).status == 0xC00E0007
    closing = await server.ask(wire.CloseQueue(answer.handle), wire.HandleGone)
    assert closing == wire.HandleGone(bytes(20), 0)


@running
async def test_a_session_keeps_to_the_level_it_was_opened_at() -> None:
    """Also where the application's own level was lower."""
    world = World(minimum=AuthLevel.CONNECT)
    world.put(b"M1")
    application = await opened(world, level=AuthLevel.CONNECT)
    strong = Client(world, application.queue, level=AuthLevel.PRIVACY)
    session = (await strong.open()).handle
    given = await strong.start()
    weak = Client(world, application.queue, level=AuthLevel.INTEGRITY)
    for request in (
        wire.StartReceive(weak.describe(request_id=2)),
        wire.EndReceive(given.handle, ACK),
        wire.PurgeQueue(weak.number),
        wire.CloseCursor(weak.number, 1),
        wire.CancelReceive(weak.number, weak.number, 1),
        wire.CloseQueue(session),
    ):
        assert await weak.fault(request) == 5
    assert world.waiting() == [b"M1"]
    assert (await strong.end(given.handle)).status == 0


@running
async def test_every_qm2qm_call_reaches_the_minimum_level() -> None:
    """MS-MQQP 5: a server may reject methods invoked by unauthenticated clients."""
    world = World(minimum=AuthLevel.INTEGRITY)
    application = await opened(world, level=AuthLevel.PRIVACY)
    server = Client(world, application.queue, level=AuthLevel.CONNECT)
    assert await server.fault(wire.OpenQueue(Guid(bytes(16)), 0, 5, *[server.number] * 2)) == 5


@running
async def test_kafka_is_away_at_the_end() -> None:
    """The handle stays, so that the message can be ended when Kafka is back."""
    world = World()
    world.put(b"M1")
    client = await Client.at(world)
    taken = await client.start()
    world.owner.is_closed = True
    assert await client.end(taken.handle) == wire.HandleGone(taken.handle, 0xC00E000B)
    assert (await client.ask(wire.PurgeQueue(client.number))).status == 0xC00E000B
    assert (await client.start()).status == 0xC00E000B
    world.owner.is_closed = False
    assert await client.end(taken.handle) == wire.HandleGone(bytes(20), 0)
    assert world.waiting() == []
