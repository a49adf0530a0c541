"""Every message of a queue, in order, and none of them touched. RR-54, RR-55

Two ways. By a cursor from the head: several PEEK_NEXT are in flight, and each moves the cursor on.
Behind a lookup id: PEEK_NEXT of the id, and with it PEEK_CURRENT of the numbers that follow it:
each is a message of this queue or none. The second way is for a part of a queue, and to go on after
a lost connection, which ends a cursor. It needs a message that is still there; if that is gone, a
cursor walks up to its place and looks at headers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from bridge.model.errors import ProtocolError, WireError
from bridge.protocol.rpc.reader.names import Target
from bridge.protocol.rpc.reader.opening import (
    ALL,
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_NEXT,
    PEEK_ACCESS,
    PEEK_CURRENT,
    PEEK_NEXT,
    Client,
    OpenedQueue,
    close_queue,
    open_queue,
)
from bridge.protocol.rpc.reader.pace import Pace
from bridge.protocol.rpc.reader.packets import LOW, Read, read_of, size_of
from bridge.protocol.rpc.reader.results import (
    ALREADY_RECEIVED,
    ILLEGAL_CURSOR_ACTION,
    MESSAGE_NOT_FOUND,
    TIMEOUT,
    TRANSACTION_USAGE,
    Refused,
    status_of,
)
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import Answer, Answers, Batch, Flow, ask, call, give
from bridge.wire.rpc.remote_read import CreateCursor, CursorCreated, Started, StartReceive

WINDOW: Final = 64
_SPARSE: Final = 8  # numbers for one message: from there on it is not worth to guess
_MOST_IDLE: Final = 1000  # messages that vanish under a cursor, one after the other
_GONE: Final = (MESSAGE_NOT_FOUND, ALREADY_RECEIVED, TRANSACTION_USAGE)


class Unreadable(msgspec.Struct, frozen=True):
    """A message whose packet breaks the layout."""

    lookup_id: int
    why: str
    size: int


Found: TypeAlias = Read | Unreadable


class Scan:
    """The messages behind `after`, up to and with `until`. `last` is as far as it has come.

    What cannot be read is in `unreadable`, by lookup id, with the reason.
    """

    def __init__(
        self,
        target: Target,
        *,
        after: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        window: int = WINDOW,
        spelling: Spelling | None = None,
        client: Client | None = None,
    ) -> None:
        self.last, self.found = after, 0
        self.unreadable: dict[int, str] = {}
        self._target, self._until, self._limit = target, until, limit
        self._window = window
        self._spelling = spelling or Spelling()
        self._client = client or Client()
        self._is_done = limit == 0
        self._is_again = False

    def flow(self) -> Flow[None]:
        """For one connection; another flow goes on where this one was cut off."""
        if self._is_done:
            return
        is_again, self._is_again = self._is_again, True
        queue = yield from open_queue(self._target, PEEK_ACCESS, self._client, is_again=is_again)
        is_over = self.last is not None and (yield from self._behind(queue, self.last))
        if not is_over:
            yield from self._walk(queue)
        self._is_done = True
        yield from close_queue(queue)

    # -- behind a lookup id -----------------------------------------------------------------

    def _behind(self, queue: OpenedQueue, anchor: int) -> Flow[bool]:
        """False: the anchor is not there, so nobody can say what comes behind it."""
        pace, width = Pace(self._window), 1
        while not self._is_done:
            guesses = self._guesses(anchor, width - 1)
            following = queue.start(LOOKUP_PEEK_NEXT, lookup_id=self._spelling.of(anchor) or anchor)
            requests = [following, *(self._current(queue, guess) for guess in guesses)]
            answers = yield from ask(*requests)
            found = self._ahead(anchor, guesses, requests, answers)
            if found:
                last = found[-1].lookup_id
                is_dense = len(found) * _SPARSE >= last - anchor
                anchor = last
                yield from self._give(found)
                pace.saw(read.size for read in found)
                width = pace.width if is_dense else 1
                continue
            if status_of(answers[0]) != MESSAGE_NOT_FOUND:
                raise Refused(status_of(answers[0]))
            is_there = yield from self._is_there(queue, anchor)
            if is_there is not None:
                return is_there
        return True

    def _guesses(self, anchor: int, count: int) -> list[int]:
        """The numbers behind the anchor, none of them 0 for a server that wants 56 bits."""
        last = min(anchor + count, anchor | LOW, self._until or anchor | LOW)
        return [guess for guess in range(anchor + 1, last + 1) if guess & LOW]

    def _current(self, queue: OpenedQueue, guess: int) -> StartReceive:
        return queue.start(LOOKUP_PEEK_CURRENT, lookup_id=self._spelling.of(guess))

    def _ahead(
        self,
        anchor: int,
        guesses: Sequence[int],
        requests: Sequence[StartReceive],
        answers: Answers,
    ) -> list[Found]:
        """What was found behind the anchor, in order; between its ends nothing is left out."""
        found: dict[int, Found] = {}
        for guess, request, answer in zip(guesses, requests[1:], answers[1:], strict=True):
            if status := status_of(answer):
                if status not in _GONE:
                    raise Refused(status)
                continue
            read = self._found(request, answer, guess)
            if read.lookup_id == guess:  # else its low bits are the same, and its priority is not
                found[guess] = read
        if not status_of(answers[0]):
            following = self._found(requests[0], answers[0], anchor)
            if following.lookup_id <= anchor:
                raise ProtocolError("circle", "the message behind one comes before it")
            if following.lookup_id <= (guesses[-1] if guesses else anchor) or not found:
                found.setdefault(following.lookup_id, following)
        return [found[place] for place in sorted(found)]

    def _is_there(self, queue: OpenedQueue, anchor: int) -> Flow[bool | None]:
        """Not found is the anchor or what comes behind it: ask for the anchor itself.

        None: it is there under its other spelling, which counts from now on. RR-55
        """
        if (yield from self._has(queue, self._spelling.of(anchor))):
            return True
        if (yield from self._has(queue, self._spelling.other.of(anchor))):
            self._spelling.turn()
            return None
        return False

    def _has(self, queue: OpenedQueue, number: int) -> Flow[bool]:
        if not number:
            return False
        probe = queue.start(LOOKUP_PEEK_CURRENT, lookup_id=number, most_body=0)
        (answer,) = yield from ask(probe)
        return status_of(answer) in (0, TRANSACTION_USAGE)  # somebody holds it: it is there

    # -- from the head ----------------------------------------------------------------------

    def _walk(self, queue: OpenedQueue) -> Flow[None]:
        created = yield from call(CreateCursor(queue.handle), CursorCreated)
        pace, action, width = Pace(self._window), PEEK_CURRENT, 1
        behind = self.last  # up to there it is known, so the bodies are not wanted
        before, idle = set[int](), 0
        while not self._is_done:
            most = ALL if behind is None else 0
            requests = [
                queue.start(action, cursor=created.cursor, most_body=most) for _ in range(width)
            ]
            answers = yield from ask(*requests)
            found, statuses = self._sorted(requests, answers)
            pace.saw(read.size for read in found)
            places = {read.lookup_id for read in found}
            idle = 0 if places else idle + 1
            if idle > _MOST_IDLE or (places and places <= before):
                raise ProtocolError("circle", "a cursor of the server does not come forward")
            before = places
            if behind is not None:
                found = [read for read in found if read.lookup_id > behind]
                if found:
                    behind = None
                    found = yield from self._whole(queue, found)
            yield from self._give(found)
            if TIMEOUT in statuses:
                return
            if statuses - {ALREADY_RECEIVED, ILLEGAL_CURSOR_ACTION}:
                raise Refused(min(statuses - {ALREADY_RECEIVED, ILLEGAL_CURSOR_ACTION}))
            # RR-54: a message that vanished under the cursor is passed by
            is_unread = ILLEGAL_CURSOR_ACTION in statuses
            action, width = (PEEK_CURRENT, 1) if is_unread else (PEEK_NEXT, pace.width)

    def _sorted(
        self, requests: Sequence[StartReceive], answers: Answers
    ) -> tuple[list[Found], set[int]]:
        """Answers to calls in flight together may have taken turns: each moved the cursor once."""
        last = self.last or 0
        pairs = list(zip(requests, answers, strict=True))
        found = [self._found(ask, got, last) for ask, got in pairs if not status_of(got)]
        found.sort(key=lambda read: read.lookup_id)
        return found, {status_of(answer) for answer in answers} - {0}

    def _whole(self, queue: OpenedQueue, found: Sequence[Found]) -> Flow[list[Found]]:
        """The same messages with their bodies, but for those that somebody has taken meanwhile."""
        numbers = [self._spelling.of(read.lookup_id) for read in found]
        requests = [queue.start(LOOKUP_PEEK_CURRENT, lookup_id=number) for number in numbers]
        answers = yield from ask(*requests)
        if all(status_of(answer) == MESSAGE_NOT_FOUND for answer in answers):
            others = [self._spelling.other.of(read.lookup_id) for read in found]
            requests = [queue.start(LOOKUP_PEEK_CURRENT, lookup_id=number) for number in others]
            answers = yield from ask(*requests)
            if not all(status_of(answer) == MESSAGE_NOT_FOUND for answer in answers):
                self._spelling.turn()
        whole, statuses = self._sorted(requests, answers)
        if strange := statuses.difference(_GONE):
            raise Refused(min(strange))
        return whole

    # -- what was found ---------------------------------------------------------------------

    def _found(self, request: StartReceive, answer: Answer, anchor: int) -> Found:
        assert isinstance(answer, Started)
        try:
            return read_of(answer, request.request_id, self._target.manager)
        except WireError as error:
            place = anchor & ~LOW | answer.sequence_id & LOW
            return Unreadable(place, str(error), size_of(answer))

    def _give(self, found: Iterable[Found]) -> Flow[None]:
        """To the reader; `last` moves on when it comes back for more."""
        reads: list[Read] = []
        last = self.last
        for read in found:
            if self._is_done or (self._until is not None and read.lookup_id > self._until):
                self._is_done = True
                break
            last = read.lookup_id
            if isinstance(read, Unreadable):
                self.unreadable[read.lookup_id] = read.why
                continue
            reads.append(read)
            self._is_done = self._limit is not None and self.found + len(reads) >= self._limit
        if reads:
            batch = Batch(tuple(reads))
            yield from give(batch)
            self._is_done = self._is_done or batch.is_last
        self.last = last
        self.found += len(reads)
