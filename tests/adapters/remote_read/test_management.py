"""What every RPC server tells of itself."""

from bridge.adapters.remote_read.management import Management
from bridge.model.guid import Guid
from bridge.wire.rpc import management as wire
from bridge.wire.rpc.endpoint_mapper import InterfaceId
from tests.adapters.remote_read.world import ask, running

ONE = Guid(b"1" * 16)
SERVED = Management(lambda: [(ONE, (1, 0))], "host/bridge01")


@running
async def test_answers() -> None:
    ids = await ask(SERVED, wire.InquireInterfaceIds(), wire.InterfaceIds)
    assert ids == wire.InterfaceIds((InterfaceId(ONE, 1, 0),), 0)
    assert (await ask(SERVED, wire.IsServerListening(), wire.IsListening)).answer == 1


@running
async def test_the_principal() -> None:
    for package, most, text, status in (
        (9, 50, "host/bridge01", 0),
        (10, 14, "host/bridge01", 0),
        (16, 13, "", 122),
        (68, 50, "", 1747),
    ):
        request = wire.InquirePrincipalName(package, most)
        found = await ask(SERVED, request, wire.PrincipalName)
        assert (found.name.text, found.status) == (text, status)
