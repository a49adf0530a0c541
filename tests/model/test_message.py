from __future__ import annotations

import msgspec
import pytest

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    INFINITE,
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    NACK_ARRIVAL,
    NACK_RECEIVE,
    Message,
    Transaction,
)

SOURCE = Guid.parse("11111111-2222-3333-4444-555555555555")
MESSAGE = Message(source=SOURCE, ordinal=42, destination="DIRECT=OS:a\\private$\\q")


def test_the_id_is_guid_and_decimal() -> None:  # data-model.md section 4: Identifier
    assert MESSAGE.id == "11111111-2222-3333-4444-555555555555\\42"


def test_defaults_are_those_of_msmq() -> None:  # data-model.md section 4
    assert MESSAGE.priority == 3
    assert MESSAGE.delivery == 0
    assert MESSAGE.time_to_reach_queue == 345_600 == 0x54600
    assert MESSAGE.time_to_be_received == INFINITE == 0xFFFFFFFF
    assert MESSAGE.hash_algorithm == 0x8004
    assert MESSAGE.encryption_algorithm == 0x6801
    assert MESSAGE.correlation_id == bytes(20)
    assert MESSAGE.destination_qm == NULL_GUID
    assert MESSAGE.transaction is None
    assert MESSAGE.authenticated == 0  # QB-131


def test_flag_values() -> None:  # MS-MQMQ 2.2.19.3; PROPID_M_JOURNAL
    assert (ACK_ARRIVAL, ACK_RECEIVE, NACK_ARRIVAL, NACK_RECEIVE) == (1, 2, 4, 8)
    assert (JOURNAL_NEGATIVE, JOURNAL_POSITIVE) == (1, 2)


def test_messages_are_values() -> None:
    same = Message(source=SOURCE, ordinal=42, destination="DIRECT=OS:a\\private$\\q")
    assert same == MESSAGE
    assert hash(same) == hash(MESSAGE)
    assert msgspec.structs.replace(MESSAGE, label="x") != MESSAGE
    with pytest.raises(AttributeError):
        MESSAGE.label = "x"  # type: ignore[misc]


def test_a_transaction_that_opens_a_stream() -> None:  # MS-MQMQ 2.2.20.5: 0 = none before it
    tx = Transaction(sequence_id=0x60000000_00000001, number=1)
    assert (tx.previous, tx.first, tx.last, tx.final_ack) == (0, False, False, False)
    assert tx.connector_qm is None
