from bridge.core.retained.effects import Change, Removal
from bridge.core.retained.fates import Fate, Fated, fates_of, read_fate
from bridge.core.retained.rows import RecordAt, aborted, moved
from bridge.model.classes import MessageClass
from tests.core.retained.world import NOW, ORDERS, RETRY, row


def test_a_removal_is_an_entry_of_its_own() -> None:
    """Design D5: a removal is a Kafka transaction too (the record stays in the topic)."""
    one = row(3)
    (fated,) = fates_of([Removal(one, MessageClass.NACK_Q_PURGED)])
    assert fated.key == "retained/data/0/3"
    assert fated.fate.is_gone
    assert fated.fate.reason == 0xC001
    assert fated.fate.applied_to(one) is None


def test_a_change_says_where_it_is_now() -> None:
    one = row(3, ORDERS)
    new = moved(aborted(one), queue=RETRY, sequential_id=77, unix=NOW)
    counted = aborted(new)
    first, second = fates_of([Change(one, new), Change(new, counted)])
    assert first.key == second.key == "retained/data/0/3"
    assert first.fate.applied_to(one) == new
    assert second.fate.applied_to(one) == counted  # whatever came before


def test_as_a_state_entry() -> None:
    odd = row(1, queue="private$\\half\ud800")
    for fate in (Fate(0x4000), Fate.of(odd)):
        fated = Fated(RecordAt("a.topic-name_1", 3, 1 << 40), fate)
        assert read_fate(fated.key, fate.encode()) == fated
    # An earlier version kept halves of surrogate pairs, which are U+FFFD now.
    assert Fate.of(odd).applied_to(row(1)) == row(1, queue="private$\\half\ufffd")
