"""Asking a running appliance: an answer, or one line that says why there is none."""

import asyncio
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.adapters.admin_token import TOKEN_FILE, make_token
from bridge.adapters.config_files import load_config
from bridge.adapters.net.admin_client import ask, credentials, get_json, reader_headers
from bridge.model.errors import ConfigError, Unavailable
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server


def test_an_answer() -> None:
    async def run() -> None:
        appliance = FakeAppliance()
        async with admin_server(appliance) as url:
            told = await asyncio.to_thread(get_json, url, "/api/status")
            assert told.pop("needs_token") == ["sessions"]
            assert told == {n: v for n, v in appliance.answer.items() if n != "sessions"}
            appliance.fails = True
            with pytest.raises(Unavailable, match="answers 500"):
                await asyncio.to_thread(get_json, url, "/api/status")

    asyncio.run(run())


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening
        port = unused.getsockname()[1]
        with pytest.raises(Unavailable, match="no appliance is running at"):
            get_json(f"http://127.0.0.1:{port}", "/api/status")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (b"", "does not answer"),
        (b"SSH-2.0-server\r\n", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "is not an msmq-bridge"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "is not an msmq-bridge"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\xff", "is not an msmq-bridge"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "is not an msmq-bridge"),
    ],
)
def test_somebody_else_there(answer: bytes, word: str) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(Unavailable, match=word) as caught:
                await asyncio.to_thread(get_json, f"http://127.0.0.1:{port}", "/api/status")
            assert len(str(caught.value).splitlines()) == 1

    asyncio.run(run())


def test_a_body_is_posted() -> None:
    got: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readuntil(b"\r\n\r\n"))
        got.append(await reader.readexactly(4))
        writer.write(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            answer = await asyncio.to_thread(ask, url, "POST", "/x", {"X-A": "b"}, 5.0, b"body")
            assert (answer.status, answer.reason, answer.body) == (409, "Conflict", b"{}")

    asyncio.run(run())
    assert got[0].startswith(b"POST /x HTTP/1.1\r\n")
    assert b"\r\nContent-Length: 4\r\n" in got[0]
    assert b"\r\nX-A: b\r\n" in got[0]
    assert got[1] == b"body"


def test_who_may_write_shows_the_token(tmp_path: Path) -> None:
    config = replace(load_config(None), data=tmp_path / "data")
    assert credentials(config) == {}  # no appliance has made one yet
    file = tmp_path / "admin.token"
    with_token = replace(config, admin=replace(config.admin, token_file=file))
    with pytest.raises(ConfigError, match="cannot be read"):
        credentials(with_token)
    file.write_text("s3cret\n")
    assert credentials(with_token) == {"Authorization": "Bearer s3cret"}


def test_a_generated_token_is_found_in_the_data_folder(tmp_path: Path) -> None:
    config = replace(load_config(None), data=tmp_path)
    make_token(tmp_path / TOKEN_FILE)
    token = (tmp_path / TOKEN_FILE).read_text().strip()
    assert credentials(config) == reader_headers(config) == {"Authorization": f"Bearer {token}"}


def test_a_reader_without_the_token_file(tmp_path: Path) -> None:
    """`status` works for a user who may not read it; what needs the token says why it does not."""
    config = replace(load_config(None), data=tmp_path)
    (tmp_path / TOKEN_FILE).mkdir()  # cannot be read, by root neither
    assert reader_headers(config) == {}
    with pytest.raises(ConfigError, match="Is a directory"):
        reader_headers(replace(config, admin=replace(config.admin, protect_reads=True)))

    async def run() -> None:
        async with admin_server(FakeAppliance()) as url:
            told = await asyncio.to_thread(get_json, url, "/api/status", config)
            assert told["ready"] is True
            for folder, why in ((tmp_path, "cannot be read"), (tmp_path / "x", "no token in")):
                other = replace(config, data=folder)
                with pytest.raises(ConfigError, match=why) as caught:
                    await asyncio.to_thread(get_json, url, "/api/streams", other)
                assert str(folder / TOKEN_FILE) in str(caught.value)
                assert len(str(caught.value).splitlines()) == 1
            with pytest.raises(ConfigError, match="does not let us read"):
                await asyncio.to_thread(get_json, url, "/api/streams")

    asyncio.run(run())
