"""Who sends what in the demo."""

import pytest

from bridge.adapters.demo.script import TYPO, Part, Stage, acts
from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath
from bridge.model.errors import ConfigError
from bridge.model.message import EXPRESS, RECOVERABLE

NOW = 1_700_000_000
STAGE = Stage(transactional="private$\\t", express="private$\\e", recoverable="private$\\r")


def mappings(**queues: bool) -> Mappings:
    """Name -> transactional; `any` is a wildcard."""
    return Mappings(
        queues=tuple(
            QueueMapping(
                queue=QueuePath.parse(f"private$\\{name.replace('any', '*')}"), transactional=tx
            )
            for name, tx in queues.items()
        )
    )


def parts(stage: Stage = STAGE, count: int = 3) -> list[Part]:
    return [part for act in acts(stage, count, NOW) for part in act]


def test_every_delivery_mode_and_every_mishap() -> None:
    assert [[part.sender for part in act] for act in acts(STAGE, 3, NOW)] == [
        ["shop", "sensor", "billing"],
        ["careless", "sleeper", "typo"],
        ["billing"],
    ]
    assert {part.delivery for part in parts()} == {"express", "recoverable", "transactional"}


def test_what_a_part_says_is_what_it_sends() -> None:
    for part in parts():
        for message in part.messages:
            assert message.destination == f"DIRECT=TCP:127.0.0.1\\{part.queue}"
            assert message.delivery == (EXPRESS if part.delivery == "express" else RECOVERABLE)
            assert (message.transaction is not None) == (part.delivery == "transactional")
            assert bool(message.ack) == bool(message.admin_queue)
        if part.answers:
            assert sum(bool(message.ack) for message in part.messages) == part.answers


@pytest.mark.parametrize("count", [1, 2, 5])
def test_how_many(count: int) -> None:
    shop, sensor, billing, *others = parts(count=count)
    assert [len(part.messages) for part in (shop, sensor, billing)] == [count] * 3
    assert all(len(part.messages) == 1 for part in others)
    first = [m.transaction.first for m in shop.messages if m.transaction]
    last = [m.transaction.last for m in shop.messages if m.transaction]
    assert first == [n % 2 == 0 for n in range(count)]
    assert last == [n % 2 == 1 or n == count - 1 for n in range(count)]


def test_each_sender_is_a_queue_manager_of_its_own() -> None:
    *single, again = parts()
    assert len({part.messages[0].source for part in single}) == len(single)
    billing = next(part for part in single if part.sender == "billing")
    assert again.messages == billing.messages[:1]  # the same id again
    assert again.answers == 0  # QB-71
    sleeper = next(part for part in single if part.sender == "sleeper")
    (late,) = sleeper.messages
    assert NOW - late.sent_time > late.time_to_reach_queue  # QB-100


def web(stage: Stage = STAGE, count: int = 3) -> list[Part]:
    first, *_ = acts(stage, count, NOW, "127.0.0.1:8080")
    return [part for part in first if part.sender == "web"]


def test_one_sends_over_http() -> None:
    stream, single = web()
    assert [part.transport for part in (stream, single)] == ["http", "http"]
    for part in (stream, single):
        for message in part.messages:
            path = part.queue.replace("\\", "/")
            assert message.destination == f"DIRECT=http://127.0.0.1:8080/msmq/{path}"
            assert message.delivery == RECOVERABLE
            assert (message.transaction is not None) == (part.delivery == "transactional")
    ids = [message.id for part in (stream, single) for message in part.messages]
    assert len(set(ids)) == 6
    assert len({message.source for message in (*stream.messages, *single.messages)}) == 1
    assert all(part.transport == "binary" for part in parts())  # without a listener nobody does


def test_http_takes_its_time() -> None:  # SR-70
    assert [len(part.messages) for part in web(count=1000)] == [20, 20]
    assert [part.answers for part in web(count=1000)] == [0, 20]


def test_what_http_can_send_to() -> None:
    assert [part.delivery for part in web(Stage(transactional="t"))] == ["transactional"]
    assert [part.delivery for part in web(Stage(express="p", recoverable="p"))] == ["recoverable"]


def test_a_stage_without_a_queue_of_some_kind() -> None:
    assert [part.sender for part in parts(Stage(transactional="t"))] == ["shop", "careless", "typo"]
    plain = parts(Stage(express="p", recoverable="p"))
    assert [part.sender for part in plain] == ["sensor", "billing", "sleeper", "typo", "billing"]
    assert next(part for part in plain if part.sender == "typo").queue == TYPO


def test_the_stage_of_a_configuration() -> None:
    assert Stage.of(mappings(a=False, b=True, c=False, d=True)) == Stage(
        transactional="private$\\b", express="private$\\a", recoverable="private$\\c"
    )
    assert Stage.of(mappings(any=True, a=False)) == Stage(
        express="private$\\a", recoverable="private$\\a"
    )
    assert Stage.of(mappings(b=True)) == Stage(transactional="private$\\b")
    for nothing in (mappings(), mappings(any=False)):
        with pytest.raises(ConfigError, match="nowhere to send to"):
            Stage.of(nothing)
