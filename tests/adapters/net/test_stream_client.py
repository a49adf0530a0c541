"""What the commands understand of the admin port's answers about streams."""

from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.net import stream_client
from bridge.adapters.net.admin_client import Answer
from bridge.adapters.net.stream_client import StreamClient
from bridge.adapters.stream_desk import NoSuchStream
from bridge.config import Config
from bridge.model.errors import ConfigError, Unavailable
from tests.core.messages import ORDERS, SENDER


def client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> StreamClient:
    asked: Any = lambda *_args, **_more: Answer(status, "said", body)  # noqa: E731
    monkeypatch.setattr(stream_client, "ask", asked)
    return StreamClient(Config(data=tmp_path))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ConfigError),
        (401, ConfigError),
        (403, ConfigError),
        (404, NoSuchStream),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
def test_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    made = client(tmp_path, monkeypatch, status, b'{"error": "because"}')
    with pytest.raises(error):
        made.adopt(str(SENDER), ORDERS)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"waiting": 1, "total": 1}', b'{"waiting": [1]}', b'{"waiting": []}'],
)
def test_a_stranger_on_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    with pytest.raises(Unavailable, match="not an msmq-bridge"):
        client(tmp_path, monkeypatch, 200, body).waiting()


def test_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = client(tmp_path, monkeypatch, 200, b'{"rows": [{"a": 1}], "found": 7, "total": 9}')
    assert made.known(10, "x") == ([{"a": 1}], 7)
    assert made.forget(str(SENDER), ORDERS)["total"] == 9
