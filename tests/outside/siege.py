"""What a besieger has, and the good neighbour who must not notice: see test_siege."""

import logging
import re
import resource
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil

from tests.outside.appliance import Appliance, queue
from tests.outside.rawmsmq import Message, Tx
from tests.outside.rawparse import Received
from tests.outside.rawsender import HungUpError, RawSender, soon
from tests.outside.records import of_source, read_topic
from tests.support.waiting import eventually

_log = logging.getLogger(__name__)
SEQUENCE = 0x65000000_00000001
ROUND = 60  # transactional messages; half as many others


def sample(appliance: Appliance, name: str, labels: str = "") -> float:
    """One line of /metrics; what was never counted is 0."""
    status, text = appliance.get("/metrics")
    assert status == 200, text
    wanted = re.escape(f"msmq_bridge_{name}" + (f"{{{labels}}}" if labels else ""))
    found = re.search(rf"^{wanted} ([0-9.e+]+)$", text, re.M)
    return float(found[1]) if found else 0.0


def connections(appliance: Appliance) -> int:
    return int(sample(appliance, "sessions"))


def closed(appliance: Appliance, reason: str) -> int:
    return int(sample(appliance, "sessions_closed_total", f'reason="{reason}"'))


def reasons(appliance: Appliance) -> Counter[str]:
    """Why connections were closed, so far; not those that their peers closed."""
    found = re.findall(
        r'^msmq_bridge_sessions_closed_total\{reason="(.+)"\} ([0-9.e+]+)$',
        appliance.get("/metrics")[1],
        re.M,
    )
    return Counter({why: int(float(n)) for why, n in found if why != "peer-closed"})


def wait_closed(appliance: Appliance, reason: str, count: int) -> None:
    eventually(lambda: closed(appliance, reason) >= count)


@contextmanager
def at_most(appliance: Appliance, mib: int) -> Iterator[None]:
    """How much the process may grow, at its peak; pytest --log-cli-level=INFO shows how much."""
    process = Path(f"/proc/{appliance.pid}")
    (process / "clear_refs").write_text("5")  # the peak is now what it has now
    before = _peak(process)
    yield
    growth = (_peak(process) - before) / 1024
    _log.info("%.1f MiB more than the %.1f before", growth, before / 1024)
    assert growth < mib


def _peak(process: Path) -> int:
    """KiB"""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", (process / "status").read_text(), re.M)
    assert found
    return int(found[1])


def allow_files(count: int) -> None:
    """This process needs as many sockets as it makes the appliance have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


@contextmanager
def few_files(appliance: Appliance, spare: int) -> Iterator[None]:
    """The appliance may open that many more, as if its operator had said so."""
    process = psutil.Process(appliance.pid)
    soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + spare, hard))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Connections that somebody holds and does little with, from one address or from several."""

    def __init__(self, appliance: Appliance, count: int, addresses: int = 1) -> None:
        allow_files(count + 1000)
        self._appliance = appliance
        before = connections(appliance)
        self.sockets: list[socket.socket] = []
        for number in range(count):
            source = f"127.0.1.{number % addresses + 1}"
            self.sockets.append(socket.create_connection(appliance.binary_address, 30, (source, 0)))
        self.before, self.count = before, count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.sockets:
            one.close()

    def wait_accepted(self) -> None:
        eventually(lambda: connections(self._appliance) >= self.before + self.count)

    def leave(self) -> None:
        """All hang up, and the appliance has noticed."""
        rest = connections(self._appliance) - self.count
        self.__exit__()
        eventually(lambda: connections(self._appliance) <= rest)

    def dribble(self, data: bytes) -> None:
        """To each the next byte, then to each the one after it; TCP_NODELAY sends it alone."""
        for one in self.sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            for one in self.sockets:
                one.send(bytes([byte]))


class _Careful(RawSender):
    """Keeps the order acks it got."""

    def __init__(self, appliance: Appliance) -> None:
        super().__init__(appliance.binary_address)
        self.order_acks: list[int] = []

    def _on_user_message(self, packet: Received) -> None:
        super()._on_user_message(packet)
        if packet.is_order_ack:
            self.order_acks.append(packet.sequence[1])


class Witness:
    """One session that does all as it should, without a pause, on a thread of its own.

    A round is one and a half windows of transactional, recoverable and express messages; it is
    over when each is acked in all the ways it needs. The sender checks the counters of every ack.
    """

    def __init__(self, appliance: Appliance) -> None:
        self._appliance = appliance
        self._sender = _Careful(appliance)
        self._sender.connect().handshake()
        self._news = threading.Condition()
        self._rounds = 0
        self._stop = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._sender.send_all_windowed(self._round(), soon(60))
                self._tell()
        except Exception as fault:
            self._tell(fault)

    def _tell(self, fault: Exception | None = None) -> None:
        with self._news:
            self._fault = fault
            self._rounds += fault is None
            self._news.notify_all()

    def _round(self) -> list[Message]:
        first = self._rounds * ROUND
        source = self._sender.guid
        messages: list[Message] = []
        for n in range(first + 1, first + ROUND + 1):
            tx = Tx(sequence_id=SEQUENCE, number=n, previous=n - 1)
            body = b"%d" % n
            messages.append(
                Message(
                    source=source, message_id=2 * n, destination=queue("orders"), body=body, tx=tx
                )
            )
            if n % 2:
                messages.append(
                    Message(
                        source=source,
                        message_id=2 * n + 1,
                        destination=queue("plain"),
                        body=body,
                        recoverable=n % 4 == 1,
                    )
                )
        return messages

    def go_on(self, rounds: int = 2) -> None:
        """Returns when it has done that many more, begun after this moment."""
        with self._news:
            goal = self._rounds + rounds + 1
            self._news.wait_for(lambda: self._fault or self._rounds >= goal, 90)
            assert self._fault is None, repr(self._fault)
            assert self._rounds >= goal, "the good session waits for its acks"

    def unharmed(self) -> None:
        """It got everything, the topics have everything once and in order."""
        self.go_on(0)
        self.stop()
        assert self._fault is None, repr(self._fault)
        sender, last = self._sender, self._rounds * ROUND
        assert (sender.table, sender.in_flight) == ([], 0)
        assert sender.sent == last * 3 // 2
        assert sender.order_acks == sorted(sender.order_acks)
        assert sender.order_acks[-1] == last
        assert self._values("orders") == list(range(1, last + 1))
        assert self._values("plain") == list(range(1, last + 1, 2))
        assert self._appliance.is_ready()

    def _values(self, name: str) -> list[int]:
        records = read_topic(self._appliance.bootstrap, self._appliance.topic(name))
        return [int(record.value) for record in of_source(records, self._sender.guid)]

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(90)
        assert not self._thread.is_alive()
        self._sender.close()


def together(jobs: list[Callable[[], None]]) -> None:
    """All at once, a thread for each; the first fault is raised."""
    faults: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    if faults:
        raise faults[0]


def hung_up(one: socket.socket) -> bool:
    """Whether the other side is gone; asked without waiting."""
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def read_to_end(sender: RawSender) -> None:
    try:
        while True:
            sender.read_bytes(soon(15))
    except HungUpError:
        return
