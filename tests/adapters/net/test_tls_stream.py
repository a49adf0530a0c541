"""TLS between two memory buffers."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import client_context, server_context
from bridge.adapters.net.tls_stream import TlsStream


class Client:
    def __init__(self, certificate: Path) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client_context(certificate).wrap_bio(
            self.incoming, self.outgoing, server_hostname="localhost"
        )

    def greet(self, server: TlsStream, plain: bytearray) -> None:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.pass_on(server, plain)
            else:
                self.pass_on(server, plain)
                return

    def pass_on(self, server: TlsStream, plain: bytearray) -> None:
        server.feed(memoryview(self.outgoing.read()), plain)
        self.incoming.write(server.take())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(["localhost"], tmp_path_factory.mktemp("tls"))


@pytest.fixture
def client(pair: tuple[Path, Path]) -> Client:
    return Client(pair[0])


@pytest.fixture
def server(pair: tuple[Path, Path]) -> TlsStream:
    return TlsStream(server_context(*pair))


def test_both_ways(client: Client, server: TlsStream) -> None:
    plain = bytearray()
    client.greet(server, plain)
    large = bytes(range(256)) * 1000
    client.tls.write(large)
    client.pass_on(server, plain)
    assert plain == large
    server.write(b"answer")
    client.incoming.write(server.take())
    assert client.tls.read() == b"answer"
    assert not server.ended


def test_cut_at_every_byte(client: Client, server: TlsStream) -> None:
    plain = bytearray()
    client.greet(server, plain)
    client.tls.write(b"in small pieces")
    for byte in client.outgoing.read():
        assert not plain
        server.feed(memoryview(bytes([byte])), plain)
    assert plain == b"in small pieces"


def test_the_end_is_heard(client: Client, server: TlsStream) -> None:
    plain = bytearray()
    client.greet(server, plain)
    client.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.pass_on(server, plain)
    assert plain == b"last"
    assert server.ended
    server.write(b"heard")  # it may still listen
    server.end()
    client.incoming.write(server.take())
    assert client.tls.read() == b"heard"
    with pytest.raises(ssl.SSLZeroReturnError):
        client.tls.read()


def test_the_end_is_heard_after_ours(client: Client, server: TlsStream) -> None:
    client.greet(server, bytearray())
    server.end()
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.pass_on(server, bytearray())
    assert server.ended


def test_what_is_no_tls(server: TlsStream) -> None:
    with pytest.raises(ssl.SSLError):
        server.feed(memoryview(b"POST / HTTP/1.1\r\n\r\n"), bytearray())
    server.end()


def test_the_end_before_the_handshake(server: TlsStream) -> None:
    server.end()
    assert server.take() == b""
