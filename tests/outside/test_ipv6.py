"""`listen.host: "::"` serves both families, and an IPv4 peer stays an IPv4 address."""

import http.client
import socket
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.rawmsmq import ACK_PA, Message, private
from tests.outside.rawpeer import Recorder
from tests.outside.strangers import Topics, plain
from tests.vectors.binary import PINGS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
NO_PDU = b"\xff" * 64
QUEUES: dict[str, dict[str, object]] = {
    "six": {"allow": ["::1"]},
    "four": {"allow": ["127.0.0.0/8"]},
}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues=QUEUES,
        users={"ann": "Secret-1"},
        listen={
            "host": "::",
            "admin_host": "::",
            **dict.fromkeys(("ping", "srmp", "rpc", "rpc_qp", "endpoint_mapper"), 0),
        },
    )


@pytest.fixture(scope="module")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


@pytest.mark.parametrize(("host", "name"), [("::1", "six"), ("127.0.0.1", "four")])
def test_each_family_is_known_by_its_own_address(
    appliance: Appliance, topics: Topics, host: str, name: str
) -> None:
    source: UUID = uuid4()
    port = appliance.binary_address[1]
    other = "four" if name == "six" else "six"
    with Recorder((host, port), source) as sender:
        sender.local = host
        sender.connect().handshake()
        asking = Message(
            source=source,
            message_id=1,
            destination=queue(name),
            admin=private(5, code=2),
            acks=ACK_PA,
            body=b"by its own address",
            recoverable=True,
        )
        sender.send_all_windowed([asking, plain(source, 2, queue(other))])
        sender.until(lambda: sender.administration)
    assert topics.bodies(name, source) == [b"by its own address"]
    assert topics.bodies(other, source) == []  # `allow` has the other family


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_http_admin_and_ping(appliance: Appliance, host: str) -> None:
    for name in ("srmp", "admin"):
        connection = http.client.HTTPConnection(host, appliance.listeners[name][1], timeout=30)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == (200 if name == "admin" else 400), name
        connection.close()
    for name in ("rpc", "rpc_qp", "endpoint_mapper"):
        with socket.create_connection((host, appliance.listeners[name][1]), 30) as reader:
            reader.sendall(NO_PDU)
            reader.settimeout(30)
            while reader.recv(4096):  # it answers or not, and ends the connection
                pass
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.settimeout(10)
        probe.connect((host, appliance.listeners["ping"][1]))
        probe.send(PINGS["F1"].data)
        assert len(probe.recv(100)) == len(PINGS["F1"].data)
