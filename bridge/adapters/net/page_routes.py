"""The web page: the files of `bridge/adapters/page`, as they are, with a strict policy."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web
from msgspec import Struct

FOLDER: Final = Path(__file__).parents[1] / "page"
PREFIX: Final = "/page/"
INDEX: Final = "index.html"

_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Cache-Control": "no-cache",  # kept, but asked for each time: an update is seen at once
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Asset(Struct, frozen=True):
    body: bytes
    content_type: str
    etag: str


def assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """All of them in memory: a path from outside is only ever a key."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            found[name] = Asset(body, _TYPES[path.suffix], f'"{sha256(body).hexdigest()[:24]}"')
    return found


class PageRoutes:
    def __init__(self, files: Mapping[str, Asset] | None = None) -> None:
        self._assets = assets() if files is None else files

    def register(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self._index)
        router.add_get(PREFIX + "{name:.+}", self._asset)

    async def _index(self, request: web.Request) -> web.Response:
        return self._answer(request, INDEX)

    async def _asset(self, request: web.Request) -> web.Response:
        return self._answer(request, request.match_info["name"])

    def _answer(self, request: web.Request, name: str) -> web.Response:
        asset = self._assets.get(name)
        if asset is None:
            raise web.HTTPNotFound
        headers = {**_HEADERS, "ETag": asset.etag}
        if request.headers.get("If-None-Match") == asset.etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(
            body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers
        )


def is_page(path: str) -> bool:
    return path == "/" or path.startswith(PREFIX)
