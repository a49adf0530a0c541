"""pyspnego behind our port; the sealing against a client by hand is in tests/protocol/rpc."""

from __future__ import annotations

import pytest
import spnego

from bridge.adapters.net.rpc_auth import (
    Credentials,
    SpnegoAuthenticator,
    authenticator,
    level_of,
)
from bridge.model.errors import BindRefused
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.negotiate import NegotiateAcceptor
from bridge.protocol.rpc.ntlm import Acceptor
from bridge.protocol.rpc.seal import BadSeal, Seal
from tests.protocol.rpc.ntlm_peer import NOW, acceptor

ANN = Credentials("DOM\\ann", "secret")


def log_on(package: str) -> tuple[Seal, Seal]:
    """Ours of the client, ours of the server."""
    credentials = Credentials("DOM\\ann", "secret", package)  # type: ignore[arg-type]
    client = SpnegoAuthenticator(credentials, "127.0.0.1")
    server: Acceptor = acceptor() if package == "ntlm" else NegotiateAcceptor(acceptor())
    token: bytes | None = None
    while not client.complete:
        token = client.step(token)
        if token:
            token = server.step(token, NOW)
    assert server.user == "DOM\\ann"
    assert server.seal is not None
    return client.seal, server.seal


@pytest.mark.parametrize("package", ["ntlm", "negotiate"])
@pytest.mark.parametrize("encrypt", [True, False])
def test_an_independent_ntlm_agrees_with_ours(package: str, encrypt: bool) -> None:  # traps 18, 19
    client, server = log_on(package)
    assert client.size(encrypt=encrypt) == server.size(encrypt=encrypt) == 16
    for number in range(3):
        body = bytes([number]) * 100
        for one, other in ((client, server), (server, client)):
            sealed, signature = one.protect(b"head", body, b"tail", encrypt=encrypt)
            assert (sealed == body) is not encrypt
            assert other.unprotect(b"head", sealed, b"tail", signature, encrypt=encrypt) == body


@pytest.mark.parametrize("encrypt", [True, False])
def test_what_was_changed_on_its_way(encrypt: bool) -> None:
    client, server = log_on("ntlm")
    sealed, signature = server.protect(b"head", b"body", b"tail", encrypt=encrypt)
    with pytest.raises(BadSeal):
        client.unprotect(b"HEAD", sealed, b"tail", signature, encrypt=encrypt)


@pytest.mark.parametrize("token", [b"", b"nonsense", b"NTLMSSP\0\2\0\0\0", bytes(60)])
@pytest.mark.parametrize("package", ["ntlm", "negotiate"])
def test_a_token_that_makes_no_sense(package: str, token: bytes) -> None:
    client = SpnegoAuthenticator(Credentials("ann", "x", package), "h")  # type: ignore[arg-type]
    client.step(None)
    with pytest.raises(BindRefused):
        client.step(token)


def test_who_stays_anonymous() -> None:
    assert authenticator(None, "h") is None
    assert authenticator(Credentials("a", "b", level=AuthLevel.NONE), "h") is None
    assert isinstance(authenticator(ANN, "h"), SpnegoAuthenticator)
    assert (level_of(None), level_of(ANN)) == (AuthLevel.NONE, AuthLevel.PRIVACY)


def test_a_password_does_not_show() -> None:
    assert "secret" not in repr(ANN)
    assert "secret" not in str(ANN)


def test_a_package_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("no gssapi")

    monkeypatch.setattr(spnego, "client", missing)
    with pytest.raises(BindRefused) as caught:
        SpnegoAuthenticator(Credentials("ann", "x", "kerberos"), "h")
    assert str(caught.value) == "kerberos is not available here (no gssapi)"
