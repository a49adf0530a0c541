"""What the admin port answers when something goes wrong."""

import json
from typing import Any

import pytest

from bridge.adapters.net.admin_answers import answer, failure
from bridge.core.reload import OrderBreak, OrderWouldBreak
from bridge.core.retained.errors import Refused, Status
from bridge.model.errors import (
    BridgeError,
    ConfigError,
    IllegalName,
    SinkUnavailable,
    Unavailable,
    WireError,
)


def told(error: BridgeError) -> tuple[int, dict[str, Any]]:
    response = failure(error)
    assert response.content_type == "application/json"
    assert isinstance(response.text, str)
    return response.status, json.loads(response.text)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("bad", where="x"), 400),
        (IllegalName("x", "bad"), 400),
        (Unavailable("away"), 503),
        (SinkUnavailable("away"), 503),
    ],
)
def test_the_error_in_one_line(error: BridgeError, status: int) -> None:
    assert told(error) == (status, {"error": str(error)})


@pytest.mark.parametrize("reason", Status)
def test_a_refusal_has_its_number(reason: Status) -> None:
    status, data = told(Refused(reason, "private$\\q"))
    missing = ("QUEUE_NOT_FOUND", "MESSAGE_NOT_FOUND", "NT_NOT_FOUND")
    assert status == (404 if reason.name in missing else 409)
    assert data["status"] == reason.name
    assert int(data["code"], 16) == reason
    assert data["error"].endswith(": private$\\q")


def test_order_would_break() -> None:
    status, data = told(OrderWouldBreak([OrderBreak("q", "it is gone")]))
    assert (status, data["breaks_order"]) == (409, [{"queue": "q", "reason": "it is gone"}])


def test_anything_else_is_a_bug() -> None:
    with pytest.raises(WireError):
        failure(WireError("a", 1, "b"))


def test_half_a_surrogate_pair_passes() -> None:
    assert answer({"label": "\ud800"}).text == '{"label": "\\ud800"}\n'
