"""Bugs to plant in a running bridge, one for each fault that the checker has a name for.

They go where the real ones would: into what the bridge hands to Kafka, into the moment at which it
believes in a commit, into what it remembers after a restart, into its acks.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.chaos import launcher
from tests.chaos.checker import Kind
from tests.chaos.read_bugs import READ_BUGS

Produce = Callable[..., None]
EVERY: Final = 20  # records between two that are hurt


def plant(name: str) -> None:
    (BUGS | READ_BUGS)[name][1]()


def _data_id(kwargs: Mapping[str, Any]) -> bytes | None:
    """Of a record in a topic of the user's; the bridge's own have no such header."""
    headers = kwargs.get("headers") or {}
    pairs = headers.items() if isinstance(headers, dict) else headers
    found = [value for key, value in pairs if key == "msmq.id"]
    return found[0] if found else None


def _hurt_some(hurt: Callable[[Produce, tuple[Any, ...], dict[str, Any]], None]) -> None:
    """Every so many data records go through `hurt`, the others as they are."""
    real = launcher.Producer.produce
    seen = 0

    def produce(self: launcher.Producer, *args: Any, **kwargs: Any) -> None:
        nonlocal seen
        if _data_id(kwargs) is not None:
            seen += 1
            if seen % EVERY == 0:
                hurt(lambda *a, **k: real(self, *a, **k), args, kwargs)
                return
        real(self, *args, **kwargs)

    launcher.Producer.produce = produce  # type: ignore[method-assign]


def _drop() -> None:
    _hurt_some(lambda produce, args, kwargs: None)


def _repeat() -> None:
    def twice(produce: Produce, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        produce(*args, **kwargs)
        produce(*args, **kwargs)

    _hurt_some(twice)


def _flip_a_bit() -> None:
    def flip(produce: Produce, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        topic, value, *rest = args
        middle = len(value) // 2
        changed = value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
        produce(topic, changed, *rest, **kwargs)

    _hurt_some(flip)


def _invent() -> None:
    def invent(produce: Produce, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        produce(*args, **kwargs)
        headers = dict(kwargs["headers"])
        guid, _, ordinal = headers["msmq.id"].partition(b"\\")
        headers["msmq.id"] = guid + b"\\%d" % (int(ordinal) + 1_000_000)
        produce(*args, **{**kwargs, "headers": headers})

    _hurt_some(invent)


def _swap() -> None:
    """One record goes after the next one of its partition."""
    real = launcher.Producer.produce
    commit = launcher.Producer.commit_transaction
    held: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    seen = 0

    def produce(self: launcher.Producer, *args: Any, **kwargs: Any) -> None:
        nonlocal seen
        is_data = _data_id(kwargs) is not None
        seen += is_data
        if is_data and not held and seen % EVERY == 0:
            held.append((args, kwargs))
            return
        real(self, *args, **kwargs)
        if held and held[0][0][0] == args[0] and held[0][0][3] == args[3]:
            flush(self)

    def flush(self: launcher.Producer) -> None:
        while held:
            args, kwargs = held.pop()
            real(self, *args, **kwargs)

    def commit_transaction(self: launcher.Producer, *args: Any) -> None:
        flush(self)
        commit(self, *args)

    launcher.Producer.produce = produce  # type: ignore[method-assign]
    launcher.Producer.commit_transaction = commit_transaction  # type: ignore[method-assign]


def _ack_before_commit() -> None:
    """A verdict is told when it is made, not when it is in Kafka."""
    from bridge.adapters.intake import OnDecided, ShardPump, Submission
    from bridge.core.shard import Shard
    from bridge.core.waiting_streams import Turn
    from bridge.model.guid import NULL_GUID, Guid
    from bridge.model.message import Message
    from bridge.model.verdict import Verdict

    submit, admit = ShardPump.submit, Shard.admit
    waiting: dict[int, OnDecided] = {}

    def hasty_submit(
        self: ShardPump,
        messages: Sequence[Message],
        on_decided: OnDecided,
        via: Guid = NULL_GUID,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> Submission:
        waiting[id(messages)] = on_decided
        return submit(self, messages, lambda verdicts: None, via, is_routed, turn)

    def hasty_admit(
        self: Shard,
        messages: Sequence[Message],
        via: Guid = NULL_GUID,
        *,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> list[Verdict]:
        verdicts = admit(self, messages, via, is_routed=is_routed, turn=turn)
        if tell := waiting.pop(id(messages), None):
            asyncio.get_running_loop().call_soon(tell, verdicts)
        return verdicts

    ShardPump.submit = hasty_submit  # type: ignore[method-assign]
    Shard.admit = hasty_admit  # type: ignore[method-assign]


def _forget_after_restart() -> None:
    """What was seen before the restart is not seen again as a duplicate."""
    from bridge.core.ports import Snapshot
    from bridge.core.shard import Shard
    from bridge.core.streams import PREFIX

    restore = Shard.restore

    def forgetful(self: Shard, snapshot: Snapshot, now_s: int = 0) -> None:
        state = {key: value for key, value in snapshot.state.items() if not key.startswith(PREFIX)}
        restore(self, Snapshot(state, []), now_s)

    Shard.restore = forgetful  # type: ignore[method-assign]


def _no_order_acks() -> None:
    """Session acks leave, order acks do not; so no transactional message is ever done."""
    from bridge.protocol.binary.order_acks import OrderAcks

    OrderAcks.next_wakeup = lambda self: None  # type: ignore[method-assign]
    OrderAcks.due = lambda self, now: iter(())  # type: ignore[method-assign]


def _receipt_before_commit() -> None:
    """The sender of a stream hears of a message when it is decided, not when it is in Kafka."""
    from bridge.adapters.intake import ShardPump

    decide = ShardPump._decide

    def hasty_decide(self: ShardPump) -> None:
        decide(self)
        self.on_due(list(self.shard._due), self)

    ShardPump._decide = hasty_decide  # type: ignore[method-assign]


def _stream_row_apart() -> None:
    """Where a stream over HTTP stands is committed with the next unit, not with its message."""
    from bridge.core.posted import PostedStreams

    take = PostedStreams.take_changes
    held: dict[PostedStreams, dict[str, bytes | None]] = {}

    def late_changes(self: PostedStreams) -> dict[str, bytes | None]:
        changes = held.get(self, {})
        held[self] = take(self)
        return changes

    setattr(PostedStreams, "take_changes", late_changes)  # noqa: B010 - it is inherited


def _no_receipts() -> None:
    """200 for every message of a stream, and not a word of it afterwards."""
    from bridge.adapters.postman import Postman

    Postman.due = lambda self, dues, owner: None  # type: ignore[method-assign]


def _repeat_express() -> None:
    real = launcher.Producer.produce

    def produce(self: launcher.Producer, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        headers = dict(kwargs.get("headers") or {})
        if "msmq.id" in headers and "msmq.delivery" not in headers:  # the default has no header
            real(self, *args, **kwargs)

    launcher.Producer.produce = produce  # type: ignore[method-assign]


def _ack_when_fenced() -> None:
    """Whoever has taken the shard over, it goes on as if it were its own."""
    from bridge.adapters.kafka.lease import Lease
    from bridge.adapters.kafka.sink import KafkaShardSink
    from bridge.core.ports import Unit
    from bridge.model.errors import SinkUnavailable

    publish = KafkaShardSink.publish

    async def careless(self: KafkaShardSink, unit: Unit, *, traced: bool = False) -> None:
        try:
            if not self._fenced:
                await publish(self, unit, traced=traced)
        except SinkUnavailable:
            if not self._fenced:
                raise

    KafkaShardSink.publish = careless  # type: ignore[method-assign]
    Lease._on_lost = lambda self: None  # type: ignore[method-assign]


def _move_before_access() -> None:
    """The place of a stream moves although its message is refused: whoever uses a sender's name
    makes its next messages look like duplicates."""
    from bridge.core.shard import Shard
    from bridge.core.streams import Place, place
    from bridge.model.message import Message
    from bridge.model.verdict import Cursor, Outcome, Verdict

    decide = Shard._decide

    def hasty_decide(self: Shard, message: Message) -> Verdict:
        tx, key = message.transaction, (message.source, message.destination)
        is_next = (
            tx is not None
            and message.srmp is None
            and place(self.streams.get(key), tx) is Place.NEXT
        )
        verdict = decide(self, message)
        if is_next and tx is not None and verdict.outcome is not Outcome.ACCEPTED:
            self.streams.advance(key, Cursor(tx.sequence_id, tx.number))
        return verdict

    Shard._decide = hasty_decide  # type: ignore[method-assign]


BUGS: Final[dict[str, tuple[Kind, Callable[[], None]]]] = {
    "drop": (Kind.LOST_ACKED, _drop),
    "repeat": (Kind.DUPLICATE, _repeat),
    "swap": (Kind.REORDER, _swap),
    "flip-a-bit": (Kind.ALTERED, _flip_a_bit),
    "invent": (Kind.PHANTOM, _invent),
    "ack-before-commit": (Kind.ACK_BEFORE_DURABLE, _ack_before_commit),
    "forget-after-restart": (Kind.DUPLICATE, _forget_after_restart),
    "no-order-acks": (Kind.NEVER_ACKED, _no_order_acks),
    "repeat-express": (Kind.EXPRESS_TWICE, _repeat_express),
    "receipt-before-commit": (Kind.ACK_BEFORE_DURABLE, _receipt_before_commit),
    "stream-row-apart": (Kind.DUPLICATE, _stream_row_apart),
    "ack-when-fenced": (Kind.LOST_ACKED, _ack_when_fenced),
    "no-receipts": (Kind.NEVER_ACKED, _no_receipts),
    "move-before-access": (Kind.LOST_ACKED, _move_before_access),
}
