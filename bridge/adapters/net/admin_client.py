"""Asks a running appliance over its admin port, for the commands."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bridge.adapters.config_files import read_token
from bridge.adapters.net.tls import pinned_context
from bridge.config import Config
from bridge.model.errors import ConfigError, Unavailable

TIMEOUT_S: Final = 5.0
MAX_ANSWER: Final = 64 * 1024 * 1024


class NotRunning(Unavailable):
    """Nobody listens there."""


class Answer(NamedTuple):
    status: int
    reason: str
    body: bytes


def get_json(url: str, path: str, config: Config | None = None) -> dict[str, Any]:
    """GET a JSON object; Unavailable, in one line, if nobody (or somebody else) answers.

    `config` is the appliance's: it has the certificate and, if reads need it, the token."""
    headers = reader_headers(config) if config else {}
    answer = ask(url, "GET", path, headers, context=trusted(config) if config else None)
    if answer.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        what = f"the appliance at {url} does not let us read"
        raise ConfigError(what, where="admin.token_file", mend="give it the appliance's token")
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
    context: ssl.SSLContext | None = None,
) -> Answer:
    """Whatever the appliance answers. Raises NotRunning, or Unavailable if it says nothing."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port
    connection = (
        http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        if address.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=timeout_s)
    )
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


def trusted(config: Config) -> ssl.SSLContext | None:
    """Of an appliance that speaks HTTPS: the certificate in its own configuration."""
    certificate = config.admin.certificate
    return None if certificate is None else pinned_context(certificate)


def credentials(config: Config) -> dict[str, str]:
    """The headers of whoever has the token."""
    path = config.admin.token_file
    return {} if path is None else {"Authorization": f"Bearer {read_token(path)}"}


def reader_headers(config: Config) -> dict[str, str]:
    """Who only reads need not be able to read the token file, unless it is needed."""
    return credentials(config) if config.admin.protect_reads else {}


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
