from __future__ import annotations

from bridge.adapters.reader.rows import data_of_read, row_of
from bridge.core.message_data import data_of, message_of
from bridge.protocol.rpc.reader.packets import Read
from bridge.wire.binary.extension import Subqueue
from tests.core.messages import plain

QUEUE = "private$\\orders"


def test_the_message_as_data() -> None:  # design 3.6
    message = plain(7, lookup_id=4 << 56 | 9, body=b"hi")
    data = data_of_read(Read(message=message), QUEUE)
    assert data == data_of(message, QUEUE)
    assert message_of(data) == message
    assert data.lookup_id == 4 << 56 | 9


def test_what_a_subqueue_has_counted() -> None:  # as the admin port of an appliance shows it
    read = Read(message=plain(), subqueue=Subqueue(aborts=2, moves=1, moved_at=5))
    headers = row_of(read, QUEUE)["headers"]
    assert headers["msmq.sub.aborts"] == "2"
    assert headers["msmq.sub.moves"] == "1"
    assert headers["msmq.sub.moved"] == "5"


def test_a_row() -> None:
    row = row_of(Read(message=plain(body=b"hi")), QUEUE)
    assert row["body"] == "aGk="
    assert row["locked"] is False
