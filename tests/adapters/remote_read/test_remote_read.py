"""RemoteRead, rule by rule, on queues in memory: RR-14 to RR-37"""

import asyncio
from typing import Any

import pytest
from msgspec.structs import asdict

from bridge.adapters.remote_read.remote_read import MOST_CURSORS
from bridge.core.retained.queues import Access
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Fault
from bridge.wire.binary.replied import read_reply
from bridge.wire.rpc import remote_read as wire
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.stub import Request, Result, Stub
from tests.adapters.remote_read.world import ORDERS, PLAIN, World, ask, call, name, running, turns

RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
EMPTY = 0xC00E001B
UOW = b"u" * 16


class Client:
    """One association group."""

    def __init__(self, world: World, group: int = 1, **how: Any) -> None:
        self.world, self.how = world, how | {"group": group}

    async def ask(self, request: Request, kind: type[Stub] = Result) -> Any:
        return await ask(self.world.remote_read, request, kind, **self.how)

    async def status(self, request: Request) -> int:
        return int((await self.ask(request)).status)

    async def fault(self, request: Request) -> int:
        with pytest.raises(Fault) as caught:
            await self.ask(request)
        return caught.value.status

    async def open(self, queue: QueueFormat | None = None, access: int = 1, share: int = 0) -> Any:
        return (await self.ask(opening(queue, access, share), wire.Opened)).handle

    async def start(self, handle: bytes, action: int = RECEIVE, **options: Any) -> wire.Started:
        answer = await self.ask(starting(handle, action, **options), wire.Started)
        assert isinstance(answer, wire.Started)
        return answer

    def begin(self, handle: bytes, action: int = RECEIVE, **options: Any) -> asyncio.Task[Any]:
        options = {"timeout_ms": 0xFFFFFFFF} | options
        return asyncio.create_task(self.start(handle, action, **options))

    async def end(self, handle: bytes, number: int, ack: int = wire.ACK) -> int:
        return await self.status(wire.EndReceive(handle, ack, number))


def opening(queue: QueueFormat | None, access: int = 1, share: int = 0) -> wire.OpenQueue:
    return wire.OpenQueue(
        queue=queue or name(),
        access=access,
        share=share,
        client=Guid(bytes(16)),
        non_routing=1,
        major=6,
        minor=1,
        build=1,
        workgroup=0,
    )


def starting(handle: bytes, action: int = RECEIVE, **options: Any) -> wire.StartReceive:
    fields: dict[str, Any] = {
        "lookup_id": 0,
        "cursor": 0,
        "timeout_ms": 0,
        "request_id": 1,
        "most_body": 0xFFFFFFFF,
        "most_compound": 0xFFFFFFFF,
    }
    kind = wire.StartTransactionalReceive if "transaction" in options else wire.StartReceive
    return kind(handle=handle, action=action, **fields | options)


def body(started: wire.Started) -> bytes:
    assert started.status == 0, hex(started.status)
    (section,) = started.sections
    return read_reply(section.data).message.body


@running
async def test_the_port_is_for_everybody() -> None:  # RR-14
    client = Client(World(minimum=AuthLevel.PRIVACY))
    assert (await client.ask(wire.GetServerPort(), wire.Port)).port == 2103


@running
async def test_open_fails_by_a_fault() -> None:
    """RR-15: never a response with a NULL handle"""
    client = Client(World(has_users=True, allow_read=("ann",)))
    assert await client.fault(opening(name("private$\\nothing"))) == 0xC00E0003
    assert await client.fault(opening(None)) == 0xC00E0025
    for access in (0, 4, 0x21):  # 4 is for op 11
        assert await client.fault(opening(None, access)) == 0xC00E0006
    assert await client.fault(opening(None, 1, 2)) == 0xC00E0006
    assert await client.fault(opening(QueueFormat(kind=7))) == 0xC00E0006


@running
async def test_the_level_counts_on_every_call() -> None:  # RR-16
    world = World(minimum=AuthLevel.INTEGRITY)
    strong = Client(world, level=AuthLevel.PRIVACY)
    handle = await strong.open()
    weak = Client(world, level=AuthLevel.INTEGRITY)
    assert await weak.open()
    for request in (
        starting(handle),
        wire.PurgeQueue(handle),
        wire.CloseQueue(handle),
        wire.CreateCursor(handle),
        wire.EndReceive(handle, 1, 1),
        wire.CancelReceive(handle, 1),
    ):
        assert await weak.fault(request) == 5
    assert await Client(world).fault(opening(None)) == 5
    assert (await strong.start(handle)).status == EMPTY


@running
async def test_handles_of_others_are_none() -> None:
    """RR-11, RR-5: unknown, foreign or replayed"""
    world = World()
    client, other = Client(world), Client(world, group=2)
    handle = await client.open()
    assert await other.fault(starting(handle)) == 0x1C00001A
    assert await client.fault(wire.CloseQueue(bytes(20))) == 0x1C00001A
    closed = await client.ask(wire.CloseQueue(handle), wire.Closed)
    assert closed == wire.Closed(bytes(20), 0)
    assert await client.fault(wire.CloseQueue(handle)) == 0x1C00001A


@running
async def test_many_starts_wait_on_one_handle() -> None:
    """RR-18, RR-19: keyed by (handle, dwRequestId)"""
    world = World()
    client = Client(world)
    one, other = await client.open(), await client.open()
    reads = [client.begin(one, request_id=1), client.begin(one, request_id=2)]
    reads.append(client.begin(other, request_id=1))
    await turns()
    assert (await client.start(one, request_id=2)).status == 0xC00E0006
    for number in range(3):
        world.put(b"M%d" % number)
    assert [body(await read) for read in reads] == [b"M0", b"M1", b"M2"]  # first come first


@running
async def test_a_received_message_is_invisible() -> None:  # RR-20
    world = World()
    world.put(b"M1")
    client, other = Client(world), Client(world, group=2)
    mine, theirs = await client.open(), await other.open()
    given = await client.start(mine)
    assert body(given) == b"M1"
    assert given.arrived == 1_700_000_000
    for action in (RECEIVE, PEEK_CURRENT):
        assert (await other.start(theirs, action)).status == EMPTY
    lookup = given.sequence_id
    assert (await other.start(theirs, 0x40000010, lookup_id=lookup)).status == 0xC00E0050
    assert (await other.start(theirs, 0x40000020, lookup_id=lookup)).status == 0xC00E0088


@running
async def test_a_start_that_fails_leaves_nothing() -> None:
    """RR-21, D-3: no entry, no lock; all outputs are there, as zeros"""
    client = Client(World())
    handle = await client.open()
    failed = await client.start(handle, request_id=7)
    assert failed == wire.Started(status=EMPTY)
    assert await client.end(handle, 7) == 0xC00E0007
    assert await client.status(wire.CancelReceive(handle, 7)) == 0xC0000225


@running
async def test_cancel() -> None:
    """RR-22, D-6, D-7: waiting peeks too; what is delivered stays; ids of others are not mine"""
    world = World()
    client, other = Client(world), Client(world, group=2)
    handle, theirs = await client.open(), await other.open()
    reads = [client.begin(handle, request_id=1)]
    reads.append(client.begin(handle, PEEK_CURRENT, request_id=2))
    untouched = other.begin(theirs, request_id=1)
    await turns()
    for number in (1, 2):
        assert await client.status(wire.CancelReceive(handle, number)) == 0
    assert [(await read).status for read in reads] == [0xC00E0008] * 2
    world.put(b"M1")
    assert body(await untouched) == b"M1"
    assert await other.status(wire.CancelReceive(theirs, 1)) == 0xC0000225
    assert await other.end(theirs, 1) == 0


@running
async def test_end_twice() -> None:  # RR-23
    world = World()
    for text in (b"M1", b"M2"):
        world.put(text)
    client = Client(world)
    handle = await client.open()
    await client.start(handle, request_id=1)
    await client.start(handle, request_id=2)
    assert await client.end(handle, 1) == 0
    assert await client.end(handle, 1) == 0xC00E0006  # others are pending
    assert await client.end(handle, 2) == 0
    assert await client.end(handle, 2) == 0xC00E0007  # none is
    waiting = client.begin(handle, request_id=3)
    await turns()
    assert await client.end(handle, 3) == 0xC00E0006  # it still waits
    assert not waiting.done()
    waiting.cancel()


@running
async def test_nack_restores_the_place_and_wakes_who_waits() -> None:  # RR-24
    world = World()
    for text in (b"M1", b"M2"):
        world.put(text)
    client = Client(world)
    handle = await client.open()
    first = await client.start(handle, request_id=1)
    await client.start(handle, request_id=2)
    waiting = client.begin(handle, request_id=3)
    await turns()
    assert await client.end(handle, 1, wire.NACK) == 0
    again = await waiting
    assert (again.sequence_id, again.arrived) == (first.sequence_id, first.arrived)
    assert again.sections == first.sections


@running
async def test_ack_after_purge() -> None:
    """RR-25: MQ_OK; the locked one is gone at its End whatever the ack"""
    world = World()
    for text in (b"M1", b"M2", b"M3"):
        world.put(text)
    client = Client(world)
    handle = await client.open()
    await client.start(handle, request_id=1)
    await client.start(handle, request_id=2)
    assert await client.status(wire.PurgeQueue(handle)) == 0
    assert world.waiting() == [b"M1", b"M2"]
    assert await client.end(handle, 1) == 0
    assert await client.end(handle, 2, wire.NACK) == 0
    assert world.waiting() == []


@running
async def test_purge_needs_a_handle_to_receive() -> None:
    """2.1 op 6: STATUS_ACCESS_DENIED (sic); D-5: so does a receive"""
    world = World()
    world.put(b"M1")
    client = Client(world)
    handle = await client.open(access=Access.PEEK)
    assert await client.status(wire.PurgeQueue(handle)) == 0xC0000022
    assert (await client.start(handle)).status == 0xC00E0025
    assert body(await client.start(handle, PEEK_CURRENT)) == b"M1"


@running
async def test_what_nobody_ends_goes_back() -> None:  # RR-26
    world = World(release_after_s=300.0)
    world.put(b"M1")
    client = Client(world)
    handle = await client.open()
    await client.start(handle, request_id=1)
    world.owner.tick(299)
    assert (await client.start(handle, PEEK_CURRENT, request_id=2)).status == EMPTY
    world.owner.tick(301)
    assert body(await client.start(handle, PEEK_CURRENT, request_id=2)) == b"M1"
    assert await client.end(handle, 1) == 0xC00E0007


@running
async def test_a_wait_that_is_over() -> None:
    world = World()
    client = Client(world)
    handle = await client.open()
    read = client.begin(handle, timeout_ms=60_000)
    await turns()
    world.owner.tick(61)
    assert (await read).status == EMPTY


@running
async def test_close_gives_back_and_ends_waits() -> None:  # RR-27, D-1
    world = World()
    world.put(b"M1")
    client = Client(world)
    handle, other = await client.open(), await client.open()
    await client.start(handle, request_id=1)
    waiting = client.begin(handle, request_id=2)
    await turns()
    await client.ask(wire.CloseQueue(handle), wire.Closed)
    assert (await waiting).status == 0xC00E0008
    assert body(await client.start(other)) == b"M1"


@running
async def test_rundown() -> None:
    """RR-28: all handles of the group, and of no other"""
    world = World()
    for text in (b"M1", b"M2"):
        world.put(text)
    client, other = Client(world), Client(world, group=2)
    mine, theirs = await client.open(), await other.open()
    await client.start(mine)
    await other.start(theirs)
    world.remote_read.rundown(1)
    world.remote_read.rundown(77)
    assert await client.fault(starting(mine)) == 0x1C00001A
    assert body(await other.start(theirs, PEEK_CURRENT, request_id=2)) == b"M1"
    assert await other.end(theirs, 1) == 0


@running
async def test_sequence_ids_are_the_low_bits() -> None:
    """RR-31: and lookups take them with any top byte"""
    world = World()
    row = world.put(b"M1", priority=7)
    client = Client(world)
    handle = await client.open()
    given = await client.start(handle, PEEK_CURRENT)
    assert given.sequence_id == row.lookup_id & 0x00FFFFFFFFFFFFFF
    for top in range(8):
        found = await client.start(handle, 0x40000010, lookup_id=top << 56 | given.sequence_id)
        assert body(found) == b"M1"


@running
async def test_sections() -> None:
    """RR-32, RR-33: compound sizes do not matter for what came in a packet"""
    world = World()
    world.put(b"a body")
    client = Client(world)
    handle = await client.open()
    whole = await client.start(handle, PEEK_CURRENT, most_body=6, most_compound=0)
    assert [section.kind for section in whole.sections] == [0]
    for most in range(6):
        cut = await client.start(handle, PEEK_CURRENT, most_body=most)
        assert [section.kind for section in cut.sections] == [1, 2]
        first, second = cut.sections
        found = read_reply(first.data, second.data, is_cut=True)
        assert (found.message.body, found.size) == (b"a body"[:most], 6)
        assert first.alloc == len(whole.sections[0].data) - second.size


@running
async def test_replies_do_not_change_what_is_stored() -> None:  # RR-34
    world = World()
    world.put(b"M1")
    before = dict(world.owner.records)
    client = Client(world)
    handle = await client.open()
    one = await client.start(handle, PEEK_CURRENT)
    assert await client.start(handle, PEEK_CURRENT) == one
    assert world.owner.records == before


@running
async def test_transactions() -> None:
    """RR-35, RR-36, digest 2.4; D-8 to D-10"""
    world = World()
    row = world.put(b"M1", ORDERS)
    client = Client(world)
    handle = await client.open(name(ORDERS))
    enlist = wire.EnlistRemoteTransaction(UOW, b"token", name(ORDERS))
    assert await client.status(enlist) == 0xC00E004C
    start: dict[str, Any] = {"transaction": UOW}
    assert (await client.start(handle, **start)).status == 0xC00E0051
    assert (await client.start(handle, PEEK_CURRENT, **start)).status == 0xC00E0050
    plain = await client.open()
    assert (await client.start(plain, **start)).status == 0xC00E0050
    for usual, status in ((1, 0xC00E0006), (0xC004, 0xC00E0050), (0, 0xC00E0050)):
        request = wire.SetUserAcknowledgementClass(handle, row.lookup_id, usual)
        assert await client.status(request) == status
    unknown = wire.SetUserAcknowledgementClass(handle, 999, 0xC004)
    assert await client.status(unknown) == 0xC00E0088
    given = await client.start(handle, transaction=bytes(16), request_id=4)
    assert body(given) == b"M1"
    assert await client.status(wire.EndTransactionalReceive(handle, wire.ACK, 4)) == 0
    assert world.waiting(ORDERS) == []


@running
async def test_a_queue_that_is_deleted() -> None:
    """RR-37: waits end, later calls C00E004B, close still succeeds"""
    world = World()
    client = Client(world)
    handle = await client.open()
    waiting = client.begin(handle)
    await turns()
    commands, _ = world.owner.queues.sweeping.delete(PLAIN)
    world.owner.carry_out(commands)
    assert (await waiting).status == 0xC00E004B
    assert (await client.start(handle)).status == 0xC00E004B
    assert await client.end(handle, 1) == 0xC00E004B
    assert await client.status(wire.PurgeQueue(handle)) == 0xC00E004B
    assert (await client.ask(wire.CreateCursor(handle), wire.CursorCreated)).status == 0xC00E004B
    assert (await client.ask(wire.CloseQueue(handle), wire.Closed)).status == 0


@running
async def test_cursors() -> None:
    """2.1 op 4, 5: a cursor is found only under the handle that made it"""
    world = World()
    client = Client(world)
    handle, other = await client.open(), await client.open()
    made = await client.ask(wire.CreateCursor(handle), wire.CursorCreated)
    assert made.status == 0
    assert made.cursor not in (0, 0x0B)  # MP-51
    assert (await client.start(other, cursor=made.cursor)).status == 0xC0000008
    assert await client.status(wire.CloseCursor(other, made.cursor)) == 0xC0000008
    waiting = client.begin(handle, cursor=made.cursor)
    await turns()
    assert await client.status(wire.CloseCursor(handle, made.cursor)) == 0
    assert (await waiting).status == 0xC00E0008
    assert await client.status(wire.CloseCursor(handle, made.cursor)) == 0xC0000008


@running
async def test_cursors_have_a_limit() -> None:
    client = Client(World())
    handle = await client.open()
    for _ in range(MOST_CURSORS):
        await client.ask(wire.CreateCursor(handle), wire.CursorCreated)
    made = await client.ask(wire.CreateCursor(handle), wire.CursorCreated)
    assert made == wire.CursorCreated(0, 0xC00E0027)


async def open_for_move(client: Client, queue: QueueFormat) -> wire.OpenedForMove:
    fields = {
        field: getattr(opening(queue, 4), field) for field in wire.OpenQueue.__struct_fields__
    }
    answer = await client.ask(wire.OpenQueueForMove(**fields), wire.OpenedForMove)
    assert isinstance(answer, wire.OpenedForMove)
    return answer


@running
async def test_moves() -> None:
    """2.1 op 10, 11; D-13, D-14"""
    world = World()
    row = world.put(b"M1")
    client = Client(world)
    handle, peeking = await client.open(), await client.open(access=Access.PEEK)
    sub = name(f"{PLAIN};retry", 5, kind=8)
    target = await open_for_move(client, sub)
    foreign = await open_for_move(client, name(ORDERS))
    number = row.lookup_id

    async def move(source: bytes, to: int, lookup: int = number, uow: bytes = bytes(16)) -> int:
        return await client.status(wire.MoveMessage(source, to, lookup, uow))

    for to in (0, 5):
        assert await move(handle, to) == 0xC00E0007
    assert await move(handle, foreign.move_context) == 0xC000000D
    assert await move(peeking, target.move_context) == 0xC00E0025
    assert await move(handle, target.move_context, number + 1) == 0xC00E0088
    assert await move(handle, target.move_context, number, UOW) == 0xC00E0050
    await client.start(handle, request_id=1)
    assert await move(handle, target.move_context) == 0xC00E009C
    await client.end(handle, 1, wire.NACK)
    assert await move(handle, target.move_context) == 0
    assert (world.waiting(), world.waiting(f"{PLAIN};retry")) == ([], [b"M1"])
    await client.ask(wire.CloseQueue(target.handle), wire.Closed)
    assert await move(handle, target.move_context) == 0xC00E0007  # it dies with its handle
    for access, share in ((1, 0), (4, 1)):
        request = wire.OpenQueueForMove(**asdict(opening(sub, access, share)))
        assert await client.fault(request) == 0xC00E0006


@running
async def test_the_target_of_a_move_is_open_elsewhere() -> None:
    """MS-MQRR 3.1.4.10: find the descriptor "by comparing the ullContextTo parameter with the
    Handle ADM attribute for all OpenQueueDescriptor ADM element instances maintained by the local
    QueueManager": it is a number, not a context handle of the caller's association."""
    world = World()
    numbers = [world.put(body).lookup_id for body in (b"M1", b"M2", b"M3")]
    client, other = Client(world), Client(world, group=2)
    handle, sub = await client.open(), name(f"{PLAIN};retry", 5, kind=8)
    target, second = await open_for_move(other, sub), await open_for_move(other, sub)
    assert target.move_context != second.move_context

    async def move(lookup: int, to: int) -> int:
        return await client.status(wire.MoveMessage(handle, to, lookup, bytes(16)))

    assert await move(numbers[0], target.move_context) == 0
    assert world.waiting(f"{PLAIN};retry") == [b"M1"]
    # The handle itself stays the other association's.
    assert await client.fault(wire.CloseQueue(target.handle)) == 0x1C00001A
    await other.ask(wire.CloseQueue(target.handle), wire.Closed)
    assert await move(numbers[1], target.move_context) == 0xC00E0007
    assert await move(numbers[1], second.move_context) == 0
    world.remote_read.rundown(2)
    assert await move(numbers[2], second.move_context) == 0xC00E0007
    assert world.waiting() == [b"M3"]
    assert not world.remote_read._targets


@running
async def test_an_ack_out_of_range() -> None:
    client = Client(World())
    handle = await client.open()
    raw = handle + (3).to_bytes(4, "little") + bytes(4)
    with pytest.raises(Fault) as caught:
        await client.world.remote_read.call(call(wire.EndReceive(handle, 1, 1), stub=raw))
    assert caught.value.status == 0x6F7


@running
async def test_opens_have_a_limit() -> None:
    world = World()
    world.remote_read._contexts._most = 2
    client = Client(world)
    for _ in range(2):
        await client.open()
    assert await client.fault(opening(None)) == 0xC00E0027
    assert len(world.owner.queues.handles) == 2
