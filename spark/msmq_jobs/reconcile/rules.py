"""What the verdicts are and how three ledgers give them. Design 3.5

One verdict per message id and queue. *sent* is what sources hold (journals, dead letters,
exports), *accepted* is what the audit says, *landed* is what a reader of committed records sees.

| Copies landed | What else is known | Verdict |
|---|---|---|
| two or more | anything | `duplicated` |
| one | never accepted; and not sent, or refused; and it is new | `in_flight` |
| one | the same, and the audit goes back that far | `unexpected` |
| one | neither sent nor accepted | `delivered_once` |
| one | another body or property than in a ledger that tells it | `altered` |
| one | a message behind it in its stream landed before it | `out_of_order` |
| one | | `delivered_once` |
| none | accepted; the topic is compacted, has aged, or the mapping hides ids | `delivered_once` |
| none | accepted or backfilled, and it is new | `in_flight` |
| none | accepted or backfilled | `missing` |
| none | the audit, or a dead letter, says it ran out of time | `expired` |
| none | the audit says it was refused | `rejected` |
| none | it lies in a dead-letter queue | `dead_lettered` |
| none | sent, or refused until its turn, and it is new | `in_flight` |
| none | sent, or refused until its turn | `missing` |

The first line that fits decides. A copy that a backfill brought is a copy like any other, and its
entry stands for one that was accepted. A resend that the audit calls `duplicate` is lawful and no
copy. Records are committed together with the entry that accepts them: one of a message that was
refused, and at no time accepted, is nobody's, even if a source has the message. The chunks of one
message are one copy when all of them are there. That a reader took a message from a retained queue
changes nothing: its record stays. Express messages may be lost by MSMQ's own rules (DM-2); they are
judged like others, and the reason says so.

*New*: not older than the in-flight window before the watermark, which is `--to` or else the newest
time in the audit and the topics. No clock is asked, so the same inputs give the same answer.

*Order*: the messages of a stream by sequence id and number, along the partition. One is out of
order if a higher one of its stream stands before it; what a backfill brought is a stream of its
own, in order among itself.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from bridge.model.classes import MessageClass

RULES: Final = 1  # to be raised with every change: verdicts that were kept are judged again
DELIVERED: Final = "delivered_once"
MISSING: Final = "missing"
DUPLICATED: Final = "duplicated"
OUT_OF_ORDER: Final = "out_of_order"
ALTERED: Final = "altered"
UNEXPECTED: Final = "unexpected"
EXPIRED: Final = "expired"
REJECTED: Final = "rejected"
DEAD_LETTERED: Final = "dead_lettered"
IN_FLIGHT: Final = "in_flight"

BREAKING: Final = (MISSING, DUPLICATED, OUT_OF_ORDER, ALTERED, UNEXPECTED)
LAWFUL: Final = (EXPIRED, REJECTED, DEAD_LETTERED, IN_FLIGHT)
VERDICTS: Final = (DELIVERED, *BREAKING, *LAWFUL)

EXPIRED_CLASSES: Final = (
    int(MessageClass.NACK_REACH_QUEUE_TIMEOUT),
    int(MessageClass.NACK_RECEIVE_TIMEOUT),
    int(MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER),
)
NEGATIVE: Final = 0x8000  # MS-MQMQ 2.2.18.1.6


class Kind(IntFlag):
    """What an event says of a message; those of all its events together decide."""

    SENT = 1  # a source has it
    DEAD = 2  # and calls it a dead letter
    LATE = 4  # one that ran out of time
    ACCEPTED = 8
    BACKFILLED = 16
    EXPIRED = 32
    REJECTED = 64
    AHEAD = 128  # refused until its turn: the sender tries again
    LANDED = 256
    SWAPPED = 512  # out of order
    PARTIAL = 1024  # some of its chunks
    EXPRESS = 2048


# The properties that sources and records both tell, by the header that has them.
PROPERTIES: Final = (
    *("msmq.body-type", "msmq.app", "msmq.extension", "msmq.priority", "msmq.delivery"),
    *("msmq.sent", "msmq.response", "msmq.admin"),
)
