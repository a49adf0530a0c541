"""Samba as a remote reader, at every level: the call sequences of the digest, section 6."""

import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.rpc import idl
from tests.outside.rpc.conftest import Send, path
from tests.outside.rpc.reader import (
    LOOKUP_PEEK,
    LOOKUP_RECEIVE,
    NACK,
    NULL_HANDLE,
    PEEK,
    PEEK_CURRENT,
    PEEK_NEXT,
    FaultError,
    Reader,
)
from tests.support.samba import PYTHON, needs_samba

SCRIPT = Path(__file__).with_name("samba_calls.py")
LONG = 30_000
LEVELS = ["connect", "packet", "sign", "seal", "spnego,connect", "spnego,sign", "spnego,seal"]
EMPTY, NOT_FOUND, RECEIVED, FRESH = 0xC00E001B, 0xC00E0088, 0xC00E001D, 0xC00E001C


pytestmark = [pytest.mark.kafka, needs_samba]


class SambaReader(Reader):
    """The calls are written with impacket's NDR; all that carries them is Samba's."""

    def __init__(self, address: tuple[str, int], options: str, user: str, folder: Path) -> None:
        self.ids = count(1)
        settings = folder / "smb.conf"
        settings.write_text("[global]\nworkgroup = SHOP\n")
        words = (*map(str, address), options, user, "secret", str(settings), idl.REMOTE_READ[0])
        self._process = subprocess.Popen(
            [str(PYTHON), str(SCRIPT), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{request.opnum} {request.getData().hex()}\n")
        self._process.stdin.flush()
        said, _, rest = self._process.stdout.readline().strip().partition(" ")
        if said != "ok":
            raise FaultError(int(rest.split()[0], 16) if rest else 0)
        response = getattr(idl, f"{type(request).__name__}Response")()
        response.fromString(bytes.fromhex(rest))
        return response

    def close(self) -> None:
        with self._process:
            self._process.kill()


class OpenSamba(Protocol):
    def __call__(self, options: str, user: str = "ann") -> SambaReader: ...


@pytest.fixture(scope="module")
def settings() -> Settings:
    names = [f"kept{number}" for number in range(1, 21)]
    return Settings(
        queues={name: {"mode": "retain", "allow_read": ["ann"]} for name in names},
        listen={"rpc": 0},
        rpc={"minimum_level": "connect"},
        users={"SHOP\\ann": "secret"},
    )


@pytest.fixture
def open_samba(appliance: Appliance, tmp_path: Path) -> Iterator[OpenSamba]:
    close: list[Callable[[], None]] = []

    def make(options: str, user: str = "ann") -> SambaReader:
        reader = SambaReader(appliance.listeners["rpc"], options, user, tmp_path)
        close.append(reader.close)
        return reader

    yield make
    for end in close:
        end()


@pytest.mark.parametrize("options", LEVELS)
def test_every_level(
    appliance: Appliance, kept: str, send: Send, open_samba: OpenSamba, options: str
) -> None:
    """6.1 to 6.3, 6.6, 6.7: port, open, receive, NACK, cursor, lookup, purge, close."""
    reader = open_samba(options)
    assert reader.port() == appliance.listeners["rpc"][1]  # RR-14
    queue = reader.open(path(kept))
    send(kept, b"M1", b"M2", b"M3", b"M4")
    given = reader.start(queue, request_id=1, timeout=LONG)
    assert given.body == b"M1"
    assert reader.end(queue, 1, NACK) == 0  # RR-24
    again = reader.start(queue, request_id=2)
    assert (again.body, again.sequence_id) == (b"M1", given.sequence_id)
    assert reader.end(queue, 2) == 0

    cursor, status = reader.create_cursor(queue)
    assert (cursor != 0, status) == (True, 0)
    assert reader.start(queue, PEEK_NEXT, cursor=cursor).status == FRESH
    assert reader.start(queue, PEEK_CURRENT, cursor=cursor, timeout=LONG).body == b"M2"
    second = reader.start(queue, PEEK_NEXT, cursor=cursor, timeout=LONG)
    assert second.body == b"M3"
    assert reader.start(queue, PEEK_NEXT, cursor=cursor, timeout=LONG).body == b"M4"
    assert reader.start(queue, PEEK_NEXT, cursor=cursor).status == EMPTY
    assert reader.close_cursor(queue, cursor) == 0

    third = 7 - 3 << 56 | second.sequence_id  # RR-55: priority 3
    assert reader.start(queue, LOOKUP_PEEK, lookup=third).body == b"M3"
    taken = reader.start(queue, LOOKUP_RECEIVE, lookup=third, request_id=3)
    assert taken.body == b"M3"
    assert reader.end(queue, 3) == 0
    assert reader.start(queue, LOOKUP_PEEK, lookup=third).status in (NOT_FOUND, RECEIVED)
    assert reader.purge(queue) == 0
    assert reader.start(queue, PEEK_CURRENT).status == EMPTY
    assert reader.close_queue(queue) == (NULL_HANDLE, 0)


def test_a_level_that_is_too_low(open_samba: OpenSamba, kept: str) -> None:  # RR-16
    reader = open_samba("", user="")
    assert reader.port() > 0
    with pytest.raises(FaultError):
        reader.open(path(kept), PEEK)


def test_two_messages_of_a_megabyte(kept: str, send: Send, open_samba: OpenSamba) -> None:
    """RR-7: fragments of several answers, sealed, in one stream of RC4 (trap 18)."""
    reader = open_samba("seal")
    queue = reader.open(path(kept))
    bodies = [bytes([number]) * (1 << 20) for number in (1, 2)]
    send(kept, *bodies)
    assert [reader.take(queue, timeout=LONG) for _ in bodies] == bodies
