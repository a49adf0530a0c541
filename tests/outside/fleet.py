"""Several senders on one thread, as MSMQ hosts do it: send in the window, read, come back."""

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.outside.rawmsmq import Message
from tests.outside.rawsender import Address, HungUpError, RawSender, soon


class Fleet:
    def __init__(self, place: Callable[[], Address | None]) -> None:
        self.place = place  # where the bridge is now; its ports change when it is started again
        self.senders: list[RawSender] = []
        self._sent_before = 0

    def add(self, sender: RawSender) -> RawSender:
        self.senders.append(sender)
        return sender

    @property
    def sent(self) -> int:
        """Messages put on the wire, the repeated ones too."""
        return self._sent_before + sum(sender.sent for sender in self.senders)

    @property
    def kept(self) -> list[Message]:
        """Everything that is not done: unsent, or not acked in all the ways it needs."""
        return [
            message
            for sender in self.senders
            for message in (*(entry.message for entry in sender.table), *sender.unsent)
        ]

    def until(self, enough: Callable[[], object], seconds: float = 60) -> None:
        """Go on until it is enough; asked after every burst and every packet."""
        deadline = soon(seconds)
        while not enough():
            assert soon(0) < deadline, f"not within {seconds} s, {len(self.kept)} messages are kept"
            for _ in self._turn():
                if enough():
                    return

    def advance(self, count: int, *, acked: bool) -> None:
        """Until that many more are on the wire, or done with; or until there are no more."""
        if acked:
            goal = max(0, len(self.kept) - count)
            self.until(lambda: len(self.kept) <= goal)
        else:
            wanted = self.sent + count
            self.until(lambda: self.sent >= wanted or not self.kept)

    def watch(self, seconds: float) -> None:
        """Go on for a while: to see that something does not happen."""
        end = soon(seconds)
        self.until(lambda: soon(0) > end, seconds + 30)

    def drain(self, seconds: float = 60) -> None:
        self.until(lambda: not self.kept, seconds)

    def close(self) -> None:
        for sender in self.senders:
            sender.close()

    def _turn(self) -> Iterator[None]:
        for sender in self.senders:
            if not sender.open and (sender.table or sender.unsent):
                self._reopen(sender)
        for sender in self._open():
            with _cut_off(sender):
                self._fill_window(sender)
            yield
        sockets = {sender.sock: sender for sender in self._open()}
        for ready in select.select(list(sockets), [], [], 0.05)[0]:
            sender = sockets[ready]
            with _cut_off(sender):
                sender.read_packet(soon(10))
                while sender.buffer:
                    sender.read_packet(soon(10))
            yield

    def _open(self) -> list[RawSender]:
        return [sender for sender in self.senders if sender.open]

    def _fill_window(self, sender: RawSender) -> None:
        room = min(sender.window, sender.peer_window) - sender.in_flight  # QB-50
        burst = [sender.unsent.popleft() for _ in range(min(room, len(sender.unsent)))]
        if burst:
            sender.transmit(burst)

    def _reopen(self, sender: RawSender) -> None:
        address = self.place()
        if address is None:
            return
        self._sent_before += sender.sent
        sender.sent = 0
        with _cut_off(sender):
            sender.resume(address)


@contextmanager
def _cut_off(sender: RawSender) -> Iterator[None]:
    """The bridge may hang up; what the sender keeps goes over its next session."""
    try:
        yield
    except (HungUpError, OSError):
        sender.open = False
        sender.close()
