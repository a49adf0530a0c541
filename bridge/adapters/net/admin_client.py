"""Asks a running appliance over its admin port, for the commands."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final
from urllib.parse import urlsplit

from bridge.model.errors import Unavailable

TIMEOUT_S: Final = 5.0
MAX_ANSWER: Final = 64 * 1024 * 1024


def get_json(url: str, path: str) -> dict[str, Any]:
    """GET a JSON object; Unavailable, in one line, if nobody (or somebody else) answers."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(MAX_ANSWER)
    except ConnectionRefusedError as error:
        raise Unavailable(
            f"no appliance is running at {url}; start one with 'msmq-bridge serve'"
        ) from error
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unavailable(
            f"the appliance at {url} does not answer ({reason}); see its log"
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Unavailable(f"{url}{path} answers {answer.status} {answer.reason}; see its log")
    return _object(body, url)


def _object(body: bytes, url: str) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError as error:
        raise _stranger(url) from error
    if not isinstance(data, dict):
        raise _stranger(url)
    return data


def _stranger(url: str) -> Unavailable:
    return Unavailable(f"{url} is not an msmq-bridge; check listen.admin in the configuration")
