"""Asks a running appliance over its admin port, for the commands."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bridge.adapters.config_files import read_token
from bridge.config import Config
from bridge.model.errors import Unavailable

TIMEOUT_S: Final = 5.0
MAX_ANSWER: Final = 64 * 1024 * 1024


class NotRunning(Unavailable):
    """Nobody listens there."""


class Answer(NamedTuple):
    status: int
    reason: str
    body: bytes


def get_json(url: str, path: str) -> dict[str, Any]:
    """GET a JSON object; Unavailable, in one line, if nobody (or somebody else) answers."""
    answer = ask(url, "GET", path)
    if answer.status != http.client.OK:
        raise Unavailable(f"{url}{path} answers {answer.status} {answer.reason}; see its log")
    return object_in(answer, url)


def ask(
    url: str,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    body: bytes | None = None,
) -> Answer:
    """Whatever the appliance answers. Raises NotRunning, or Unavailable if it says nothing."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
    try:
        wanted = {"Accept": "application/json", **(headers or {})}
        connection.request(method, path, body, wanted)
        answer = connection.getresponse()
        return Answer(answer.status, answer.reason, answer.read(MAX_ANSWER))
    except ConnectionRefusedError as error:
        raise NotRunning(
            f"no appliance is running at {url}; start one with 'msmq-bridge serve'"
        ) from error
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unavailable(
            f"the appliance at {url} does not answer ({reason}); see its log"
        ) from error
    finally:
        connection.close()


def credentials(config: Config) -> dict[str, str]:
    """The headers of whoever may write."""
    path = config.admin.token_file
    return {} if path is None else {"Authorization": f"Bearer {read_token(path)}"}


def object_in(answer: Answer, url: str) -> dict[str, Any]:
    try:
        data = json.loads(answer.body)
    except ValueError as error:
        raise stranger(url) from error
    if not isinstance(data, dict):
        raise stranger(url)
    return data


def stranger(url: str) -> Unavailable:
    return Unavailable(f"{url} is not an msmq-bridge; check listen.admin in the configuration")
