"""One address with more connections than it may have, on every port: the others are served.

Addresses are those of 127.0.0.0/8. The witness is at 127.0.0.2, as every sender of these tests.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import build
from tests.outside.rawsender import RawSender, soon
from tests.outside.siege import (
    Witness,
    closed,
    connections,
    few_files,
    hung_up,
    sample,
)
from tests.outside.srmp.post import Poster
from tests.outside.test_siege import message
from tests.support.waiting import eventually
from tests.wire.rpc import raw

pytestmark = pytest.mark.kafka

CAP = 40
HOG, OTHER = "127.0.0.9", "127.0.0.10"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        listen={"per_address": CAP, "srmp": 0, "rpc": 0},
        rpc={"minimum_level": "none"},
    )


@pytest.fixture
def witness(appliance: Appliance) -> Iterator[Witness]:
    eventually(lambda: connections(appliance) == 0)  # of the test before
    good = Witness(appliance)
    good.go_on(0)
    yield good
    good.stop()


def session(appliance: Appliance, stack: ExitStack, source: str) -> RawSender:
    sender = stack.enter_context(RawSender(appliance.binary_address, uuid4()))
    sender.local = source
    sender.connect().handshake()
    return sender


def plug(stack: ExitStack, address: tuple[str, int], source: str) -> socket.socket:
    return stack.enter_context(socket.create_connection(address, 30, (source, 0)))


def served_on_1801(appliance: Appliance, stack: ExitStack, source: str) -> None:
    sender = session(appliance, stack, source)
    sender.send_all_windowed([message(sender.guid)])


def bound_to_rpc(appliance: Appliance, stack: ExitStack, source: str) -> socket.socket:
    one = plug(stack, appliance.listeners["rpc"], source)
    one.sendall(raw.bind())
    assert one.recv(16, socket.MSG_WAITALL)[2] == raw.BIND_ACK
    return one


def post(appliance: Appliance, stack: ExitStack, source: str) -> int:
    poster = stack.enter_context(Poster(appliance.srmp_address))
    poster.local = source
    poster.connect()
    poster.send(b"POST /msmq/private$/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    return poster.read_answer(soon(30)).status


def test_open_sessions_of_one_address(appliance: Appliance, witness: Witness) -> None:
    """Each has done its handshake and sent a message, so none is a stranger: the idlest goes."""
    before = closed(appliance, "crowded")
    with ExitStack() as stack:
        hogs = [session(appliance, stack, HOG) for _ in range(CAP)]
        for hog in hogs:
            hog.send_all_windowed([message(hog.guid)])
        late = [session(appliance, stack, HOG) for _ in range(CAP // 2)]
        eventually(lambda: closed(appliance, "crowded") == before + CAP // 2)
        hogs[0].expect_closed(soon(15))
        served_on_1801(appliance, stack, OTHER)
        late[-1].send_all_windowed([message(late[-1].guid)])
        assert connections(appliance) == CAP + 2
    witness.unharmed()


def test_half_handshakes_of_one_address(appliance: Appliance, witness: Witness) -> None:
    """Its own session stays, and its newcomer is served: its silent ones go first."""
    with ExitStack() as stack:
        good = session(appliance, stack, HOG)
        silent = [plug(stack, appliance.binary_address, HOG) for _ in range(3 * CAP)]
        eventually(lambda: hung_up(silent[0]))
        late = session(appliance, stack, HOG)
        for sender in (good, late):
            sender.send_all_windowed([message(sender.guid)])
        served_on_1801(appliance, stack, OTHER)
        assert connections(appliance) == CAP + 2
    witness.unharmed()


def test_sessions_that_are_busy_for_ever(appliance: Appliance, witness: Witness) -> None:
    """A packet that never ends: then the newcomers of this address are refused, and only those."""
    with ExitStack() as stack:
        for _ in range(CAP):
            hog = session(appliance, stack, HOG)
            hog.send(build(message(hog.guid))[:-1])
        refused = RawSender(appliance.binary_address, uuid4())
        refused.local = HOG
        stack.enter_context(refused).connect().expect_closed(soon(15))
        served_on_1801(appliance, stack, OTHER)
    witness.unharmed()


def test_http_and_rpc_have_the_same_rule(appliance: Appliance, witness: Witness) -> None:
    with ExitStack() as stack:
        idle = [plug(stack, appliance.srmp_address, HOG) for _ in range(2 * CAP)]
        bound = [bound_to_rpc(appliance, stack, HOG) for _ in range(2 * CAP)]
        eventually(lambda: hung_up(idle[0]) and hung_up(bound[0]))
        for source in (HOG, OTHER):
            assert post(appliance, stack, source) == 400
            bound_to_rpc(appliance, stack, source)
        served_on_1801(appliance, stack, OTHER)
        eventually(lambda: sample(appliance, "rpc_connections") == CAP + 1)
    witness.unharmed()


def test_half_requests_to_the_admin_port(
    appliance: Appliance, witness: Witness, open_sender: OpenSender
) -> None:
    """More than there are descriptors: the other ports, Kafka and the admin port itself go on."""
    host, port = appliance.listeners["admin"]
    before = sample(appliance, "refusals_total", 'reason="admin-crowded"')
    with few_files(appliance, 300), ExitStack() as stack:
        for number in range(400):
            source = HOG if number < 200 else f"127.0.3.{number % 100 + 1}"
            half = plug(stack, (host, port), source)
            with suppress(ConnectionError):
                half.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        newcomer = open_sender()
        newcomer.send_all_windowed([message(newcomer.guid)])
        assert appliance.get("/livez")[0] == 200
        assert sample(appliance, "refusals_total", 'reason="admin-crowded"') >= before + 200 - 64
        served_on_1801(appliance, stack, OTHER)
    witness.unharmed()


def test_one_address_and_all_file_descriptors(
    appliance: Appliance, witness: Witness, open_sender: OpenSender
) -> None:
    """Few descriptors are left, and one address takes its share with sessions that are busy for
    ever: others who come, to whatever port, are served; the address with the most gives way."""
    before = closed(appliance, "crowded")
    with few_files(appliance, 200), ExitStack() as stack:
        hogs = [session(appliance, stack, HOG) for _ in range(CAP)]
        for hog in hogs:
            hog.send(build(message(hog.guid))[:-1])
        for number in range(20, 80):
            source = f"127.0.0.{number}"
            assert post(appliance, stack, source) == 400
            bound_to_rpc(appliance, stack, source)
            served_on_1801(appliance, stack, source)
        newcomer = open_sender()
        newcomer.send_all_windowed([message(newcomer.guid)])
        assert closed(appliance, "crowded") > before
        hogs[0].expect_closed(soon(15))
    witness.unharmed()
