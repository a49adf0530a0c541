"""What would become of a message: decided by a shard of its own, which is then thrown away.

Each message meets the appliance as if nothing had come before it: no id is known yet, and its
stream stands right before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.core.mapping_rules import Mappings
from bridge.core.ports import Claim, Record
from bridge.core.shard import Shard
from bridge.core.wanted import LARGE_BYTES
from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Cursor, Outcome, Verdict


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """What is not looked up in a cluster."""

    partitions: int = 4
    max_bytes: int = LARGE_BYTES

    @property
    def limits(self) -> TopicLimits:
        return TopicLimits(self.partitions, self.max_bytes)


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """The records that a message would become, or why it would become none."""

    message: Message
    verdict: Verdict
    queue: str = ""  # as the mapping found it
    records: tuple[Record, ...] = ()  # several: chunks
    journal: tuple[Record, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.verdict.outcome is Outcome.ACCEPTED

    @property
    def refused(self) -> str:
        """The class that the sender would be told; empty when it is accepted."""
        if self.accepted:
            return ""
        code = self.verdict.message_class
        return MessageClass(code).name if code else self.verdict.outcome.upper()


class Trial:
    """`local` is our GUID; without one a message is taken as addressed to us."""

    def __init__(
        self,
        mappings: Mappings,
        *,
        local: Guid | None = None,
        reserved: str = "",
        policy: Policy | None = None,
        assumed: Assumed | None = None,
    ) -> None:
        self._mappings, self._local, self._reserved = mappings, local, reserved
        self._policy = policy or Policy()
        self._assumed = assumed or Assumed()
        self._catalogues: dict[Guid, Catalogue] = {}

    def run(self, message: Message) -> Fate:
        catalogue = self._catalogue(self._local or message.destination_qm)
        shard = Shard(catalogue, self._policy)
        for topic in shard.unknown_topics([message]):
            catalogue.learn(topic, self._assumed.limits)
        if tx := message.transaction:
            key = message.source, message.destination
            shard.streams.advance(key, Cursor(tx.sequence_id, tx.previous))
        verdict = shard.admit([message])[0]
        _, unit = shard.take_unit(message.arrived_ms // 1000)
        queue = catalogue.find(message.destination)
        name = "" if queue is None else queue.name
        if verdict.outcome is not Outcome.ACCEPTED:
            return Fate(message=message, verdict=verdict, queue=name)
        assert queue is not None
        records, journal = _parted(unit.records, bool(queue.journal))
        return Fate(
            message=message,
            verdict=verdict,
            queue=name,
            records=records,
            journal=journal,
            claims=tuple(unit.claims),
        )

    def _catalogue(self, local: Guid) -> Catalogue:
        if local not in self._catalogues:
            limits = dict.fromkeys(self._mappings.topics(), self._assumed.limits)
            made = Catalogue.of(local, self._mappings, limits, self._reserved)
            self._catalogues[local] = made
        return self._catalogues[local]


def _parted(
    records: Sequence[Record], has_journal: bool
) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The journal's copies follow the records, one for each."""
    count = len(records) // 2 if has_journal else len(records)
    return tuple(records[:count]), tuple(records[count:])


def readable(data: bytes) -> str:
    """Text where it is text, else hex."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    if all(char.isprintable() or char in "\t\r\n" for char in text):
        return text
    return f"0x{data.hex()}"
