"""The queues of a running appliance, asked over its admin port, for the commands."""

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
from bridge.config import Config
from bridge.model.errors import BridgeError, ConfigError, Unavailable

WORK_S: Final = 600.0  # a purge may have a million messages to do
READ_S: Final = 60.0
WAIT_S: Final = 30.0  # one request waits no longer; the appliance takes twice that

Row = dict[str, Any]


class QueueRefused(BridgeError):
    """The queue manager did not do it; `status` is its reason, as MSMQ calls it."""

    def __init__(self, what: str, status: str) -> None:
        self.status = status
        super().__init__(what)


class QueueClient:
    """One call is one request. Raises QueueRefused, ConfigError or Unavailable."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._url = find_admin_url(config)
        self._context = trusted(config)

    def queues(self) -> list[Row]:
        return self._list(self._get("/api/queues", TIMEOUT_S), "queues")

    def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> tuple[list[Row], bool]:
        """The messages, and whether there are more than these."""
        numbers = {"limit": limit, "after": after, "lookup_id": lookup_id}
        asked = {"queue": queue} | {n: str(v) for n, v in numbers.items() if v is not None}
        path = f"/api/queues/messages?{urlencode(asked, errors='replace')}"
        data = self._get(path, READ_S)
        return self._list(data, "messages"), data.get("more") is True

    def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0.0
    ) -> Row | None:
        """None: there was no message, and none came in the time."""
        order: Row = {"queue": queue, "wait_s": min(wait_s, WAIT_S)}
        if lookup_id is not None:
            order["lookup_id"] = lookup_id
        message = self._post("receive", order, WAIT_S + READ_S).get("message")
        if message is not None and not isinstance(message, dict):
            raise stranger(self._url)
        return message

    def purge(self, queue: str) -> Row:
        return self._post("purge", {"queue": queue})

    def move(self, queue: str, lookup_id: int, to: str) -> Row:
        return self._post("move", {"queue": queue, "lookup_id": lookup_id, "to": to})

    def create(
        self, queue: str, *, transactional: bool, topic: str | None, journal: str | None
    ) -> Row:
        order = {"queue": queue, "transactional": transactional}
        return self._post("create", order | {"topic": topic, "journal": journal})

    def delete(self, queue: str) -> Row:
        return self._post("delete", {"queue": queue})

    def _get(self, path: str, timeout_s: float) -> Row:
        headers = reader_headers(self._config)
        return self._understood(
            ask(self._url, "GET", path, headers, timeout_s, context=self._context), "read"
        )

    def _post(self, path: str, order: Row, timeout_s: float = WORK_S) -> Row:
        headers = {"Content-Type": "application/json", **credentials(self._config)}
        body = json.dumps(order).encode()
        return self._understood(
            ask(self._url, "POST", f"/api/queues/{path}", headers, timeout_s, body, self._context),
            "write",
        )

    def _list(self, data: Row, name: str) -> list[Row]:
        rows = data.get(name)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise stranger(self._url)
        return rows

    def _understood(self, answer: Answer, verb: str) -> Row:
        data, status = object_in(answer, self._url), answer.status
        if status == HTTPStatus.OK:
            return data
        why = str(data.get("error", f"it answers {status} {answer.reason}"))
        if "status" in data:
            raise QueueRefused(why, str(data["status"]))
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                raise not_let_in(self._url, self._config, verb)
            case HTTPStatus.BAD_REQUEST:
                raise ConfigError(why)
            case HTTPStatus.CONFLICT:
                raise QueueRefused(why, "")
        raise Unavailable(f"the appliance at {self._url} cannot do it: {why}")
