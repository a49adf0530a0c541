"""Clients that others wrote: impacket, and Samba's Python (Debian's python3-samba) where it is."""

from __future__ import annotations

import asyncio
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from impacket.dcerpc.v5 import rpcrt, transport
from impacket.uuid import uuidtup_to_bin

from bridge.protocol.rpc.calls import AuthLevel
from tests.support.rpc import (
    ECHO_UUID,
    FAIL,
    RAW_ECHO,
    SOURCE_DATA,
    WAIT,
    WHO,
    World,
    run,
    world,
)
from tests.support.samba import PYTHON, needs_samba
from tests.support.waiting import until

INTERFACE = uuidtup_to_bin((ECHO_UUID, "1.0"))
SCRIPT = Path(__file__).with_name("samba_echo.py")


def served(work: Callable[[World], None]) -> None:
    """`work` blocks: it has a thread, the server the loop."""

    async def test() -> None:
        async with world() as made:
            await asyncio.to_thread(work, made)

    run(test())


# -- impacket ---------------------------------------------------------------------------------


def dial(made: World, level: AuthLevel, word: str = "secret", user: str = "ann") -> Any:
    where = f"ncacn_ip_tcp:{made.address.host}[{made.address.port}]"
    link = transport.DCERPCTransportFactory(where)
    link.set_credentials(user, word, "DOM")
    dce = link.get_dce_rpc()
    if level is not AuthLevel.NONE:
        dce.set_auth_level(int(level))
    dce.connect()
    dce.get_rpc_transport().get_socket().settimeout(30)
    dce.bind(INTERFACE)
    return dce


def ask(dce: Any, opnum: int, stub: bytes = b"") -> bytes:
    dce.call(opnum, stub)
    answer: bytes = dce.recv()
    return answer


@pytest.mark.parametrize("level", AuthLevel)
def test_impacket_at_every_level(level: AuthLevel) -> None:  # RR-8
    def work(made: World) -> None:
        dce = dial(made, level)
        user = "" if level is AuthLevel.NONE else "DOM\\ann"
        assert ask(dce, WHO).startswith(f"{user}|{level.name}|".encode())
        stub = bytes(range(250)) * 50  # 12 KB: fragments
        assert ask(dce, RAW_ECHO, stub) == stub
        assert len(ask(dce, SOURCE_DATA, struct.pack("<I", 4 << 20))) == 4 + (4 << 20)
        with pytest.raises(rpcrt.DCERPCException, match="c00e0003"):
            ask(dce, FAIL)
        assert ask(dce, RAW_ECHO, b"on") == b"on"
        dce.disconnect()

    served(work)


@pytest.mark.parametrize("level", [AuthLevel.NONE, AuthLevel.CONNECT, AuthLevel.PRIVACY])
def test_impacket_alters_the_context(level: AuthLevel) -> None:  # RR-4: a second security context
    def work(made: World) -> None:
        dce = dial(made, level)
        second = dce.alter_ctx(INTERFACE)
        for _ in range(2):
            assert ask(second, RAW_ECHO, b"second") == b"second"
            assert ask(dce, RAW_ECHO, b"first") == b"first"
        dce.disconnect()

    served(work)


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("bob", "secret"), ("", "")])
def test_impacket_with_a_wrong_password(level: AuthLevel, user: str, password: str) -> None:  # RR-9
    def work(made: World) -> None:
        dce = dial(made, level, password, user)
        with pytest.raises(rpcrt.DCERPCException, match="rpc_s_access_denied"):
            ask(dce, RAW_ECHO, b"x")
        assert made.echo.calls == []
        assert made.refused("auth-failed") == 1
        dce.disconnect()

    served(work)


def test_impacket_with_ntlm_v1() -> None:
    def work(made: World) -> None:
        link = transport.DCERPCTransportFactory(
            f"ncacn_ip_tcp:{made.address.host}[{made.address.port}]"
        )
        link.set_credentials("ann", "secret", "DOM")
        link.doesSupportNTLMv2 = lambda: False
        dce = link.get_dce_rpc()
        dce.set_auth_level(int(AuthLevel.PRIVACY))
        dce.connect()
        dce.bind(INTERFACE)
        with pytest.raises(rpcrt.DCERPCException, match="rpc_s_access_denied"):
            ask(dce, RAW_ECHO, b"x")
        assert made.echo.calls == []
        dce.disconnect()

    served(work)


def test_impacket_has_two_calls_under_way() -> None:  # RR-6
    async def test() -> None:
        async with world() as made:
            dce = await asyncio.to_thread(dial, made, AuthLevel.PRIVACY)
            dce.call(WAIT, b"")
            await until(lambda: made.echo.waiting == 1)
            assert await asyncio.to_thread(ask, dce, RAW_ECHO, b"quick") == b"quick"
            made.echo.gate.set()
            assert await asyncio.to_thread(dce.recv) == b"waited"
            dce.disconnect()

    run(test())


def test_impacket_is_refused_ndr64() -> None:  # RR-3
    def work(made: World) -> None:
        dce = transport.DCERPCTransportFactory(
            f"ncacn_ip_tcp:{made.address.host}[{made.address.port}]"
        ).get_dce_rpc()
        dce.connect()
        with pytest.raises(rpcrt.DCERPCException, match="transfer_syntaxes_not_supported"):
            dce.bind(INTERFACE, transfer_syntax=NDR64)
        dce.disconnect()

    served(work)


NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", "1.0")


# -- Samba ------------------------------------------------------------------------------------


def echo(made: World, folder: Path, options: str, user: str = "ann", word: str = "secret") -> str:
    """`done`, or what Samba says."""
    (settings := folder / "smb.conf").write_text("[global]\n")
    place = [made.address.host, str(made.address.port)]
    command = [str(PYTHON), str(SCRIPT), *place, options, user, word, str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() or done.stderr


@needs_samba
@pytest.mark.parametrize("package", ["ntlm", "spnego"])
@pytest.mark.parametrize(
    ("option", "level"),
    [
        ("connect", AuthLevel.CONNECT),
        ("packet", AuthLevel.PACKET),
        ("sign", AuthLevel.INTEGRITY),
        ("seal", AuthLevel.PRIVACY),
    ],
)
def test_samba_at_every_level(tmp_path: Path, package: str, option: str, level: AuthLevel) -> None:
    """Samba checks our signatures, and at packet level signs its own."""

    def work(made: World) -> None:
        assert echo(made, tmp_path, f"{option},{package}") == "done"
        assert {(call.user, call.level) for call in made.echo.calls} == {("DOM\\ann", level)}

    served(work)


@needs_samba
def test_samba_without_a_name(tmp_path: Path) -> None:
    served(lambda made: _is(echo(made, tmp_path, "", user=""), "done"))


@needs_samba
@pytest.mark.parametrize("package", ["ntlm", "spnego"])
def test_samba_with_a_wrong_password(tmp_path: Path, package: str) -> None:  # RR-9
    def work(made: World) -> None:
        said = echo(made, tmp_path, f"seal,{package}", word="wrong")
        assert "NTSTATUSError" in said
        assert made.echo.calls == []

    served(work)


@needs_samba
def test_samba_as_a_big_endian_machine(tmp_path: Path) -> None:
    def work(made: World) -> None:
        assert "disconnected" in echo(made, tmp_path, "bigendian", user="")
        assert made.refused("malformed") == 1

    served(work)


def _is(found: str, wanted: str) -> None:
    assert found == wanted
