"""Names, ports, Java, and what only a running appliance can tell."""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.doctor import machine
from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.runtime import write_runtime
from bridge.model.errors import BrokerFailed, ConfigError, Unavailable
from tests.adapters.doctor.fake_cluster import FakeCluster, bad, found, one, visit_to
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server

GUID = "11111111-2222-3333-4444-555555555555"


def visit(folder: Path, **settings: Any) -> Visit:
    settings.setdefault("listen", {"admin": 0})
    return visit_to(FakeCluster(), folder, **settings)


# -- the running appliance --------------------------------------------------------------------


def asked(folder: Path, appliance: FakeAppliance) -> tuple[Visit, Finding]:
    looking = visit(folder)

    async def run() -> Finding:
        async with admin_server(appliance, data=folder / "data") as url:
            write_runtime(folder / "data", url, 1)
            return await asyncio.to_thread(one, machine.appliance, looking)

    return looking, asyncio.run(run())


def test_an_appliance_that_runs(tmp_path: Path) -> None:
    appliance = FakeAppliance()
    looking, finding = asked(tmp_path, appliance)
    assert finding.result is Result.OK
    assert looking.status == appliance.answer
    appliance.answer = {"ready": False, "reasons": ["Kafka is away"]}
    _, finding = asked(tmp_path, appliance)
    assert finding.result is Result.WARN
    assert "Kafka is away" in finding.found


def test_no_appliance(tmp_path: Path) -> None:
    assert one(machine.appliance, visit(tmp_path)).result is Result.SKIP
    asked(tmp_path, FakeAppliance())  # leaves the file of one that has gone
    assert one(machine.appliance, visit(tmp_path)).result is Result.SKIP
    assert one(machine.appliance, visit(tmp_path, listen={"admin": None})).result is Result.SKIP


def test_a_stranger_on_the_admin_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        port = server.getsockname()[1]
        with pytest.raises(Unavailable, match="404"):
            found(machine.appliance, visit(tmp_path, listen={"admin": port}))


def test_clones(tmp_path: Path) -> None:  # design D4
    looking = visit(tmp_path)
    looking.status = {}
    assert one(machine.clones, looking).result is Result.OK
    looking.status = {"refusals": {"cloned-guid": 3}}
    finding = bad(machine.clones, looking)
    assert finding.result is Result.WARN
    assert "3 times" in finding.found
    looking.status = {"cloned_guids": {GUID: ["10.0.0.7", "10.0.0.8"]}}
    finding = bad(machine.clones, looking)
    assert (finding.result, finding.about) == (Result.FAIL, GUID)
    assert "10.0.0.7 and 10.0.0.8" in finding.found
    assert "QMId" in finding.mend


def test_messages_for_another_queue_manager(tmp_path: Path) -> None:
    looking = visit(tmp_path)
    looking.status = {}
    assert one(machine.destinations, looking).result is Result.OK
    looking.status = {"refusals": {"other-queue-manager": 3}}
    finding = bad(machine.destinations, looking)
    assert finding.result is Result.WARN
    assert finding.found.startswith("3 sessions")
    assert "queue_manager.id" in finding.mend


def test_streams_that_wait(tmp_path: Path) -> None:
    looking = visit(tmp_path)
    looking.status = {"waiting_streams": 0}
    assert one(machine.streams, looking).result is Result.OK
    row = {
        "source": GUID,
        "destination": "DIRECT=OS:a\\q",
        "since": "2026-01-02T03:04:05Z",
        "offered_number": 7,
        "offered_previous": 6,
        "have_number": 0,
    }
    looking.status = {"waiting_streams": 1, "waiting_stream_list": [row]}
    finding = bad(machine.streams, looking)
    assert (finding.result, finding.about) == (Result.WARN, GUID)
    assert "message 7 to DIRECT=OS:a\\q follows 6, and none was taken here" in finding.found
    assert "stream adopt" in finding.mend
    looking.status = {"waiting_streams": 9, "waiting_stream_list": [row] * 9}
    told = found(machine.streams, looking)
    assert len(told) == 6
    assert told[-1].found == "4 streams wait for adoption"
    looking.status = {"waiting_streams": 3}  # who asked has no token
    assert bad(machine.streams, looking).found == "3 streams wait for adoption"


# -- names ------------------------------------------------------------------------------------


def name(folder: Path, text: str) -> Finding:
    return one(machine.names, visit(folder, queue_manager={"names": [text]}), text)


def test_names(tmp_path: Path) -> None:
    assert name(tmp_path, "127.0.0.1").result is Result.OK
    assert name(tmp_path, "localhost").result is Result.OK
    assert name(tmp_path, "0.0.0.0").found == "is the address we listen on"
    elsewhere = name(tmp_path, "192.0.2.1")  # RFC 5737: nobody's
    assert elsewhere.result is Result.WARN
    assert "192.0.2.1, no address of this machine" in elsewhere.found
    assert one(machine.names, visit(tmp_path)).result is Result.OK


def test_names_by_the_name_service(tmp_path: Path) -> None:
    finding = one(machine.names, visit(tmp_path, queue_manager={"names": "auto"}), "auto")
    assert finding.result is Result.OK


def test_names_that_messages_were_refused_for(tmp_path: Path) -> None:
    """Their senders have deleted them: MC-MQSRM 3.1.7.2.5."""
    looking = visit(tmp_path)
    rows = [{"host": "old-name", "messages": 7, "last": "2026-01-02T03:04:05Z"}]
    looking.status = {"rejected_hosts": rows}
    finding = one(machine.names, looking, "old-name")
    assert finding.result is Result.WARN
    assert "7 messages" in finding.found
    assert "2026-01-02T03:04:05Z" in finding.found
    assert "queue_manager.names" in finding.mend


def test_a_name_that_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert name(tmp_path, "BRIDGE01").result is Result.WARN


def test_a_name_service_that_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: never.wait())
    monkeypatch.setattr(machine, "NAMES_S", 0.05)
    finding = name(tmp_path, "BRIDGE01")
    assert (finding.result, finding.found) == (Result.WARN, "the name service does not answer")


# -- ports ------------------------------------------------------------------------------------


def listen(**changes: Any) -> dict[str, Any]:
    return {"host": "127.0.0.1", "binary": 0, "ping": None, "admin": 0} | changes


def test_ports_that_are_free_or_off(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    looking = visit(tmp_path, listen=listen(binary=port))
    assert one(machine.ports, looking, "binary").found == f"127.0.0.1:{port} is free"
    assert one(machine.ports, looking, "ping").result is Result.SKIP
    assert one(machine.ports, looking, "admin").found == "any free port"
    assert one(machine.ports, visit(tmp_path, listen=listen(ping=port)), "ping").found == (
        f"127.0.0.1:{port} is free"
    )


@pytest.mark.parametrize("kind", ["binary", "admin", "ping"])
def test_a_port_that_somebody_has(tmp_path: Path, kind: str) -> None:
    protocol = socket.SOCK_DGRAM if kind == "ping" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, protocol) as other:
        other.bind(("127.0.0.1", 0))
        if kind != "ping":
            other.listen()
        port = other.getsockname()[1]
        finding = bad(machine.ports, visit(tmp_path, listen=listen(**{kind: port})))
    assert (finding.result, finding.about) == (Result.FAIL, kind)
    assert "in use" in finding.found
    assert f"sport = :{port}" in finding.mend


def test_rpc_ports_stay_closed_without_users(tmp_path: Path) -> None:
    finding = one(machine.ports, visit(tmp_path, listen=listen()), "rpc")
    assert (finding.result, "rpc.users" in finding.found) == (Result.SKIP, True)
    finding = one(machine.ports, visit(tmp_path, listen=listen(rpc=0, rpc_qp=2105)), "rpc")
    assert finding.result is Result.WARN
    assert finding.found.startswith("rpc, rpc_qp stay closed")
    assert "rpc.users" in finding.mend
    off = dict.fromkeys(machine.RPC)
    everybody = {"minimum_level": "none"}
    for settings in ({"listen": listen(**off)}, {"listen": listen(rpc=0), "rpc": everybody}):
        about = {finding.about for finding in found(machine.ports, visit(tmp_path, **settings))}
        assert "rpc" not in about


def test_old_ntlm_is_a_warning(tmp_path: Path) -> None:
    users = tmp_path / "users.yaml"
    users.write_text("ann: {password: secret}\n")
    settings = {"listen": listen(rpc=0), "rpc": {"users": str(users), "old_ntlm": True}}
    finding = one(machine.ports, visit(tmp_path, **settings), "rpc")
    assert finding.result is Result.WARN
    assert "rpc.old_ntlm" in finding.found
    assert "LmCompatibilityLevel" in finding.mend
    settings["rpc"] = {"users": str(users)}
    assert "rpc" not in {one.about for one in found(machine.ports, visit(tmp_path, **settings))}


def refuse(code: int) -> Callable[..., None]:
    def refused(*_: object) -> None:
        error = OSError(code, os.strerror(code))
        raise ConfigError("cannot listen", where="listen.binary") from error

    return refused


def test_a_port_that_needs_a_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "require_free", refuse(errno.EACCES))
    finding = bad(machine.ports, visit(tmp_path, listen=listen(binary=801)))
    assert finding.result is Result.FAIL
    assert "CAP_NET_BIND_SERVICE" in finding.mend
    assert "ip_unprivileged_port_start=801" in finding.mend


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    elsewhere = listen(admin_host="192.0.2.1", admin=9180)
    finding = bad(machine.ports, visit(tmp_path, listen=elsewhere))
    assert (finding.result, finding.about) == (Result.FAIL, "admin")
    assert "listen.admin_host" in finding.mend


def test_ports_of_our_own_appliance(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        looking = visit(tmp_path, listen=listen(binary=port, ping=3527))
        looking.status = {"listeners": {"binary": f"0.0.0.0:{port}", "ping": "127.0.0.1:3527"}}
        assert one(machine.ports, looking, "binary").result is Result.OK
        assert one(machine.ports, looking, "ping").result is Result.OK
    finding = bad(machine.ports, looking)
    assert "does not answer (Connection refused)" in finding.found


# -- Java -------------------------------------------------------------------------------------


def test_java_only_for_the_embedded_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(machine.java, visit(tmp_path)).result is Result.SKIP
    embedded = visit(tmp_path, kafka={})
    monkeypatch.setattr(machine, "find_java", lambda: Path("/usr/bin/java"))
    monkeypatch.setattr(machine, "is_complete", lambda _: False)
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    assert one(machine.java, embedded).result is Result.OK
    assert one(machine.java, embedded, "jars").result is Result.WARN
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    assert len(found(machine.java, embedded)) == 1

    def none() -> Path:
        raise BrokerFailed("no java on PATH; install one")

    monkeypatch.setattr(machine, "find_java", none)
    with pytest.raises(BrokerFailed):
        found(machine.java, embedded)
