"""By the headers, whatever a mapping calls them; by the mark where they are left out."""

from typing import Any

import pytest

from msmq_jobs.backfill.identity import identity_of

ID, QUEUE = b"AA\\\\1".replace(b"\\\\", b"\\"), b"private$\\Q"
KEY = ("aa\\1", "private$\\q")


class Record:
    def __init__(self, headers: list[tuple[str, bytes | None]] | None) -> None:
        self._headers = headers

    def headers(self) -> Any:
        return self._headers


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (None, None),
        ([("msmq.id", ID)], None),
        ([("msmq.id", ID), ("msmq.queue", QUEUE)], (KEY, "")),
        ([("other", ID), ("msmq.queue", QUEUE)], (KEY, "")),
        (
            [
                ("msmq.id", ID),
                ("msmq.queue", QUEUE),
                ("msmq.backfill", b'{"run":"r","source":"s"}'),
            ],
            (KEY, "r"),
        ),
        (
            [
                (
                    "msmq.backfill",
                    b'{"run":"r","source":"s","id":"aa\\\\1","queue":"private$\\\\q"}',
                )
            ],
            (KEY, "r"),
        ),
        ([("msmq.id", None), ("msmq.queue", b"\xff"), ("msmq.backfill", b"no JSON")], None),
    ],
)
def test_identity(headers: Any, found: Any) -> None:
    record: Any = Record(headers)
    assert identity_of(record, ("msmq.id", "other"), ("msmq.queue",)) == found


def test_a_topic_with_one_queue_tells_it() -> None:
    record: Any = Record([("msmq.id", ID)])
    assert identity_of(record, ("msmq.id",), ("msmq.queue",)) is None
    assert identity_of(record, ("msmq.id",), ("msmq.queue",), QUEUE.decode()) == (KEY, "")
    other: Any = Record([("msmq.id", ID), ("queue", b"a header of the user's own")])
    assert identity_of(other, ("msmq.id",), ("queue",), QUEUE.decode()) == (KEY, "")
