from __future__ import annotations

from bridge.model.classes import MessageClass

# MS-MQMQ 2.2.18.1.6, row by row
TABLE = {
    "NORMAL": 0x0000,
    "REPORT": 0x0001,
    "ACK_REACH_QUEUE": 0x0002,
    "ORDER_ACK": 0x00FF,
    "ACK_RECEIVE": 0x4000,
    "NACK_BAD_DST_Q": 0x8000,
    "NACK_DELETED": 0x8001,
    "NACK_REACH_QUEUE_TIMEOUT": 0x8002,
    "NACK_Q_EXCEED_QUOTA": 0x8003,
    "NACK_ACCESS_DENIED": 0x8004,
    "NACK_HOP_COUNT_EXCEEDED": 0x8005,
    "NACK_BAD_SIGNATURE": 0x8006,
    "NACK_BAD_ENCRYPTION": 0x8007,
    "NACK_NOT_TRANSACTIONAL_Q": 0x8009,
    "NACK_NOT_TRANSACTIONAL_MSG": 0x800A,
    "NACK_UNSUPPORTED_CRYPTO_PROVIDER": 0x800B,
    "NACK_Q_DELETED": 0xC000,
    "NACK_Q_PURGED": 0xC001,
    "NACK_RECEIVE_TIMEOUT": 0xC002,
    "NACK_RECEIVE_REJECTED": 0xC004,
}


def test_every_class_of_the_table() -> None:
    assert {name: MessageClass[name].value for name in TABLE} == TABLE


def test_the_names_tell_the_bits() -> None:  # 0x8000 = negative, 0x4000 = receive stage
    for member in MessageClass:
        assert bool(member & 0x8000) == member.name.startswith("NACK_")


def test_all_lie_in_the_mask_of_custom_classes() -> None:
    assert all(member & ~0xE1FF == 0 for member in MessageClass)
