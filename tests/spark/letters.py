"""Messages as data for the tests of the jobs, and exports of them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath, Topic
from bridge.core.message_data import MessageData, as_json

SENDER = "11111111-2222-3333-4444-555555555555"
SEQUENCE = 2**63 + 5  # more than a signed number holds
ORDERS, PLAIN = "private$\\orders", "private$\\plain"


def letter(number: int, queue: str = PLAIN, source: str = SENDER, **fields: Any) -> MessageData:
    """Half a minute between them; those for `orders` are a stream."""
    known: dict[str, Any] = {
        "label": f"letter {number}",
        "body": b"body %d" % number,
        "sent_time": f"2026-01-31T12:{number % 3600 // 60:02}:{number % 60:02}Z",
        "arrived_time": "2026-01-31T13:00:00.250Z",
        "headers": {"msmq.dest": f"DIRECT=OS:old01\\{queue}"},
    }
    if queue == ORDERS:
        known |= {"tx_sequence_id": SEQUENCE, "tx_sequence_number": number, "priority": 0}
    return MessageData(message_id=f"{source}\\{number}", queue=queue, **{**known, **fields})


def write_lines(path: Path, messages: Iterable[MessageData], rest: bytes = b"") -> Path:
    """As `queue export` does; `rest` is what a crash may leave behind it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(as_json(data)).encode() + b"\n" for data in messages]
    path.write_bytes(b"".join(lines) + rest)
    return path


def mappings(**settings: Any) -> Mappings:
    """The two queues; `settings` count for both."""
    return Mappings(
        queues=(
            QueueMapping(
                queue=QueuePath(ORDERS), topic=Topic("orders"), transactional=True, **settings
            ),
            QueueMapping(queue=QueuePath(PLAIN), topic=Topic("plain"), **settings),
        )
    )
