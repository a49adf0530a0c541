"""Senders that run on a thread of their own: one that never pauses, one that never gives up."""

import threading
from collections.abc import Callable
from contextlib import suppress

from tests.outside.appliance import Appliance
from tests.outside.rawconnection import Address, HungUpError, soon
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Box
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import Flow, Mail, url

WINDOW = 10


class Witness:
    """One connection that does all as it should, without a pause; nobody may disturb it."""

    def __init__(self, appliance: Appliance, topics: Topics, mark: bytes) -> None:
        self._topics = topics
        self._mark = mark
        self._poster = Poster(appliance.srmp_address).connect()
        self._news = threading.Condition()
        self._done = 0
        self._stop = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                mails = [self._mail(self._done + n) for n in range(WINDOW)]
                assert self._poster.post_all(mails) == [200] * WINDOW
                with self._news:
                    self._done += WINDOW
                    self._news.notify_all()
        except Exception as fault:
            with self._news:
                self._fault = fault
                self._news.notify_all()

    def _mail(self, number: int) -> Mail:
        return Mail(to=url("plain"), body=b"%s %d" % (self._mark, number), services="<durable/>")

    def go_on(self, windows: int = 2) -> None:
        """Returns when it has done that many more, begun after this moment."""
        with self._news:
            goal = self._done + (windows + 1) * WINDOW
            self._news.wait_for(lambda: self._fault or self._done >= goal, 60)
            assert self._fault is None, repr(self._fault)
            assert self._done >= goal, "the good sender waits for its answers"

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._poster.close()

    def unharmed(self) -> None:
        """The topic has all it sent, each once."""
        self.go_on()
        self.stop()
        assert self._fault is None, repr(self._fault)
        records = [one for one in self._topics.all("plain") if one.value.startswith(self._mark)]
        found = sorted(int(one.value.rpartition(b" ")[2]) for one in records)
        assert found == list(range(self._done))


class StreamSender:
    """A stream that is resent from the first number without a receipt, until all have one. SR-76"""

    def __init__(self, place: Callable[[], Address | None], flow: Flow, box: Box) -> None:
        self._place = place
        self.flow = flow
        self._box = box
        self._mails: list[Mail] = []
        self._fault: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def acked(self) -> int:
        return max(self._box.lasts, default=0)

    def start(self, count: int) -> None:
        self._mails = [self.flow.mail(number) for number in range(1, count + 1)]
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
        self._thread.start()

    def finish(self, seconds: float = 60) -> None:
        """Returns when the last message has its receipt."""
        assert self._thread is not None
        self._thread.join(seconds)
        assert self._fault is None, repr(self._fault)
        assert not self._thread.is_alive(), f"{self.acked} of {len(self._mails)}"
        assert self._box.lasts == sorted(self._box.lasts)

    def _run(self) -> None:
        deadline = soon(90)
        try:
            while self.acked < len(self._mails) and soon(0) < deadline:
                with suppress(HungUpError, OSError):
                    self._pass()
                self._box.pause(1.0)
        except Exception as fault:
            self._fault = fault

    def _pass(self) -> None:
        address = self._place()
        if address is None:
            return
        with Poster(address).connect() as poster:
            kept = self._mails[self.acked :]
            for start in range(0, len(kept), WINDOW):
                if set(poster.post_all(kept[start : start + WINDOW])) != {200}:
                    return  # 5xx: later
