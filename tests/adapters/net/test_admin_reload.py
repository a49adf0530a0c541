"""POST /api/mappings/reload: who may ask, and what the answer is. Design 3.2, admin"""

import asyncio
import http.client
import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bridge.core.reload import OrderBreak, OrderWouldBreak
from bridge.model.errors import ConfigError, SinkUnavailable
from tests.adapters.net.fake_appliance import BEARER, FakeAppliance, admin_server

PATH = "/api/mappings/reload"
DONE = b'{"applied": ["private$\\\\orders"], "unchanged": 2}\n'
Answer = tuple[int, dict[str, str], bytes]


class Appliance(FakeAppliance):
    """Notes who asked for what."""

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.reload_fault = fault
        self.reloads: list[bool] = []

    async def reload(self, force: bool) -> dict[str, object]:
        self.reloads.append(force)
        return await super().reload(force)


def ask(
    appliance: Appliance,
    path: str = PATH,
    method: str = "POST",
    token_file: Path | None = None,
    **headers: str,
) -> Answer:
    """By a client that sends what it is told and no more; `X_A` is the header X-A. Told nothing it
    sends the generated token."""
    headers = headers or ({} if token_file else BEARER)

    def talk(url: str) -> Answer:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()

    async def run() -> Answer:
        async with admin_server(appliance, token_file=token_file) as url:
            return await asyncio.to_thread(talk, url)

    return asyncio.run(run())


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "admin.token"
    path.write_text("s3cret\n")
    return path


# -- what is answered -----------------------------------------------------------------------


@pytest.mark.parametrize(("query", "force"), [("", False), ("?force=0", False), ("?force=1", True)])
def test_done(query: str, force: bool) -> None:
    appliance = Appliance()
    status, headers, body = ask(appliance, PATH + query)
    assert (status, body) == (200, DONE)
    assert headers["Content-Type"].startswith("application/json")
    assert headers["Cache-Control"] == "no-store"
    assert appliance.reloads == [force]


def test_order_would_break_unless_forced() -> None:
    breaks = [OrderBreak("private$\\orders", "its topic changes from a to b")]
    appliance = Appliance(OrderWouldBreak(breaks))
    appliance.forgives = True
    status, _, body = ask(appliance)
    assert status == 409
    assert body == (
        b'{"error": "the order of live streams would break: private$\\\\orders", "breaks_order": '
        b'[{"queue": "private$\\\\orders", "reason": "its topic changes from a to b"}]}\n'
    )
    assert ask(appliance, f"{PATH}?force=1")[0] == 200


@pytest.mark.parametrize("query", ["", "?force=1"])
def test_a_broken_file_is_named_by_line(query: str) -> None:
    fault = ConfigError("unknown key 'topics'", where="m.yaml:3:5", mend="did you mean 'topic'?")
    status, _, body = ask(Appliance(fault), PATH + query)
    assert status == 400  # no force helps
    assert body == b"{\"error\": \"m.yaml:3:5: unknown key 'topics'; did you mean 'topic'?\"}\n"


@pytest.mark.parametrize("why", ["not yet: starting", "Kafka: preparing topics: timed out"])
def test_not_now(why: str) -> None:
    status, _, body = ask(Appliance(SinkUnavailable(why)))
    assert (status, body) == (503, f'{{"error": "{why}"}}\n'.encode())


def test_a_bug_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        status, _, body = ask(Appliance(RuntimeError("a bug of ours")))
    assert (status, b"a bug of ours" in body) == (500, False)
    assert "a bug of ours" in caplog.text


@pytest.mark.parametrize("force", ["2", "true", "", "01", "%31%31"])
def test_force_is_yes_or_no(force: str) -> None:
    appliance = Appliance()
    assert ask(appliance, f"{PATH}?force={force}")[::2] == (400, b'{"error": "force is 0 or 1"}\n')
    assert appliance.reloads == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_only_by_post(method: str) -> None:
    """A link or an image in a page must not do it."""
    appliance = Appliance()
    status, headers, _ = ask(appliance, method=method)
    assert (status, headers["Allow"]) == (405, "POST")
    assert appliance.reloads == []


# -- who may ask ----------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9180", ""])
def test_no_page_may_ask_without_a_token(origin: str) -> None:
    appliance = Appliance()
    status, headers, _ = ask(appliance, Origin=origin)
    assert status == 401
    assert "Access-Control-Allow-Origin" not in headers
    assert appliance.reloads == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "10.0.0.7", "fe80::1%eth0", None],
)
def test_no_address_writes_without_a_token(
    address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine neither: whatever makes a process of it connect to the port would be let in."""
    from aiohttp import web

    monkeypatch.setattr(web.BaseRequest, "remote", address)
    appliance = Appliance()
    claims: list[dict[str, Any]] = [
        {"Accept": "*/*"},
        {"X_Forwarded_For": "127.0.0.1"},
        {"Host": "localhost"},
    ]
    for headers in claims:
        assert ask(appliance, **headers)[0] == 401
    assert appliance.reloads == []
    assert ask(appliance)[0] == 200


def test_with_the_token(token: Path) -> None:
    appliance = Appliance()
    assert ask(appliance, token_file=token, Authorization="Bearer s3cret")[0] == 200
    # A page of ours that has the token may ask.
    headers = {"Authorization": "Bearer s3cret", "Origin": "http://127.0.0.1:9180"}
    assert ask(appliance, token_file=token, **headers)[0] == 200
    assert appliance.reloads == [False, False]


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "s3cret",
        "Bearer",
        "Bearer ",
        "Bearer s3cre",
        "Bearer s3crets",
        "Bearer S3CRET",
        "Basic s3cret",
        "Bearer s3cret\u00e9",
    ],
)
def test_without_the_token_nobody(token: Path, given: str | None) -> None:  # loopback neither
    appliance = Appliance()
    headers = {} if given is None else {"Authorization": given}
    status, _, body = ask(appliance, token_file=token, **headers)
    assert (status, body) == (401, b'{"error": "the admin token is missing or wrong"}\n')
    assert appliance.reloads == []


def test_a_new_token_counts_at_once(token: Path) -> None:
    appliance = Appliance()
    assert ask(appliance, token_file=token, Authorization="Bearer s3cret")[0] == 200
    token.write_text("other")
    assert ask(appliance, token_file=token, Authorization="Bearer s3cret")[0] == 401
    assert ask(appliance, token_file=token, Authorization="Bearer other")[0] == 200


@pytest.mark.parametrize("text", [None, "", " \n", "two\nlines"])
def test_a_token_file_that_is_none_lets_nobody_in(
    token: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Least of all whoever sends an empty token."""
    if text is None:
        token.unlink()
    else:
        token.write_text(text)
    appliance = Appliance()
    for given in ("Bearer ", "Bearer", "Bearer s3cret", "Bearer two"):
        status, _, body = ask(appliance, token_file=token, Authorization=given)
        assert status == 503
        assert body == b'{"error": "the admin token cannot be used, see the log"}\n'
    assert appliance.reloads == []
    # A client of an earlier test may still have something to say.
    said = [one for one in caplog.records if one.name.startswith("bridge.adapters.net")]
    assert len(said) == 4
    assert all(str(token) in one.getMessage() and not one.exc_info for one in said)


def test_reading_needs_no_token(token: Path) -> None:
    for path in ("/livez", "/api/status", "/metrics"):
        assert ask(Appliance(), path, "GET", token)[0] == 200
