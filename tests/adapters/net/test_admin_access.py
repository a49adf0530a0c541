"""Who may do what on the admin port; what the token guards is also in test_admin_reload.py."""

import asyncio
import http.client
import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bridge.adapters.net import admin_access as module
from bridge.adapters.net.admin_access import (
    MAX_ADDRESSES,
    MOST_WRONG,
    OF_SENDERS,
    Access,
    WrongTokens,
)
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.net.admin_server import AdminServer
from bridge.adapters.telemetry import Telemetry
from bridge.config import AdminConfig, Config, ListenConfig
from bridge.model.errors import ConfigError
from tests.adapters.net.fake_appliance import FakeAppliance

Answer = tuple[int, dict[str, str], dict[str, Any]]
Ask = Callable[..., Answer]
RELOAD = "/api/mappings/reload"


def talk(
    settings: AdminConfig,
    dialogue: Callable[[Ask], None],
    context: ssl.SSLContext | None = None,
    names: tuple[str, ...] = (),
    generated: Path | None = None,
) -> None:
    """One server for a whole dialogue; `ask` sends exactly the headers it is given."""

    async def run() -> None:
        server = AdminServer(FakeAppliance(), Telemetry(), settings, names, generated)
        address = urlsplit(f"//{await server.start('127.0.0.1', 0)}")

        def ask(path: str, method: str = "GET", **headers: str) -> Answer:
            host, port = str(address.hostname), address.port
            connection = (
                http.client.HTTPSConnection(host, port, timeout=10, context=context)
                if context
                else http.client.HTTPConnection(host, port, timeout=10)
            )
            try:
                sent = {name.replace("_", "-"): value for name, value in headers.items()}
                connection.request(method, path, headers=sent)
                answer = connection.getresponse()
                data = answer.read()
                is_json = "json" in str(answer.headers["Content-Type"])
                return (
                    answer.status,
                    dict(answer.headers),
                    json.loads(data) if is_json and data else {},
                )
            finally:
                connection.close()

        try:
            await asyncio.to_thread(dialogue, ask)
        finally:
            await server.stop()

    asyncio.run(run())


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "admin.token"
    path.write_text("s3cret\n")
    return path


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9180", 200),
        ("[::1]:9180", 200),
        ("192.0.2.7", 200),
        ("localhost:9180", 200),
        ("a.localhost", 200),
        ("Bridge01", 200),
        ("bridge01.:9180", 200),
        ("ops.example", 200),
        ("evil.example", 421),
        ("bridge01.evil.example", 421),
        ("127.0.0.1.evil.example:9180", 421),
        ("evil.example:127.0.0.1", 421),
        ("", 200),  # no browser
    ],
)
def test_a_name_that_is_not_ours(host: str, status: int) -> None:  # DNS rebinding
    def dialogue(ask: Ask) -> None:
        for path in ("/api/status", "/api/live", "/metrics", "/", "/page/app.js"):
            assert ask(path, Host=host)[0] == status, path
        for path in ("/livez", "/readyz"):  # asked by names of load balancers
            assert ask(path, Host=host)[0] == 200, path

    talk(AdminConfig(names=("ops.example",)), dialogue, names=("BRIDGE01",))


# -- the token --------------------------------------------------------------------------------


def test_reads_are_open_unless_they_are_protected(token: Path) -> None:
    def open_reads(ask: Ask) -> None:
        assert ask("/api/status")[0] == 200
        assert ask("/api/access")[2] == {
            "protect_reads": False,
            "token": True,
            "may_read": True,
            "may_see_senders": False,
            "may_write": False,
            "error": None,
        }

    def protected(ask: Ask) -> None:
        for path in ("/api/status", "/api/live", "/api/trace?id=a", "/metrics", "/api/queues"):
            status, headers, body = ask(path)
            assert (status, headers["WWW-Authenticate"]) == (401, "Bearer"), path
            assert body == {"error": "the admin token is missing or wrong"}
        for path in ("/livez", "/readyz", "/", "/page/app.js"):  # the bare page shows nothing
            assert ask(path)[0] == 200, path
        assert ask("/api/access")[2]["may_read"] is False
        assert ask("/api/status", Authorization="Bearer s3cret")[0] == 200
        told = ask("/api/access", Authorization="Bearer s3cret")[2]
        assert (told["may_read"], told["may_write"]) == (True, True)

    talk(AdminConfig(token_file=token), open_reads)
    talk(AdminConfig(token_file=token, protect_reads=True), protected)


def test_without_any_token_nothing_is_written() -> None:
    def dialogue(ask: Ask) -> None:
        told = ask("/api/access")[2]
        assert (told["token"], told["may_read"], told["may_write"]) == (False, True, False)
        for given in ("", "Bearer ", "Bearer None"):
            assert ask(RELOAD, "POST", Authorization=given)[0] == 401
        assert ask(RELOAD, "POST")[0] == 401

    talk(AdminConfig(), dialogue)


@pytest.mark.parametrize("path", sorted(OF_SENDERS))
@pytest.mark.parametrize("is_generated", [False, True])
def test_what_names_senders_needs_the_token(path: str, is_generated: bool, token: Path) -> None:
    """GUIDs, addresses, streams and messages: with these a stranger could pass for a sender."""
    spellings = (path, f"{path}?limit=1", path.replace("/a", "/%61"), f"{path}?x=/livez")
    right = {"Authorization": "Bearer s3cret"}

    def dialogue(ask: Ask) -> None:
        for spelling in spellings:
            for method in ("GET", "HEAD"):
                assert ask(spelling, method)[0] == 401, spelling
        assert ask(path, Authorization="Bearer wrong")[0] == 401
        assert ask(path, **right)[0] not in (401, 403)
        assert ask("/api/access", **right)[2]["may_see_senders"] is True

    settings = AdminConfig(token_file=None if is_generated else token)
    talk(settings, dialogue, generated=token if is_generated else None)


def test_the_status_leaves_out_what_names_senders(token: Path) -> None:
    def dialogue(ask: Ask) -> None:
        for path, hidden in (("/api/status", ["sessions"]), ("/api/live", ["cloned_guids"])):
            without = ask(path)[2]
            assert without["needs_token"] == hidden
            assert ask(path, Authorization="Bearer wrong")[2].keys() == without.keys()
            whole = ask(path, Authorization="Bearer s3cret")[2]
            assert whole.keys() - without.keys() == set(hidden)
            assert "needs_token" not in whole

    talk(AdminConfig(token_file=token), dialogue)


def test_guessing_is_slow(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def dialogue(ask: Ask) -> None:
        for number in range(MOST_WRONG):
            if number % 2:
                assert ask(RELOAD, "POST", Authorization=f"Bearer {number}")[0] == 401
            else:  # the page asks like this, and hears the same
                status, _, told = ask("/api/access", Authorization=f"Bearer {number}")
                assert (status, told["may_write"]) == (200, False)
                assert told["error"] == "the admin token is missing or wrong"
        status, headers, body = ask(RELOAD, "POST", Authorization="Bearer s3cret")
        assert (status, headers["Retry-After"]) == (429, "61")
        assert body == {"error": "too many wrong tokens; try again in 61 s"}
        told = ask("/api/access", Authorization="Bearer s3cret")[2]
        assert (told["may_write"], "too many" in told["error"]) == (False, True)
        now[0] += 61
        assert ask(RELOAD, "POST", Authorization="Bearer s3cret")[0] == 200

    talk(AdminConfig(token_file=token), dialogue)


def test_who_gives_no_token_does_not_guess(token: Path) -> None:
    def dialogue(ask: Ask) -> None:
        for _ in range(MOST_WRONG + 1):
            assert ask(RELOAD, "POST")[0] == 401
        assert ask(RELOAD, "POST", Authorization="Bearer s3cret")[0] == 200

    talk(AdminConfig(token_file=token), dialogue)


def test_wrong_tokens_are_counted_by_neighbourhood() -> None:
    wrong = WrongTokens()
    for number in range(MOST_WRONG):
        wrong.note(f"2001:db8::{number}")
    assert wrong.wait_s("2001:db8::ffff") > 0
    assert wrong.wait_s("2001:db8:0:1::1") == 0
    assert wrong.wait_s("10.0.0.7") == 0
    for number in range(MAX_ADDRESSES * 2):
        wrong.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(wrong._seen) == MAX_ADDRESSES


# -- certificates -----------------------------------------------------------------------------


def signed(folder: Path, name: str, by: str | None = None) -> Path:
    """A certificate and its key in one file, signed by itself or by another one of ours."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = subject, key
    if by is not None:
        text = (folder / f"{by}.pem").read_bytes()
        issuer = x509.load_pem_x509_certificate(text).subject
        signer = serialization.load_pem_private_key(text, None)  # type: ignore[assignment]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def client(server: Path, shows: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=server)
    context.check_hostname = False
    if shows is not None:
        context.load_cert_chain(shows)
    return context


@pytest.fixture
def https(tmp_path: Path, token: Path) -> AdminConfig:
    server, authority = signed(tmp_path, "server"), signed(tmp_path, "authority")
    return AdminConfig(
        token_file=token, protect_reads=True, certificate=server, client_ca=authority
    )


def test_a_client_certificate_is_as_good_as_the_token(tmp_path: Path, https: AdminConfig) -> None:
    operator = signed(tmp_path, "operator", by="authority")

    def dialogue(ask: Ask) -> None:
        assert ask("/api/status")[0] == 200
        assert ask(RELOAD, "POST")[0] == 200
        told = ask("/api/access")[2]
        assert (told["may_read"], told["may_write"]) == (True, True)
        # A browser shows it whatever page it is on: that page must be ours.
        assert ask(RELOAD, "POST", Host="localhost:1", Origin="https://localhost:1")[0] == 200
        for origin in ("https://evil.example", "null", ""):
            status, _, body = ask(RELOAD, "POST", Origin=origin)
            assert (status, body["error"]) == (403, "a page of another site may not write")

    assert https.certificate is not None
    talk(https, dialogue, client(https.certificate, operator))


def test_without_a_certificate_the_token_counts(https: AdminConfig) -> None:
    def dialogue(ask: Ask) -> None:
        assert ask("/livez")[0] == 200
        assert ask("/api/status")[0] == 401
        assert ask(RELOAD, "POST", Authorization="Bearer s3cret")[0] == 200

    assert https.certificate is not None
    talk(https, dialogue, client(https.certificate))


def test_a_certificate_of_somebody_else_ends_the_handshake(
    tmp_path: Path, https: AdminConfig
) -> None:
    stranger = signed(tmp_path, "stranger")

    def dialogue(ask: Ask) -> None:
        with pytest.raises((OSError, http.client.HTTPException)):
            ask("/livez")

    assert https.certificate is not None
    talk(https, dialogue, client(https.certificate, stranger))


def test_the_commands_trust_the_certificate_of_their_configuration(https: AdminConfig) -> None:
    async def run() -> None:
        server = AdminServer(FakeAppliance(), Telemetry(), https)
        port = int((await server.start("127.0.0.1", 0)).rpartition(":")[2])
        config = Config(admin=https, listen=ListenConfig(admin=port))
        url = f"https://127.0.0.1:{port}"
        try:
            told = await asyncio.to_thread(get_json, url, "/api/status", config)
            assert told["ready"] is True
            with pytest.raises(Exception, match="does not answer"):
                await asyncio.to_thread(get_json, url, "/api/status")  # trusts nobody like it
        finally:
            await server.stop()

    asyncio.run(run())


def test_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    server = signed(tmp_path, "server")
    settings = AdminConfig(certificate=server, client_ca=tmp_path / "none.pem")

    async def run() -> None:
        with pytest.raises(ConfigError, match="cannot be read"):
            await AdminServer(FakeAppliance(), Telemetry(), settings).start("127.0.0.1", 0)

    asyncio.run(run())


def test_a_page_without_its_access_is_none() -> None:
    """What belongs to a certificate. `protect_reads` needs nothing: a token is generated."""
    AdminConfig(protect_reads=True)
    for option in ("key", "client_ca"):
        with pytest.raises(ConfigError, match=r"admin\.certificate is not"):
            AdminConfig(**{option: Path("a.pem")})  # type: ignore[arg-type]
    assert Access(AdminConfig(), (), Telemetry())._names == set()


def test_wrong_tokens_of_an_ipv4_address_are_counted_for_it_alone() -> None:
    """A listener for both families shows IPv4 addresses as IPv6: all of them lie in one /64."""
    wrong = WrongTokens()
    for _ in range(5):
        wrong.note("::ffff:10.1.2.3")
    assert wrong.wait_s("10.1.2.3") > 0
    assert wrong.wait_s("::ffff:10.9.9.9") == 0
