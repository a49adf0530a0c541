"""`pin_senders: enforce`: a GUID speaks from the address it is known at, and from no other."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from uuid import UUID, uuid4

import pytest

from bridge.core.known_senders import MOST_OF_ADDRESS
from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.rawmsmq import ACK_PA, Message, cp_request, direct, ec_request
from tests.outside.rawpeer import RawPeer, Recorder
from tests.outside.rawsender import HungUpError, soon
from tests.outside.records import read_topic, text
from tests.outside.siege import together
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import Flow, Mail, stream_id, url
from tests.outside.strangers import (
    STRANGE_IP,
    VICTIM_IP,
    Topics,
    administration,
    counted,
    impersonate,
    plain,
    session,
    spoof,
    step,
    wait_counted,
)
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
_ids = count(1)
PINNED, FULL = "pinned-elsewhere", "pins-exhausted"
CONFIGURED = UUID("77777777-0000-4000-8000-0000000000cc")
CONFIGURED_IP = "127.0.0.31"
ROUTER_IP = "127.0.0.50"
GUARDED_IP = "127.0.0.32"


@pytest.fixture(scope="module")
def listening_stranger() -> Iterator[RawPeer]:
    with RawPeer(STRANGE_IP) as peer:
        yield peer


@pytest.fixture(scope="module")
def settings(listening_stranger: RawPeer) -> Settings:
    return Settings(
        queues={"bynet": {"allow": [GUARDED_IP], "transactional": True}},
        manager={"pin_senders": "enforce"},
        peers={
            str(CONFIGURED): f"{CONFIGURED_IP}:1801",
            "STRANGERHOST": listening_stranger.address,
        },
        listen={"srmp": 0},
        top={"routers": [ROUTER_IP]},
    )


@pytest.fixture(scope="module")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


def post(appliance: Appliance, mail: Mail, local: str) -> int:
    poster = Poster(appliance.srmp_address)
    poster.local = local
    with poster.connect():
        return poster.post(mail)


def mail_of(source: UUID) -> Mail:
    return Mail(to=url("plain"), source=source, body=f"mail {next(_ids)} {source}".encode())


def wait_known(appliance: Appliance, *guids: UUID) -> None:
    """Until Kafka has the addresses of these: they are committed a moment after the messages."""

    def is_kept() -> bool:
        records = read_topic(appliance.bootstrap, f"{appliance.prefix}.state")
        keys = [record.key or b"" for record in records]
        return all(any(text(guid) in key for key in keys) for guid in guids)

    eventually(is_kept, 20)


def burst(guid: UUID) -> list[Message]:
    """What would do harm if it were heard."""
    return [step(guid, 9, 0, sequence=2**64 - 1), *(plain(guid, n) for n in range(1, 9))]


def test_a_known_guid_from_another_address(appliance: Appliance, topics: Topics) -> None:
    """While its owner is connected, when it has gone, and after kill -9 on an empty folder."""
    source, by_http, before = uuid4(), uuid4(), counted(appliance, PINNED)
    mine, spoofed, again = (mail_of(by_http) for _ in range(3))
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
        assert impersonate(appliance, source, burst(source)) == 0
        victim.send_all_windowed([step(source, 2)])  # its own session was left alone
    assert impersonate(appliance, source, burst(source)) == 0
    wait_counted(appliance, PINNED, before + 2)
    assert [post(appliance, mine, VICTIM_IP), post(appliance, spoofed, STRANGE_IP)] == [200, 503]
    wait_counted(appliance, PINNED, before + 3)
    wait_known(appliance, source, by_http)
    appliance.restart(empty_data=True, kill=True)
    assert impersonate(appliance, source, burst(source)) == 0
    wait_counted(appliance, PINNED, 1)
    assert [post(appliance, spoofed, STRANGE_IP), post(appliance, again, VICTIM_IP)] == [503, 200]
    assert topics.bodies("plain", by_http) == [mine.body, again.body]
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 3), plain(source, 5)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2", b"step 3"]
    assert topics.bodies("plain", source) == [b"plain 5"]


def test_all_in_one_write(appliance: Appliance, topics: Topics) -> None:
    """Handshake and messages come in the same read: nothing of it is heard."""
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([plain(source, 100)])
    with Recorder(appliance.binary_address, source) as stranger:
        stranger.local = STRANGE_IP
        stranger.connect()
        stranger.open = True
        stranger.send(ec_request(source) + cp_request())
        stranger.transmit(burst(source), keep=False)
        stranger.read_to_end(soon(10))
        assert stranger.acked == 0
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1), plain(source, 1)])
    assert topics.bodies("orders", source) == [b"step 1"]
    assert sorted(topics.bodies("plain", source)) == [b"plain 1", b"plain 100"]


def test_a_configured_guid_is_known_before_it_comes(appliance: Appliance, topics: Topics) -> None:
    before = counted(appliance, PINNED)
    assert impersonate(appliance, CONFIGURED, burst(CONFIGURED)) == 0
    wait_counted(appliance, PINNED, before + 1)
    with session(appliance, CONFIGURED, local=CONFIGURED_IP) as owner:
        owner.send_all_windowed([step(CONFIGURED, 1), plain(CONFIGURED, 1)])
    assert topics.bodies("orders", CONFIGURED) == [b"step 1"]


def test_a_handshake_alone_makes_no_guid_known(appliance: Appliance, topics: Topics) -> None:
    """Else whoever is first could shut out all others, and say nothing."""
    source = uuid4()
    with session(appliance, source, local=STRANGE_IP):
        pass
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
    assert topics.bodies("orders", source) == [b"step 1"]


def test_a_refused_message_makes_no_guid_known(appliance: Appliance, topics: Topics) -> None:
    """What may not come leaves nothing that a later message depends on."""
    for destination in (queue("nowhere"), queue("bynet")):
        source = uuid4()
        impersonate(appliance, source, [step(source, 1, destination=destination)])
        with session(appliance, source, local=GUARDED_IP) as victim:
            victim.send_all_windowed([step(source, 1, destination=queue("bynet"))], soon(20))
        assert topics.bodies("bynet", source) == [b"step 1"]


def test_a_spoofed_source_makes_no_guid_known(appliance: Appliance, topics: Topics) -> None:
    source = uuid4()
    acked, _ = spoof(appliance, burst(source))
    assert acked == 1
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
    assert topics.bodies("orders", source) == [b"step 1"]


def test_a_router_makes_no_guid_known(appliance: Appliance, topics: Topics) -> None:
    """A source is not at its router's address; and a router may bring what is known elsewhere."""
    source = uuid4()
    with session(appliance, local=ROUTER_IP) as router:
        router.send_all_windowed([step(source, 1)])
        with session(appliance, source, local=VICTIM_IP) as sender:
            sender.send_all_windowed([step(source, 2)])
        router.send_all_windowed([step(source, 3)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2", b"step 3"]


def test_who_is_called_back_is_bound_too(
    appliance: Appliance, topics: Topics, listening_stranger: RawPeer
) -> None:
    """A stranger makes the bridge call it, and says on the phone that it is the victim."""
    source, own, before = uuid4(), uuid4(), counted(appliance, PINNED)
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
        listening_stranger.guid = source
        listening_stranger.listen()
        call = replace(plain(own, 1), admin=direct("OS:STRANGERHOST\\private$\\x"), acks=ACK_PA)
        with session(appliance, own, local=STRANGE_IP) as sender:
            sender.send_all_windowed([call])
        with suppress(HungUpError):
            called = listening_stranger.accept()
            with suppress(HungUpError):
                called.transmit(burst(source), keep=False)
                called.read_to_end(soon(10))
            assert called.acked == 0
            assert administration(call, called.kept) == []
        listening_stranger.go_away()
        wait_counted(appliance, PINNED, before + 1)
        victim.send_all_windowed([step(source, 2), plain(source, 3)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2"]
    assert topics.bodies("plain", source) == [b"plain 3"]


def test_two_first_messages_at_once(appliance: Appliance, topics: Topics) -> None:
    """Two machines with one unknown GUID: one of them is known afterwards, and only that one."""
    source = uuid4()
    acked: dict[str, int] = {}

    def come(local: str) -> None:
        messages = [plain(source, next(_ids)) for _ in range(4)]
        acked[local] = impersonate(appliance, source, messages, local=local)

    together([partial(come, local) for local in (VICTIM_IP, STRANGE_IP)])
    for local in acked:
        come(local)
    found = topics.bodies("plain", source)
    assert sorted(acked.values()) == [0, 4], acked
    assert len(found) == 8  # while one has messages without a verdict, the other waits


def test_a_session_that_was_there_before_the_owner(appliance: Appliance, topics: Topics) -> None:
    """When it shook hands, the GUID was known nowhere."""
    source, before = uuid4(), counted(appliance, PINNED)
    with (
        session(appliance, source, local=STRANGE_IP) as stranger,
        session(appliance, source, local=VICTIM_IP) as victim,
    ):
        victim.send_all_windowed([step(source, 1)])
        with suppress(HungUpError):
            stranger.transmit(burst(source), keep=False)
            stranger.read_to_end(soon(10))
        assert stranger.acked == 0
        wait_counted(appliance, PINNED, before + 1)
        victim.send_all_windowed([step(source, 2), plain(source, 3)])
    assert topics.bodies("orders", source) == [b"step 1", b"step 2"]
    assert topics.bodies("plain", source) == [b"plain 3"]


def test_an_address_with_too_many_guids_gets_no_more_of_them(
    appliance: Appliance, topics: Topics
) -> None:
    """Else the next one, a victim's, would be bound to nothing. Other addresses do not notice."""
    flood_ip, source, before = "127.0.0.66", uuid4(), counted(appliance, FULL)

    def come() -> None:
        for _ in range(MOST_OF_ADDRESS // 20):
            guid = uuid4()
            with session(appliance, guid, local=flood_ip) as sender:
                sender.send_all_windowed([plain(guid, 1)])

    together([come] * 20)
    assert impersonate(appliance, source, burst(source), local=flood_ip) == 0
    wait_counted(appliance, FULL, before + 1)
    with session(appliance, source, local=VICTIM_IP) as victim:
        victim.send_all_windowed([step(source, 1)])
    assert impersonate(appliance, source, burst(source)) == 0
    assert topics.bodies("orders", source) == [b"step 1"]


def test_the_guid_stays_with_its_address_while_others_come_and_go(appliance: Appliance) -> None:
    """Senders behind one address do not disturb each other, and a session may be opened twice."""
    first, second = uuid4(), uuid4()
    for number in (1, 2):
        for source in (first, second):
            with (
                session(appliance, source, local=VICTIM_IP) as sender,
                session(appliance, source, local=VICTIM_IP) as twin,
            ):
                sender.send_all_windowed([plain(source, 10 * number)])
                twin.send_all_windowed([plain(source, 10 * number + 1)])


# -- over HTTP ------------------------------------------------------------------------------


def test_each_protocol_knows_its_own_addresses(appliance: Appliance, topics: Topics) -> None:
    """Over HTTP a sender may come through a proxy. What is configured counts for both."""
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([plain(source, 1)])
    by_proxy = mail_of(source)
    assert post(appliance, by_proxy, "127.0.0.33") == 200
    assert post(appliance, mail_of(source), STRANGE_IP) == 503
    assert impersonate(appliance, source, burst(source), local="127.0.0.33") == 0
    assert topics.bodies("plain", source) == [b"plain 1", by_proxy.body]
    assert post(appliance, mail_of(CONFIGURED), STRANGE_IP) == 503
    assert post(appliance, mail_of(CONFIGURED), CONFIGURED_IP) == 200


def test_a_mail_without_a_source_is_not_bound(appliance: Appliance) -> None:
    for local in (VICTIM_IP, STRANGE_IP):
        bare = Mail(to=url("plain"), body=b"bare", bare=True)
        assert post(appliance, bare, local) == 200


def test_a_stream_over_http_is_bound_by_its_source(appliance: Appliance, topics: Topics) -> None:
    """The id of a stream names a GUID, too; neither of both may be somebody else's."""
    victim, stranger = uuid4(), uuid4()
    flow = Flow(
        to=url("orders"), receipts="http://x/", stream=stream_id(victim), source=victim, name="v"
    )
    assert post(appliance, flow.mail(1), VICTIM_IP) == 200
    spoofed = [flow.mail(n, 0, body=b"spoofed") for n in (2, 3, 2**31 - 1)]
    for mail in (*spoofed, *(replace(one, source=stranger) for one in spoofed)):
        post(appliance, mail, STRANGE_IP)
    assert post(appliance, flow.mail(2), VICTIM_IP) == 200
    assert topics.bodies("orders", victim) == [b"v 1", b"v 2"]
