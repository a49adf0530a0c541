"""The demo's senders: they hang up when they were told all there is to tell."""

from __future__ import annotations

import time

import msgspec
import pytest
from msgspec.structs import replace

from bridge.adapters.demo import senders as module
from bridge.adapters.demo.script import Part, Stage, acts
from bridge.adapters.demo.senders import Listener, Told, perform, window_for
from bridge.adapters.net import binary_client
from bridge.adapters.net.binary_client import PeerUnavailable
from bridge.config import Address
from bridge.core import receipt_timers
from bridge.core.audit import AuditEntry
from bridge.model.guid import Guid
from bridge.model.message import Message
from tests.adapters.net.memory_server import peer, run, world
from tests.adapters.test_srmp_service import World as HttpWorld
from tests.adapters.test_srmp_service import config, play

STAGE = Stage(
    transactional="private$\\orders", express="private$\\plain", recoverable="private$\\plain"
)


def part(sender: str, count: int = 6, answers: int | None = 0) -> Part:
    """The one who sends; the server of these tests brings no answers of its own."""
    (found, *_) = [
        p for act in acts(STAGE, count, int(time.time())) for p in act if p.sender == sender
    ]
    messages = tuple(without_final_ack(message) for message in found.messages)
    answers = found.answers if answers is None else answers
    return replace(found, messages=messages, answers=answers)


def without_final_ack(message: Message) -> Message:
    tx = message.transaction
    return replace(message, transaction=tx and replace(tx, final_ack=False))


@pytest.mark.parametrize("count", [*range(1, 70), 97, 128, 640, 997, 1000])
def test_the_last_ack_comes_at_once(count: int) -> None:  # QB-45
    window = window_for(count)
    assert 2 <= window <= 64
    assert count % (window // 2) == 0


@pytest.mark.parametrize("count", [1, 6, 40])
def test_express_messages_are_acknowledged(count: int) -> None:  # QB-41, and not after 10 s
    async def test() -> None:
        async with world() as made:
            told = await perform(part("sensor", count), Address(made.host, made.port))
            assert told == Told(sent=count, session_acked=count, order_acked=0)
            assert len(made.bodies) == count

    run(test())


def test_recoverable_and_transactional_ones() -> None:  # QB-42, QB-85
    async def test() -> None:
        async with world() as made:
            address = Address(made.host, made.port)
            assert await perform(part("billing"), address) == Told(
                sent=6, session_acked=6, order_acked=0
            )
            assert await perform(part("shop"), address) == Told(
                sent=6, session_acked=6, order_acked=6
            )

    run(test())


def test_an_answer_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:  # DM-13
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    async def test() -> None:
        async with world() as made:
            told = await perform(part("billing", answers=None), Address(made.host, made.port))
            assert (told.session_acked, told.admin_acks) == (6, ())

    run(test())


def test_nobody_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE_S", 0.3)
    monkeypatch.setattr(binary_client, "RETRY_S", 0.02)

    async def test() -> None:
        async def hang_up(_: object, __: object) -> None:
            pass

        async with peer(hang_up) as port:
            with pytest.raises(PeerUnavailable, match="6 messages are not acknowledged"):
                await perform(part("billing"), Address("127.0.0.1", port))

    run(test())


def test_a_listener_waits_for_its_answers() -> None:
    listener = Listener(local=Guid.random(), sequence_timestamp=1, ordinals=lambda: 1)
    assert (listener.waiting, listener.unacknowledged) == (0, 0)
    listener.answers = 2
    ack = Message(source=Guid.random(), ordinal=1, destination="q", message_class=2)
    note = Message(source=Guid.random(), ordinal=2, destination="q")
    listener.told += [ack, note]
    assert (listener.waiting, listener.unacknowledged) == (1, 0)
    listener.told.append(ack)
    assert listener.waiting == 0
    assert not listener.all_handed_over
    assert listener.admin_acks == [2, 2]


# -- over HTTP --------------------------------------------------------------------------------


def web(address: str, stage: Stage | None = None) -> list[Part]:
    stage = stage or Stage(transactional="private$\\orders", recoverable="private$\\q")
    first, *_ = acts(stage, 3, int(time.time()), address)
    return [part for part in first if part.transport == "http"]


def told_over_http(
    *stages: Stage, receipt_targets: tuple[str, ...]
) -> tuple[list[Told], HttpWorld]:
    told: list[Told] = []

    async def scene(_: HttpWorld, ready: dict[str, str]) -> None:
        nobody = Address("127.0.0.1", 1)
        for stage in stages or (None,):
            for part in web(ready["srmp"], stage):
                told.append(await perform(part, nobody))

    made = play(scene, config(srmp={"receipt_targets": receipt_targets}))
    return told, made


def test_a_stream_and_single_messages(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-35, SR-42
    monkeypatch.setattr(receipt_timers, "DELAY_S", 0.0)
    told, made = told_over_http(receipt_targets=("loopback",))
    assert told == [
        Told(sent=3, session_acked=3, order_acked=3),
        Told(sent=3, session_acked=3, order_acked=0, admin_acks=(2, 2, 2)),
    ]
    assert [record.value for record in made.log.records][:2] == [
        *(b'{"order": 1, "coffee": 1}', b'{"order": 2, "coffee": 2}')
    ]
    decode = msgspec.json.Decoder(list[AuditEntry]).decode
    entries = [entry for data in made.log.audit for entry in decode(data)]
    assert [(entry.transport, entry.label) for entry in entries] == [
        *(("http", f"web order {n}") for n in (1, 2, 3)),
        *(("http", f"web invoice {n}") for n in (1, 2, 3)),
    ]


def test_receipts_that_may_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-49
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    told, _ = told_over_http(receipt_targets=("elsewhere",))
    assert told == [
        Told(sent=3, session_acked=3, order_acked=0),
        Told(sent=3, session_acked=3, order_acked=0),
    ]


def test_a_queue_that_is_not_there() -> None:  # SR-16: 400
    stage = Stage(recoverable="private$\\no")
    told, made = told_over_http(stage, receipt_targets=("loopback",))
    assert told == [Told(sent=3, session_acked=0, order_acked=0)]
    assert made.log.records == []
