"""This machine: names that lead here, ports, Java, and the appliance if it runs."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from bridge.adapters.doctor.finding import Finding, fail, ok, skip, warn
from bridge.adapters.doctor.visit import Visit, side_by_side
from bridge.adapters.kafka.jars import cache_folder, is_complete
from bridge.adapters.kafka.java import find_java
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.net.ports import require_free
from bridge.adapters.runtime import find_admin_url
from bridge.config import Address, Config, DefaultPort
from bridge.model.errors import ConfigError, Unavailable
from bridge.model.verdict import OTHER_QUEUE_MANAGER

NAMES_S: Final = 4.0
CONNECT_S: Final = 2.0
UDP: Final = ("ping",)
LISTENERS: Final = ("binary", "ping", "admin")  # those that `serve` opens
MOST_STREAMS: Final = 5  # that are named one by one
RPC: Final = ("rpc", "rpc_qp", "endpoint_mapper")


# -- the running appliance -----------------------------------------------------------------------


def appliance(visit: Visit) -> Iterator[Finding]:
    if visit.config.listen.admin is None:
        yield skip("the admin port is off: a running appliance cannot be asked")
        return
    try:
        url = find_admin_url(visit.config)
        visit.status = get_json(url, "/api/status", visit.config)
    except Unavailable as error:
        if isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            yield skip("not running; what only it can tell is left out")
            return
        raise
    if visit.status.get("ready"):
        yield ok(f"running and ready, asked at {url}")
        for reason in visit.status.get("reasons", []):
            yield fail(reason, mend="mend what it names; the rest of the appliance goes on")
    else:
        reasons = "; ".join(visit.status.get("reasons", [])) or "it does not say why"
        yield warn(f"running at {url}, not ready: {reasons}", mend="mend the reason it gives")


def clones(visit: Visit) -> Iterator[Finding]:
    """Two machines with one queue manager GUID (design D4)."""
    status = visit.status or {}
    mend = (
        "give each machine its own: on the copy stop the MSMQ service, delete the value QMId in "
        "HKLM\\Software\\Microsoft\\MSMQ\\Parameters\\MachineCache, set SysPrep to 1, start it"
    )
    for guid, addresses in status.get("cloned_guids", {}).items():
        yield fail(f"sessions from {' and '.join(addresses)} at once", guid, mend=mend)
    if not status.get("cloned_guids"):
        seen = int(status.get("refusals", {}).get("cloned-guid", 0))
        if seen:
            yield warn(f"none now, but seen {seen} times since the start", mend=mend)
        else:
            yield ok("no two senders share a GUID")


def destinations(visit: Visit) -> Iterator[Finding]:
    """Senders that take us for another queue manager."""
    seen = int((visit.status or {}).get("refusals", {}).get(OTHER_QUEUE_MANAGER.reason, 0))
    if not seen:
        yield ok("no sender has a message for another queue manager")
        return
    yield warn(
        f"{seen} sessions were closed at a message for another queue manager, which stays at its "
        "sender",
        mend="the log names sender and GUID: if this appliance replaces that queue manager, its "
        "GUID belongs into queue_manager.id; else correct the DNS or HOSTS entry that leads here",
    )


def streams(visit: Visit) -> Iterator[Finding]:
    """Streams that begin in the middle and wait for adoption."""
    status = visit.status or {}
    total = int(status.get("waiting_streams", 0))
    if not total:
        yield ok("none waits for adoption")
        return
    mend = (
        "if this appliance took over with messages still in the sender's outgoing queue: "
        "'msmq-bridge stream adopt SOURCE DESTINATION' takes the stream up; 'stream list' shows all"
    )
    rows = status.get("waiting_stream_list", [])[:MOST_STREAMS]
    for row in rows:
        yield warn(
            f"waits since {row['since']}: message {row['offered_number']} to {row['destination']} "
            f"follows {row['offered_previous']}, and {row['have_number'] or 'none'} was taken here",
            row["source"],
            mend=mend,
        )
    if total > len(rows):
        yield warn(f"{total - len(rows)} streams wait for adoption", mend=mend)


# -- names ---------------------------------------------------------------------------------------


def names(visit: Visit) -> Iterator[Finding]:
    yield from _rejected(visit)
    wanted = visit.config.queue_manager.listed_names
    if visit.config.queue_manager.looks_up_names:
        yield ok("auto: over HTTP every name that leads to this machine", "auto")
    if not wanted:
        yield ok(f"none given: this host's own, {socket.gethostname()}")
        return
    listen = visit.config.listen.host
    yield from side_by_side(
        NAMES_S,
        [partial(_name, name, listen) for name in wanted],
        late=lambda number: warn(
            "the name service does not answer", wanted[number], mend="check /etc/resolv.conf"
        ),
    )


def _rejected(visit: Visit) -> Iterator[Finding]:
    """Names that senders use, and the appliance does not know. A sender deletes what gets 400."""
    for row in (visit.status or {}).get("rejected_hosts", []):
        yield warn(
            f"{row['messages']} messages for this host were refused (HTTP 400), the last at "
            f"{row['last']}; their senders have deleted them",
            row["host"],
            mend="if it is a name of this machine, add it to queue_manager.names, or write auto",
        )


def _name(name: str, listen: str) -> Finding:
    if name == listen:
        return ok("is the address we listen on", name)
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return warn(
            "leads nowhere, seen from here",
            name,
            mend="make sure that senders have a DNS or HOSTS entry for it with our address",
        )
    addresses = sorted({str(info[4][0]) for info in found})
    if any(_is_ours(info[0], info[4]) for info in found):
        return ok(f"leads here ({', '.join(addresses)})", name)
    return warn(
        f"leads to {', '.join(addresses)}, no address of this machine",
        name,
        mend="point it at this machine, unless a load balancer or NAT stands there for us",
    )


def _is_ours(family: int, address: Any) -> bool:
    """An address can only be bound where it is."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address[0], 0, *address[2:]))
        except OSError:
            return False
    return True


# -- ports ---------------------------------------------------------------------------------------


def ports(visit: Visit) -> Iterator[Finding]:
    running = (visit.status or {}).get("listeners", {})
    for name in LISTENERS:
        port = getattr(visit.config.listen, name)
        host = visit.config.listen.admin_host if name == "admin" else visit.config.listen.host
        if port is None:
            yield skip("off", name)
        elif name in running:
            yield _held_by_us(name, running[name])
        elif port == 0:
            yield ok("any free port", name)
        else:
            yield _free(name, host, port)
    yield from _rpc(visit.config)


def _rpc(config: Config) -> Iterator[Finding]:
    """`serve` keeps the RPC ports closed while no client could log on."""
    if config.rpc.is_open:
        if config.rpc.old_ntlm and config.rpc.users is not None:
            found = "rpc.old_ntlm accepts NTLM2-session: its DES proof gives the password hash away"
            mend = "set LmCompatibilityLevel to 3 on the readers, then remove rpc.old_ntlm"
            yield warn(found, "rpc", mend=mend)
        return
    wanted = [name for name in RPC if getattr(config.listen, name) is not None]
    written = [n for n in wanted if not isinstance(getattr(config.listen, n), DefaultPort)]
    if written:
        names = ", ".join(written)
        mend = "set rpc.users or rpc.keytab, or turn them off with null"
        yield warn(f"{names} stay closed: no client could log on", "rpc", mend=mend)
    elif wanted:
        yield skip("remote read is closed: neither rpc.users nor rpc.keytab is set", "rpc")


def _held_by_us(name: str, text: str) -> Finding:
    if name in UDP:
        return ok(f"our appliance is on {text}", name)
    address = Address.parse(text)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    try:
        socket.create_connection((host, address.port), CONNECT_S).close()
    except OSError as error:
        return fail(
            f"our appliance is on {text}, but does not answer ({error.strerror or error})",
            name,
            mend="look for a firewall, and into the appliance's log",
        )
    return ok(f"our appliance answers on {text}", name)


def _free(name: str, host: str, port: int) -> Finding:
    try:
        if name in UDP:
            _bind_udp(host, port)
        else:
            require_free(host, port, f"listen.{name}")
    except ConfigError as error:
        return _taken(name, host, port, error.__cause__)
    except OSError as error:
        return _taken(name, host, port, error)
    return ok(f"{Address(host, port)} is free", name)


def _bind_udp(host: str, port: int) -> None:
    family, kind, number, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, number) as probe:
        probe.bind(address)


def _taken(name: str, host: str, port: int, error: BaseException | None) -> Finding:
    where, code = Address(host, port), getattr(error, "errno", 0)
    if code == errno.EADDRINUSE:
        option = "-lunp" if name in UDP else "-ltnp"
        return fail(
            f"{where} is in use by another program",
            name,
            mend=f"stop it ('ss {option} sport = :{port}' names it), or change listen.{name}",
        )
    if code in (errno.EACCES, errno.EPERM):
        return fail(
            f"uid {os.geteuid()} may not listen on {where}: a port below 1024 needs a right",
            name,
            mend="AmbientCapabilities=CAP_NET_BIND_SERVICE in its systemd unit, or "
            f"sysctl net.ipv4.ip_unprivileged_port_start={port}",
        )
    reason = getattr(error, "strerror", None) or error
    return fail(
        f"cannot listen on {where} ({reason})",
        name,
        mend=f"choose an address of this machine in listen.{'admin_' * (name == 'admin')}host",
    )


# -- Java ----------------------------------------------------------------------------------------


def java(visit: Visit) -> Iterator[Finding]:
    """Only the embedded Kafka needs it."""
    if not visit.embedded:
        yield skip("not needed: kafka.bootstrap.servers is set")
        return
    yield ok(f"{find_java()} is new enough")
    if "KAFKA_HOME" not in os.environ and not is_complete(cache_folder() / "libs"):
        yield warn(
            f"Kafka's jars are not in {cache_folder()} yet",
            "jars",
            mend="the first start fetches them; without a network set KAFKA_HOME",
        )
