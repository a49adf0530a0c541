"""The ports of remote read: which, where, and what if one is taken. RR-1"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.remote_read.rpc_service import RpcService
from bridge.adapters.telemetry import Telemetry
from bridge.config import Config, DefaultPort, ListenConfig, RpcConfig
from bridge.core.mapping_rules import Mappings
from bridge.model.errors import ConfigError
from tests.adapters.remote_read.world import World
from tests.core.messages import LOCAL

OFF: dict[str, Any] = {"host": "127.0.0.1", "rpc": None, "rpc_qp": None, "endpoint_mapper": None}


def service(security: RpcConfig | None = None, **listen: Any) -> RpcService:
    """Open to all, unless `security` says otherwise."""
    world = World()
    security = security or RpcConfig(minimum_level="none")
    return RpcService(
        Config(listen=ListenConfig(**OFF | listen), rpc=security),
        ["BRIDGE01"],
        LOCAL,
        world.owner,
        lambda: world.catalogue,
        Mappings,
        Telemetry(),
    )


def started(made: RpcService) -> tuple[dict[str, str], list[int]]:
    """Its listeners, and the ports that the mapper would tell."""

    async def run() -> tuple[dict[str, str], list[int]]:
        try:
            ready = await made.start()
            return ready, [endpoint.port for endpoint in made._endpoints()]
        finally:
            made.stop_listening()
            await made.stop()

    return asyncio.run(run())


@contextmanager
def taken() -> Iterator[int]:
    """A port that somebody else has."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_any_free_port_and_none() -> None:
    """Design 3.2: 0 is any free port, null turns it off."""
    ready, told = started(service(rpc=0, endpoint_mapper=0))
    assert set(ready) == {"rpc", "endpoint_mapper"}
    assert told == [port_of(ready["rpc"])] * 2  # qm2qm is not served, so it is not told
    ready, told = started(service())
    assert (ready, told) == ({}, [])


def test_all_three() -> None:
    ready, told = started(service(rpc=0, rpc_qp=0, endpoint_mapper=0))
    rpc, old = port_of(ready["rpc"]), port_of(ready["rpc_qp"])
    assert told == [rpc, rpc, old]


def test_a_usual_port_that_is_taken_gives_way() -> None:
    """RR-1: +11 when busy"""
    with taken() as port:
        ready, _ = started(service(rpc=DefaultPort(port)))
    assert (port_of(ready["rpc"]) - port) % 11 == 0
    assert port_of(ready["rpc"]) > port


def test_one_that_was_written_down_does_not() -> None:
    with taken() as port, pytest.raises(ConfigError, match=str(port)) as caught:
        started(service(rpc=port))
    assert caught.value.where == "listen.rpc"


def test_the_mapper_has_one_port_only(caplog: pytest.LogCaptureFixture) -> None:
    """A default port that cannot be had leaves it off, with a warning."""
    with taken() as port, caplog.at_level(logging.WARNING):
        ready, _ = started(service(rpc=0, endpoint_mapper=DefaultPort(port)))
    assert set(ready) == {"rpc"}
    assert "is off" in caplog.text


def test_users_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        service(RpcConfig(users=tmp_path / "nothing.yaml"))


def test_where_nobody_could_log_on_the_ports_stay_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line names those that were written down; a taken one is no fault, it is not needed."""
    with taken() as port, caplog.at_level(logging.WARNING):
        made = service(RpcConfig(), rpc=0, rpc_qp=port, endpoint_mapper=DefaultPort(135))
        ready, told = started(made)
    assert (ready, told) == ({}, [])
    assert made.closed == ["rpc", "rpc_qp", "endpoint_mapper"]
    (line,) = [record.message for record in caplog.records]
    assert "listen.rpc, listen.rpc_qp: closed" in line
    assert "rpc.users" in line


def test_default_ports_that_stay_closed_are_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = service(RpcConfig(), rpc=DefaultPort(2103))
        assert started(made) == ({}, [])
    assert made.closed == ["rpc"]
    assert not caplog.records


@pytest.mark.parametrize("level", ["none", "privacy"])
def test_users_or_no_level_open_them(tmp_path: Path, level: Any) -> None:
    users = tmp_path / "users.yaml"
    users.write_text("ann: {password: secret}")
    security = RpcConfig(minimum_level=level, users=users if level != "none" else None)
    made = service(security, rpc=0)
    ready, _ = started(made)
    assert (list(ready), made.closed) == (["rpc"], [])


def test_the_defaults_are_those_of_windows() -> None:
    listen = ListenConfig()
    assert (listen.rpc, listen.rpc_qp, listen.endpoint_mapper) == (2103, 2105, 135)
    assert all(
        isinstance(port, DefaultPort)
        for port in (listen.rpc, listen.rpc_qp, listen.endpoint_mapper)
    )
