"""A host to read from, on plain sockets: over MS-MQRR, or over MS-MQQP if that is all it knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from bridge.adapters.net.rpc_socket import RpcSocket
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
from bridge.protocol.rpc.reader.old_way import IP_READ, OldCall, OldWay, Side, Talk, is_numbered
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.steps import Answer
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.endpoint_mapper import Mapped
from bridge.wire.rpc.qm2qm import GetVersion
from bridge.wire.rpc.qmcomm import GetServerPort
from bridge.wire.rpc.remote_read import Port
from bridge.wire.rpc.stub import Request


class Link(Protocol):
    """Takes calls of MS-MQRR."""

    def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        """Calls in flight together; their answers in the order of the calls. RpcUnavailable."""

    def close(self) -> None: ...


class NewLink:
    def __init__(self, rpc: RpcSocket) -> None:
        self._rpc = rpc

    def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        under_way: deque[tuple[Request, int]] = deque()
        answers: list[Answer] = []
        for request in requests:
            if len(under_way) >= IN_FLIGHT:
                answers.append(_finish(self._rpc, *under_way.popleft(), timeout))
            under_way.append((request, _start(self._rpc, request, timeout)))
        while under_way:
            answers.append(_finish(self._rpc, *under_way.popleft(), timeout))
        return answers

    def close(self) -> None:
        self._rpc.close()


class OldLink:
    """Two connections: qmcomm opens queues, qm2qm reads them."""

    def __init__(self, opener: RpcSocket, reader: RpcSocket, *, is_numbered: bool) -> None:
        self._sides = {Side.QMCOMM: opener, Side.QM2QM: reader}
        self._way = OldWay(is_numbered=is_numbered)
        self._most = IN_FLIGHT if is_numbered else 1

    def ask(self, requests: Sequence[Request], timeout: float) -> list[Answer]:
        under_way: deque[tuple[Talk, OldCall, int] | Answer] = deque()
        answers: list[Answer] = []
        for request in requests:
            if len(under_way) >= self._most:
                answers.append(self._finish(under_way.popleft(), timeout))
            under_way.append(self._begin(self._way.talk(request), timeout))
        while under_way:
            answers.append(self._finish(under_way.popleft(), timeout))
        return answers

    def _begin(self, talk: Talk, timeout: float) -> tuple[Talk, OldCall, int] | Answer:
        try:
            call = next(talk)
        except StopIteration as end:  # it needs no call
            answer: Answer = end.value
            return answer
        return talk, call, _start(self._sides[call.side], call.request, timeout)

    def _finish(self, begun: tuple[Talk, OldCall, int] | Answer, timeout: float) -> Answer:
        if not isinstance(begun, tuple):
            return begun
        talk, call, call_id = begun
        while True:
            answer = _finish(self._sides[call.side], call.request, call_id, timeout)
            try:
                call = talk.send(answer)
            except StopIteration as end:
                result: Answer = end.value
                return result
            call_id = _start(self._sides[call.side], call.request, timeout)

    def close(self) -> None:
        for rpc in self._sides.values():
            rpc.close()


def _start(rpc: RpcSocket, request: Request, timeout: float) -> int:
    return rpc.start(request.OPNUM, request.pack(), timeout)


def _finish(rpc: RpcSocket, request: Request, call_id: int, timeout: float) -> Answer:
    try:
        return request.RESPONSE.unpack(rpc.finish(call_id, timeout))
    except Fault as fault:
        return fault


# -- connecting -----------------------------------------------------------------------------


def connect(place: Place) -> Link:
    """The mapper first; without one the ports that Windows uses. MS-MQQP only if the host does not
    serve MS-MQRR, with the same credentials and level. MS-MQRR 2.1, MS-MQQP 2.1"""
    try:
        return NewLink(_served(place, READER))
    except (InterfaceRefused, NotServed):
        pass
    try:
        opener = _served(place, OLD_OPENER)
    except InterfaceRefused as refused:
        raise NotServed from refused
    try:
        return _old(place, opener)
    except BaseException:
        opener.close()
        raise


def _old(place: Place, opener: RpcSocket) -> OldLink:
    port = _call(opener, GetServerPort(IP_READ), place.connect_s)
    if isinstance(port, Fault):  # of the port, or of who asks
        raise Refused(port.status)
    if not isinstance(port, Port) or not 0 < port.port < 0x10000:
        raise NotServed
    reader = _open(place, port.port, OLD_READER)
    try:
        version = _call(reader, GetVersion(), place.connect_s)
        return OldLink(opener, reader, is_numbered=is_numbered(version))
    except BaseException:
        reader.close()
        raise


def _served(place: Place, interface: Syntax) -> RpcSocket:
    if place.port is not None:
        return _open(place, place.port, interface)
    try:
        port = _mapped(place, interface.uuid)
    except RpcUnavailable:
        first, second = PORTS
        try:
            return _open(place, first, interface)
        except RpcUnavailable:
            return _open(place, second, interface)
    return _open(place, port, interface)


def _mapped(place: Place, interface: Guid) -> int:
    address = Address(place.host, place.mapper_port)
    with RpcSocket(address, MAPPER, timeout=place.connect_s) as mapper:
        answer = _call(mapper, question(interface), place.connect_s)
    if not isinstance(answer, Mapped):
        raise ProtocolError("endpoint-mapper", str(answer))
    return port_in(answer, interface)


def _open(place: Place, port: int, interface: Syntax) -> RpcSocket:
    address = Address(place.host, port)
    return RpcSocket(address, interface, credentials=place.credentials, timeout=place.connect_s)


def _call(rpc: RpcSocket, request: Request, timeout: float) -> Answer:
    return _finish(rpc, request, _start(rpc, request, timeout), timeout)
