"""What a queue manager keeps of one outgoing queue over HTTP until it may forget.

No socket, no clock. One request at a time: regular and durable messages are kept until the answer
is 200, those of a stream until its receipt has come, those that asked for a final receipt until
that has come too. Without an answer, or with 5xx, all that is not acknowledged goes again, in
order, with the same ids and numbers; so it does when a receipt is late. Digest srmp.md 5.2;
SR-51 to SR-54, SR-70 to SR-76
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.history import History, Mode, Op
from tests.chaos.outgoing import RECENT, ViolationError
from tests.outside.srmp.wire import Mail, Receipt, Step, body_part, multipart, stream_id, whole

# Windows: 30 s, 5 min, 30 min, 6 h. Longer than the bridge may wait with a receipt of a burst.
WAITS_S: Final = (6.0, 6.0, 6.0, 9.0, 9.0, 9.0, 15.0)
# Of those that a sender with an old disk repeats. A receiver knows the streams before the current
# one by their ids, and no receiver knows all of them (SR-38).
RECENT_STREAMS: Final = 4
POSITIVE: Final = "positive"


class BusyError(Exception):
    """5xx: later."""


@dataclass(slots=True)
class Letter:
    op: Op
    mail: Mail
    final: bool = False  # asks for a final receipt
    stream: str = ""  # the id of its stream, and its number there; from the first send
    number: int = 0
    answered: bool = False  # of a stream: 200 since it was sent last
    again: bool = False  # done with, and repeated by a sender whose disk came back old

    @property
    def is_ordered(self) -> bool:
        return self.op.mode is Mode.TRANSACTIONAL


class Postbox:
    def __init__(self, path: str, history: History, ordinals: Callable[[], int]) -> None:
        """`path` is the queue's in a URL; `ordinals` numbers the streams of the queue manager."""
        self.history = history
        self._path, self._ordinals = path, ordinals
        self.receipts_to = ""  # URL
        self.kept: list[Letter] = []
        self.finals: list[Letter] = []  # only their final receipt is missing
        self.recent: deque[Letter] = deque(maxlen=RECENT)
        self.swaps = 0  # so many times the second of a stream goes before the first
        self.session = 0
        self._repeats: deque[Letter] = deque()
        self._stream = ""
        self._number = 0  # the last one given in this stream
        self._sent: dict[str, int] = {}  # the highest number that was sent, by stream
        self._wait_at: float | None = None  # when all that has no receipt goes again
        self._waits = 0

    @property
    def size(self) -> int:
        return len(self.kept) + len(self.finals)

    @property
    def place(self) -> tuple[str, int]:
        """The current stream and its last number: what a stranger would guess."""
        return self._stream, self._number

    @property
    def unsent(self) -> bool:
        return bool(self._repeats) or any(not letter.answered for letter in self.kept)

    def add(self, op: Op, mail: Mail, *, final: bool = False) -> None:
        self.history.ops.append(op)
        self.kept.append(Letter(op, mail, final))

    # -- sending ----------------------------------------------------------------------------

    def begin_session(self) -> None:
        """From the first unacknowledged one. Digest srmp.md 5.2, Inactive"""
        self.session += 1
        self._wait_at = None
        self._send_again()

    def tick(self, now: float) -> None:
        """SR-76: the receipt is late."""
        if self._wait_at is not None and now >= self._wait_at:
            self._wait_at = None
            self._waits += 1
            self.history.events["streams sent again without a receipt"] += 1
            self._send_again()

    def _send_again(self) -> None:
        for letter in self.kept:
            letter.answered = False

    def restart(self) -> None:
        """Memory is gone, and the disk has forgotten the latest answers and receipts."""
        for letter in self.kept:
            letter.op.dropped = letter.op.mode is Mode.EXPRESS
        self.kept = [letter for letter in self.kept if not letter.op.dropped]
        streams = list(dict.fromkeys(old.stream for old in reversed(self.recent)))
        late = set(streams[:RECENT_STREAMS])
        self._repeats = deque(replace(o, again=True) for o in self.recent if o.stream in late)

    def next(self, now: float) -> Letter | None:
        """What is to be sent now."""
        if self._repeats:
            old = self._repeats.popleft()
            old.op.sends += 1
            return old
        letter = self._choose()
        if letter is None:
            return None
        letter.op.sends += 1
        if letter.op.sent_at is None:
            letter.op.sent_at, letter.op.session = now, self.session
        if letter.is_ordered:
            self._sent[letter.stream] = max(self._sent.get(letter.stream, 0), letter.number)
            letter.mail = replace(letter.mail, step=self._step(letter))
        return letter

    def _choose(self) -> Letter | None:
        unanswered = self._unanswered()
        first = next(unanswered, None)
        if first is None:
            return None
        self._give_number(first)
        if self.swaps and first.is_ordered and (second := next(unanswered, None)) is not None:
            self.swaps -= 1
            self.history.events["requests of a stream sent out of order"] += 1
            self._give_number(second)
            return second
        return first

    def _unanswered(self) -> Iterator[Letter]:
        return (letter for letter in self.kept if not letter.answered)

    def _give_number(self, letter: Letter) -> None:
        """SR-54, SR-72: a stream ends when nothing of it is kept; the next has a new id."""
        if not letter.is_ordered or letter.number:
            return
        if not self.finals and not any(other.number for other in self.kept):
            self._stream = stream_id(letter.mail.source, self._ordinals())
            self._number = 0
            self._wait_at, self._waits = None, 0
        self._number += 1
        letter.stream, letter.number = self._stream, self._number

    def _step(self, letter: Letter) -> Step:
        """`previous` is the highest number before it that is still here. SR-72"""
        kept = any(o.stream == letter.stream and o.number < letter.number for o in self.kept)
        return Step(
            stream=letter.stream,
            current=letter.number,
            previous=letter.number - 1 if kept else None,
            receipts=self.receipts_to if letter.number == 1 else None,
        )

    def request(self, letter: Letter) -> bytes:
        mail = letter.mail
        body = multipart(mail.envelope.encode(), [body_part(mail.body, mail.source)])
        return whole(body, target=f"/msmq/private$/{self._path}")

    # -- answers and receipts ---------------------------------------------------------------

    def on_answer(self, letter: Letter, status: int, now: float) -> None:
        """Digest srmp.md 1.4"""
        if status in (500, 503):
            raise BusyError
        is_kept = any(letter is other for other in self.kept)  # its receipt may have been faster
        if status != 200:
            self.kept = [other for other in self.kept if other is not letter]
            raise ViolationError(f"{letter.op.identity} gets {status}")
        if letter.again or not is_kept:
            return
        if letter.is_ordered:
            letter.answered = True
            if self._wait_at is None:
                self._wait_at = now + WAITS_S[min(self._waits, len(WAITS_S) - 1)]
        else:
            letter.op.stored_at = letter.op.stored_at or now
            self.kept.remove(letter)
            self._complete(letter, now)

    def knows(self, stream: str) -> bool:
        return stream in self._sent

    def on_receipt(self, receipt: Receipt, now: float) -> None:
        """SR-51, SR-53"""
        if receipt.last > self._sent[receipt.stream]:
            raise ViolationError(f"receipt of {receipt.last}, which was never sent: {receipt}")
        if receipt.type == "final":
            self._on_final(receipt, now)
        else:
            self._on_stream(receipt, now)

    def _on_stream(self, receipt: Receipt, now: float) -> None:
        kept: list[Letter] = []
        for letter in self.kept:
            if letter.stream == receipt.stream and letter.number <= receipt.last:
                letter.op.ordered_at = now
                self._settle(letter, now)
            else:
                kept.append(letter)
        if len(kept) < len(self.kept):
            self._waits = 0  # SR-52
            self._wait_at = None
            if any(letter.answered for letter in kept):
                self._wait_at = now + WAITS_S[0]
        self.kept = kept

    def _settle(self, letter: Letter, now: float) -> None:
        if letter.final and letter.op.final_at is None:
            self.finals.append(letter)
        else:
            self._complete(letter, now)

    def _on_final(self, receipt: Receipt, now: float) -> None:
        if receipt.decision != POSITIVE:
            raise ViolationError(f"{receipt.acked} is refused: {receipt.kind}")
        for letter in (*self.kept, *self.finals):
            if (letter.stream, letter.number) == (receipt.stream, receipt.last):
                letter.op.final_at = letter.op.final_at or now
        for letter in [letter for letter in self.finals if letter.op.final_at is not None]:
            self.finals.remove(letter)
            self._complete(letter, now)

    def _complete(self, letter: Letter, now: float) -> None:
        self.history.complete(letter.op, now)
        if letter.op.mode is not Mode.EXPRESS:
            self.recent.append(letter)
