"""What became of a message; the only thing that lets an acknowledgment leave."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    FORWARDED = "forwarded"  # for another host, we only hand it on (SR-15)
    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out_of_order"
    EXPIRED = "expired"
    REJECTED = "rejected"
    RECEIVED = "received"  # a reader has taken it from its queue
    BACKFILLED = "backfilled"  # brought in from a journal, a dead-letter queue or an export
    REMOVED = "removed"  # from its queue, by no reader
    BUSY = "busy"  # not now: the session ends and the sender keeps the message


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """The last message of a stream that we took: sequence id and number. MS-MQQB 3.1.1.3.1"""

    sequence_id: int = 0
    number: int = 0


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """`message_class` is the reason of a refusal; `cursor` is where the stream stands now."""

    outcome: Outcome
    message_class: int = 0
    reason: str = ""
    cursor: Cursor | None = None


ACCEPTED: Final = Verdict(Outcome.ACCEPTED)
BUSY: Final = Verdict(Outcome.BUSY, 0, "machine-quota")
# The peer is no router, and the message is of another queue manager than the session's.
NOT_OF_SESSION: Final = Verdict(Outcome.BUSY, 0, "source-not-of-session")
# For another queue manager, and no route takes it.
OTHER_QUEUE_MANAGER: Final = Verdict(Outcome.BUSY, 0, "other-queue-manager")
TOO_MANY_STREAMS: Final = Verdict(Outcome.BUSY, 0, "too-many-streams")
TOPIC_UNAVAILABLE: Final = Verdict(Outcome.BUSY, 0, "topic-unavailable")
DUPLICATE: Final = Verdict(Outcome.DUPLICATE, 0, "id-seen")
# Of a message for another host (SR-15): stored; repeated meanwhile; taken there.
WAITING: Final = Verdict(Outcome.FORWARDED, 0, "waits-for-the-next-hop")
STILL_WAITING: Final = Verdict(Outcome.DUPLICATE, 0, "waits-for-the-next-hop")
HANDED_ON: Final = Verdict(Outcome.FORWARDED, 0, "taken-by-the-next-hop")
