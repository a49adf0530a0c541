"""No users and no minimum level: whoever reaches the port may read, unless a mapping says who."""

import pytest

from tests.outside.appliance import Settings
from tests.outside.rpc.conftest import OpenReader, Send, path
from tests.outside.rpc.reader import PEEK_CURRENT, Account, FaultError

pytestmark = pytest.mark.kafka
NOBODY = Account(level=1)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues={
            "kept1": {"mode": "retain"},
            "kept2": {"mode": "retain", "allow_read": ["ann"]},
            "passed": {"mode": "forward"},
            "journaled": {"mode": "retain", "journal": "{queue}.journal"},
        },
        listen={"rpc": 0},
        rpc={"minimum_level": "none"},
    )


def test_anonymous_readers(send: Send, open_reader: OpenReader) -> None:
    send("kept1", b"M1")
    reader = open_reader(NOBODY)
    assert reader.take(reader.open(path("kept1")), timeout=30_000) == b"M1"
    with pytest.raises(FaultError) as caught:
        reader.open(path("kept2"))
    assert caught.value.status == 0xC00E0025


def test_the_journal_has_what_was_received(send: Send, open_reader: OpenReader) -> None:
    """2.1 op 9: ACK drives the journal copy; a journal is read like any queue."""
    send("journaled", b"M1")
    reader = open_reader(NOBODY)
    journal = reader.open(path("journaled") + ";JOURNAL")
    assert reader.take(reader.open(path("journaled")), timeout=30_000) == b"M1"
    assert reader.start(journal, PEEK_CURRENT, timeout=30_000).body == b"M1"
    assert reader.take(journal) == b"M1"


def test_what_is_passed_on_is_not_for_readers(send: Send, open_reader: OpenReader) -> None:
    """A queue is drained to Kafka or served to readers, never both: MQ_ERROR_ACCESS_DENIED (MS-MQRR
    3.1.4.2), not a queue that stays empty for ever. Its journal is read like any other."""
    reader = open_reader(NOBODY)
    for access in (1, 0x20):
        with pytest.raises(FaultError) as caught:
            reader.open(path("passed"), access=access)
        assert caught.value.status == 0xC00E0025
    journal = reader.open(path("passed") + ";JOURNAL")
    assert reader.start(journal, PEEK_CURRENT).status == 0xC00E001B
    send("kept1", b"M2")
    kept = reader.open(path("kept1"))
    assert reader.take(kept, timeout=30_000) == b"M2"
