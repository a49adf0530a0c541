"""A port that is taken is told in one line, before anything else is done."""

import socket

import pytest

from bridge.adapters.net.ports import require_free
from bridge.model.errors import ConfigError


def test_a_free_port_is_left_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    require_free("127.0.0.1", port, "listen.binary")
    require_free("127.0.0.1", port, "listen.binary")
    require_free("127.0.0.1", 0, "listen.binary")


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}") as caught:
            require_free("127.0.0.1", port, "listen.binary")
    assert caught.value.where == "listen.binary"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_that_is_not_ours(host: str) -> None:
    with pytest.raises(ConfigError, match="cannot listen on"):
        require_free(host, 0, "listen.binary")
