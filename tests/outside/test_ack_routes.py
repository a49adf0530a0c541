"""Where acknowledgments go and how long they wait. QB-22, QB-112, QB-114; design D1, 3.2"""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings, number_of, queue
from tests.outside.expected import expected_administration_ack, expected_final_ack
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_NR,
    ACK_PA,
    ACK_PR,
    NONE,
    ZERO,
    Message,
    Name,
    SessionHeader,
    Tx,
    direct,
    private,
    private_on,
    public,
    session_ack,
)
from tests.outside.rawparse import Received
from tests.outside.rawpeer import RawPeer, Recorder
from tests.outside.rawsender import soon
from tests.outside.reader import Reader
from tests.outside.records import Record, identity, of_source, read_topic, until
from tests.outside.srmp.catcher import Catcher

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
_ids = count(1)
SEQUENCE = 0x65000000_00000400
PUBLIC_QUEUE = UUID("77777777-0000-4000-8000-000000000005")
ACKS = (0x0002, 0x4000)
Peers = dict[str, RawPeer]


@pytest.fixture(scope="module")
def peers() -> Iterator[Peers]:
    """One for each test that is called back; all of them are away until they listen."""
    names = (
        "private", "tcp", "os", "case", "public", "inbound", "never", "flags", "patient", "away",
        "counted", "public same",
    )  # fmt: skip
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(RawPeer(f"127.0.0.{number}"))
            for number, name in enumerate(names, 11)
        }
        for name in ("learned", "learned away"):
            ip = f"127.0.0.{11 + len(made)}"
            made[name] = stack.enter_context(RawPeer(ip, port=1801))
        yield made


@pytest.fixture(scope="module")
def settings(peers: Peers) -> Settings:
    by_guid = ("private", "inbound", "never", "flags", "patient", "away", "public same")
    return Settings(
        queues={"acks": {}},
        manager={"insecure_nacks": True},
        peers={
            **{str(peers[name].guid): peers[name].address for name in by_guid},
            peers["tcp"].ip: peers["tcp"].address,
            "SENDER02": peers["os"].address,
            "Sender03": peers["case"].address,
            str(PUBLIC_QUEUE): peers["public"].address,
        },
    )


def asking(source: UUID, admin: Name, *, acks: int = ACK_PA | ACK_PR) -> Message:
    number = next(_ids)
    return Message(
        source=source,
        message_id=number,
        destination=queue("plain"),
        admin=admin,
        acks=acks,
        body=b"message %d" % number,
        label=f"asks {number}",
        recoverable=True,
    )


@contextmanager
def sending(
    appliance: Appliance,
    guid: UUID | None = None,
    *,
    local: str | None = None,
    auto_ack: bool = True,
) -> Iterator[Recorder]:
    with Recorder(appliance.binary_address, guid, auto_ack=auto_ack) as sender:
        sender.local = local or sender.local
        sender.connect().handshake()
        yield sender


def correlation(message: Message) -> bytes:
    return message.source.bytes_le + struct.pack("<I", message.message_id)


def classes_for(message: Message, packets: list[Received]) -> list[int]:
    return [one.message_class for one in packets if one.correlation == correlation(message)]


def settle(sender: Recorder) -> None:
    """A message of which the acks come here: all that was due before it has come by then."""
    last = asking(sender.guid, private(1, code=2), acks=ACK_PA)
    sender.send_all_windowed([last])
    sender.until(lambda: classes_for(last, sender.kept))


def waiting(appliance: Appliance) -> int:
    return int(appliance.status()["waiting_acks"])


def wait_until_delivered(appliance: Appliance, before: int) -> None:
    """No more acks wait than before: those of another test may."""
    deadline = soon(10)
    while (now := waiting(appliance)) > before:
        assert soon(0) < deadline, f"{now} acks wait, {before} did before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    peer: str
    admin: Callable[[RawPeer], Name]
    destination: Callable[[RawPeer], Name]
    calls_by_guid: bool = False  # ServerGuid and QueueManagerAddress are the peer's. QB-20


ROUTES = {
    "AQ=6": Route(
        peer="private",
        admin=lambda peer: private_on(peer.guid, 0x77),
        destination=lambda peer: private(0x77),
        calls_by_guid=True,
    ),
    "AQ=7 TCP": Route(
        peer="tcp",
        admin=lambda peer: direct(f"TCP:{peer.ip}\\private$\\acks"),
        destination=lambda peer: direct(f"TCP:{peer.ip}\\private$\\acks"),
    ),
    "AQ=7 OS": Route(
        peer="os",
        admin=lambda peer: direct("OS:SENDER02\\private$\\acks"),
        destination=lambda peer: direct("OS:SENDER02\\private$\\acks"),
    ),
    "AQ=7 OS in another case": Route(
        peer="case",
        admin=lambda peer: direct("os:sENDER03\\acks"),
        destination=lambda peer: direct("os:sENDER03\\acks"),
    ),
    "AQ=5": Route(
        peer="public",
        admin=lambda peer: public(PUBLIC_QUEUE),
        destination=lambda peer: public(PUBLIC_QUEUE),
    ),
    "AQ=5, its queue manager has the same GUID": Route(
        peer="public same",
        admin=lambda peer: public(peer.guid),
        destination=lambda peer: public(peer.guid),
    ),
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES.keys())
def test_acks_go_to_the_queue_manager_of_the_admin_queue(
    appliance: Appliance, peers: Peers, route: Route
) -> None:  # QB-112, QB-20, QB-23
    peer = peers[route.peer].listen()
    with sending(appliance) as sender:
        message = asking(sender.guid, route.admin(peer))
        sender.send_all_windowed([message])
        session = peer.accept()
        session.until(lambda: len(session.kept) >= 2)
        assert sender.kept == []
    assert session.request is not None
    assert session.request.client == appliance.guid
    if not route.peer.startswith("public"):
        assert session.request.server == (peer.guid if route.calls_by_guid else ZERO)
    for packet, message_class in zip(session.kept, ACKS, strict=True):
        assert packet.raw == expected_administration_ack(
            packet,
            server=appliance.guid,
            acked=message,
            message_class=message_class,
            destination=route.destination(peer),
            queue_manager=_queue_manager(route, peer),
        )
    session.expect_nothing(0.7)


def _queue_manager(route: Route, peer: RawPeer) -> UUID:
    """MS-MQMQ 2.2.19.2: "If the message is sent to a public or private queue, this field MUST be
    set to the GUID of the destination queue manager. If the message is sent to a queue that uses
    a direct format name, then this field MUST contain a NULL GUID." """
    is_direct = route.destination(peer).code == 7
    return ZERO if is_direct else peer.guid


def test_an_open_session_is_used_whoever_opened_it(
    appliance: Appliance, peers: Peers
) -> None:  # QB-22
    peer = peers["inbound"].listen()
    with sending(appliance) as sender, sending(appliance, peer.guid, local=peer.ip) as inbound:
        message = asking(sender.guid, private_on(peer.guid, 9))
        sender.send_all_windowed([message])
        inbound.until(lambda: len(inbound.kept) >= 2)
        assert classes_for(message, inbound.kept) == [*ACKS]
        assert sender.kept == []
    peer.expect_no_call(1)


def take_and_drop(appliance: Appliance, peer: RawPeer, messages: list[Message]) -> list[Received]:
    """The acks come over the sender's session, it does not session-ack them, and is gone."""
    with sending(appliance, peer.guid, local=peer.ip, auto_ack=False) as sender:
        sender.transmit(messages)
        sender.until(lambda: not sender.table)
        sender.until(lambda: len(sender.administration) >= 2 * len(messages))
        return sender.kept


def without_piggyback(packet: Received) -> bytes:
    """SessionHeaders are of their session; the rest of a message stays as it was."""
    if packet.session is None:
        return packet.raw
    flags = struct.unpack_from("<H", packet.raw, 2)[0] & ~0x10
    return packet.raw[:2] + struct.pack("<H", flags) + packet.raw[4:-16]


def test_unacked_acks_are_sent_again_with_the_same_ids(
    appliance: Appliance, peers: Peers
) -> None:  # QB-52, QB-53, DM-1: one message, one id
    peer = peers["never"].listen()
    before = waiting(appliance)
    messages = [asking(peer.guid, private(5, code=2)) for _ in range(3)]
    first = take_and_drop(appliance, peer, messages)
    for _ in range(2):
        session = peer.accept(auto_ack=False)
        session.until(lambda: len(session.kept) >= 6)  # noqa: B023
        assert [without_piggyback(one) for one in session.kept] == [
            without_piggyback(one) for one in first
        ]
        peer.hang_up()
    session = peer.accept()
    session.until(lambda: len(session.kept) >= 6)
    assert [one.message_id for one in session.kept] == [one.message_id for one in first]
    wait_until_delivered(appliance, before)


def test_a_count_alone_does_not_free_a_recoverable_ack(
    appliance: Appliance, peers: Peers
) -> None:  # QB-48: express by the count, recoverable by its flag
    peer = peers["flags"].listen()
    express = replace(asking(peer.guid, private(5, code=2)), recoverable=False)
    durable = asking(peer.guid, private(5, code=2))
    take_and_drop(appliance, peer, [express, durable])
    session = peer.accept(auto_ack=False)
    session.until(lambda: len(session.kept) >= 4)
    session.send(session_ack(SessionHeader(ack=4)))
    wait_until_read(appliance, session)
    peer.hang_up()
    again = peer.accept()
    again.until(lambda: len(again.kept) >= 2)
    assert classes_for(durable, again.kept) == [*ACKS]
    again.expect_nothing(0.7)
    assert classes_for(express, again.kept) == []


def wait_until_read(appliance: Appliance, session: Recorder) -> None:
    """A message we send behind our session ack is acked: so the ack before it was read."""
    message = replace(asking(session.guid, NONE, acks=0), recoverable=True)
    session.transmit([message])
    deadline = soon(15)
    while session.table:
        session.read_packet(deadline)


def test_a_sender_that_has_gone_is_called_where_it_came_from(
    appliance: Appliance, peers: Peers
) -> None:  # data-model 2.12: the address is learned from its session
    peer = peers["learned"].listen()
    message = asking(peer.guid, private(5, code=2))
    first = take_and_drop(appliance, peer, [message])
    session = peer.accept()
    session.until(lambda: len(session.kept) >= 2)
    assert [one.message_id for one in session.kept] == [one.message_id for one in first]
    assert session.request is not None
    assert session.request.server in (ZERO, peer.guid)


def ordered(source: UUID, number: int) -> Message:
    return replace(
        asking(source, private(5, code=2)),
        destination=queue("orders"),
        tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1, final_ack=True),
    )


def check_delivered(
    appliance: Appliance, peer: RawPeer, messages: list[Message], first: list[Received]
) -> None:
    """All of them, once, with the ids they had when they were first seen."""
    acks = [one for one in peer.receive(13, 30) if not one.is_order_ack]
    for message in messages:
        assert classes_for(message, acks) == [*ACKS]
    [final] = [one for one in acks if one.is_final_ack]
    tx = messages[-1].tx
    assert tx is not None
    assert final.raw == expected_final_ack(
        final,
        server=appliance.guid,
        peer=peer.ip,
        tx=tx,
        source=peer.guid,
        message_id=messages[-1].message_id,
    )
    known = {(one.correlation, one.message_class): one.message_id for one in first}
    for one in acks:
        key = (one.correlation, one.message_class)
        assert known.get(key, one.message_id) == one.message_id, "a second copy has another id"


def test_acks_outlive_the_bridge(appliance: Appliance, peers: Peers) -> None:
    """Two senders, one in `peers` and one whose address was learned, are away longer than the
    bridge lives; nothing in the data folder is needed. design 3.2"""
    before = waiting(appliance)
    gone = [peers["away"], peers["learned away"]]
    first, sent = [], []
    for peer in gone:
        plain = [asking(peer.guid, private(5, code=2)) for _ in range(5)]
        sent.append([*plain, ordered(peer.guid, 1)])
        first.append(take_and_drop(appliance, peer, sent[-1]))
    appliance.restart(empty_data=True, kill=True)
    for peer in gone:
        peer.listen()
    for peer, messages, seen in zip(gone, sent, first, strict=True):
        check_delivered(appliance, peer, messages, seen)
    wait_until_delivered(appliance, before)
    for peer in gone:
        peer.sessions[-1].expect_nothing(0.7)
        peer.hang_up()
    appliance.restart(empty_data=True, kill=True)
    gone[0].expect_no_call(6)  # longer than the retry timer: they are delivered and forgotten
    gone[1].expect_no_call(0)


def test_acks_wait_for_a_sender_that_comes_back_by_itself(
    appliance: Appliance, peers: Peers
) -> None:  # QB-22: over the new session it opens
    peer = peers["patient"]
    messages = [asking(peer.guid, private(5, code=2)) for _ in range(3)]
    first = take_and_drop(appliance, peer, messages)
    with sending(appliance, peer.guid, local=peer.ip) as sender:
        sender.until(lambda: len(sender.kept) >= 6)
        assert [one.message_id for one in sender.kept] == [one.message_id for one in first]
        settle(sender)
        assert len(sender.kept) == 7


def test_a_duplicate_is_not_acknowledged_again(appliance: Appliance) -> None:  # QB-71, QB-83
    guid = uuid4()
    messages = [
        asking(guid, private(5, code=2)),
        replace(asking(guid, private(5, code=2)), recoverable=False),
        replace(asking(guid, private(5, code=2), acks=ACK_NA), destination=queue("orders")),
        ordered(guid, 1),
    ]
    with sending(appliance, guid) as sender:
        sender.send_all_windowed(messages)
        settle(sender)
        told = [one.message_class for one in sender.administration]
        assert sorted(told) == sorted([*ACKS, *ACKS, 0x800A, *ACKS, 0x0002])
    with sending(appliance, guid) as sender:
        sender.send_all_windowed(messages)
        settle(sender)
        assert [one.message_class for one in sender.administration] == [0x0002]
        assert not any(one.is_final_ack for one in sender.kept)


@pytest.mark.parametrize("window", [64, 1], ids=["acks on the wire", "acks not sent yet"])
def test_killed_after_the_commit(appliance: Appliance, window: int) -> None:
    """The sender has confirmed no ack and resends all of it; each ack comes once, with the id it
    may have had before. A window of 1 holds all acks but the first one back."""
    guid = uuid4()
    messages = [asking(guid, private(5, code=2)) for _ in range(20)]
    messages += [ordered(guid, number) for number in range(1, 11)]
    topics = [appliance.topic("plain"), appliance.topic("orders")]
    with Reader(appliance.bootstrap, topics) as reader:
        sender = Recorder(
            appliance.binary_address,
            guid,
            window=window,
            recoverable_ack_ms=60_000,
            auto_ack=False,
        )
        sender.connect().handshake()
        sender.transmit(messages)
        while len(reader.of(guid)) < len(messages):
            assert appliance.process.poll() is None
        appliance.kill()
        sender.read_to_end()
        seen = sender.kept
        assert len(seen) <= window  # QB-50
        appliance.restart(empty_data=True)
        sender.window, sender.auto_ack, sender.recoverable_ack_ms = 64, True, 500
        sender.table.clear()
        sender.unsent.extend(messages)
        sender.resume(appliance.binary_address)
        sender.send_all_windowed(deadline=soon(30))
        settle(sender)
        sender.until(lambda: len(sender.administration) >= 2 * len(messages) + 1)
        sender.close()
        assert len(reader.of(guid)) == len(messages) + 1
    for message in messages:
        assert classes_for(message, sender.kept) == [*ACKS]
    finals = [one for one in sender.kept if one.is_final_ack]
    assert sorted(one.sequence[1] for one in finals) == list(range(1, 11))
    before = {_key(one): one.message_id for one in seen if not one.is_order_ack}
    after = {_key(one): one.message_id for one in sender.kept if not one.is_order_ack}
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after)


def _key(packet: Received) -> tuple[bytes, int]:
    return (
        packet.body[16:] if packet.is_final_ack else packet.correlation,
        packet.message_class | packet.is_final_ack << 16,
    )


def test_ids_never_repeat(appliance: Appliance, peers: Peers) -> None:  # DM-1, QB-152
    peer = peers["counted"]
    ids: list[int] = []
    before = waiting(appliance)
    for number in range(1, 5):
        with sending(appliance, peer.guid) as sender:
            sender.transmit([asking(peer.guid, private(5, code=2)), ordered(peer.guid, number)])
            sender.until(lambda: not sender.table)
            sender.until(lambda: len(sender.kept) >= 6)
            settle(sender)
            assert len(sender.kept) == 7  # 5 acks for administration, a final and an order ack
            ids += sorted(one.message_id for one in sender.kept)
            wait_until_delivered(appliance, before)
        if number < 4:
            appliance.restart(empty_data=True, kill=True)
    assert ids == sorted(set(ids))


def test_no_acks_of_acks(appliance: Appliance) -> None:  # DM-19, QB-5: but they are delivered
    kinds = (0x0002, 0x4000, 0x8003, 0x8000, 0xC002)
    with sending(appliance) as sender:
        template = asking(sender.guid, private(5, code=2), acks=15)
        to_plain = [replace(template, message_id=next(_ids), message_class=kind) for kind in kinds]
        to_nowhere = [
            replace(one, message_id=next(_ids), destination=queue("nowhere")) for one in to_plain
        ]
        sender.send_all_windowed([*to_plain, *to_nowhere])
        settle(sender)
        assert [one.message_class for one in sender.kept] == [0x0002]
    found = of_source(read_topic(appliance.bootstrap, appliance.topic("plain")), sender.guid)
    ids = {record.header["msmq.id"] for record in found}
    assert {identity(one.source, one.message_id) for one in to_plain} <= ids


SYSTEM_QUEUES = {
    "order queue by name": (direct("OS:BRIDGE01\\PRIVATE$\\order_queue$"), False),
    "order queue by number": (private(4), True),
    "notify queue by name": (direct("OS:BRIDGE01\\private$\\notify_queue$"), False),
    "notify queue by number": (private(3), True),
}


@pytest.mark.parametrize(
    ("destination", "addressed"), SYSTEM_QUEUES.values(), ids=SYSTEM_QUEUES.keys()
)
def test_no_acks_for_messages_to_system_queues(
    appliance: Appliance, destination: Name, addressed: bool
) -> None:  # QB-114, note 62
    with sending(appliance) as sender:
        template = replace(
            asking(sender.guid, private(5, code=2), acks=15),
            destination=destination,
            queue_manager=appliance.guid if addressed else ZERO,
        )
        messages = [
            replace(template, message_id=next(_ids), recoverable=kind) for kind in (True, False)
        ]
        sender.send_all_windowed(messages)
        settle(sender)
        assert [one.message_class for one in sender.kept] == [0x0002]


NOWHERE = {
    "no admin queue": NONE,  # QB-115
    "unknown public queue": public(UUID(int=0x1234)),
    "unknown queue manager": private_on(UUID(int=0x4321), 7),
    "unknown host": direct("OS:nobody.invalid\\private$\\acks"),
    "not by this protocol": direct("HTTP://nobody.invalid/msmq/private$/acks"),
}


@pytest.mark.parametrize("admin", NOWHERE.values(), ids=NOWHERE.keys())
def test_an_admin_queue_that_cannot_be_reached_harms_nobody(
    appliance: Appliance, admin: Name
) -> None:  # QB-114
    with sending(appliance) as sender:
        messages = [
            asking(sender.guid, admin, acks=15),
            replace(asking(sender.guid, admin, acks=15), recoverable=False),
            replace(asking(sender.guid, admin, acks=15), destination=queue("nowhere")),
        ]
        sender.send_all_windowed(messages)
        settle(sender)
        assert [one.message_class for one in sender.kept] == [0x0002]
    found = of_source(read_topic(appliance.bootstrap, appliance.topic("plain")), sender.guid)
    assert len(found) == 3  # two of these and the last one
    assert appliance.is_ready()
    assert "Traceback" not in appliance.log


WEB_SENDER = "127.0.0.71"


def test_an_admin_queue_behind_http(appliance: Appliance) -> None:
    """MC-MQSRM 2.2.5.4, 2.2.5.5: the ack is a delivery or a commitment receipt. It is kept until it
    is taken, over a restart, too, and has the same id then."""
    with Catcher() as catcher:
        box = catcher.box(WEB_SENDER)
        with sending(appliance, local=WEB_SENDER) as sender:
            message = asking(sender.guid, direct(box.url))
            late = asking(sender.guid, direct(box.url), acks=ACK_PA | ACK_NR)
            sender.send_all_windowed([message, replace(late, ttbr=0)])
            found = box.until(lambda got: len({one.number for one in got}) == 4)
        wanted = {
            (acked_id(message), 0x0002, "delivery", ""),
            (acked_id(message), 0x4000, "commitment", "positive"),
            (acked_id(late), 0x0002, "delivery", ""),
            (acked_id(late), 0xC002, "commitment", "negative"),
        }
        assert {(one.acked, one.kind, one.type, one.decision) for one in found} == wanted
        assert all(one.to == box.url for one in found)
        away = catcher.box(WEB_SENDER)
        catcher.down()
        with sending(appliance, local=WEB_SENDER) as sender:
            message = asking(sender.guid, direct(away.url), acks=ACK_PA)
            sender.send_all_windowed([message])
            settle(sender)
        appliance.kill()
        catcher.up()
        appliance.start()
        assert [one.kind for one in away.wait(1)] == [0x0002]


@pytest.mark.parametrize(
    ("admin", "acks"),
    [
        (public(UUID(int=0x1234)), ACK_PA),
        (direct("SPX:00000001:000000000001\\private$\\acks"), ACK_PA),
        (direct("HTTP://127.0.0.71/msmq/private$/acks"), ACK_NA),  # SRMP has no such receipt
    ],
    ids=["public", "spx", "http"],
)
def test_an_ack_that_cannot_be_sent_is_counted_and_logged(
    appliance: Appliance, admin: Name, acks: int
) -> None:
    before, lines = refusals(appliance), appliance.log.count("are not sent:")
    with sending(appliance, local=WEB_SENDER) as sender:
        for _ in range(2):
            message = asking(sender.guid, admin, acks=acks)
            late = replace(message, sent_time=1000, ttrq=1) if acks == ACK_NA else message
            sender.send_all_windowed([late])
        settle(sender)
    assert refusals(appliance) == before + 2
    assert appliance.log.count("are not sent:") == lines + 1


def acked_id(message: Message) -> str:
    return f"uuid:{message.message_id}@{message.source}"


def refusals(appliance: Appliance) -> int:
    pattern = r'^msmq_bridge_refusals_total{reason="ack-undeliverable"} (\S+)$'
    found = re.search(pattern, appliance.get("/metrics")[1], re.M)
    return int(float(found[1])) if found else 0


OURS = {
    "AQ=3, addressed by GUID": lambda us: (private(number_of("acks")), us),
    "AQ=3, addressed directly": lambda us: (private(number_of("acks")), ZERO),
    "AQ=6": lambda us: (private_on(us, number_of("acks")), ZERO),
    "AQ=7": lambda us: (direct("OS:BRIDGE01\\private$\\acks"), ZERO),
    "AQ=7 HTTP": lambda us: (direct("HTTP://BRIDGE01/msmq/private$/acks"), ZERO),
    "AQ=7 TCP": lambda us: (direct("TCP:127.0.0.1\\private$\\acks"), ZERO),
}


@pytest.mark.parametrize("form", OURS.values(), ids=OURS.keys())
def test_an_ack_to_a_queue_of_the_bridge_is_a_record(
    appliance: Appliance, form: Callable[[UUID], tuple[Name, UUID]]
) -> None:  # QB-112
    admin, queue_manager = form(appliance.guid)
    with sending(appliance) as sender:
        message = replace(
            asking(sender.guid, admin, acks=ACK_PA | ACK_PR | ACK_NA), queue_manager=queue_manager
        )
        refused = replace(message, message_id=next(_ids), destination=queue("orders"))
        sender.send_all_windowed([message, refused])
        settle(sender)
        assert [one.message_class for one in sender.kept] == [0x0002]
    records = until(
        lambda: acks_here(appliance, message, refused), lambda found: len(found) >= 3, seconds=5
    )
    told = [
        (record.header["msmq.correlation"], int(record.header["msmq.class"])) for record in records
    ]
    assert sorted(told) == sorted(
        [*((correlation(message), one) for one in ACKS), (correlation(refused), 0x800A)]
    )
    for record in records:
        assert record.header["msmq.source"] == str(appliance.guid).encode()
        assert record.header["msmq.label"] == message.label.encode()
        assert record.header["msmq.queue"].lower() == b"private$\\acks"
        negative = record.header["msmq.correlation"] == correlation(refused)
        assert record.value == (refused.body if negative else b"")
        name = "orders" if negative else "plain"
        wanted = f"DIRECT=OS:BRIDGE01\\private$\\{name}"
        assert record.header["msmq.response"] == wanted.encode()
    assert len({record.header["msmq.id"] for record in records}) == 3


def acks_here(appliance: Appliance, *messages: Message) -> list[Record]:
    wanted = {correlation(message) for message in messages}
    records = read_topic(appliance.bootstrap, appliance.topic("acks"))
    return [one for one in records if one.header.get("msmq.correlation") in wanted]


def test_a_sender_may_change_its_mind_about_who_opens(appliance: Appliance) -> None:
    """A new session of the same sender beside an old one: each ack comes over one of them."""
    guid = uuid4()
    with sending(appliance, guid) as old, sending(appliance, guid) as new:
        message = asking(guid, private(5, code=2), acks=ACK_PA | ACK_NA)
        new.transmit([message])
        new.until(lambda: not new.table)
        seen = [*new.kept]
        if not seen:
            old.until(lambda: old.kept)
            seen = old.kept
        assert classes_for(message, seen) == [0x0002]
        old.expect_nothing(0.3)
        new.expect_nothing(0.3)
