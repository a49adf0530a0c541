"""The door for old readers. MP-24, MP-53, MP-56 to MP-58"""

from typing import Any

import pytest

from bridge.adapters.remote_read.remote_read import MOST_CURSORS
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Fault
from bridge.wire.rpc import qm2qm
from bridge.wire.rpc import qmcomm as wire
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.remote_read import Port
from tests.adapters.remote_read.world import PLAIN, World, ask, call, name, running


def opening(queue: QueueFormat | None, access: int = 1, share: int = 0) -> wire.OpenRemoteQueue:
    return wire.OpenRemoteQueue(
        name=queue, process=7, access=access, share=share, license=Guid(bytes(16)), mqs=0
    )


async def opened(world: World, queue: QueueFormat | None = None, **how: Any) -> wire.RemoteOpened:
    return await ask(world.qmcomm, opening(queue or name()), wire.RemoteOpened, **how)


async def closed(world: World, handle: bytes, **how: Any) -> bytes:
    request = wire.CloseRemoteQueueContext(handle)
    return (await ask(world.qmcomm, request, wire.RemoteClosed, **how)).handle


@running
async def test_all_three_numbers_are_the_same() -> None:  # MP-56
    answer = await opened(World())
    assert answer.status == 0
    assert answer.context == answer.queue == answer.remote_queue != 0
    assert answer.handle != bytes(20)


@running
async def test_it_returns_its_errors() -> None:
    """Access and share modes as at RR, but as an HRESULT; all outputs are zeros."""
    world = World(has_users=True, allow_read=("ann",))
    for request, user, status in (
        (opening(None), "ann", 0xC00E0006),
        (opening(name(), 4), "ann", 0xC00E0006),
        (opening(name(), 1, 2), "ann", 0xC00E0006),
        (opening(name("private$\\nothing")), "ann", 0xC00E0003),
        (opening(QueueFormat(kind=6)), "ann", 0xC00E0006),
        (opening(name()), "bob", 0xC00E0025),
    ):
        answer = await ask(world.qmcomm, request, wire.RemoteOpened, user=user)
        assert answer == wire.RemoteOpened(bytes(20), 0, 0, 0, status)


@running
async def test_exclusive_opens() -> None:
    """MS-MQMP 3.1.4.2, dwShareMode: "If the queue has already been opened for read access, the
    server MUST return STATUS_SHARING_VIOLATION (0xc0000043). [...] subsequent attempts to open the
    same queue for read access MUST return STATUS_SHARING_VIOLATION (0xc0000043) until the queue has
    been closed." """
    world = World()
    taken = wire.RemoteOpened(bytes(20), 0, 0, 0, 0xC0000043)
    shared = await opened(world)
    assert await ask(world.qmcomm, opening(name(), 1, 1), wire.RemoteOpened) == taken
    await closed(world, shared.handle)
    exclusive = await ask(world.qmcomm, opening(name(), 1, 1), wire.RemoteOpened)
    assert exclusive.status == 0
    for share in (0, 1):
        assert await ask(world.qmcomm, opening(name(), 1, share), wire.RemoteOpened) == taken
    assert len(world.doors) == 1
    await closed(world, exclusive.handle)
    assert (await opened(world)).status == 0


@running
async def test_close_before_and_after_there_is_a_session() -> None:
    """MP-57: the queue is closed only while RemoteReadState is Opened."""
    world = World()
    one = await opened(world)
    assert await closed(world, one.handle) == bytes(20)
    assert len(world.doors) == 0
    two = await opened(world)
    request = qm2qm.OpenQueue(Guid(bytes(16)), 0, two.queue, two.queue, two.queue)
    await ask(world.qm2qm, request, qm2qm.HandleGone, group=2)
    await closed(world, two.handle)
    assert len(world.doors) == 1
    for handle in (two.handle, bytes(20), b"x" * 20):
        assert await closed(world, handle) == bytes(20)  # unknown: just return


@running
async def test_rundown_is_a_close() -> None:  # MP-8
    world = World()
    await opened(world)
    kept = await opened(world, group=2)
    world.qmcomm.rundown(1)
    assert len(world.doors) == 1
    assert world.doors.get(kept.queue) is not None


@running
async def test_cursors() -> None:  # MP-58
    world = World()
    door = await opened(world)

    async def create(number: int, **how: Any) -> wire.RemoteCursorCreated:
        request = wire.CreateRemoteCursor(remote_queue=number)
        return await ask(world.qmcomm, request, wire.RemoteCursorCreated, **how)

    assert await create(door.queue ^ 1) == wire.RemoteCursorCreated(0, 0xC00E0007)
    made = await create(door.queue, group=9)  # by another machine than the one that opened it
    assert made.status == 0
    assert made.cursor > 0x0B
    for _ in range(MOST_CURSORS - 1):
        await create(door.queue)
    assert (await create(door.queue)).status == 0xC00E0027
    commands, _ = world.owner.queues.sweeping.delete(PLAIN)
    world.owner.carry_out(commands)
    other = world.doors.get(door.queue)
    assert other is not None
    other.cursors = 0
    assert (await create(door.queue)).status == 0xC00E005A  # MP-33: this protocol's own word


@running
async def test_ports_and_what_is_obsolete() -> None:
    world = World(minimum=AuthLevel.PRIVACY)
    for kind, port in ((0, 2103), (1, 2105), (2, 0), (3, 0), (2**32 - 1, 0)):  # MP-24
        assert (await ask(world.qmcomm, wire.GetServerPort(kind), Port)).port == port
    with pytest.raises(Fault) as caught:  # MP-53
        await world.qmcomm.call(call(wire.GetServerPort(0), opnum=1))
    assert caught.value.status == 0xC00E0064
    with pytest.raises(Fault) as caught:
        await world.qmcomm.call(call(opening(name())))
    assert caught.value.status == 5
    with pytest.raises(Fault) as caught:
        await world.qmcomm.call(call(wire.GetServerPort(0), opnum=19))
    assert caught.value.status == 0x1C010002


@running
async def test_handles_have_a_limit() -> None:
    world = World()
    world.qmcomm._contexts._most = 1
    await opened(world)
    assert (await opened(world)).status == 0xC00E0027
    assert len(world.doors) == 1
