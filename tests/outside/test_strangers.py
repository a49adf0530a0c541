"""A stranger sends in a victim's name: nothing of the victim's changes, and nobody is stopped.

A message belongs to the queue manager that shook hands, unless a router brings it. What a peer may
not do is decided before any state is touched.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_PA,
    ACK_PR,
    ZERO,
    Message,
    Name,
    direct,
    private,
    private_on,
    security_header,
)
from tests.outside.rawpeer import PeerSession, RawPeer, Recorder
from tests.outside.rawsender import HungUpError, soon
from tests.outside.siege import together
from tests.outside.strangers import (
    SEQUENCE,
    SPOOFS,
    STRANGE_IP,
    VICTIM_IP,
    Topics,
    Victim,
    administration,
    counted,
    impersonate,
    maybe_session,
    odd_direct,
    order_acks,
    plain,
    session,
    several,
    spoof,
    step,
    transactional_ack,
    wait_counted,
)
from tests.outside.test_admission_whole import OTHER_SID, SID

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
_ids = count(1)
CLOSED = "not-a-router"
SPOOFED = ("busy", "source-not-of-session")
FRIEND = UUID("77777777-0000-4000-8000-0000000000aa")
ROUTER = UUID("77777777-0000-4000-8000-0000000000bb")
ROUTER_IP = "127.0.0.50"
QUEUES: dict[str, dict[str, object]] = {
    "bynet": {"allow": [f"{VICTIM_IP}/32"]},
    "bynettx": {"allow": [f"{VICTIM_IP}/32"], "transactional": True},
    "bysid": {"allow": ["S-1-5-21-1-2-3-1000"], "transactional": True},
    "small": {"quota_kb": 1, "transactional": True},
    "acks": {},
    "guarded": {"allow": [f"{str(FRIEND).upper()}@{VICTIM_IP}"]},
    "guardedtx": {"allow": [f"{FRIEND}@{VICTIM_IP}/31"], "transactional": True},
}


@pytest.fixture(scope="module")
def listening_stranger() -> Iterator[RawPeer]:
    with RawPeer(STRANGE_IP) as peer:
        yield peer


@pytest.fixture(scope="module")
def settings(listening_stranger: RawPeer) -> Settings:
    return Settings(
        queues=QUEUES,
        manager={"insecure_nacks": True},
        peers={"STRANGERHOST": listening_stranger.address},
        top={"routers": [ROUTER_IP, "127.50.0.0/16", str(ROUTER)]},
    )


@pytest.fixture(scope="module")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


# -- all that can be spoofed, before, while and after its victim is here ---------------------


@dataclass(slots=True)
class Case:
    """One attack with its own victim and its own addresses."""

    name: str
    victim: Victim
    strange: str
    messages: list[Message]
    acked: list[int] = field(default_factory=list)  # of the stranger's messages, by attempt
    faults: list[BaseException] = field(default_factory=list)

    def does(self, action: Callable[["Case"], None]) -> None:
        try:
            action(self)
        except Exception as fault:
            self.faults.append(fault)


def attack(appliance: Appliance, case: Case) -> None:
    acked, _ = spoof(appliance, case.messages, local=case.strange)
    case.acked.append(acked)


def meet(appliance: Appliance, case: Case) -> None:
    """The victim sends, is attacked while it is connected, and goes on."""
    with case.victim.open() as sender:
        case.victim.send(sender)
        attack(appliance, case)
        case.victim.send(sender)


def come_back(case: Case) -> None:
    with case.victim.open() as sender:
        case.victim.send(sender)


@pytest.fixture(scope="module")
def cases(appliance: Appliance) -> dict[str, Case]:
    """Each attacks before its victim ever came, while it is connected, and is followed by kill -9
    on an empty data folder. All of them at once: most of the time they wait for acks."""
    made: dict[str, Case] = {}
    for number, (name, one) in enumerate(SPOOFS.items(), 1):
        victim = Victim(appliance, one, f"127.1.0.{number}")
        messages = list(one.messages(victim.guid, appliance))
        made[name] = Case(name, victim, f"127.2.0.{number}", messages)

    def all_do(action: Callable[[Case], None]) -> None:
        together([partial(case.does, action) for case in made.values()])

    all_do(partial(attack, appliance))
    all_do(partial(meet, appliance))
    appliance.restart(empty_data=True, kill=True)
    all_do(partial(attack, appliance))
    all_do(come_back)
    return made


@pytest.mark.parametrize("name", SPOOFS)
def test_a_spoofed_source_changes_nothing(
    cases: dict[str, Case], topics: Topics, name: str
) -> None:
    case = cases[name]
    assert not case.faults, case.faults
    assert case.acked == [1, 1, 1]  # what came before it, not it, and nothing behind it
    assert topics.bodies(case.victim.queue, case.victim.guid) == case.victim.expected
    assert set(topics.verdicts(case.messages[0], case.strange)) == {SPOOFED}


def test_each_is_counted(appliance: Appliance, cases: dict[str, Case]) -> None:
    """Since the restart."""
    wait_counted(appliance, CLOSED, len(cases))


def test_it_is_no_record_and_no_stream(
    appliance: Appliance, topics: Topics, cases: dict[str, Case]
) -> None:
    for case in cases.values():
        records = topics.of(case.victim.guid, [appliance.topic(n) for n in appliance.queues])
        assert len(records) == len(case.victim.expected), case.name


@pytest.mark.parametrize("kind", [0x00FF, 0x4000, 0x8004], ids=["order", "final", "negative"])
def test_spoofed_acks_to_the_order_queue(appliance: Appliance, topics: Topics, kind: int) -> None:
    """Whatever becomes of them, the victim's stream stands where it did."""
    source = uuid4()
    body = SEQUENCE.to_bytes(8, "little") + (9).to_bytes(4, "little") + (8).to_bytes(4, "little")
    body += b"" if kind == 0x00FF else source.bytes_le + (9).to_bytes(4, "little")
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
        with session(appliance, local=STRANGE_IP) as stranger:
            spoofed = [transactional_ack(source, kind, appliance.guid, body)]
            stranger.transmit(spoofed, keep=False)
            with suppress(HungUpError):
                stranger.until(lambda: stranger.acked)
        victim.send_all_windowed([step(source, 2), step(source, 3)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2", b"step 3"]


# -- whose GUID it is ------------------------------------------------------------------------


def test_our_own_guid_is_not_for_strangers(appliance: Appliance, topics: Topics) -> None:
    """Acks of ours that arrive in a queue of ours have ids that a stranger can guess."""
    source = uuid4()
    asked = replace(
        plain(source, 1), admin=direct("OS:BRIDGE01\\private$\\acks"), acks=ACK_PA | ACK_PR
    )
    with session(appliance, source, local=VICTIM_IP) as victim:
        told = replace(plain(source, 2), admin=private(1, code=2), acks=ACK_PA)
        victim.send_all_windowed([told])
        victim.until(lambda: administration(told, victim.kept))
        next_id = victim.kept[-1].message_id + 1
        impersonate(
            appliance,
            appliance.guid,
            [plain(appliance.guid, next_id + n, queue("acks")) for n in range(60)],
        )
        victim.send_all_windowed([asked])
        wanted = source.bytes_le + (1).to_bytes(4, "little")
        last = replace(told, message_id=3)  # its ack leaves after those of `asked`
        victim.send_all_windowed([last])
        victim.until(lambda: administration(last, victim.kept))
    found = topics.of(appliance.guid, [appliance.topic("acks")])
    correlated = [r for r in found if r.header.get("msmq.correlation") == wanted]
    assert [r.header.get("msmq.class") for r in correlated] == [b"2", b"16384"], found


def test_a_null_guid_is_nobody_else(appliance: Appliance, topics: Topics) -> None:
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
        impersonate(appliance, ZERO, [step(ZERO, 1), plain(ZERO, 1), plain(ZERO, 2)])
        impersonate(appliance, ZERO, [step(source, 7, 0)])
        victim.send_all_windowed([step(source, 2)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2"]
    assert appliance.is_ready()


def test_a_moved_guid_is_counted_and_served(appliance: Appliance, topics: Topics) -> None:
    """`pin_senders` is `warn` unless it is set: machines do move."""
    before, source = counted(appliance, "moved-guid"), uuid4()
    for number, local in enumerate((VICTIM_IP, "127.0.0.77"), 1):
        with session(appliance, source, local=local) as sender:
            sender.send_all_windowed([step(source, number)])
    wait_counted(appliance, "moved-guid", before + 1)
    assert topics.bodies("orders", source) == [b"step 1", b"step 2"]
    with appliance._news:
        assert any(str(source) in line and "127.0.0.77" in line for line in appliance.lines)


def test_one_address_is_not_counted_as_moved(appliance: Appliance) -> None:
    before, source = counted(appliance, "moved-guid"), uuid4()
    for number in (1, 2, 3):
        with session(appliance, source, local=VICTIM_IP) as sender:
            sender.send_all_windowed([step(source, number)])
    assert counted(appliance, "moved-guid") == before


# -- acks that are owed to a victim ----------------------------------------------------------


def owed(appliance: Appliance, source: UUID, admin: Name) -> Message:
    """A message whose acks its sender has not taken: it is gone before it could."""
    asked = replace(plain(source, next(_ids)), admin=admin, acks=ACK_PA | ACK_PR)
    with session(appliance, source, local=VICTIM_IP, auto_ack=False) as victim:
        victim.transmit([asked])
        victim.until(lambda: len(administration(asked, victim.kept)) == 2)
    return asked


@pytest.mark.parametrize("speaks", [False, True], ids=["silent", "sends messages"])
def test_acks_of_a_victim_are_not_for_a_stranger(appliance: Appliance, speaks: bool) -> None:
    """One that shakes hands with the victim's GUID, from another address."""
    source = uuid4()
    asked = owed(appliance, source, private(1, code=2))
    with maybe_session(appliance, source, local=STRANGE_IP) as stranger:
        if stranger is not None:
            if speaks:
                stranger.transmit([plain(source, 900_000 + n) for n in (1, 2)], keep=False)
                stranger.until(lambda: stranger.acked == 2)
            settle(stranger, answers=not speaks)
            assert administration(asked, stranger.kept) == []
        with session(appliance, source, local=VICTIM_IP) as victim:
            victim.until(lambda: len(administration(asked, victim.kept)) == 2)


def settle(stranger: Recorder, *, answers: bool) -> None:
    """Until the bridge has had the time to say whatever it wanted to say."""
    if answers:
        stranger.expect_nothing(1.0)
    else:
        with suppress(TimeoutError):
            while True:
                stranger.read_packet(soon(1.0))


def test_acks_for_a_third_machine(appliance: Appliance) -> None:
    """The administration queue names the victim, who was here before."""
    victim, other = uuid4(), uuid4()
    with session(appliance, victim, local=VICTIM_IP) as there:
        there.send_all_windowed([plain(victim, 1)])
    with session(appliance, victim, local=STRANGE_IP) as stranger:
        asked = replace(plain(other, 1), admin=private_on(victim, 9), acks=ACK_PA)
        with session(appliance, other, local="127.0.0.3") as sender:
            sender.send_all_windowed([asked])
        stranger.expect_nothing(1.0)
        with session(appliance, victim, local=VICTIM_IP) as there:
            there.until(lambda: administration(asked, there.kept))


def call_back(
    appliance: Appliance, listening_stranger: RawPeer, guid: UUID
) -> tuple[Message, PeerSession | None]:
    """A stranger makes the bridge call it, and answers as `guid`; None: the bridge hung up."""
    own = uuid4()
    listening_stranger.go_away()
    listening_stranger.guid = guid
    listening_stranger.listen()
    call = replace(plain(own, 1), admin=direct("OS:STRANGERHOST\\private$\\x"), acks=ACK_PA)
    with session(appliance, own, local=STRANGE_IP) as sender:
        sender.send_all_windowed([call])
    try:
        return call, listening_stranger.accept()
    except HungUpError:
        return call, None


def test_a_stranger_who_is_called_back_gets_nothing_of_the_victim(
    appliance: Appliance, listening_stranger: RawPeer
) -> None:
    """It says on the phone that it is the victim."""
    source = uuid4()
    asked = owed(appliance, source, private(1, code=2))
    _, called = call_back(appliance, listening_stranger, source)
    if called is not None:
        with suppress(HungUpError):
            settle(called, answers=False)
        assert administration(asked, called.kept) == []
    listening_stranger.go_away()
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.until(lambda: len(administration(asked, victim.kept)) == 2)


@pytest.mark.parametrize("answers_as", ["itself", "null", "us"])
def test_a_stranger_who_is_called_back_speaks_for_itself(
    appliance: Appliance, topics: Topics, listening_stranger: RawPeer, answers_as: str
) -> None:
    """Who opened the session does not matter: its messages are of the GUID that answered, and no
    GUID of an answer is a key to all others."""
    source = uuid4()
    guid = {"itself": uuid4(), "null": ZERO, "us": appliance.guid}[answers_as]
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
        _, called = call_back(appliance, listening_stranger, guid)
        if called is not None:
            ahead = step(source, 9, 0, sequence=2**64 - 1)
            spoofed = [ahead, *(plain(source, n) for n in range(1, 9))]
            if answers_as != "itself":  # nobody else has this GUID either
                spoofed.insert(0, plain(guid, next(_ids), queue("acks")))
            with suppress(HungUpError, TimeoutError):
                called.transmit(spoofed, keep=False)
                called.read_to_end(soon(5))
            assert called.acked == 0
        listening_stranger.go_away()
        victim.send_all_windowed([step(source, 2), plain(source, 3)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2"]
    assert topics.bodies("plain", source) == [b"plain 3"]


# -- what a peer may not do leaves nothing ---------------------------------------------------


def refused_plain(appliance: Appliance, topics: Topics, message: Message, local: str) -> None:
    with session(appliance, message.source, local=local) as sender:
        sender.send_all_windowed([message], soon(20))
    assert {verdict for verdict, _ in topics.verdicts(message)} == {"rejected"}
    assert len(topics.rejects(message)) == 1


ELSEWHERE: dict[str, Callable[[Message], Message]] = {
    "no such queue": lambda m: replace(m, destination=queue("nowhere")),
    "no such number": lambda m: replace(m, destination=private(0x7777)),
    "denied by its network": lambda m: replace(m, destination=queue("bynet")),
}


@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_refused_plain_id_is_not_remembered(
    appliance: Appliance, topics: Topics, change: Callable[[Message], Message]
) -> None:
    source = uuid4()
    message = plain(source, next(_ids))
    refused_plain(appliance, topics, change(message), STRANGE_IP)
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([message])
    assert topics.bodies("plain", source) == [message.body]


def test_plain_ids_are_remembered_for_each_queue(appliance: Appliance, topics: Topics) -> None:
    source = uuid4()
    one = plain(source, next(_ids))
    two = replace(one, destination=queue("plain2"))
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([one, two, one, two])
    for name in ("plain", "plain2"):
        assert topics.bodies(name, source) == [one.body]


STREAMS_ELSEWHERE: dict[str, Callable[[Message], Message]] = {
    "no such queue": ELSEWHERE["no such queue"],
    "no such number": ELSEWHERE["no such number"],
    "denied by its network": lambda m: replace(m, destination=queue("bynettx")),
}


@pytest.mark.parametrize("change", STREAMS_ELSEWHERE.values(), ids=STREAMS_ELSEWHERE.keys())
def test_a_refused_stream_drains_and_is_not_kept(
    appliance: Appliance, topics: Topics, change: Callable[[Message], Message]
) -> None:
    """Its order acks say its own numbers, whichever they are: nothing was remembered."""
    source = uuid4()
    with session(appliance, source, local=STRANGE_IP) as sender:
        for number, previous in ((5, 0), (6, 5), (3, 2)):
            sender.send_all_windowed([change(step(source, number, previous))], soon(20))
        assert sorted(set(order_acks(sender.kept))) == [(SEQUENCE, n) for n in (3, 5, 6)]
    assert streams_of(appliance, source) == 0
    for number in (5, 6, 3):
        refused = change(step(source, number))
        assert [verdict for verdict, _ in topics.verdicts(refused)] == ["rejected"]


def test_messages_for_another_queue_manager_stay_at_their_sender(
    appliance: Appliance, topics: Topics
) -> None:
    """MS-MQQB 3.1.5.8.2: a message in transit that cannot be saved is disregarded before it is
    counted. No ack of any kind covers it, and it leaves no id and no stream."""
    source = uuid4()
    ours, later = plain(source, next(_ids)), plain(source, next(_ids))
    for foreign in (plain(source, later.message_id), step(source, 5, 0), step(source, 3, 2)):
        before = counted(appliance, "other-queue-manager")
        strays = [replace(foreign, destination=private(7), queue_manager=UUID(int=77))]
        with session(appliance, source, local=STRANGE_IP) as sender:
            sender.transmit([ours, *strays], keep=False)
            with suppress(HungUpError):
                sender.read_to_end(soon(10))
            assert sender.acked == 1  # what came before it
            assert sender.kept == []
        wait_counted(appliance, "other-queue-manager", before + 1)
        assert topics.verdicts(strays[0]) == [("busy", "other-queue-manager")]
        assert topics.rejects(strays[0]) == []
    assert streams_of(appliance, source) == 0
    with session(appliance, source, local=STRANGE_IP) as sender:
        sender.send_all_windowed([later])
    assert topics.bodies("plain", source) == [ours.body, later.body]


def streams_of(appliance: Appliance, source: UUID) -> int:
    status, text = appliance.get(f"/api/streams?search={source}")
    assert status == 200, text
    return text.count(str(source))


def test_what_is_kept_after_a_kill_and_what_is_not(appliance: Appliance, topics: Topics) -> None:
    """The same GUID from another address: `allow` decides before the stream is looked at. Ids of
    plain messages are known again, for the queues that they were sent to."""
    source, name = uuid4(), queue("bynettx")
    spoofed = step(source, 2**32 - 1, 0, destination=name, sequence=2**64 - 1)
    ids = plain(source, next(_ids))
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1, destination=name), ids])
        impersonate(appliance, source, [spoofed])
        victim.send_all_windowed([step(source, 2, destination=name)])
    appliance.restart(empty_data=True, kill=True)
    impersonate(appliance, source, [spoofed])
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 3, destination=name), ids])
        victim.send_all_windowed([replace(ids, destination=queue("plain2"))])
    assert topics.bodies("bynettx", source) == [b"step 1", b"step 2", b"step 3"]
    assert topics.bodies("plain", source) == topics.bodies("plain2", source) == [ids.body]


def with_user(message: Message, sid: bytes) -> Message:
    return replace(message, security=security_header(sid))


OWN_REASONS: dict[str, tuple[str, Callable[[Message], Message]]] = {
    "its user": ("bysid", lambda m: with_user(m, OTHER_SID)),
    "its time": ("bysid", lambda m: replace(with_user(m, SID), sent_time=1, ttrq=1)),
    "its size": ("small", lambda m: replace(m, body=b"b" * 2000)),
    "its kind": ("plain", lambda m: m),
}


@pytest.mark.parametrize(("name", "change"), OWN_REASONS.values(), ids=OWN_REASONS.keys())
def test_a_sender_that_is_refused_for_a_reason_of_its_own_goes_on(
    appliance: Appliance, topics: Topics, name: str, change: Callable[[Message], Message]
) -> None:
    """Its stream moves over the message that was refused, and does not wait for it."""
    source = uuid4()

    def good(number: int) -> Message:
        return with_user(step(source, number, destination=queue(name)), SID)

    bad = change(step(source, 2, destination=queue(name)))
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([good(1), bad, good(3)], soon(20))
        assert order_acks(sender.kept)[-1] == (SEQUENCE, 3)
        sender.send_all_windowed([good(2)], soon(20))  # behind: it had its verdict
        assert order_acks(sender.kept)[-1] == (SEQUENCE, 3)
    expected = [] if name == "plain" else [b"step 1", b"step 3"]
    assert topics.bodies(name, source) == expected


@pytest.mark.parametrize(
    ("guid", "local", "is_allowed"),
    [
        (FRIEND, VICTIM_IP, True),
        (FRIEND, STRANGE_IP, False),
        (UUID(int=3), VICTIM_IP, False),
        (UUID(int=4), STRANGE_IP, False),
    ],
    ids=["both", "another address", "another GUID", "neither"],
)
def test_allow_by_guid_and_network(
    appliance: Appliance, topics: Topics, guid: UUID, local: str, is_allowed: bool
) -> None:
    """`GUID@network`: one of the two is not enough."""
    message, ordinal = plain(guid, next(_ids), queue("guarded")), 1
    stream = step(guid, ordinal, destination=queue("guardedtx"), sequence=SEQUENCE + next(_ids))
    stream = replace(stream, message_id=next(_ids), body=b"judge me")
    with session(appliance, guid, local=local) as sender:
        sender.send_all_windowed([message, stream], soon(20))
    for one in (message, stream):
        expected = ("accepted", "") if is_allowed else ("rejected", "sender-not-allowed")
        assert topics.verdicts(one) == [expected]
        assert len(topics.rejects(one)) == (not is_allowed)


def test_a_friends_guid_from_elsewhere_takes_nothing_from_the_friend(
    appliance: Appliance, topics: Topics
) -> None:
    """The stranger comes first, with the very ids and numbers that the friend will send."""
    ids = [next(_ids) for _ in range(3)]
    sequence = SEQUENCE + next(_ids)
    messages = [plain(FRIEND, n, queue("guarded")) for n in ids]
    for n in (1, 2):
        one = step(FRIEND, n, destination=queue("guardedtx"), sequence=sequence)
        messages.append(replace(one, message_id=next(_ids), body=f"{sequence} {n}".encode()))
    taken = 2**64 - 1
    spoofed = [step(FRIEND, 9, 0, destination=queue("guardedtx"), sequence=taken), *messages]
    assert impersonate(appliance, FRIEND, spoofed) in (0, len(spoofed))
    with session(appliance, FRIEND, local=VICTIM_IP) as friend:
        friend.send_all_windowed(messages[:4], soon(20))
        impersonate(appliance, FRIEND, spoofed)
        friend.send_all_windowed(messages[4:], soon(20))
    bodies = topics.bodies("guarded", FRIEND) + topics.bodies("guardedtx", FRIEND)
    assert [body for body in bodies if body in {one.body for one in messages}] == [
        one.body for one in messages
    ]


# -- routers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guid", "local"),
    [(None, ROUTER_IP), (None, "127.50.3.4"), (ROUTER, "127.0.0.60")],
    ids=["address", "network", "GUID"],
)
def test_a_router_brings_messages_of_others(
    appliance: Appliance, topics: Topics, guid: UUID | None, local: str
) -> None:
    """Its session gets the order acks of every source, because it is the way back to them."""
    before = counted(appliance, CLOSED)
    one, two = uuid4(), uuid4()
    with session(appliance, guid, local=local) as router:
        brought = [step(one, 1), plain(two, 5), step(two, 1), plain(router.guid, next(_ids))]
        router.send_all_windowed(brought, soon(20))
    assert topics.bodies("orders", one) == topics.bodies("orders", two) == [b"step 1"]
    assert topics.bodies("plain", two) == [b"plain 5"]
    assert counted(appliance, CLOSED) == before
    with session(appliance, one, local=VICTIM_IP) as sender:  # the source may come by itself, too
        sender.send_all_windowed([step(one, 2)])
    assert topics.bodies("orders", one) == [b"step 1", b"step 2"]


# -- one odd message does not stop the others ------------------------------------------------

HALF = "\ud800"
ODD: dict[str, Callable[[Message], Message]] = {
    "host of the administration queue": lambda m: asking(m, f"OS:{HALF}\\private$\\admin"),
    "other half of a pair": lambda m: asking(m, "OS:\udfff\\private$\\admin"),
    "TCP address": lambda m: asking(m, f"TCP:{HALF}\\private$\\admin"),
    "HTTP address": lambda m: asking(m, f"http://{HALF}/msmq/private$/admin"),
    "administration queue": lambda m: asking(m, f"OS:SENDER09\\private$\\{HALF}"),
    "administration queue of ours": lambda m: asking(m, f"OS:BRIDGE01\\private$\\{HALF}"),
    "a host of zeros": lambda m: asking(m, "OS:\0\0\\private$\\admin"),
    "a host without a label": lambda m: asking(m, "OS:a..b\\private$\\admin"),
    "a host with a long label": lambda m: asking(m, f"OS:{'h' * 300}\\private$\\admin"),
    "a host that no DNS can have": lambda m: asking(m, f"OS:{'é' * 80}\\private$\\admin"),
    "half an address": lambda m: asking(m, "TCP:[::1\\private$\\admin"),
    "response queue": lambda m: replace(m, response=odd_direct(f"OS:{HALF}\\private$\\r")),
    "destination": lambda m: asking(
        replace(m, destination=odd_direct(f"OS:{HALF}\\private$\\plain")), "OS:x\\private$\\a"
    ),
    "queue of the destination": lambda m: replace(
        m, destination=odd_direct(f"OS:BRIDGE01\\private$\\{HALF}")
    ),
    "several destinations": lambda m: replace(m, multi=odd_destinations(HALF)),
}


def asking(message: Message, admin: str) -> Message:
    return replace(message, admin=odd_direct(admin), acks=ACK_PA | ACK_PR | ACK_NA)


def odd_destinations(name: str) -> bytes:
    return several("plain", "HALF").replace(
        "HALF".encode("utf-16-le"), (name * 4).encode("utf-16-le", "surrogatepass")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """One write: every odd message between two good ones."""

    odd: dict[str, Message]
    good: list[Message]


def mixed(source: UUID, *, transactional: bool) -> Mixed:
    found: dict[str, Message] = {}
    for number, (name, change) in enumerate(ODD.items(), 1):
        made = plain(source, number)
        if transactional:
            made = step(source, number, destination=queue("many"))
        found[name] = change(replace(made, body=b"odd"))
    return Mixed(odd=found, good=[plain(source, 100 + n) for n in range(len(found) + 1)])


@pytest.fixture(scope="module")
def odd_ones(appliance: Appliance) -> dict[bool, Mixed]:
    """Sent, and acknowledged all of them; and another sender is served before and after it."""
    made: dict[bool, Mixed] = {}
    other, pid = uuid4(), appliance.pid
    with session(appliance, other, local=VICTIM_IP) as neighbour:
        for number, transactional in enumerate((False, True), 1):
            with session(appliance, local=STRANGE_IP) as sender:
                made[transactional] = mixed(sender.guid, transactional=transactional)
                good, odd = made[transactional].good, made[transactional].odd.values()
                pairs = [one for pair in zip(good, odd, strict=False) for one in pair]
                sender.transmit([*pairs, good[-1]], keep=False)
                sender.until(lambda: sender.acked == len(pairs) + 1)  # noqa: B023
            neighbour.send_all_windowed([step(other, number), plain(other, 10 + number)], soon(20))
    assert appliance.pid == pid
    assert appliance.process.poll() is None
    assert appliance.is_ready()
    return made


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
@pytest.mark.parametrize("name", ODD)
def test_one_odd_string_is_its_own_trouble(
    odd_ones: dict[bool, Mixed], topics: Topics, name: str, transactional: bool
) -> None:
    """Whatever becomes of it: it has one verdict."""
    assert len(topics.verdicts(odd_ones[transactional].odd[name])) == 1


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
def test_odd_strings_do_not_harm_others(
    odd_ones: dict[bool, Mixed], topics: Topics, transactional: bool
) -> None:
    good = odd_ones[transactional].good
    found = topics.bodies("plain", good[0].source)
    assert [body for body in found if body != b"odd"] == [one.body for one in good]
