"""Acks on their way: an open session, a dialed one, again after a loss; never twice from us."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import count
from typing import Any, cast

import pytest

from bridge.adapters import courier as module
from bridge.adapters.courier import Courier
from bridge.adapters.intake import Intake, OnDecided, ShardPump
from bridge.adapters.net.connection import Connection
from bridge.adapters.own_listeners import OwnListeners
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.config import Address, PeerName
from bridge.core.known_senders import KnownSenders
from bridge.core.ports import OutboxEntry
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, BUSY, DUPLICATE, TOPIC_UNAVAILABLE
from bridge.wire.binary.convert import packet_from_message
from bridge.wire.binary.packet import UserMessage
from tests.adapters.net.memory_server import run
from tests.core.messages import LOCAL, OTHER, PLAIN, SENDER, plain
from tests.support.waiting import until

THERE = Address("10.1.2.3", 1801)


NAMES = {"sender02": ["10.1.2.3"], "sender02.": ["10.1.2.3"], "both": ["10.9.9.9", "10.1.2.3"]}


def entry(
    ordinal: int,
    peer: Guid | None = SENDER,
    host: str = "",
    cause: str = "",
    body: bytes = b"",
    by: str = "",
) -> OutboxEntry:
    """`by`: the address of whoever named the host."""
    message = plain(ordinal, source=LOCAL, destination=PLAIN, body=body)
    return OutboxEntry(
        ordinal=ordinal,
        queue_manager=str(peer) if peer else "",
        host=host,
        packet=packet_from_message(message).pack(),
        cause=cause or by,
    )


class Owner:
    """A shard's pump, as far as the courier knows it."""

    def __init__(self) -> None:
        self.forgotten: list[list[int]] = []
        self.lightened: list[OutboxEntry] = []

    def lighten(self, entries: Sequence[OutboxEntry]) -> None:
        self.lightened += entries

    def forget(self, ordinals: Sequence[int]) -> None:
        self.forgotten.append(list(ordinals))


class _Session:
    def __init__(self, remote: Guid, peer: str) -> None:
        self.remote, self.peer = remote, peer


_clock = count(1.0)


class Line:
    """A connection with an open session."""

    def hear(self) -> None:
        """Something came from the peer."""
        self.heard_at = next(_clock)

    def __init__(self, remote: Guid, peer: str, dialed: Address | None = None) -> None:
        self.session, self.dialed = _Session(remote, peer), dialed
        self.heard_at = next(_clock)
        self.got: list[int] = []
        self.addresses: list[Guid] = []  # QueueManagerAddress of each

    @property
    def initiated(self) -> bool:
        return self.dialed is not None

    def deliver(self, packets: list[tuple[UserMessage, int]]) -> None:
        for packet, token in packets:
            assert packet.user.message_id == token
            self.got.append(token)
            self.addresses.append(packet.user.queue_manager)


class World:
    def __init__(
        self,
        peers: dict[str, Address] | None = None,
        book: dict[str, str] | None = None,
        allowed: Sequence[str] = ("sender",),
        own: Collection[int] = (),
    ) -> None:
        self.dials: list[tuple[Address, Guid]] = []
        self.answer: Callable[[Address], Line | None] = lambda _: None
        named = {PeerName.parse(name): address for name, address in (peers or {}).items()}
        configured = {str(name): address.host for name, address in named.items()}
        self.senders = KnownSenders("warn", configured, book or {}, lambda *_: None)
        self.refused: list[tuple[str, int]] = []
        self.courier = Courier(
            LOCAL,
            named,
            self.senders,
            self.dial,
            targets=ReceiptTargets(allowed, own=OwnListeners(lambda: own)),
            refusal=lambda reason, count: self.refused.append((reason, count)),
        )
        self.owner = Owner()

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


def test_of_several_sessions_the_one_that_was_heard_last_is_used() -> None:
    """A sender that lost its connection without a word comes back on a new one. The old session
    is open here until its ack wait is over (MS-MQQB 3.1.6.3)."""

    async def scene(world: World) -> None:
        half_open = world.opened(Line(SENDER, "10.1.2.3"))
        back = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(entry(1))
        assert (half_open.got, back.got) == ([], [1])
        half_open.hear()  # it is alive after all
        world.take(entry(2), entry(3, None, "10.1.2.3"))
        assert (half_open.got, back.got) == ([2, 3], [1])

    play(scene)


def test_what_a_full_session_left_waiting_goes_to_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "UNDER_WAY", 2)

    async def scene(world: World) -> None:
        half_open = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(*(entry(number) for number in range(1, 5)))
        back = world.opened(Line(SENDER, "10.1.2.3"))
        assert (half_open.got, back.got) == ([1, 2], [3, 4])
        world.delivered(back, 3, 4)
        world.closed(half_open)
        assert back.got == [3, 4, 1, 2]

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


# -- a host that a message names ------------------------------------------------------------


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """NAMES is the name service, for what is not an address."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host.lower() not in NAMES:
            return real(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        kind = socket.AF_INET, socket.SOCK_STREAM, 6, ""
        return [(*kind, (address, port)) for address in NAMES[host.lower()]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("host", ["sender02", "SENDER02", "sender02.", "10.1.2.3", "both"])
def test_the_host_that_a_message_came_from(host: str) -> None:
    """The address that was checked is the one that is dialed: no second lookup."""
    assert first_dial(entry(1, None, host, by="10.1.2.3")) == (THERE, NULL_GUID)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("sender02", "sender02"),
        ("sender02", "sender02:1801"),
        ("sender02", "10.1.2.0/24"),
        ("10.1.2.3", "10.1.2.3"),
        ("sender02", "*"),
    ],
)
def test_a_host_that_the_operator_listed(host: str, allowed: str) -> None:
    there = first_dial(entry(1, None, host, by="192.0.2.66"), allowed=[allowed])
    assert there == (THERE, NULL_GUID)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("sender02", ["sender"]),
        ("10.1.2.3", ["sender", "loopback"]),
        ("sender02", ["sender02:1802"]),
        ("127.0.0.1", ["sender"]),
        ("2130706433", ["sender", "*"]),
        ("::1", ["*"]),
        ("169.254.169.254", ["*"]),
        ("0.0.0.0", ["*", "loopback"]),
        ("a..b", ["*"]),
    ],
)
def test_a_host_that_is_not_permitted_is_not_dialed(
    host: str, allowed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its acks are dropped, counted, and the host is logged once."""

    async def scene(world: World) -> None:
        world.take(entry(1, None, host, by="192.0.2.66"), entry(2, None, host, by="192.0.2.66"))
        await until(lambda: world.owner.forgotten)
        assert world.owner.forgotten == [[1, 2]]
        world.take(entry(3, None, host, by="192.0.2.66"))
        await until(lambda: len(world.owner.forgotten) == 2)
        await until(lambda: not world.courier._routes)
        assert world.courier.waiting == 0

    world = play(scene, lambda: World(allowed=allowed))
    assert world.dials == []
    assert world.refused == [("ack-target", 2), ("ack-target", 1)]
    assert caplog.text.count("are dropped") == 1


def test_only_those_are_dropped_that_may_not_name_the_host() -> None:
    async def scene(world: World) -> None:
        world.answer = lambda address: Line(OTHER, "10.1.2.3", address)
        by = {1: "10.1.2.3", 2: "192.0.2.66", 3: "10.1.2.3"}
        world.take(*(entry(n, None, "sender02", by=peer) for n, peer in by.items()))
        await until(lambda: world.dials and world.courier._under_way)
        (line,) = world.courier._under_way
        assert cast(Line, line).got == [1, 3]
        # While the session is open, it is used; another name of the host finds it, too.
        world.take(entry(4, None, "sender02", by="10.1.2.3"))
        world.take(entry(5, None, "both", by="10.1.2.3"))
        NAMES["both"].reverse()
        try:
            await until(lambda: cast(Line, line).got == [1, 3, 4, 5])
        finally:
            NAMES["both"].reverse()
        world.delivered(cast(Line, line), 1, 3, 4, 5)
        world.closed(cast(Line, line))
        assert world.courier._found == {}

    world = play(scene)
    assert (world.refused, len(world.dials)) == ([("ack-target", 1)], 1)


def test_a_name_that_is_not_known_yet_is_looked_up_again() -> None:
    async def scene(world: World) -> None:
        world.take(entry(1, None, "late", by="10.1.2.3"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert (world.dials, world.refused, world.courier.waiting) == ([], [], 1)
        NAMES["late"] = ["10.1.2.3"]
        try:
            await until(lambda: world.dials)
        finally:
            del NAMES["late"]

    assert play(scene).dials[0] == (THERE, NULL_GUID)


def test_our_own_listener_is_not_dialed() -> None:
    """A sender on this machine whose session ended: on its port 1801 are we."""

    async def scene(world: World) -> None:
        world.take(entry(1, SENDER, "127.0.0.1"), entry(2, OTHER))
        world.take(entry(3, None, "127.0.0.1", by="127.0.0.1"))
        await until(lambda: world.refused)
        assert world.courier.waiting == 2  # they wait for a session
        assert world.opened(Line(SENDER, "127.0.0.1")).got == [1]

    def world() -> World:
        return World(book={str(OTHER): "127.0.0.9"}, allowed=["sender", "loopback"], own=[1801])

    assert play(scene, world).dials == []


def test_refused_hosts_are_remembered_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_LOGGED", 3)

    async def scene(world: World) -> None:
        world.take(*(entry(n, None, f"10.0.0.{n}", by="192.0.2.66") for n in range(1, 9)))
        await until(lambda: len(world.refused) == 8)
        assert len(world.courier._refused) == 3

    play(scene)
    assert caplog.text.count("are dropped") == 8


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


def test_addresses_are_learned_from_sessions() -> None:  # GUID -> address, persisted
    async def scene(world: World) -> None:
        world.senders.heard(str(SENDER), "10.7.7.8", 0)
        world.take(entry(1, SENDER))
        await until(lambda: world.dials)

    assert play(scene).dials[0] == (Address("10.7.7.8", 1801), SENDER)


def test_who_takes_a_guid_gets_nothing_that_is_owed_to_it() -> None:
    """Neither the acks of a message that came from elsewhere, nor those for a known address."""

    async def scene(world: World) -> None:
        world.senders.heard(str(SENDER), "10.7.7.8", 0)
        world.take(entry(1, host="10.7.7.8"), entry(2), entry(3, host="10.7.7.9"))
        stranger = world.opened(Line(SENDER, "10.6.6.6"))
        assert stranger.got == []
        world.take(entry(4, host="10.6.6.6"))  # its own
        assert stranger.got == [4]
        moved = world.opened(Line(SENDER, "10.7.7.9"))
        assert moved.got == [3]
        home = world.opened(Line(SENDER, "10.7.7.8"))
        assert sorted(home.got) == [1, 2]

    play(scene)


def test_an_address_that_is_configured_is_the_home() -> None:
    async def scene(world: World) -> None:
        world.take(entry(1))
        assert world.opened(Line(SENDER, "10.6.6.6")).got == []
        assert world.opened(Line(SENDER, "10.1.2.3")).got == [1]

    play(scene, lambda: World(peers={str(SENDER): THERE}))


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
        self.jammed, self.asked = False, 0

    def shard_of(self, source: Guid) -> int:
        assert source == LOCAL
        return 3

    def is_jammed(self, shards: Collection[int]) -> bool:
        assert tuple(shards) == (3,)
        self.asked += 1
        return self.jammed

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


def ordinals(messages: Sequence[Message]) -> list[int]:
    return [message.ordinal for message in messages]


def test_an_ack_to_a_queue_of_ours_that_meets_busy_is_tried_again() -> None:
    """MS-MQDMPR 3.1.7.1.9, status 2: there is no room now. MS-MQQB 3.1.5.8.8: the sender keeps the
    message, and for an ack of ours that is us."""

    async def scene(world: World) -> None:
        intake = FakeIntake()
        world.courier.intake = cast(Intake, intake)
        world.take(*(entry(n, LOCAL) for n in (1, 2, 3)))
        intake.submitted.pop()[1]([BUSY, ACCEPTED, TOPIC_UNAVAILABLE])
        assert world.owner.forgotten == [[2]]
        assert world.courier.waiting == 2
        await until(lambda: len(intake.submitted) == 1)
        messages, on_decided, _ = intake.submitted.pop()
        assert ordinals(messages) == [1, 3]
        world.courier.drop([entry(3, LOCAL)])  # its time is over
        on_decided([BUSY, BUSY])
        await until(lambda: len(intake.submitted) == 1)
        messages, on_decided, _ = intake.submitted.pop()
        assert ordinals(messages) == [1]
        on_decided([DUPLICATE])
        assert world.owner.forgotten == [[2], [1]]
        assert (world.courier.waiting, world.courier.routes) == (0, 0)

    play(scene)


def test_acks_to_queues_of_ours_wait_while_our_shard_is_jammed() -> None:
    async def scene(world: World) -> None:
        intake = FakeIntake()
        world.courier.intake = cast(Intake, intake)
        intake.jammed = True
        world.take(entry(1, LOCAL))
        await until(lambda: intake.asked > 3)
        assert intake.submitted == []
        intake.jammed = False
        await until(lambda: len(intake.submitted) == 1)
        assert ordinals(intake.submitted[0][0]) == [1]

    play(scene)


def test_acks_to_queues_of_ours_come_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNDER_WAY", 2)

    async def scene(world: World) -> None:
        intake = FakeIntake()
        world.courier.intake = cast(Intake, intake)
        world.take(*(entry(n, LOCAL) for n in (1, 2, 3)))
        world.take(entry(4, LOCAL), entry(5, LOCAL))
        for wanted in ([1, 2], [3, 4], [5]):
            ((messages, on_decided, _),) = intake.submitted
            assert ordinals(messages) == wanted
            intake.submitted.clear()
            on_decided([ACCEPTED] * len(wanted))
        assert (intake.submitted, world.courier.routes) == ([], 0)

    play(scene)


# -- bounds ---------------------------------------------------------------------------------


class Dead:
    """Hosts that never answer, and one that does."""

    def __init__(self, alive: str) -> None:
        self.alive, self.now, self.most = alive, 0, 0
        self.by_host = list[str]()

    async def dial(self, address: Address, remote: Guid) -> Connection:
        self.by_host.append(address.host)
        if address.host == self.alive:
            raise ConnectionRefusedError
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.Event().wait()
        raise AssertionError


def test_hosts_that_a_stranger_names_are_dialed_few_at_a_time() -> None:
    """The dial to somebody else's host does not wait behind them."""
    dead = Dead("10.2.2.2")

    async def scene(world: World) -> None:
        world.courier._dial = dead.dial
        hosts = [f"10.3.{n >> 8}.{n & 255}" for n in range(1, 500)]
        world.take(*(entry(n, None, host, "192.0.2.66") for n, host in enumerate(hosts)))
        await until(lambda: dead.now == module.DIALS_BY_ADDRESS)
        world.take(entry(1000, None, "10.2.2.2", "10.2.2.2"))
        await until(lambda: "10.2.2.2" in dead.by_host)

    play(scene, lambda: World(allowed=["*"]))
    assert dead.most == module.DIALS_BY_ADDRESS


def test_all_dials_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.DIALS == 64
    dead = Dead("")

    async def scene(world: World) -> None:
        world.courier._dial = dead.dial
        world.take(*(entry(n, None, f"10.3.0.{n}", f"192.0.2.{n}") for n in range(1, 200)))
        await until(lambda: dead.now == module.DIALS)
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.courier.dials == module.DIALS
        assert world.courier.routes == 199

    play(scene, lambda: World(allowed=["*"]))
    assert dead.most == module.DIALS


def test_delays_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    enough = asyncio.Event()
    monkeypatch.setattr(module, "RETRY_S", 5.0)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 7:
            enough.set()
            await asyncio.Event().wait()

    async def scene(world: World) -> None:
        monkeypatch.setattr("bridge.adapters.courier.asyncio.sleep", sleep)
        world.take(entry(1, None, "10.9.9.9"))
        await enough.wait()
        monkeypatch.undo()

    play(scene)
    assert slept == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_acks_for_a_peer_that_cannot_be_reached_lose_their_bodies() -> None:
    async def scene(world: World) -> None:
        world.take(entry(1, None, "10.9.9.9", body=bytes(100_000)), entry(2, None, "10.9.9.9"))
        await until(lambda: world.owner.lightened)
        (bare,) = world.owner.lightened
        assert (bare.ordinal, len(bare.packet) < 1000) == (1, True)
        (route,) = world.courier._routes.values()
        assert route.waiting[1] is bare
        line = world.opened(Line(SENDER, "10.9.9.9"))
        assert line.got == [1, 2]  # whole or bare: each is the same ack, once

    play(scene)


def test_what_is_dropped_is_not_sent() -> None:
    async def scene(world: World) -> None:
        first, second, third = entry(1), entry(2), entry(3)
        world.take(first, second)
        world.courier.drop([first])
        line = world.opened(Line(SENDER, "10.1.2.3"))
        assert line.got == [2]
        world.courier.drop([second])  # under way: it may arrive, but is not sent again
        world.closed(line)
        world.take(third)
        assert world.opened(Line(SENDER, "10.1.2.3")).got == [3]
        assert world.courier.waiting == 1

    assert play(scene).owner.forgotten == []


def test_a_session_holds_only_so_many() -> None:
    """A peer that takes nothing does not make us keep everything twice."""

    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(*(entry(n) for n in range(1, 1001)))
        assert len(line.got) == module.UNDER_WAY
        while len(line.got) < 1000:
            world.delivered(line, *line.got)
        assert line.got == list(range(1, 1001))
        world.delivered(line, *line.got)
        assert (world.courier.waiting, world.courier.routes) == (0, 0)

    play(scene)


def test_what_a_session_did_not_hold_goes_on_another() -> None:
    async def scene(world: World) -> None:
        line = world.opened(Line(SENDER, "10.1.2.3"))
        world.take(*(entry(n) for n in range(1, 301)))
        world.closed(line)
        second = world.opened(Line(SENDER, "10.1.2.3"))
        world.delivered(second, *second.got)
        assert second.got == list(range(1, 301))

    play(scene)


def test_a_name_that_cannot_be_looked_up_is_only_unreachable() -> None:
    async def scene(world: World) -> None:
        async def dial(address: Address, remote: Guid) -> Connection:
            world.dials.append((address, remote))
            raise UnicodeError("label empty or too long")

        world.courier._dial = dial
        world.take(entry(1, SENDER))
        await until(lambda: len(world.dials) > 2)

    play(scene, lambda: World(peers={str(SENDER): Address("a..b", 1801)}))


QUEUE = Guid.parse("77777777-0000-4000-8000-000000000005")


def to_public_queue(ordinal: int) -> OutboxEntry:
    message = plain(ordinal, source=LOCAL, destination=f"PUBLIC={QUEUE}")
    packet = packet_from_message(message).pack()
    return OutboxEntry(ordinal=ordinal, host=str(QUEUE), packet=packet, cause="10.0.0.9")


def test_an_ack_to_a_public_queue_names_the_manager_that_answered() -> None:
    """MS-MQMQ 2.2.19.2: "When the Flags.DQ field is set to 0x03 or 0x5, the QueueManagerAddress
    field MUST be set to the GUID of the destination queue manager." """

    async def world() -> None:
        world = World(peers={str(QUEUE): THERE})
        line = Line(OTHER, THERE.host, THERE)
        world.answer = lambda _: line
        world.take(to_public_queue(1))
        await until(lambda: line.got == [1])
        assert line.addresses == [OTHER]

    run(world())


def test_a_stranger_with_the_guid_of_a_public_queue_gets_none_of_its_acks() -> None:
    async def world() -> None:
        world = World(peers={str(QUEUE): THERE})
        stranger = world.opened(Line(QUEUE, "10.6.6.6"))
        line = Line(OTHER, THERE.host, THERE)
        world.answer = lambda _: line
        world.take(to_public_queue(1))
        await until(lambda: line.got == [1])
        assert stranger.got == []

    run(world())
