"""Messages taken out of a queue, each exactly once for whoever reads them. RR-47 to RR-50

A Start locks a message and hands it out, an End removes it (ACK) or puts it back (NACK). A batch is
as many Starts as are in flight together; it is the reader's until it asks for the next one. Then
what it has confirmed is ended with ACK, the rest with NACK, and the next Starts go out with these
Ends. The next batch is handed over only when every End is answered.

A connection that is lost gives all un-ended messages back to the queue. If it was lost with Ends on
their way, nobody knows whether they were removed: these messages are in doubt. The next connection
looks for them first (see `recall`); when one comes again later, the reader has it already, so it is
removed and not handed out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from bridge.model.errors import WireError
from bridge.protocol.rpc.reader.names import Target
from bridge.protocol.rpc.reader.opening import (
    LONGEST_WAIT_MS,
    LOOKUP_RECEIVE_CURRENT,
    RECEIVE,
    RECEIVE_ACCESS,
    Client,
    OpenedQueue,
    close_queue,
    open_queue,
)
from bridge.protocol.rpc.reader.pace import Pace
from bridge.protocol.rpc.reader.packets import Key, Read, key_of, read_of
from bridge.protocol.rpc.reader.recall import PAUSE_MS, RECALL_MS, TRIES, recall
from bridge.protocol.rpc.reader.results import (
    CANCELLED,
    MESSAGE_NOT_FOUND,
    TIMEOUT,
    Refused,
    Unsettled,
    status_of,
)
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import Answers, Batch, Flow, ask, give, pause
from bridge.wire.rpc.remote_read import ACK, NACK, EndReceive, Started, StartReceive

WINDOW: Final = 64
MOST_REFUSALS: Final = 3  # RR-49: of one message
MOST_REFUSED: Final = 1000  # messages
_NOTHING: Final = (TIMEOUT, CANCELLED)


class _End(NamedTuple):
    request: EndReceive
    who: Hashable  # a Key, or the number of a message that cannot be read


class Drain:
    """At most `limit` messages; `wait_ms` for each batch. `seen` are those that the reader has from
    a run that was cut off: they are removed and not handed out. With `lookup_id` that one message.

    `removed` counts those whose End was answered, `repeated` those that came again.
    """

    def __init__(
        self,
        target: Target,
        *,
        limit: int | None = None,
        wait_ms: int = 0,
        lookup_id: int | None = None,
        window: int = WINDOW,
        seen: Iterable[Key] = (),
        spelling: Spelling | None = None,
        client: Client | None = None,
    ) -> None:
        self.removed = self.repeated = 0
        self.in_doubt: set[Key] = set(seen)
        self._target, self._wait_ms, self._lookup_id = target, wait_ms, lookup_id
        self._left = 1 if lookup_id is not None else limit  # how many may still be taken
        self._spelling = spelling or Spelling()
        self._client = client or Client()
        self._pace = Pace(window)
        self._held: Batch | None = None
        self._missed: dict[Key, Read] = {}
        self._refusals: Counter[Hashable] = Counter()
        self._is_over = self._left == 0
        self._is_first, self._is_waiting = True, False
        self._is_respelled = self._is_resting = False
        self._patience_ms = self._tries = 0

    def flow(self) -> Flow[None]:
        """For one connection; another flow goes on where this one was cut off."""
        is_again = not self._is_first
        self._take_back()
        if self._is_over and not self._missed:
            return
        queue = yield from open_queue(self._target, RECEIVE_ACCESS, self._client, is_again=is_again)
        missed = list(self._missed.values())
        for key in (yield from recall(queue, missed, self._target.manager)):
            self._is_gone(key)
        self._missed.clear()
        ends: list[_End] = []
        while ends or not self._is_over:
            starts = self._starts(queue)
            wait_ms = max((start.timeout_ms for start in starts), default=0)
            requests = [end.request for end in ends]
            answers = yield from ask(*requests, *starts, wait_ms=wait_ms)
            self._ended(ends, answers[: len(ends)])
            reads, ends = self._sort_out(queue, starts, answers[len(ends) :])
            if self._is_resting:
                yield from pause(PAUSE_MS)
            if reads:
                self._held = batch = Batch(tuple(reads))
                yield from give(batch)
                ends += self._decided(queue, batch)
        yield from close_queue(queue)

    # -- after a lost connection ------------------------------------------------------------

    def _take_back(self) -> None:
        """What the last connection has left open and the reader has confirmed is in doubt, until
        a connection lasts for long enough to look for it."""
        batch, self._held = self._held, None
        self._patience_ms, self._is_waiting = self._wait_ms, False
        if not self._is_first:  # what it had locked may take a moment to come back
            self._patience_ms = max(self._wait_ms, RECALL_MS)
            self._tries = TRIES if self._lookup_id is not None else 0
        self._is_first = False
        if batch is not None:
            confirmed = [read for read in batch.reads if batch.is_confirmed(read)]
            self._missed |= {key_of(read): read for read in confirmed}
            self.in_doubt |= self._missed.keys()

    # -- starts -----------------------------------------------------------------------------

    def _starts(self, queue: OpenedQueue) -> list[StartReceive]:
        if self._is_over:
            return []
        if self._lookup_id is not None:
            number = self._spelling.of(self._lookup_id)
            return [queue.start(LOOKUP_RECEIVE_CURRENT, lookup_id=number)]
        if self._is_waiting:
            timeout = min(self._patience_ms, LONGEST_WAIT_MS)
            return [queue.start(RECEIVE, timeout_ms=timeout)]
        width = self._pace.width if self._left is None else min(self._pace.width, self._left)
        return [queue.start(RECEIVE) for _ in range(width)]

    def _sort_out(
        self, queue: OpenedQueue, starts: Sequence[StartReceive], answers: Answers
    ) -> tuple[list[Read], list[_End]]:
        """What is for the reader, and what is ended without it."""
        self._is_resting = False
        reads: list[Read] = []
        ends: list[_End] = []
        for start, answer in zip(starts, answers, strict=True):
            if status_of(answer):
                continue
            assert isinstance(answer, Started)
            try:
                read = read_of(answer, start.request_id, self._target.manager)
            except WireError:  # RR-49: cannot rebuild it
                ends.append(self._refuse(queue, start.request_id, answer.sequence_id))
                continue
            if key_of(read) in self.in_doubt:
                self.repeated += 1
                ends.append(self._end(queue, ACK, read.request_id, key_of(read)))
            else:
                reads.append(read)
        if reads or ends:
            self._came(reads)
        elif starts:
            self._none_came(starts, {status_of(answer) for answer in answers})
        return sorted(reads, key=lambda read: read.lookup_id), ends

    def _came(self, reads: Sequence[Read]) -> None:
        self._is_waiting, self._patience_ms = False, self._wait_ms
        self._pace.saw(read.size for read in reads)
        self._is_over = self._lookup_id is not None

    def _none_came(self, starts: Sequence[StartReceive], statuses: set[int]) -> None:
        strange = statuses.difference(_NOTHING)
        if strange == {MESSAGE_NOT_FOUND} and not self._is_respelled:  # RR-55
            self._is_respelled = True
            self._spelling.turn()
            return
        if strange == {MESSAGE_NOT_FOUND} and self._tries:  # the lost connection may hold it yet
            self._tries -= 1
            self._is_respelled, self._is_resting = False, True
            return
        if strange:
            raise Refused(min(strange))
        if self._is_waiting:
            self._patience_ms -= max(1, starts[0].timeout_ms)
        self._is_waiting = self._patience_ms > 0
        self._is_over = not self._is_waiting

    # -- ends -------------------------------------------------------------------------------

    def _decided(self, queue: OpenedQueue, batch: Batch) -> list[_End]:
        """What the reader has said of each of them."""
        confirmed = [read for read in batch.reads if batch.is_confirmed(read)]
        if self._left is not None:
            self._left -= len(confirmed)
        self._is_over = self._is_over or batch.is_last or self._left == 0
        return [
            self._end(queue, ACK, read.request_id, key_of(read))
            if batch.is_confirmed(read)
            else self._refuse(queue, read.request_id, key_of(read))
            for read in batch.reads
        ]

    def _refuse(self, queue: OpenedQueue, request_id: int, who: Hashable) -> _End:
        self._refusals[who] += 1
        return self._end(queue, NACK, request_id, who)

    @staticmethod
    def _end(queue: OpenedQueue, ack: int, request_id: int, who: Hashable) -> _End:
        return _End(EndReceive(queue.handle, ack, request_id), who)

    def _ended(self, ends: Sequence[_End], answers: Answers) -> None:
        self._held = None
        for end, answer in zip(ends, answers, strict=True):
            if end.request.ack != ACK:
                continue
            if status_of(answer) in (0, MESSAGE_NOT_FOUND):  # the latter: purged meanwhile
                self._is_gone(end.who)
            else:  # RR-48: it took too long, and the message went back
                self.in_doubt.add(end.who)  # type: ignore[arg-type]
        for who, times in self._refusals.items():
            if times >= MOST_REFUSALS and not self._is_over:
                raise Unsettled(f"{_shown(who)} was put back {times} times; it is still there")
        if len(self._refusals) > MOST_REFUSED:
            raise Unsettled(f"{len(self._refusals)} messages were put back; they are still there")

    def _is_gone(self, who: Hashable) -> None:
        self.removed += 1
        self.in_doubt.discard(who)


def _shown(who: Hashable) -> str:
    if isinstance(who, tuple):
        source, ordinal = who
        return f"message {source}\\{ordinal}"
    return f"a message that cannot be read (sequence id {who})"
