"""Ways that a stranger could try to make the appliance connect somewhere, or to write through its
admin port. Real sockets, real processes; the lists of targets are the defaults or wider."""

import http.client
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from tests.outside.appliance import ROOT, Appliance, Settings, command, queue
from tests.outside.conftest import Broker
from tests.outside.rawmsmq import ACK_PA, Message, Name, direct
from tests.outside.rawpeer import RawPeer, Recorder
from tests.outside.records import create_topics
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import Mail, url
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
_ids = count(1)
RELOAD = "/api/mappings/reload"
WRITES = (
    RELOAD,
    "/api/mappings/apply",
    *(f"/api/queues/{name}" for name in ("purge", "receive", "move", "create", "delete")),
)
READS = ("streams", "sessions", "acks", "refusals", "trace?id=a", "queues/messages?queue=a")
SENDER = "127.0.0.62"
HERE = (
    *("127.0.0.1", "127.1", "127.9.9.9", "0", "0.0.0.0", "0x7f000001", "017700000001"),
    *("2130706433", "localhost", "LOCALHOST.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "BRIDGE01"),
)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(queues={"kept": {"mode": "retain"}}, listen={"srmp": 0})


def refusals(appliance: Appliance, reason: str) -> int:
    found = re.search(
        rf'^msmq_bridge_refusals_total{{reason="{reason}"}} (\S+)$',
        appliance.get("/metrics")[1],
        re.M,
    )
    return int(float(found[1])) if found else 0


def ask(appliance: Appliance, method: str, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection(*appliance.listeners["admin"], timeout=30)
    try:
        connection.request(method, path, b"{}" if method == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


# -- the admin port ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", WRITES)
def test_loopback_does_not_write_without_the_token(appliance: Appliance, path: str) -> None:
    assert ask(appliance, "POST", path) == 401
    for guess in ("", "Bearer", "Bearer ", "Basic eA=="):
        assert ask(appliance, "POST", path, Accept="text/xml", X_Authorization=guess) == 401
    assert ask(appliance, "POST", RELOAD, **appliance.bearer) == 200


@pytest.mark.parametrize("path", READS)
def test_senders_are_not_told_without_the_token(appliance: Appliance, path: str) -> None:
    assert ask(appliance, "GET", f"/api/{path}") == 401
    assert ask(appliance, "GET", f"/api/{path}", **appliance.bearer) in (200, 404)


def test_the_metrics_have_the_host_check_of_the_page(appliance: Appliance) -> None:
    for path in ("/metrics", "/api/status", "/"):
        assert ask(appliance, "GET", path, Host="rebound.example") == 421
        assert ask(appliance, "GET", path, Host="127.0.0.1:9180") == 200
    assert ask(appliance, "GET", "/readyz", Host="rebound.example") == 200


def test_the_commands_find_the_generated_token_and_the_log_does_not_show_it(
    appliance: Appliance,
) -> None:
    path = appliance.data / "admin.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for words in (
        ["queue", "purge", "private$\\kept", "--yes"],
        ["queue", "peek", "private$\\kept"],
    ):
        done = run(appliance, *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert "stream_list" in appliance.status()
    assert path.read_text().strip() not in appliance.log


def test_a_token_that_cannot_be_read_is_one_line(appliance: Appliance) -> None:
    path = appliance.data / "admin.token"
    path.rename(path.with_name("away"))
    path.mkdir()  # root could read a file without rights
    try:
        done = run(appliance, "queue", "purge", "private$\\kept", "--yes")
    finally:
        path.rmdir()
        path.with_name("away").rename(path)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert str(path) in line
    assert "Is a directory" in line


def run(appliance: Appliance, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*command(), *words, "--config", str(appliance.config)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# -- receipts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    """Receipts may go everywhere, as far as the operator's list goes."""
    prefix = f"wide-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    everywhere = ["sender", "loopback", "*", "0.0.0.0/0", "::/0", "localhost", "BRIDGE01"]
    settings = Settings(listen={"srmp": 0}, srmp={"receipt_targets": everywhere})
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


def post(appliance: Appliance, *targets: str) -> None:
    services = "<deliveryReceiptRequest><sendTo>{}</sendTo></deliveryReceiptRequest>"
    with Poster(appliance.srmp_address) as poster:
        poster.local = SENDER
        poster.connect()
        for target in targets:
            mail = Mail(to=url("plain"), body=b"b", services=services.format(target))
            assert poster.post(mail) == 200


def test_receipts_never_go_to_listeners_of_our_own(wide: Appliance) -> None:
    """The admin port, the binary port and the port that it came in by, in every spelling."""
    before = refusals(wide, "receipt-target")
    ports = [wide.listeners[name][1] for name in ("admin", "binary", "srmp")]
    targets = [f"http://{host}:{port}{RELOAD}?force=1" for host in HERE for port in ports]
    post(wide, *targets)
    eventually(lambda: refusals(wide, "receipt-target") - before == len(targets))
    assert refusals(wide, "receipt-no-answer") == refusals(wide, "receipt-not-taken") == 0


def test_receipts_go_to_loopback_only_if_it_is_the_sender_or_configured(
    appliance: Appliance, wide: Appliance
) -> None:
    with Catcher() as catcher:
        mine, other = catcher.box(SENDER), catcher.box("127.0.0.77")
        before = refusals(appliance, "receipt-target")
        post(appliance, other.url, mine.url)
        mine.wait(1)
        eventually(lambda: refusals(appliance, "receipt-target") == before + 1)
        assert other.caught == []
        post(wide, other.url)
        other.wait(1)


# -- administration acks ----------------------------------------------------------------------


def send(appliance: Appliance, local: str, admin: Name) -> None:
    """The sender hangs up before it has acknowledged an ack of ours: that one is brought again."""
    with Recorder(appliance.binary_address, auto_ack=False) as sender:
        sender.local = local
        sender.connect().handshake()
        message = Message(
            source=sender.guid,
            message_id=next(_ids),
            destination=queue("plain"),
            admin=admin,
            acks=ACK_PA,
            body=b"ask",
            recoverable=True,
        )
        sender.send_all_windowed([message])


def test_a_host_that_a_stranger_names_is_not_dialed(appliance: Appliance) -> None:
    """DIRECT=TCP and DIRECT=OS; the host that the message came from is."""
    with RawPeer("127.0.0.61", port=1801) as victim:
        victim.listen()
        before = refusals(appliance, "ack-target")
        for host in ("TCP:127.0.0.61", "OS:127.0.0.61", "OS:0x7f00003d", "OS:2130706493"):
            send(appliance, "127.0.0.60", direct(f"{host}\\private$\\acks"))
        eventually(lambda: refusals(appliance, "ack-target") == before + 4)
        victim.expect_no_call(0)
        assert appliance.log.count("administration queue at 127.0.0.61 are dropped") == 1
        send(appliance, "127.0.0.61", direct("TCP:127.0.0.61\\private$\\acks"))
        assert len(victim.receive(1)) == 1


# -- files ------------------------------------------------------------------------------------


def test_files_are_for_the_user_of_the_appliance_only(kafka: Broker, tmp_path: Path) -> None:
    """Under the most generous umask, and those of an earlier version that others could read."""
    prefix = f"modes-{uuid4().hex[:8]}"
    queues = {"big": {"oversize": "claim-check"}, "kept": {"mode": "retain"}}
    appliance = Appliance(
        tmp_path, kafka.bootstrap_servers, prefix, settings=Settings(queues=queues)
    )
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    data = appliance.data
    (data / "claims").mkdir()
    (data / "claims").chmod(0o755)
    (data / "runtime.json").write_text("{}")
    (data / "runtime.json").chmod(0o644)
    (data / "of-the-operator").write_text("kept")
    (data / "of-the-operator").chmod(0o644)
    before = os.umask(0)
    try:
        appliance.start()
    finally:
        os.umask(before)
    try:
        found = {path: path.lstat() for path in data.rglob("*")}
        modes = {path.name: oct(stat.S_IMODE(at.st_mode)) for path, at in found.items()}
        assert modes.pop("of-the-operator") == "0o644"
        assert modes["claims"] == "0o700"
        assert {"admin.token", "runtime.json"} < modes.keys()
        assert sum(name.endswith(".sqlite") for name in modes) == 2
        assert {name: mode for name, mode in modes.items() if mode not in ("0o600", "0o700")} == {}
    finally:
        appliance.terminate()


def test_a_port_that_is_open_to_the_network_says_where_its_token_is(
    kafka: Broker, tmp_path: Path
) -> None:
    settings = Settings(listen={"admin_host": "0.0.0.0"})
    prefix = f"open-{uuid4().hex[:8]}"
    appliance = Appliance(tmp_path, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    try:
        assert str(appliance.data / "admin.token") in appliance.log
        assert "open to the network" in appliance.log
        with socket.create_connection(("127.0.0.1", appliance.listeners["admin"][1]), 10):
            assert ask(appliance, "POST", RELOAD) == 401
    finally:
        appliance.terminate()
