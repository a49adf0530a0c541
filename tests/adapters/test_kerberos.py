"""Kerberos with a real KDC (Debian's krb5-kdc) on loopback, where it and `gssapi` are."""

from __future__ import annotations

import asyncio
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from bridge.adapters.kerberos import Kerberos
from bridge.adapters.net.rpc_auth import Credentials, Package, SpnegoAuthenticator
from bridge.adapters.net.rpc_client import RpcClient
from bridge.adapters.net.rpc_server import RpcProcess, RpcServer
from bridge.config import Address
from bridge.model.errors import BindRefused, ConfigError
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.ntlm import AuthFailed
from bridge.protocol.rpc.seal import BadSeal
from tests.adapters.net.test_rpc_stock_clients import SCRIPT
from tests.protocol.rpc.ntlm_peer import NOW
from tests.support.rpc import ECHO, RAW_ECHO, SOURCE_DATA, WHO, World, run
from tests.support.samba import PYTHON, needs_samba
from tests.support.waiting import eventually

REALM = "TEST.LOCAL"
ANN = "ann@TEST.LOCAL"
LEVELS = [AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]

needs_kdc = pytest.mark.skipif(
    shutil.which("krb5kdc", path="/usr/sbin:/usr/bin") is None or find_spec("gssapi") is None,
    reason="no KDC (apt-get install krb5-kdc krb5-admin-server) or no gssapi ([kerberos])",
)

KRB5_CONF = """\
[libdefaults]
 default_realm = TEST.LOCAL
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 TEST.LOCAL = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = TEST.LOCAL
"""
KDC_CONF = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 TEST.LOCAL = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
 }}
"""


@pytest.fixture(scope="module")
def keytab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A realm of its own; ann has the password `secret`."""
    folder = tmp_path_factory.mktemp("kdc")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "krb5.conf").write_text(KRB5_CONF.format(port=port))
    (folder / "kdc.conf").write_text(KDC_CONF.format(port=port, folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(folder / "kdc.conf"))
        patch.setenv("KRB5RCACHEDIR", str(folder))
        patch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        for command in (
            ["kdb5_util", "create", "-s", "-P", "master", "-r", REALM],
            ["kadmin.local", "addprinc", "-pw", "secret", "ann"],
            ["kadmin.local", "addprinc", "-randkey", "host/localhost"],
            ["kadmin.local", "ktadd", "-k", str(folder / "keytab"), "host/localhost"],
        ):
            subprocess.run(command, check=True, capture_output=True)
        kdc = subprocess.Popen(
            ["krb5kdc", "-n"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually(lambda: _answers(port))
        yield folder / "keytab"
        kdc.terminate()
        kdc.wait(30)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def made(keytab: Path) -> tuple[World, RpcProcess, RpcServer]:
    world = World(None)
    process = RpcProcess(world.telemetry, kerberos=Kerberos(keytab), host="localhost")
    return world, process, RpcServer([world.echo], process)


@needs_kdc
@pytest.mark.parametrize("package", ["kerberos", "negotiate"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_level(keytab: Path, package: Package, level: AuthLevel) -> None:  # RR-8
    async def test() -> None:
        _, process, server = made(keytab)
        port = Address.parse(await server.start("127.0.0.1", 0)).port
        credentials = Credentials(ANN, "secret", package, level)
        connect = RpcClient.connect(Address("localhost", port), ECHO, credentials=credentials)
        async with await connect as client:
            who = f"TEST.LOCAL\\ann|{level.name}|{client.group}".encode()
            assert await client.call(WHO, b"") == who
            assert await client.call(RAW_ECHO, bytes(12_345)) == bytes(12_345)
            answer = await client.call(SOURCE_DATA, struct.pack("<I", 1 << 20))
            assert len(answer) == 4 + (1 << 20)
        server.stop_listening()
        await process.stop()

    run(test())


@needs_kdc
@pytest.mark.parametrize("package", ["kerberos", "negotiate"])
def test_a_wrong_password(keytab: Path, package: Package) -> None:
    async def test() -> None:
        world, process, server = made(keytab)
        port = Address.parse(await server.start("127.0.0.1", 0)).port
        wrong = Credentials(ANN, "wrong", package)
        with pytest.raises(BindRefused):
            await RpcClient.connect(Address("localhost", port), ECHO, credentials=wrong)
        assert world.echo.calls == []
        server.stop_listening()
        await process.stop()

    run(test())


@needs_kdc
def test_what_was_changed_or_replayed(keytab: Path) -> None:
    for encrypt in (True, False):
        client = SpnegoAuthenticator(Credentials(ANN, "secret", "kerberos"), "localhost")
        server = Kerberos(keytab).acceptor(spnego=False)
        answer = server.step(client.step(None), NOW)
        assert server.seal is None
        assert server.step(client.step(answer), NOW) == b""
        assert server.seal is not None
        assert server.user == "TEST.LOCAL\\ann"
        out, signature = client.seal.protect(b"head", b"body" * 4, b"tail", encrypt=encrypt)
        assert len(signature) == server.seal.size(encrypt=encrypt)
        unseal = server.seal.unprotect
        with pytest.raises(BadSeal):
            unseal(b"HEAD", out, b"tail", signature, encrypt=encrypt)
        assert unseal(b"head", out, b"tail", signature, encrypt=encrypt) == b"body" * 4
        with pytest.raises(BadSeal):
            unseal(b"head", out, b"tail", signature, encrypt=encrypt)
        with pytest.raises(AuthFailed):
            server.step(b"more", NOW)


@needs_kdc
@pytest.mark.parametrize("token", [b"", b"nonsense", b"\x60\x84\xff\xff\xff\xff", bytes(500)])
def test_a_token_that_makes_no_sense(keytab: Path, token: bytes) -> None:
    for spnego in (True, False):
        with pytest.raises(AuthFailed):
            Kerberos(keytab).acceptor(spnego=spnego).step(token, NOW)


@needs_kdc
@needs_samba
@pytest.mark.parametrize("option", ["connect,krb5", "sign,krb5", "seal,krb5", "seal,spnego"])
def test_samba(keytab: Path, option: str, tmp_path: Path) -> None:
    """An independent implementation (Heimdal) reads our seals."""

    async def test() -> None:
        world, process, server = made(keytab)
        port = Address.parse(await server.start("127.0.0.1", 0)).port
        (settings := tmp_path / "smb.conf").write_text(f"[global]\nrealm = {REALM}\n")
        options = f"{option},target_hostname=localhost"
        place = ["127.0.0.1", str(port), options, ANN, "secret", str(settings)]
        command = [str(PYTHON), str(SCRIPT), *place]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60
        )
        assert done.stdout.strip() == "done", done.stderr
        assert {call.user for call in world.echo.calls} == {"TEST.LOCAL\\ann"}
        server.stop_listening()
        await process.stop()

    run(test())


def test_without_the_package_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        Kerberos(tmp_path / "keytab")
    assert caught.value.where == "rpc.keytab"
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.skipif(find_spec("gssapi") is None, reason="no gssapi ([kerberos])")
def test_a_keytab_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "keytab"
    with pytest.raises(ConfigError, match="cannot be read"):
        Kerberos(path)
    path.write_text("not a keytab")
    with pytest.raises(ConfigError, match="no keytab"):
        Kerberos(path)
