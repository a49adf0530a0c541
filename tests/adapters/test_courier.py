"""Acks on their way: an open session, a dialed one, again after a loss; never twice from us."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from bridge.adapters import courier as module
from bridge.adapters.courier import Courier
from bridge.adapters.intake import Intake, OnDecided, ShardPump
from bridge.adapters.net.connection import Connection
from bridge.config import Address, PeerName
from bridge.core.ports import OutboxEntry
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED
from bridge.wire.binary.convert import packet_from_message
from bridge.wire.binary.packet import UserMessage
from tests.adapters.net.memory_server import run
from tests.core.messages import LOCAL, OTHER, PLAIN, SENDER, plain
from tests.support.waiting import until

THERE = Address("10.1.2.3", 1801)


def entry(ordinal: int, peer: Guid | None = SENDER, host: str = "") -> OutboxEntry:
    packet = packet_from_message(plain(ordinal, source=LOCAL, destination=PLAIN)).pack()
    return OutboxEntry(
        ordinal=ordinal, queue_manager=str(peer) if peer else "", host=host, packet=packet
    )


class Owner:
    """A shard's pump, as far as the courier knows it."""

    def __init__(self) -> None:
        self.forgotten: list[list[int]] = []

    def forget(self, ordinals: Sequence[int]) -> None:
        self.forgotten.append(list(ordinals))


class _Session:
    def __init__(self, remote: Guid, peer: str) -> None:
        self.remote, self.peer = remote, peer


class Line:
    """A connection with an open session."""

    def __init__(self, remote: Guid, peer: str, dialed: Address | None = None) -> None:
        self.session, self.dialed = _Session(remote, peer), dialed
        self.got: list[int] = []

    @property
    def initiated(self) -> bool:
        return self.dialed is not None

    def deliver(self, packets: list[tuple[UserMessage, int]]) -> None:
        for packet, token in packets:
            assert packet.user.message_id == token
            self.got.append(token)


class World:
    def __init__(self, peers: dict[str, Address] | None = None, book: dict[str, str] | None = None):
        self.learned: list[tuple[str, str]] = []
        self.dials: list[tuple[Address, Guid]] = []
        self.answer: Callable[[Address], Line | None] = lambda _: None
        named = {PeerName.parse(name): address for name, address in (peers or {}).items()}
        self.courier = Courier(LOCAL, named, book or {}, self.dial, self.learn)
        self.owner = Owner()

    def learn(self, guid: str, host: str) -> None:
        self.learned.append((guid, host))

    async def dial(self, address: Address, remote: Guid) -> Connection:
        self.dials.append((address, remote))
        line = self.answer(address)
        if line is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self.opened(line)
        return cast(Connection, line)

    def take(self, *entries: OutboxEntry) -> None:
        self.courier.take(entries, cast(ShardPump, self.owner))

    def opened(self, line: Line) -> Line:
        self.courier.opened(cast(Connection, line))
        return line

    def heard(self, line: Line) -> Line:
        self.courier.heard(cast(Connection, line))
        return line

    def closed(self, line: Line) -> None:
        self.courier.closed(cast(Connection, line))

    def delivered(self, line: Line, *ordinals: int) -> None:
        self.courier.delivered(cast(Connection, line), ordinals)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)


def play(scene: Callable[[World], Awaitable[None]], world: Callable[[], World] = World) -> World:
    made = world()

    async def whole() -> None:
        try:
            await scene(made)
        finally:
            made.courier.stop()
            await asyncio.sleep(0)

    run(whole())
    return made


# -- sessions that are there ----------------------------------------------------------------


def test_an_open_session_is_used() -> None:  # QB-22: in either direction
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        other = world.opened(Line(OTHER, "10.1.2.4"))
        world.take(entry(1), entry(2), entry(3, OTHER))
        assert (line.got, other.got) == ([1, 2], [3])
        assert world.courier.waiting == 3

    assert play(scene).dials == []


def test_a_session_by_address() -> None:  # AQ 7: DIRECT=TCP:10.1.2.3\...
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1, None, "10.1.2.3"))
        assert line.got == [1]

    assert play(scene).dials == []


def test_who_comes_finds_what_waits_in_order() -> None:
    async def scene(world: World) -> None:
        world.take(entry(3), entry(1))
        world.take(entry(2))
        line = world.opened(Line(SENDER, "10.1.2.3"))
        assert line.got == [1, 2, 3]

    play(scene)


def test_a_stranger_gets_nothing() -> None:
    async def scene(world: World) -> None:
        world.take(entry(1))
        assert world.opened(Line(OTHER, "10.1.2.3")).got == []

    play(scene)


# -- what was taken -------------------------------------------------------------------------


def test_what_was_taken_is_forgotten_once() -> None:
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1), entry(2), entry(3))
        world.delivered(line, 1, 2)
        world.delivered(line, 1, 2)
        assert world.courier.waiting == 1
        world.delivered(line, 3)
        assert world.courier.waiting == 0

    assert play(scene).owner.forgotten == [[1, 2], [3]]


def test_each_shard_forgets_its_own() -> None:
    async def scene(world: World) -> None:
        line, second = world.opened(Line(SENDER, "10.1.2.3")), Owner()
        world.take(entry(1), entry(3))
        world.courier.take([entry(2)], cast(ShardPump, second))
        world.delivered(line, 1, 2, 3)
        assert (world.owner.forgotten, second.forgotten) == ([[1, 3]], [[2]])

    play(scene)


def test_order_acks_of_the_session_are_none_of_ours() -> None:
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1))
        world.delivered(line, 77)
        assert world.owner.forgotten == []

    play(scene)


def test_known_ones_are_not_taken_twice() -> None:
    """A shard that was opened anew hands over its whole outbox."""

    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1))
        world.take(entry(1), entry(2))
        assert line.got == [1, 2]
        world.delivered(line, 1, 2)

    assert play(scene).owner.forgotten == [[1, 2]]


# -- sessions that end ----------------------------------------------------------------------


def test_what_was_under_way_waits_again_and_goes_in_order() -> None:  # MS-MQQB 3.1.7.4
    async def scene(world: World) -> None:
        first = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1), entry(2), entry(3))
        world.delivered(first, 2)
        world.closed(first)
        assert world.courier.waiting == 2
        second = world.opened(Line(SENDER, "10.1.2.3"))
        assert second.got == [1, 3]
        world.take(entry(4))
        assert second.got == [1, 3, 4]

    assert play(scene).owner.forgotten == [[2]]


def test_a_second_session_takes_over_at_once() -> None:
    async def scene(world: World) -> None:
        first = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1))
        second = world.opened(Line(SENDER, "10.1.2.3"))
        assert second.got == []  # the first one has it
        world.closed(first)
        assert second.got == [1]

    play(scene)


def test_a_session_that_never_opened_ends() -> None:
    async def scene(world: World) -> None:
        world.closed(Line(SENDER, "10.1.2.3"))
        world.delivered(Line(SENDER, "10.1.2.3"), 1)

    assert play(scene).owner.forgotten == []


# -- dialing --------------------------------------------------------------------------------


def dialed(peer: Guid, host: str = "10.1.2.3") -> Callable[[Address], Line]:
    return lambda address: Line(peer, host, address)


def test_without_a_session_it_dials_where_the_message_came_from() -> None:
    async def scene(world: World) -> None:
        lines: list[Line] = []

        def answer(address: Address) -> Line:
            lines.append(Line(SENDER, "10.1.2.3", address))
            return lines[-1]

        world.answer = answer
        world.take(entry(1, SENDER, "10.1.2.3"))
        await until(lambda: lines and lines[0].got)
        assert lines[0].got == [1]
        assert world.learned == []  # our own dialing teaches nothing

    assert play(scene).dials == [(THERE, SENDER)]  # the session must be with that one


def test_it_dials_until_somebody_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scene(world: World) -> None:
        world.take(entry(1, SENDER, "10.1.2.3"))
        await until(lambda: len(world.dials) >= 3)
        world.answer = dialed(SENDER)
        world.take(entry(2, SENDER, "10.1.2.3"))  # no second caller
        await until(lambda: world.courier._under_way)
        (line,) = world.courier._under_way
        assert cast(Line, line).got == [1, 2]
        count = len(world.dials)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(world.dials) == count

    play(scene)
    assert "10.1.2.3:1801: cannot be reached (Connection refused)" in caplog.text


def test_it_waits_between_two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:  # QB 3.1.6.1
    assert module.RETRY_S == 0.0
    monkeypatch.setattr(module, "RETRY_S", 3600.0)

    async def scene(world: World) -> None:
        world.take(entry(1, SENDER, "10.1.2.3"))
        await until(lambda: world.dials)
        world.take(entry(2, SENDER, "10.1.2.3"))
        for _ in range(20):
            await asyncio.sleep(0)

    assert len(play(scene).dials) == 1


def test_a_lost_session_is_dialed_again() -> None:
    async def scene(world: World) -> None:
        world.answer = dialed(SENDER)
        world.take(entry(1, SENDER, "10.1.2.3"))
        await until(lambda: world.courier._under_way)
        (first,) = world.courier._under_way
        world.courier.closed(first)
        await until(lambda: world.courier._under_way)
        (second,) = world.courier._under_way
        assert second is not first
        assert cast(Line, second).got == [1]

    assert len(play(scene).dials) == 2


def test_a_session_that_ends_with_nothing_to_say_is_not_dialed() -> None:
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1, SENDER, "10.1.2.3"))
        world.delivered(line, 1)
        world.closed(line)
        for _ in range(20):
            await asyncio.sleep(0)

    assert play(scene).dials == []


# -- where a peer is ------------------------------------------------------------------------


def first_dial(entry: OutboxEntry, **known: Any) -> tuple[Address, Guid]:
    async def scene(world: World) -> None:
        world.take(entry)
        await until(lambda: world.dials)

    return play(scene, lambda: World(**known)).dials[0]


def test_peers_by_guid() -> None:
    peers = {str(SENDER).upper(): Address("192.0.2.7", 1802)}
    book = {str(SENDER): "10.9.9.9"}
    where = first_dial(entry(1, SENDER, "10.1.2.3"), peers=peers, book=book)
    assert where == (Address("192.0.2.7", 1802), SENDER)  # what is configured counts most


@pytest.mark.parametrize("host", ["sender01", "SENDER01", "10.1.2.3"])
def test_peers_by_host(host: str) -> None:
    there = Address("192.0.2.7", 1802)
    peers = {"sender01": there, "10.1.2.3": there}
    assert first_dial(entry(1, None, host), peers=peers) == (there, NULL_GUID)  # QB-24
    assert first_dial(entry(1, SENDER, host), peers=peers) == (there, SENDER)


def test_a_host_that_nobody_configured() -> None:
    assert first_dial(entry(1, None, "sender02")) == (Address("sender02", 1801), NULL_GUID)


def test_names_of_hosts_are_one_whatever_their_case() -> None:
    async def scene(world: World) -> None:
        world.take(entry(1, None, "sender02"), entry(2, None, "SENDER02"))
        assert len(world.courier._routes) == 1

    play(scene)


def test_what_a_dialed_session_can_take_by_host() -> None:
    """A name in `peers` leads to an address; the session knows only that."""

    async def scene(world: World) -> None:
        line = world.opened(Line(OTHER, "192.0.2.7", Address("192.0.2.7", 1802)))
        world.take(entry(1, None, "sender01"))
        assert line.got == [1]

    play(scene, lambda: World(peers={"sender01": Address("192.0.2.7", 1802)}))


def test_addresses_are_learned_from_sessions() -> None:  # 2.12: guid -> address, persisted
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.7.7.7"))
        assert world.learned == []  # a handshake alone is owed nothing
        world.heard(line)
        assert world.learned == [(str(SENDER), "10.7.7.7")]
        world.closed(line)
        world.closed(world.heard(world.opened(Line(SENDER, "10.7.7.7"))))
        assert len(world.learned) == 1  # no news
        world.closed(world.heard(world.opened(Line(SENDER, "10.7.7.8"))))
        assert world.learned[1:] == [(str(SENDER), "10.7.7.8")]
        world.take(entry(1, SENDER))
        await until(lambda: world.dials)

    assert play(scene).dials[0] == (Address("10.7.7.8", 1801), SENDER)


def test_addresses_of_an_earlier_run() -> None:
    where = first_dial(entry(1, SENDER), book={str(SENDER): "10.9.9.9"})
    assert where == (Address("10.9.9.9", 1801), SENDER)


def test_an_unknown_peer_waits(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        world.take(entry(1, SENDER), entry(2, SENDER))
        await until(lambda: "add it to `peers`" in caplog.text)
        assert world.courier.waiting == 2
        line = world.opened(Line(SENDER, "10.1.2.3"))
        assert line.got == [1, 2]

    assert play(scene).dials == []
    assert f"2 acks wait for {SENDER}" in caplog.text


# -- our own queues -------------------------------------------------------------------------


class FakeIntake:
    def __init__(self) -> None:
        self.submitted: list[tuple[Sequence[Message], OnDecided, Guid]] = []

    def submit(
        self, messages: Sequence[Message], on_decided: OnDecided, via: Guid = NULL_GUID
    ) -> None:
        self.submitted.append((messages, on_decided, via))


def test_an_ack_to_a_queue_of_ours_arrives_like_any_other() -> None:  # QB-112: AQ 3
    async def scene(world: World) -> None:
        intake = FakeIntake()
        world.courier.intake = cast(Intake, intake)
        world.take(entry(1, LOCAL), entry(2, LOCAL))
        ((messages, on_decided, via),) = intake.submitted
        assert [(m.source, m.ordinal) for m in messages] == [(LOCAL, 1), (LOCAL, 2)]
        assert all(m.wire and m.arrived_ms for m in messages)
        assert via == LOCAL
        assert world.owner.forgotten == []  # not before it is durable there
        on_decided([ACCEPTED, ACCEPTED])
        assert world.owner.forgotten == [[1, 2]]

    assert play(scene).dials == []
