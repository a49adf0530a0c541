"""Between a producer and its broker: the first batch to one topic fails, as it does when a leader
has not heard of a new partition yet, while what is sent behind it gets through.

A frame of Kafka is its length, the number of the API, its version, and the rest. The first Produce
request that names the topic is held until another one follows it, or none does; then it goes on
with another topic in it, so that the broker itself refuses it (UNKNOWN_TOPIC_OR_PARTITION).
"""

import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

HOST: Final = "127.0.0.1"
PRODUCE: Final = 0
FOLLOWS_S: Final = 1.0  # the one wait of fixed length: for a request that should not come
_SIZE: Final = struct.Struct(">i")
_API: Final = struct.Struct(">h")


class BrokerProxy:
    def __init__(self, port: int, topic: str) -> None:
        self._broker, self._topic = port, topic.encode()
        self.held = threading.Event()  # the first batch is here
        self.followed = False  # by another one, before its answer
        self._listener = socket.create_server((HOST, 0))
        self._port = int(self._listener.getsockname()[1])
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()

    def _run(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((HOST, self._broker))
                self._sockets += [near, far]
                self._run(self._requests, near, far)
                self._run(self._answers, far, near)

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError, EOFError):
            while True:
                frame = _read(near)
                if self._is_first(frame):
                    self._hold(frame, near, far)
                else:
                    _write(far, frame)

    def _is_first(self, frame: bytes) -> bool:
        return not self.held.is_set() and _api(frame) == PRODUCE and self._topic in frame

    def _hold(self, frame: bytes, near: socket.socket, far: socket.socket) -> None:
        self.held.set()
        readable, _, _ = select.select([near], [], [], FOLLOWS_S)
        behind = _read(near) if readable else b""
        _write(far, frame.replace(self._topic, b"-" * len(self._topic), 1))
        if behind:
            self.followed = _api(behind) == PRODUCE
            _write(far, behind)

    def _answers(self, far: socket.socket, near: socket.socket) -> None:
        """The broker tells where it is; the producer shall come here instead."""
        its, ours = (HOST.encode() + _SIZE.pack(port) for port in (self._broker, self._port))
        with suppress(OSError, EOFError):
            while True:
                _write(near, _read(far).replace(its, ours))


def _api(frame: bytes) -> int:
    return int(_API.unpack_from(frame)[0])


def _read(source: socket.socket) -> bytes:
    return _exactly(source, int(_SIZE.unpack(_exactly(source, _SIZE.size))[0]))


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := source.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _write(target: socket.socket, frame: bytes) -> None:
    target.sendall(_SIZE.pack(len(frame)) + frame)
