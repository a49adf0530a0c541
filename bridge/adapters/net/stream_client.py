"""The streams of a running appliance, asked over its admin port, for the commands."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from bridge.adapters.net.admin_client import (
    TIMEOUT_S,
    Answer,
    ask,
    credentials,
    not_let_in,
    object_in,
    reader_headers,
    stranger,
    trusted,
)
from bridge.adapters.runtime import find_admin_url
from bridge.adapters.stream_desk import COMMIT_S, NoSuchStream
from bridge.config import Config
from bridge.model.errors import ConfigError, Unavailable

READ_S: Final = 60.0  # a search looks through every stream

Row = dict[str, Any]


class StreamClient:
    """One call is one request. Raises NoSuchStream, ConfigError or Unavailable."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._url = find_admin_url(config)
        self._context = trusted(config)

    def known(self, limit: int, search: str = "") -> tuple[list[Row], int]:
        """Streams with a cursor, at most `limit` of them, and how many there are."""
        asked = urlencode({"limit": limit, "search": search}, errors="replace")
        data = self._get(f"/api/streams?{asked}")
        return self._rows(data, "rows"), self._number(data, "found")

    def waiting(self) -> tuple[list[Row], int]:
        """Streams that wait for adoption, and how many there are."""
        data = self._get("/api/streams/waiting")
        return self._rows(data, "waiting"), self._number(data, "total")

    def adopt(self, source: str, destination: str) -> Row:
        return self._post("adopt", source, destination)

    def forget(self, source: str, destination: str) -> Row:
        return self._post("forget", source, destination)

    def _get(self, path: str) -> Row:
        headers = reader_headers(self._config)
        return self._understood(
            ask(self._url, "GET", path, headers, READ_S, context=self._context), "read"
        )

    def _post(self, action: str, source: str, destination: str) -> Row:
        headers = {"Content-Type": "application/json", **credentials(self._config)}
        body = json.dumps({"source": source, "destination": destination}).encode()
        path, patience = f"/api/streams/{action}", COMMIT_S + TIMEOUT_S
        return self._understood(
            ask(self._url, "POST", path, headers, patience, body, self._context), "write"
        )

    def _rows(self, data: Row, name: str) -> list[Row]:
        rows = data.get(name)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise stranger(self._url)
        return rows

    def _number(self, data: Row, name: str) -> int:
        number = data.get(name)
        if not isinstance(number, int):
            raise stranger(self._url)
        return number

    def _understood(self, answer: Answer, verb: str) -> Row:
        data, status = object_in(answer, self._url), answer.status
        if status == HTTPStatus.OK:
            return data
        why = str(data.get("error", f"it answers {status} {answer.reason}"))
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                raise not_let_in(self._url, self._config, verb)
            case HTTPStatus.BAD_REQUEST:
                raise ConfigError(why)
            case HTTPStatus.NOT_FOUND:
                raise NoSuchStream(why)
        raise Unavailable(f"the appliance at {self._url} cannot do it: {why}")
