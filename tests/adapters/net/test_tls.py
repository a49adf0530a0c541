"""Contexts for new and old Windows, and certificates that are renewed: srmp.md 1.5."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import (
    CertificateReload,
    Profile,
    client_context,
    names_of,
    require_clients,
    server_context,
)
from bridge.model.errors import ConfigError
from tests.adapters.net.http_world import OK, http_world, post, raw_client
from tests.adapters.net.memory_server import run
from tests.support.certificates import ALTERNATIVES, Authority

Pair = tuple[Path, Path]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return self_signed(["localhost"], tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return self_signed(["localhost"], tmp_path_factory.mktemp("new"))


@pytest.fixture
def used(old: Pair, tmp_path: Path) -> Pair:
    """A copy of the old one that a test may change."""
    put(old, (tmp_path / "used.crt", tmp_path / "used.key"))
    return tmp_path / "used.crt", tmp_path / "used.key"


def put(source: Pair, target: Pair) -> None:
    for here, there in zip(source, target, strict=True):
        shutil.copyfile(here, there)


def der(pair: Pair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair[0].read_text())


def only(version: ssl.TLSVersion) -> ssl.SSLContext:
    """A client that speaks nothing else, however old it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    return context


async def version_of(profile: Profile, pair: Pair, client: ssl.SSLContext) -> str | None:
    async with (
        http_world(tls=server_context(*pair, profile)) as made,
        raw_client(made, client) as connected,
    ):
        assert await connected.ask(post()) == OK
        found: str | None = connected.writer.get_extra_info("ssl_object").version()
        return found


@pytest.mark.parametrize("profile", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("version", "name"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_what_both_speak(profile: Profile, version: ssl.TLSVersion, name: str, old: Pair) -> None:
    async def test() -> None:
        assert await version_of(profile, old, only(version)) == name

    run(test())


OLD_VERSIONS = [
    pytest.param(
        version, name, marks=pytest.mark.skipif(not there, reason="this OpenSSL has it not")
    )
    for version, name, there in (
        (ssl.TLSVersion.TLSv1, "TLSv1", ssl.HAS_TLSv1),
        (ssl.TLSVersion.TLSv1_1, "TLSv1.1", ssl.HAS_TLSv1_1),
    )
]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(("version", "name"), OLD_VERSIONS)
def test_old_windows_needs_the_legacy_profile(
    version: ssl.TLSVersion, name: str, old: Pair
) -> None:
    async def test() -> None:
        assert await version_of("legacy", old, only(version)) == name
        with pytest.raises(ssl.SSLError):
            await version_of("modern", old, only(version))

    run(test())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(("version", "name"), OLD_VERSIONS)
def test_our_client_needs_the_legacy_profile_for_old_windows(
    version: ssl.TLSVersion, name: str, old: Pair
) -> None:
    async def test() -> None:
        context = server_context(*old, "legacy")
        context.maximum_version = version
        async with http_world(tls=context) as made:
            async with raw_client(made, client_context(old[0], "legacy")) as connected:
                assert await connected.ask(post()) == OK
                assert connected.writer.get_extra_info("ssl_object").version() == name
            with pytest.raises(ssl.SSLError):
                async with raw_client(made, client_context(old[0])):
                    pass

    run(test())


@pytest.mark.parametrize("profile", ["modern", "legacy"])
def test_a_server_without_secure_renegotiation(profile: Profile, old: Pair) -> None:
    """RFC 5746: servers that were never updated do not know it. OpenSSL refuses them by default."""
    legacy_server_connect = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT
    options = client_context(old[0], profile).options
    assert bool(options & legacy_server_connect) == (profile == "legacy")


@pytest.mark.parametrize("profile", ["modern", "legacy"])
def test_no_context_speaks_ssl_3(profile: Profile, old: Pair) -> None:
    for context in (server_context(*old, profile), client_context(old[0], profile)):
        assert context.options & ssl.OP_NO_SSLv3
    for cipher in server_context(*old, profile).get_ciphers():
        assert "Au=None" not in cipher["description"]
        assert "Enc=None" not in cipher["description"]


def test_a_client_verifies(old: Pair) -> None:
    context = client_context(old[0])
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert client_context(None).verify_mode is ssl.CERT_REQUIRED


# -- clients that must show a certificate ---------------------------------------------------


def test_the_names_of_a_client(tmp_path: Path, old: Pair) -> None:
    authority = Authority(tmp_path)
    context = server_context(*old)
    require_clients(context, authority.file)
    names = {
        authority.sign("Order Service", *ALTERNATIVES): (
            "cn:order service",
            "san:sender01.example.com",
            "san:spiffe://example.com/orders",
            "san:ann@example.com",
            "san:10.1.2.3",
        ),
        authority.sign("x"): ("cn:x",),
    }

    async def test() -> None:
        async with http_world(tls=context) as made:
            for shows in names:
                client = client_context(old[0])
                client.load_cert_chain(shows)
                async with raw_client(made, client) as connected:
                    assert await connected.ask(post()) == OK
                    assert await connected.ask(post()) == OK
            found = [request.peer_names for request in made.requests]
        assert found == [each for each in names.values() for _ in range(2)]

    run(test())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shows", ["nothing", "another's"])
def test_a_client_without_a_certificate_says_nothing(
    tmp_path: Path, old: Pair, shows: str, version: ssl.TLSVersion
) -> None:
    """With TLS 1.3 a client believes that it is connected before the server has judged it."""
    context = server_context(*old)
    require_clients(context, Authority(tmp_path).file)
    client = client_context(old[0])
    client.minimum_version = client.maximum_version = version
    if shows != "nothing":
        client.load_cert_chain(Authority(tmp_path, "other").sign("orders"))

    async def test() -> None:
        async with http_world(tls=context) as made:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with raw_client(made, client) as connected:
                    assert await connected.ask(post()) != OK
            assert made.requests == []

    run(test())


def test_names_that_no_list_can_have() -> None:
    subject = ((("commonName", "x" * 300),), (("organizationName", "o"), ("commonName", "B")))
    alternatives = (("DNS", "a.example"), ("DirName", (("a", "b"),)), ("DNS", "y" * 300))
    found = names_of({"subject": subject, "subjectAltName": alternatives})
    assert found == ("cn:b", "san:a.example")
    assert names_of({}) == ()


# -- what is wrong with the files -----------------------------------------------------------


def one_line(error: ConfigError, where: Path) -> None:
    assert error.where == str(where)
    assert error.mend
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("missing", [0, 1])
def test_a_file_that_is_not_there(used: Pair, missing: int) -> None:
    used[missing].unlink()
    with pytest.raises(ConfigError, match="No such file") as caught:
        server_context(*used)
    one_line(caught.value, used[missing])


def test_files_that_are_no_pair(old: Pair, new: Pair) -> None:
    with pytest.raises(ConfigError, match="KEY_VALUES_MISMATCH") as caught:
        server_context(old[0], new[1])
    one_line(caught.value, old[0])


@pytest.mark.parametrize("broken", [0, 1])
def test_a_file_that_is_no_pem(used: Pair, broken: int) -> None:
    used[broken].write_bytes(b"rubbish")
    with pytest.raises(ConfigError) as caught:
        server_context(*used)
    one_line(caught.value, used[0])


def test_a_key_with_a_password_asks_nobody(used: Pair) -> None:
    key = serialization.load_pem_private_key(used[1].read_bytes(), None)
    used[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match="without a password"):
        server_context(*used)


@pytest.mark.parametrize("content", [None, b"rubbish"])
def test_authorities_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        client_context(path)
    one_line(caught.value, path)


# -- a renewed certificate ------------------------------------------------------------------


def test_new_handshakes_see_the_new_one(old: Pair, new: Pair, used: Pair) -> None:
    async def test() -> None:
        context = server_context(*used)
        reload = CertificateReload(context, *used)
        both = client_context(old[0])
        both.load_verify_locations(new[0])
        async with http_world(tls=context) as made, raw_client(made, both) as before:
            assert await before.ask(post()) == OK
            assert not reload.check()
            put(new, used)
            assert reload.check()
            assert not reload.check()
            async with raw_client(made, both) as after:
                assert await after.ask(post()) == OK
                shown = after.writer.get_extra_info("ssl_object").getpeercert(True)
                assert shown == der(new)
            assert await before.ask(post()) == OK  # who was there goes on

    run(test())


def test_what_does_not_fit_leaves_the_old_one(
    old: Pair, new: Pair, used: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the two files that are written: said once, and not for long."""

    async def shown(context: ssl.SSLContext) -> bytes:
        both = client_context(old[0])
        both.load_verify_locations(new[0])
        async with http_world(tls=context) as made, raw_client(made, both) as client:
            assert await client.ask(post()) == OK
            found: bytes = client.writer.get_extra_info("ssl_object").getpeercert(True)
            return found

    async def test() -> None:
        context = server_context(*used)
        reload = CertificateReload(context, *used)
        shutil.copyfile(new[0], used[0])
        assert [reload.check() for _ in range(3)] == [False, False, False]
        assert await shown(context) == der(old)
        shutil.copyfile(new[1], used[1])
        assert reload.check()
        assert await shown(context) == der(new)
        used[0].unlink()
        assert [reload.check() for _ in range(3)] == [False, False, False]
        assert await shown(context) == der(new)
        put(old, used)
        assert reload.check()
        assert await shown(context) == der(old)

    with caplog.at_level(logging.INFO):
        run(test())
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 2
    assert all("the old one stays" in record.getMessage() for record in errors)


def test_it_looks_by_itself(new: Pair, used: Pair) -> None:
    class Watched(CertificateReload):
        def check(self) -> bool:
            if changed := super().check():
                seen.set()
            return changed

    seen = asyncio.Event()

    async def test() -> None:
        context = server_context(*used)
        watching = asyncio.create_task(Watched(context, *used, every_s=0.01).run())
        put(new, used)
        await seen.wait()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run(test())
