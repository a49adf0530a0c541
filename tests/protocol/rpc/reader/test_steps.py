from __future__ import annotations

import pytest

from bridge.model.errors import ProtocolError
from bridge.model.guid import NULL_GUID
from bridge.model.message import Message
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.packets import Read
from bridge.protocol.rpc.reader.results import LOST_HANDLE, Refused
from bridge.protocol.rpc.reader.steps import Answer, Ask, Batch, ConnectionLost, Flow, ask, call
from bridge.wire.rpc.remote_read import CreateCursor, CursorCreated, GetServerPort
from bridge.wire.rpc.stub import Result

HANDLE = bytes(20)
MESSAGE = Message(source=NULL_GUID, ordinal=1, destination="")


def answered(flow: Flow[object], *answers: Answer) -> object:
    assert isinstance(next(flow), Ask)
    with pytest.raises(StopIteration) as end:
        flow.send(answers)
    return end.value.value


def test_all_answers() -> None:
    answers = (Result(0), Result(1))
    assert answered(ask(GetServerPort(), GetServerPort()), *answers) == answers


def test_nothing_to_ask() -> None:
    with pytest.raises(StopIteration) as end:
        next(ask())
    assert end.value.value == ()


def test_one_call() -> None:
    made = CursorCreated(7, 0)
    assert answered(call(CreateCursor(HANDLE), CursorCreated), made) is made


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (CursorCreated(0, 0xC00E0007), Refused),
        (Fault(0xC00E0003), Refused),
        (Fault(LOST_HANDLE), ConnectionLost),  # the server has run down what we had
        (Result(0), ProtocolError),
    ],
)
def test_failures(answer: Answer, error: type[Exception]) -> None:
    flow = call(CreateCursor(HANDLE), CursorCreated)
    next(flow)
    with pytest.raises(error):
        flow.send((answer,))


def test_a_batch() -> None:
    one, two = (Read(message=MESSAGE, request_id=number) for number in (1, 2))
    batch = Batch((one, two))
    assert not batch.is_last
    batch.confirm([])  # none of them is not all of them
    assert not batch.is_confirmed(one)
    batch.confirm([two])
    assert (batch.is_confirmed(one), batch.is_confirmed(two)) == (False, True)
    batch.confirm()
    assert batch.is_confirmed(one)
    batch.stop()
    assert batch.is_last
