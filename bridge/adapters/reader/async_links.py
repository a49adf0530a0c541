"""A host to read from, in an event loop: as `sync_links`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from bridge.adapters.net.rpc_client import RpcClient
from bridge.adapters.reader.place import IN_FLIGHT, Place
from bridge.config import Address
from bridge.model.errors import InterfaceRefused, ProtocolError, RpcUnavailable
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.finding import (
    MAPPER,
    OLD_OPENER,
    OLD_READER,
    PORTS,
    READER,
    NotServed,
    port_in,
    question,
)
from bridge.protocol.rpc.reader.old_way import IP_READ, OldWay, Side, is_numbered
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.steps import Answer
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.endpoint_mapper import Mapped
from bridge.wire.rpc.qm2qm import GetVersion
from bridge.wire.rpc.qmcomm import GetServerPort
from bridge.wire.rpc.remote_read import Port
from bridge.wire.rpc.stub import Request


class AsyncLink(Protocol):
    """Takes calls of MS-MQRR."""

    async def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        """Calls in flight together; their answers in the order of the calls. RpcUnavailable."""

    async def close(self) -> None: ...


class AsyncNewLink:
    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc

    async def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        answers: list[Answer] = []
        for start in range(0, len(requests), IN_FLIGHT):
            some = requests[start : start + IN_FLIGHT]
            calls = (_call(self._rpc, request, timeout) for request in some)
            answers += await asyncio.gather(*calls)
        return answers

    async def close(self) -> None:
        await self._rpc.close()


class AsyncOldLink:
    """Two connections: qmcomm opens queues, qm2qm reads them."""

    def __init__(self, opener: RpcClient, reader: RpcClient, *, is_numbered: bool) -> None:
        self._sides = {Side.QMCOMM: opener, Side.QM2QM: reader}
        self._way = OldWay(is_numbered=is_numbered)
        self._most = IN_FLIGHT if is_numbered else 1

    async def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        answers: list[Answer] = []
        for start in range(0, len(requests), self._most):
            some = requests[start : start + self._most]
            answers += await asyncio.gather(*(self._talk(request, timeout) for request in some))
        return answers

    async def _talk(self, request: Request, timeout: float) -> Answer:
        talk = self._way.talk(request)
        try:
            call = next(talk)
            while True:
                call = talk.send(await _call(self._sides[call.side], call.request, timeout))
        except StopIteration as end:
            answer: Answer = end.value
            return answer

    async def close(self) -> None:
        for rpc in self._sides.values():
            await rpc.close()


async def _call(rpc: RpcClient, request: Request, timeout: float) -> Answer:
    try:
        return request.RESPONSE.unpack(await rpc.call(request.OPNUM, request.pack(), timeout))
    except Fault as fault:
        return fault


# -- connecting -----------------------------------------------------------------------------


async def connect(place: Place) -> AsyncLink:
    """The mapper first; without one the ports that Windows uses. MS-MQQP only if the host does not
    serve MS-MQRR, with the same credentials and level. MS-MQRR 2.1, MS-MQQP 2.1"""
    try:
        return AsyncNewLink(await _served(place, READER))
    except (InterfaceRefused, NotServed):
        pass
    try:
        opener = await _served(place, OLD_OPENER)
    except InterfaceRefused as refused:
        raise NotServed from refused
    try:
        return await _old(place, opener)
    except BaseException:
        await opener.close()
        raise


async def _old(place: Place, opener: RpcClient) -> AsyncOldLink:
    port = await _call(opener, GetServerPort(IP_READ), place.connect_s)
    if isinstance(port, Fault):  # of the port, or of who asks
        raise Refused(port.status)
    if not isinstance(port, Port) or not 0 < port.port < 0x10000:
        raise NotServed
    reader = await _open(place, port.port, OLD_READER)
    try:
        version = await _call(reader, GetVersion(), place.connect_s)
        return AsyncOldLink(opener, reader, is_numbered=is_numbered(version))
    except BaseException:
        await reader.close()
        raise


async def _served(place: Place, interface: Syntax) -> RpcClient:
    if place.port is not None:
        return await _open(place, place.port, interface)
    try:
        port = await _mapped(place, interface.uuid)
    except RpcUnavailable:
        first, second = PORTS
        try:
            return await _open(place, first, interface)
        except RpcUnavailable:
            return await _open(place, second, interface)
    return await _open(place, port, interface)


async def _mapped(place: Place, interface: Guid) -> int:
    address = Address(place.host, place.mapper_port)
    async with await RpcClient.connect(address, MAPPER, timeout=place.connect_s) as mapper:
        answer = await _call(mapper, question(interface), place.connect_s)
    if not isinstance(answer, Mapped):
        raise ProtocolError("endpoint-mapper", str(answer))
    return port_in(answer, interface)


async def _open(place: Place, port: int, interface: Syntax) -> RpcClient:
    return await RpcClient.connect(
        Address(place.host, port),
        interface,
        credentials=place.credentials,
        timeout=place.connect_s,
    )
