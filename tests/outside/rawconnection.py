"""One blocking TCP connection, read by deadlines."""

import select
import socket
import time
from typing import Self

from tests.outside.rawparse import wire_length

Address = tuple[str, int]
LOCAL = "127.0.0.2"  # not the bridge's own address, so that an ack to ours can be told apart


def soon(seconds: float = 15.0) -> float:
    return time.monotonic() + seconds


class HungUpError(Exception):
    """The bridge hung up."""


class RawConnection:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.local = LOCAL
        self.buffer = bytearray()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sock(self) -> socket.socket:
        assert self._socket is not None, "not connected"
        return self._socket

    @property
    def local_ip(self) -> str:
        return str(self.sock.getsockname()[0])

    def open_socket(self) -> None:
        self.close()
        self.buffer.clear()
        self._socket = socket.create_connection(
            self.address, timeout=10, source_address=(self.local, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, data: bytes) -> None:
        """Bytes as they are; nothing is counted."""
        try:
            self.sock.settimeout(30)
            self.sock.sendall(data)
        except ConnectionError as error:
            raise HungUpError(str(error)) from error

    def half_close(self) -> None:
        """No more bytes from us: what is incomplete stays so."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as error:  # ENOTCONN: it was faster
            raise HungUpError(str(error)) from error

    def _fill(self, size: int, deadline: float) -> None:
        while len(self.buffer) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{len(self.buffer)} of {size} bytes came in time")
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(65536)
            except ConnectionError as error:
                raise HungUpError(str(error)) from error
            if not data:
                raise HungUpError(f"end of stream, {len(self.buffer)} bytes left over")
            self.buffer += data

    def read_bytes(self, deadline: float) -> bytes:
        """One whole packet."""
        self._fill(16, deadline)
        length = wire_length(bytes(self.buffer[:16]))
        self._fill(length, deadline)
        raw = bytes(self.buffer[:length])
        del self.buffer[:length]
        return raw

    def expect_nothing(self, seconds: float) -> None:
        """The one wait of fixed length."""
        assert not self.buffer, bytes(self.buffer).hex(" ")
        readable, _, _ = select.select([self.sock], [], [], seconds)
        if readable:
            raise AssertionError(f"expected silence, got {self.sock.recv(65536).hex(' ')!r}")
