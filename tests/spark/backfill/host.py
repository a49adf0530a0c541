"""An appliance as the old MSMQ host: its journals and dead-letter queues are filled by senders.

Whatever a queue with a journal takes is copied to its `;journal`. Plain messages that ask for it
and are too late (8002) or too large for their queue (8003) lie in `;deadletter` (DM-12). What a
queue manager has in `;deadxact` are transactional messages of its own (data-model.md 2.14), and an
appliance sends none. So those of a stream that came over the wire are put there as the store has
them: the records of the stream with the marks of that queue.
"""

import random
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.outside.appliance import HOST, Appliance, Settings, queue
from tests.outside.rawmsmq import USER_JN, Message, Tx, direct
from tests.outside.rawsender import RawSender, soon
from tests.outside.records import Record, identity, read_topic, text
from tests.outside.retained.clerk import DEADLETTER, DEADXACT, Clerk, path
from tests.support.kafka import transactional_producer, unique
from tests.support.waiting import eventually

USER, PASSWORD = "ann", "secret"
SENDERS = [UUID(f"{n:08x}-2222-3333-4444-555555555555") for n in range(1, 6)]
SEQUENCE = 0x65000000_00000300
LATE, TOO_LARGE, DENIED = 0x8002, 0x8003, 0x8004
# Where a message ends on the host, by the queue that it was sent to; in tenths of all.
SHARES: Mapping[str, int] = {"orders": 4, "plain": 3, "small": 1, "late": 1, "orders2": 1}
STREAMS = ("orders", "orders2")
OUTCOMES = {"small": TOO_LARGE, "late": LATE, "orders2": DENIED}
LOOKUP = 7 << 56 | 1 << 50  # RR-55: transactional; further than the appliance will count
FILL_S = 1800.0  # how fast a machine is says nothing about what it runs


class Letters:
    """What one sender sends: its queues take turns, their properties too."""

    def __init__(self, source: UUID, seed: int) -> None:
        self.source, self._rng = source, random.Random(seed)
        self._ids = count(1)
        self._numbers = dict.fromkeys(STREAMS, 0)

    def make(self, name: str) -> Message:
        number, rng = next(self._ids), self._rng
        known: dict[str, Any] = {
            "body": b"%d " % number + rng.randbytes(rng.randrange(300)),
            "label": f"letter {number} \u00e4\u4e2d"[: rng.randrange(1, 14)],
            "body_type": rng.choice((0, 8, 0x1011)),
            "app": rng.randrange(1 << 32),
            "correlation": rng.choice((bytes(20), rng.randbytes(20))),
            "extension": rng.randbytes(rng.randrange(9)),
            "priority": rng.randrange(8),
            "response": direct(f"OS:sender\\private$\\answers{number % 7}"),
            "recoverable": True,
        }
        if name in STREAMS:
            known["tx"] = self._step(name)
        if name == "small":
            known |= {"body": rng.randbytes(1100), "journal": USER_JN}
        if name == "late":
            known |= {"ttbr": 5, "sent_time": int(time.time()) - 60, "journal": USER_JN}
        target = queue(name)
        return Message(source=self.source, message_id=number, destination=target, **known)

    def _step(self, name: str) -> Tx:
        self._numbers[name] += 1
        number = self._numbers[name]
        return Tx(sequence_id=SEQUENCE, number=number, previous=number - 1)


class Host:
    """Runs until it is left; `sent` are the messages by the queue that they were sent to."""

    def __init__(self, folder: Path, bootstrap: str, messages: int) -> None:
        prefix = unique("host")
        folder.mkdir(parents=True)
        (folder / "password").write_text(f"{PASSWORD}\n")
        self.password_file = folder / "password"
        journals = {name: f"{prefix}-{name}.journal" for name in ("orders", "plain")}
        settings = Settings(
            queues={
                "orders": {"transactional": True, "journal": journals["orders"]},
                "plain": {"journal": journals["plain"]},
                "small": {"mode": "retain", "quota_kb": 1},
                "late": {},
            },
            listen={"rpc": 0},
            users={USER: PASSWORD},
            defaults={"allow_read": ["*"]},
        )
        self._appliance = Appliance(folder, bootstrap, prefix, settings=settings)
        self._messages = messages
        self.sent: dict[str, list[Message]] = {name: [] for name in SHARES}

    def __enter__(self) -> "Host":
        self._appliance.start()
        try:
            self._fill()
        except BaseException:
            self._appliance.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._appliance.terminate()

    @property
    def sources(self) -> list[str]:
        host, port = self._appliance.listeners["rpc"]
        where = f"msmq://{USER}@{host}:{port}"
        queues = ("private$/orders;journal", "private$/plain;journal", ";deadletter", ";deadxact")
        return [f"{where}/{name}" for name in queues]

    def _fill(self) -> None:
        each = self._messages // len(SENDERS)
        with ThreadPoolExecutor(len(SENDERS)) as pool:
            for sent in pool.map(self._send, SENDERS, [each] * len(SENDERS)):
                for name, messages in sent.items():
                    self.sent[name] += messages
        self._bury(self.sent["orders2"])
        clerk = Clerk(self._appliance)
        wanted = {
            f"{path('orders')};journal": len(self.sent["orders"]),
            f"{path('plain')};journal": len(self.sent["plain"]),
            DEADLETTER: len(self.sent["small"]) + len(self.sent["late"]),
            DEADXACT: len(self.sent["orders2"]),
        }
        eventually(lambda: {name: clerk.holds(name) for name in wanted} == wanted, FILL_S)

    def _send(self, source: UUID, messages: int) -> dict[str, list[Message]]:
        letters, sent = Letters(source, source.int), dict[str, list[Message]]()
        for name, share in SHARES.items():
            sent[name] = [letters.make(name) for _ in range(messages * share // 10)]
        sender = RawSender(self._appliance.binary_address, source)
        sender.connect().handshake()
        mixed = [message for some in zip_longest_chunks(sent.values()) for message in some]
        sender.send_all_windowed(mixed, soon(FILL_S))
        sender.close()
        return sent

    def _bury(self, sent: Sequence[Message]) -> None:
        """Into `;deadxact`, in the order of their streams."""
        appliance = self._appliance
        records = read_topic(appliance.bootstrap, appliance.topic("orders2"))
        assert len(records) == len(sent)
        producer = transactional_producer(appliance.bootstrap, unique("undertaker"))
        producer.begin_transaction()
        held = f"{appliance.guid}/{DEADXACT}".encode()
        for number, record in enumerate(records):
            headers: Any = {
                **record.header,
                "msmq.held": held,
                "msmq.lookup": b"%d" % (LOOKUP + number),
                "msmq.outcome": b"%d" % DENIED,
            }
            producer.produce(f"{appliance.prefix}.deadletter", record.value, headers=headers)
            producer.poll(0)
        producer.commit_transaction(60)


def zip_longest_chunks(queues: Any, size: int = 16) -> Iterator[list[Message]]:
    """The queues take turns, each in its order."""
    rest = [list(messages) for messages in queues]
    while any(rest):
        for messages in rest:
            yield messages[:size]
            del messages[:size]


# -- what a record of a message must have -------------------------------------------------------

# Not a property of the message, or not of its copy (data-model.md, Parity).
FREE = frozenset(
    f"msmq.{name}"
    for name in ("v", "peer", "queue", "transport", "wire", "arrived", "ttrq", "class", "lookup")
)


def expected_headers(message: Message, name: str) -> dict[str, bytes]:
    """Section 4 of data-model.md; nothing for a property at its default."""
    response = struct.unpack_from("<H", message.response.data)[0]
    headers = {
        "msmq.id": identity(message.source, message.message_id),
        "msmq.source": text(message.source),
        "msmq.dest": f"DIRECT=OS:{HOST}\\private$\\{name}".encode(),
        "msmq.sent": b"%d" % message.sent_time,
        "msmq.delivery": b"1",
        "msmq.response": b"DIRECT="
        + message.response.data[2:response].decode("utf-16-le").encode(),
        "msmq.label": message.label.encode(),
        "msmq.extension": message.extension,
    }
    numbers = {
        "body-type": (message.body_type, 0),
        "app": (message.app, 0),
        "priority": (0 if message.tx else message.priority, 3),
        "journal": (1 if message.journal else 0, 0),
        "ttbr": (message.ttbr, 0xFFFFFFFF),
        "outcome": (OUTCOMES.get(name, 0), 0),
    }
    headers |= {f"msmq.{key}": b"%d" % v for key, (v, default) in numbers.items() if v != default}
    if message.ttbr != 0xFFFFFFFF:
        headers["msmq.expires"] = b"%d" % ((message.sent_time + message.ttbr) * 1000)
    if message.correlation != bytes(20):
        headers["msmq.correlation"] = message.correlation
    if (tx := message.tx) is not None:
        headers |= {
            "msmq.tx.seqid": b"%d" % tx.sequence_id,
            "msmq.tx.seq": b"%d" % tx.number,
            "msmq.tx.prev": b"%d" % tx.previous if tx.previous else b"",
            "msmq.tx.id": identity(message.source, tx.index),
            "msmq.tx.first": b"1",
            "msmq.tx.last": b"1",
        }
    return {key: value for key, value in headers.items() if value}


def properties_of(record: Record) -> dict[str, bytes]:
    """Those that must be equal, and the mark is there."""
    headers = dict(record.header)
    assert headers.pop("msmq.backfill", b"").startswith(b'{"run":'), headers
    return {name: value for name, value in headers.items() if name not in FREE}
