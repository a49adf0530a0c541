"""Asks a running appliance over its admin port, for the commands."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bridge.adapters.admin_token import is_generated, read_admin_token, token_path
from bridge.adapters.net.tls import pinned_context
from bridge.config import Config
from bridge.model.errors import BridgeError, ConfigError, Unavailable

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

    `config` is the appliance's: it has the certificate and says where the token is."""
    headers = reader_headers(config) if config else {}
    answer = ask(url, "GET", path, headers, context=trusted(config) if config else None)
    if answer.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        raise not_let_in(url, config, "read")
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
    """The header with the token. Raises ConfigError if its file cannot be read.

    A generated token that does not exist is not an error yet: the appliance may not be running."""
    if is_generated(config) and not os.path.lexists(token_path(config)):
        return {}
    return {"Authorization": f"Bearer {read_admin_token(config)}"}


def reader_headers(config: Config) -> dict[str, str]:
    """A user who may not read the token file still reads what needs no token."""
    try:
        return credentials(config)
    except ConfigError:
        if config.admin.protect_reads:
            raise
        return {}


def not_let_in(url: str, config: Config | None, verb: str) -> BridgeError:
    """The error of an answer that wants the token, or another one."""
    what = f"the appliance at {url} does not let us {verb}"
    if config is None:
        return ConfigError(what, mend="give --config of the appliance: it says where the token is")
    try:
        given = credentials(config)
    except ConfigError as error:  # it says why the token could not be sent
        return error
    if not given:
        what += f": there is no token in {token_path(config)}"
        mend = "give --config of the appliance: its data folder has the token"
        return ConfigError(what, where="admin.token_file", mend=mend)
    return ConfigError(what, where="admin.token_file", mend="give it the appliance's token")


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
