"""The files of the web page: all there, nothing else, with a strict policy."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from bridge.adapters.net.page_routes import FOLDER, assets, is_page
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server

Ask = Callable[..., Awaitable[tuple[aiohttp.ClientResponse, bytes]]]


def talk(dialogue: Callable[[Ask], Awaitable[None]]) -> None:
    async def run() -> None:
        async with admin_server(FakeAppliance()) as url, aiohttp.ClientSession(url) as session:

            async def ask(path: str, **headers: str) -> tuple[aiohttp.ClientResponse, bytes]:
                sent = {name.replace("_", "-"): value for name, value in headers.items()}
                async with session.get(path, headers=sent) as answer:
                    return answer, await answer.read()

            await dialogue(ask)

    asyncio.run(run())


def test_the_page_and_its_policy() -> None:
    async def dialogue(ask: Ask) -> None:
        answer, body = await ask("/")
        assert answer.content_type == "text/html"
        assert body == (FOLDER / "index.html").read_bytes()
        assert answer.headers["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"

    talk(dialogue)


def test_every_file_has_its_type_and_is_asked_for_once() -> None:
    async def dialogue(ask: Ask) -> None:
        for name, asset in assets().items():
            answer, body = await ask(f"/page/{name}")
            assert (answer.status, answer.content_type) == (200, asset.content_type)
            assert body == asset.body
            assert answer.headers["Cache-Control"] == "no-cache"
            again, nothing = await ask(f"/page/{name}", If_None_Match=answer.headers["ETag"])
            assert (again.status, nothing) == (304, b"")
            assert again.headers["ETag"] == answer.headers["ETag"]

    talk(dialogue)


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page/none.js",
        "/page/../app.py",
        "/page/%2e%2e/%2e%2e/app.py",
        "/page/vendor",
        "/page//etc/passwd",
        "/page/vendor/README.md",
        "/page/index.html%00",
    ],
)
def test_nothing_else_is_there(path: str) -> None:
    async def dialogue(ask: Ask) -> None:
        answer, _ = await ask(path)
        assert (answer.status, answer.content_type) == (404, "application/json")

    talk(dialogue)


def test_whatever_a_file_names_is_there() -> None:
    found = assets()
    named = re.compile(r"""(?:href|src)="/page/([^"]+)"|from "(\.[^"]+)\"""")
    for name, asset in found.items():
        if name.startswith("vendor/"):
            continue
        for absolute, relative in named.findall(asset.body.decode()):
            wanted = absolute or str(Path("/", name).parent.joinpath(relative).resolve())[1:]
            assert wanted in found, f"{name} names {wanted}"


def test_no_file_asks_anybody_else_or_makes_markup_of_text() -> None:
    for name, asset in assets().items():
        if name.startswith("vendor/"):
            continue
        text = asset.body.decode()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"):
            assert word not in text, f"{name}: {word}"
        for url in re.findall(r"https?://[^\s\"'`<]+", text):
            assert url == "http://www.w3.org/2000/svg", f"{name}: {url}"
        if name.endswith(".html"):
            assert "style=" not in text
            assert " on" not in re.sub(r">[^<]*<", "><", text)  # no handler in the markup
        if name != "app.js":
            assert "localStorage" not in text, name


def test_the_token_is_kept_in_memory_only() -> None:
    text = (FOLDER / "api.js").read_text() + (FOLDER / "session.js").read_text()
    assert "Storage" not in text
    assert "cookie" not in text


def test_which_paths_are_the_page() -> None:
    assert is_page("/")
    assert is_page("/page/app.js")
    assert not is_page("/api/status")
    assert not is_page("/pages")
