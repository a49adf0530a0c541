from __future__ import annotations

from bridge.model.verdict import ACCEPTED, BUSY, DUPLICATE, Cursor, Outcome, Verdict


def test_a_stream_starts_at_zero() -> None:  # QB-80
    assert Cursor() == Cursor(0, 0)


def test_plain_messages_have_no_cursor() -> None:  # QB-70, QB-71
    for verdict in (ACCEPTED, BUSY, DUPLICATE):
        assert verdict.cursor is None
        assert verdict.message_class == 0  # no nack
    assert ACCEPTED.outcome is Outcome.ACCEPTED
    assert DUPLICATE.outcome is Outcome.DUPLICATE
    assert BUSY.outcome is Outcome.BUSY  # DM-11


def test_verdicts_are_values() -> None:
    one = Verdict(Outcome.REJECTED, 0x8000, "unknown-queue", Cursor(1, 2))
    assert one == Verdict(Outcome.REJECTED, 0x8000, "unknown-queue", Cursor(1, 2))
    assert one != Verdict(Outcome.REJECTED, 0x8000, "unknown-queue", Cursor(1, 3))


def test_outcomes_read_as_words() -> None:
    assert [str(outcome) for outcome in Outcome] == [
        "accepted",
        "forwarded",
        "duplicate",
        "out_of_order",
        "expired",
        "rejected",
        "received",
        "backfilled",
        "removed",
        "busy",
    ]
