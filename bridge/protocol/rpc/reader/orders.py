"""What is done to a queue or a message without reading it: purge, move, look whether it opens."""

from __future__ import annotations

from collections.abc import Callable

from bridge.model.errors import ProtocolError
from bridge.protocol.rpc.reader.names import Target
from bridge.protocol.rpc.reader.opening import (
    LOOKUP_PEEK_CURRENT,
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    Client,
    close_queue,
    open_for_move,
    open_queue,
)
from bridge.protocol.rpc.reader.packets import Read, read_of
from bridge.protocol.rpc.reader.results import MESSAGE_NOT_FOUND, Refused, status_of
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import Answer, Flow, ask, call
from bridge.wire.rpc.remote_read import MoveMessage, PurgeQueue, Started
from bridge.wire.rpc.stub import Request, Result


def purge(target: Target, client: Client) -> Flow[None]:
    """MS-MQRR 4.1"""
    queue = yield from open_queue(target, RECEIVE_ACCESS, client)
    yield from call(PurgeQueue(queue.handle), Result)
    yield from close_queue(queue)


def move(
    source: Target, to: Target, lookup_id: int, spelling: Spelling, client: Client
) -> Flow[None]:
    """Between a queue and its subqueues. MS-MQRR 3.1.4.10"""
    queue = yield from open_queue(source, RECEIVE_ACCESS, client)
    context, other = yield from open_for_move(to, client)

    answer = yield from _spelt(
        lambda number: MoveMessage(queue.handle, context, number), lookup_id, spelling
    )
    yield from close_queue(other)
    yield from close_queue(queue)
    if status := status_of(answer):
        raise Refused(status)


def peek_at(target: Target, lookup_id: int, spelling: Spelling, client: Client) -> Flow[Read]:
    """One message, by its lookup id; Refused if it is not there."""
    queue = yield from open_queue(target, PEEK_ACCESS, client)
    answer = yield from _spelt(
        lambda number: queue.start(LOOKUP_PEEK_CURRENT, lookup_id=number), lookup_id, spelling
    )
    yield from close_queue(queue)
    if status := status_of(answer):
        raise Refused(status)
    if not isinstance(answer, Started):
        raise ProtocolError("bad-reply", type(answer).__name__)
    return read_of(answer, 0, target.manager)


def _spelt(make: Callable[[int], Request], lookup_id: int, spelling: Spelling) -> Flow[Answer]:
    """As the server wants lookup ids to be written; that shows when it finds one. RR-55"""
    (answer,) = yield from ask(make(spelling.of(lookup_id)))
    other = spelling.other.of(lookup_id)
    if status_of(answer) != MESSAGE_NOT_FOUND or other == spelling.of(lookup_id):
        return answer
    (again,) = yield from ask(make(other))
    if status_of(again) == 0:
        spelling.turn()
    return again if status_of(again) != MESSAGE_NOT_FOUND else answer
