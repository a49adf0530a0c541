"""Names and rights at the door. MS-MQRR 3.1.4.2"""

import pytest

from bridge.adapters.retained.service import now
from bridge.core.remote_read.naming import Home
from bridge.core.retained.queues import Access
from bridge.protocol.rpc.calls import Call
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.remote_read import GetServerPort
from tests.adapters.remote_read.world import FORWARD, ORDERS, PLAIN, World, call, name
from tests.core.messages import LOCAL
from tests.core.retained.world import refused, row

ANONYMOUS = call(GetServerPort())
ANN = call(GetServerPort(), user="SHOP\\ann")


def opened(world: World, who: Call, what: QueueFormat, access: int = 1, share: int = 0) -> str:
    handle = world.opening.open(who, what, access, share)
    queue = world.owner.queues.handles.get(handle).queue
    assert queue is not None
    return queue.name


def test_all_ways_to_name_one() -> None:
    world = World()
    number = 0
    for character in "orders":
        number = (33 * number + ord(character)) & 0xFFFFFFFF
    assert opened(world, ANONYMOUS, name(ORDERS)) == ORDERS
    assert opened(world, ANONYMOUS, QueueFormat(kind=2, guid=LOCAL, number=number)) == ORDERS
    # RR-17: the address that the client has reached us by is ours, too
    mine = QueueFormat(kind=3, text=f"TCP:10.9.9.9\\{PLAIN}")
    assert opened(world, ANONYMOUS, mine) == PLAIN
    with refused(0xC00E0003):
        opened(world, ANONYMOUS, QueueFormat(kind=2, guid=LOCAL, number=number + 1))
    assert isinstance(world.opening._home(ANONYMOUS), Home)


@pytest.mark.parametrize(("access", "share"), [(0, 0), (2, 0), (0x21, 0), (1, 2), (2**32 - 1, 0)])
def test_bad_parameters(access: int, share: int) -> None:
    with refused(0xC00E0006):
        opened(World(), ANONYMOUS, name(), access, share)


def test_a_queue_that_is_not_there() -> None:
    with refused(0xC00E0003):
        opened(World(), ANONYMOUS, name("private$\\nothing"))


def test_who_may() -> None:
    world = World(has_users=True, allow_read=("ann",), defaults=("bob",))
    assert opened(world, ANN, name()) == PLAIN
    assert opened(world, ANN, name(f"{PLAIN};journal", 0x81)) == f"{PLAIN};journal"
    assert opened(world, ANN, name(f"{PLAIN};retry", 5, kind=8)) == f"{PLAIN};retry"
    bob = call(GetServerPort(), user="bob")
    dead = QueueFormat(kind=4, suffix=0x82, guid=LOCAL)
    assert opened(world, bob, dead) == "system$;deadletter"
    told: list[tuple[str, str]] = []  # for the log
    world.opening.on_refused = lambda who, why: told.append((who.user, why.status.name))
    for who, what in ((ANONYMOUS, name()), (bob, name()), (ANN, dead), (ANONYMOUS, dead)):
        with refused(0xC00E0025):
            opened(world, who, what)
    assert told == [(user, "ACCESS_DENIED") for user in ("", "bob", "SHOP\\ann", "")]


def test_a_name_that_is_refused_leaves_no_subqueue_behind() -> None:
    world = World(has_users=True, allow_read=("ann",))
    with refused(0xC00E0025):
        opened(world, ANONYMOUS, name(f"{PLAIN};retry", 5, kind=8))
    plain = world.owner.queues.queue(PLAIN)
    assert plain is not None
    assert plain.subqueues == []


def test_a_pattern_makes_a_queue_for_who_may_read_it() -> None:
    world = World(has_users=True, allow_read=("ann",))
    with refused(0xC00E0025):
        opened(world, ANONYMOUS, name("private$\\made-1"))
    assert world.owner.queues.queue("private$\\made-1") is None
    assert opened(world, ANN, name("private$\\made-1")) == "private$\\made-1"


def test_many_names_make_no_more_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.adapters.remote_read.opening.MOST_QUEUES", 4)
    world = World()
    assert opened(world, ANONYMOUS, name("private$\\made-1"))
    with refused(0xC00E0003):
        opened(world, ANONYMOUS, name("private$\\made-2"))


def test_sharing() -> None:
    """2.5: the matrix is the queues' own."""
    world = World()
    opened(world, ANONYMOUS, name(), Access.RECEIVE, 1)
    with refused(0xC00E0009):
        opened(world, ANONYMOUS, name())
    assert opened(world, ANONYMOUS, name(), Access.PEEK) == PLAIN


@pytest.mark.parametrize("access", [0x01, 0x20])
def test_a_forward_queue_has_nothing_to_read(access: int, caplog: pytest.LogCaptureFixture) -> None:
    """MS-MQRR 3.1.4.2: MQ_ERROR_ACCESS_DENIED; open, it would stay empty for ever."""
    world = World()
    names = len(world.owner.queues.names())
    for what in (name(FORWARD), name("private$\\passed-1"), name(f"{FORWARD};retry", 5, kind=8)):
        with refused(0xC00E0025):
            opened(world, ANN, what, access)
    assert len(world.owner.queues.names()) == names
    lines = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 3
    assert f"{FORWARD} forwards its messages to Kafka" in lines[0].getMessage()
    assert "hint: set mode: retain" in lines[0].getMessage()
    assert opened(world, ANN, name(f"{FORWARD};journal", 0x81), access) == f"{FORWARD};journal"


def test_what_a_forward_queue_still_holds_can_be_read() -> None:
    """It was a retained one when these came."""
    world = World()
    world.owner.queues.arrive([row(1, FORWARD)], now())
    assert opened(world, ANN, name(FORWARD)) == FORWARD
    assert opened(world, ANN, name(f"{FORWARD};retry", 5, kind=8), 4) == f"{FORWARD};retry"


def test_who_may_not_read_hears_nothing_of_the_mode(caplog: pytest.LogCaptureFixture) -> None:
    world = World(has_users=True, allow_read=("bob",))
    with refused(0xC00E0025):
        opened(world, ANN, name(FORWARD))
    assert "forwards its messages" not in caplog.text
