"""The shell and the receiver of a Sender, played by hand."""

from __future__ import annotations

from itertools import count
from typing import Any

from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import EXPRESS, RECOVERABLE, Message, Transaction
from bridge.protocol.commands import Close
from bridge.protocol.events import Instant, Tick
from bridge.protocol.srmp.sender import Sender, Timing
from bridge.protocol.srmp.sending import (
    Answered,
    Command,
    Event,
    FinalReceipted,
    NoAnswer,
    Paused,
    Post,
    Resumed,
    Settled,
    StreamReceipted,
)
from bridge.wire.srmp.envelope import Stream
from bridge.wire.srmp.request import SrmpRequest, read_request
from bridge.wire.srmp.values import StreamId, make_stream_id

LOCAL = Guid.parse("32221eda-9376-46df-b6ed-783091123831")
TO = "http://machine2/msmq/private$/tSimpleQ"
RECEIPTS = "http://machine1/MSMQ/PRIVATE$/order_queue$"
EPOCH = 1_181_270_239  # 20070608T023719


def at(seconds: float) -> Instant:
    return Instant(seconds, EPOCH + seconds)


def message(ordinal: int, **fields: Any) -> Message:
    given = {"destination": f"DIRECT={TO}", "sent_time": EPOCH, "body": b"%d" % ordinal, **fields}
    return Message(source=LOCAL, ordinal=ordinal, **given)


def regular(ordinal: int, **fields: Any) -> Message:
    return message(ordinal, delivery=EXPRESS, **fields)


def step(ordinal: int, **fields: Any) -> Message:
    """Of a stream; where it stands there the sender decides."""
    place = Transaction(sequence_id=0, number=0)
    return message(ordinal, delivery=RECOVERABLE, priority=0, transaction=place, **fields)


def steps(last: int, **fields: Any) -> list[Message]:
    return [step(ordinal, **fields) for ordinal in range(1, last + 1)]


def request_of(post: Post) -> SrmpRequest:
    return read_request(post.content_type, post.body)


def stream_of(post: Post) -> Stream:
    stream = request_of(post).envelope.stream
    assert stream is not None
    return stream


class Shell:
    """Hands over what happens, and keeps what was asked for."""

    def __init__(
        self, *messages: Message, timing: Timing | None = None, stream_tag: str = "stream"
    ) -> None:
        self.sender = Sender(
            local=LOCAL,
            receipts_to=RECEIPTS,
            stream_ordinals=count(6).__next__,
            timing=timing,
            stream_tag=stream_tag,
        )
        self.posts: list[Post] = []
        self.settled: list[Settled] = []
        self.closed: list[Close] = []
        if messages:
            self.add(*messages)

    def add(self, *messages: Message, seconds: float = 0.0) -> None:
        self.sender.add(messages)
        self._take(self.sender.pump(at(seconds)))

    def tell(self, event: Event, seconds: float) -> None:
        self._take(self.sender.handle(event, at(seconds)))

    def _take(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Post():
                    self.posts.append(command)
                case Settled():
                    self.settled.append(command)
                case Close():
                    self.closed.append(command)

    # -- what can happen --------------------------------------------------------------------

    def answer(self, status: int, seconds: float = 0.0) -> None:
        self.tell(Answered(self.posts[-1].number, status), seconds)

    def no_answer(self, seconds: float = 0.0, why: str = "refused") -> None:
        self.tell(NoAnswer(self.posts[-1].number, why), seconds)

    def tick(self, seconds: float) -> None:
        self.tell(Tick(), seconds)

    def pause(self, seconds: float = 0.0) -> None:
        self.tell(Paused(), seconds)

    def resume(self, seconds: float = 0.0) -> None:
        self.tell(Resumed(), seconds)

    def receipt(self, last: int, seconds: float = 0.0, stream_id: StreamId | None = None) -> None:
        self.tell(StreamReceipted(stream_id or self.stream_id, last), seconds)

    def final(
        self, number: int, outcome: int = MessageClass.ACK_RECEIVE, seconds: float = 0.0
    ) -> None:
        positive = outcome == MessageClass.ACK_RECEIVE
        self.tell(FinalReceipted(self.stream_id, number, positive, outcome), seconds)

    # -- what came of it --------------------------------------------------------------------

    @property
    def stream_id(self) -> StreamId:
        """Of the last message that was sent, as the receiver repeats it."""
        return make_stream_id(LOCAL, stream_of(self.posts[-1]).id.number)

    @property
    def bodies(self) -> list[int]:
        """Which messages were sent, in order; the receiver sees no more of them."""
        return [int(request_of(post).body or b"0") for post in self.posts]

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """`current` and what `previous` says or its absence means."""
        return [(stream_of(post).current, stream_of(post).preceding) for post in self.posts]

    @property
    def fates(self) -> list[tuple[int, str]]:
        return [(told.message.ordinal, told.fate.value) for told in self.settled]
