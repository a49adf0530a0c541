"""`msmq-bridge`, started so that it can be hurt: `python -m tests.chaos.launcher [--bug B] serve …`

The product has no hooks. This wraps, from outside, what it uses of its libraries: the transactional
calls of confluent-kafka's Producer, `write` of asyncio's transports, `time.time`. Orders come by
stdin, one a line:

    arm POINT COUNT [BROKER-PID]   SIGKILL to itself the COUNT-th time that POINT is reached
    clock SECONDS                  the wall clock is so much ahead from now on

`--bug` plants one of `bugs.py`.
"""

import os
import signal
import sys
import threading
import time
from asyncio import selector_events
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka

POINTS: Final = (
    "before-begin",  # nothing of the unit is in Kafka
    "after-produce",  # some of it may be, in an open transaction
    "before-commit",  # all of it is, in an open transaction
    "commit-unread",  # the commit is sent, nobody reads the answer
    "after-commit",  # the unit is committed, no ack has left
    "after-ack",  # an ack has just left
    "after-answer",  # 200 has just left, over HTTP
    "after-receipt",  # the receipt of a stream has just left, nobody reads the answer
)
_REACH_S: Final = 0.25  # for a request to get from librdkafka to the kernel
_FLUSH_S: Final = 5.0
_SIGNATURE: Final = b"LIOR"
_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"  # the admin port's have a body
_HEAD: Final = len(_ANSWER)


class Control:
    """What is armed. A point costs one comparison while it is not."""

    def __init__(self) -> None:
        self.point = ""
        self.ahead_s = 0.0
        self._left = 0
        self._broker = 0
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Raw reads: a daemon thread must not hold the lock of sys.stdin at the end."""
        rest = b""
        while data := os.read(0, 4096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.obey(line.decode().split())
        os.kill(os.getpid(), signal.SIGKILL)  # whoever gave the orders is gone

    def obey(self, words: list[str]) -> None:
        match words:
            case ["arm", point, count, *broker]:
                with self._lock:
                    self._left = int(count)
                    self._broker = int(broker[0]) if broker else 0
                    self.point = point
                os.write(2, f"chaos: armed {point}\n".encode())
            case ["clock", seconds]:
                self.ahead_s = float(seconds)
            case _:
                os.write(2, f"chaos: what is {words}?\n".encode())

    def reach(self, point: str) -> bool:
        """Whether this is the time to die."""
        if point != self.point:
            return False
        with self._lock:
            self._left -= 1
            return self._left == 0

    def die(self) -> None:
        os.write(2, f"chaos: killed at {self.point}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def die_at(self, point: str) -> None:
        if self.reach(point):
            self.die()

    def die_with_commit_unread(self, commit: Callable[[], object]) -> None:
        """The kernel takes the request for the stopped broker, which finds it when it goes on."""
        os.kill(self._broker, signal.SIGSTOP)
        threading.Thread(target=commit, daemon=True).start()
        time.sleep(_REACH_S)
        self.die()


CONTROL: Final = Control()


class Producer(confluent_kafka.Producer):
    """Reaches the crash points on its way."""

    def begin_transaction(self, *args: Any) -> None:
        CONTROL.die_at("before-begin")
        super().begin_transaction(*args)

    def produce(self, *args: Any, **kwargs: Any) -> None:
        super().produce(*args, **kwargs)
        if CONTROL.point == "after-produce":
            CONTROL.die_at("after-produce")

    def commit_transaction(self, *args: Any) -> None:
        if CONTROL.reach("before-commit"):
            self.flush(_FLUSH_S)
            CONTROL.die()
        if CONTROL.reach("commit-unread"):
            self.flush(_FLUSH_S)
            CONTROL.die_with_commit_unread(super().commit_transaction)
        super().commit_transaction(*args)
        CONTROL.die_at("after-commit")


def point_of(data: bytes) -> str:
    """The crash point that is reached once this has left."""
    if data.startswith(_ANSWER):
        return "after-answer"
    if data.startswith(b"POST "):
        return "after-receipt"
    return "after-ack" if _is_ack(data) else ""


def _is_ack(data: bytes) -> bool:
    """A session ack (IN, packet type 1), or a user message of ours: an order or final ack."""
    if data[4:8] != _SIGNATURE:
        return False
    internal = bool(data[2] & 0x08)
    return not internal or data[18] & 0x0F == 1


def watch_words() -> None:
    transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write = transport.write

    def write_and_die(self: object, data: bytes) -> None:
        write(self, data)
        if CONTROL.point and (point := point_of(bytes(data[:_HEAD]))):
            CONTROL.die_at(point)

    transport.write = write_and_die


def set_clock() -> None:
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + CONTROL.ahead_s
    time.time_ns = lambda: real_ns() + int(CONTROL.ahead_s * 1e9)


def main(arguments: list[str]) -> int:
    bug = ""
    if arguments[:1] == ["--bug"]:
        bug, arguments = arguments[1], arguments[2:]
    set_clock()
    from bridge.adapters.kafka import client
    from bridge.cli import app

    client.Producer = Producer  # type: ignore[attr-defined]
    watch_words()
    if bug:
        from tests.chaos import bugs

        bugs.plant(bug)
    threading.Thread(target=CONTROL.listen, daemon=True).start()
    return app.main(arguments)


if __name__ == "__main__":
    from tests.chaos import launcher  # not __main__: bugs.py wraps the same module

    sys.exit(launcher.main(sys.argv[1:]))
