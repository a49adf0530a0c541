"""RR-2: which interface is at which port."""

import pytest

from bridge.adapters.remote_read.endpoint_mapper import Endpoint, EndpointMapper
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Fault
from bridge.wire.rpc import endpoint_mapper as wire
from bridge.wire.rpc.ndr import NULL_HANDLE
from bridge.wire.rpc.tower import Tower
from tests.adapters.remote_read.world import ask, call, running

ONE, TWO = Guid(b"1" * 16), Guid(b"2" * 16)
MAPPER = EndpointMapper(
    lambda: [Endpoint(ONE, (1, 0), 2103, "first"), Endpoint(TWO, (1, 2), 2105, "second")]
)


async def mapped(uuid: Guid, version: tuple[int, int] = (1, 0)) -> wire.Mapped:
    return await ask(MAPPER, wire.Map(tower=Tower(uuid, version).pack()), wire.Mapped)


@running
async def test_map() -> None:
    """The tower has the address that the client has reached us by."""
    found = await mapped(ONE)
    assert found.towers.items == (Tower(ONE, (1, 0), 2103, "10.9.9.9").pack(),)
    assert (found.status, found.handle) == (0, NULL_HANDLE)
    for version in ((1, 0), (1, 2)):
        assert len((await mapped(TWO, version)).towers.items) == 1


@running
async def test_nothing_found() -> None:
    """num_towers 0, status 16C9A0D6"""
    for uuid, version in ((Guid(b"3" * 16), (1, 0)), (TWO, (1, 3)), (ONE, (2, 0))):
        found = await mapped(uuid, version)
        assert (found.towers.items, found.status) == ((), 0x16C9A0D6)
    other = wire.Map(tower=Tower(ONE, (1, 0)).pack().replace(b"\1\0\7", b"\1\0\x0f"))  # a pipe
    assert (await ask(MAPPER, other, wire.Mapped)).status == 0x16C9A0D6
    assert (await ask(MAPPER, wire.Map(), wire.Mapped)).status == 0x16C9A0D6


@running
async def test_a_broken_tower() -> None:
    with pytest.raises(Fault) as caught:
        await MAPPER.call(call(wire.Map(tower=b"\5\0\1")))
    assert caught.value.status == 0x6F7


async def looked_up(**fields: object) -> list[str]:
    request = wire.Lookup(**fields)  # type: ignore[arg-type]
    found = await ask(MAPPER, request, wire.LookedUp)
    return [entry.annotation for entry in found.entries.items]


@running
async def test_lookup() -> None:
    assert await looked_up() == ["first", "second"]
    two = wire.InterfaceId(TWO, 1, 1)
    assert await looked_up(inquiry=1, interface=two) == ["second"]
    for option, found in ((1, ["second"]), (2, ["second"]), (3, []), (4, ["second"]), (5, [])):
        assert await looked_up(inquiry=1, interface=two, version_option=option) == found
    assert await looked_up(inquiry=2, object=ONE) == []
    assert await looked_up(inquiry=1, interface=wire.InterfaceId(Guid(16), 1, 0)) == []


@running
async def test_a_list_that_goes_on() -> None:
    first = await ask(MAPPER, wire.Lookup(most=1), wire.LookedUp)
    assert [entry.annotation for entry in first.entries.items] == ["first"]
    assert first.handle != NULL_HANDLE
    second = await ask(MAPPER, wire.Lookup(most=1, handle=first.handle), wire.LookedUp)
    assert [entry.annotation for entry in second.entries.items] == ["second"]
    assert second.handle == NULL_HANDLE
    nothing = await ask(MAPPER, wire.Lookup(most=0), wire.LookedUp)
    assert (nothing.entries.items, nothing.handle) == ((), NULL_HANDLE)
    freed = await ask(MAPPER, wire.FreeHandle(first.handle), wire.HandleFreed)
    assert freed == wire.HandleFreed(NULL_HANDLE, 0)
    with pytest.raises(Fault) as caught:
        await MAPPER.call(call(wire.Lookup(handle=b"x" * 20)))
    assert caught.value.status == 0x1C00001A
