"""Ten verdicts, each of one kind. Design 3.5"""

from msmq_jobs.reconcile import rules
from msmq_jobs.reconcile.rules import BREAKING, LAWFUL, VERDICTS, Kind


def test_the_ten_verdicts() -> None:
    assert len(VERDICTS) == len(set(VERDICTS)) == 10
    assert set(VERDICTS) == {"delivered_once", *BREAKING, *LAWFUL}


def test_the_table_names_every_verdict() -> None:
    assert all(f"`{name}`" in (rules.__doc__ or "") for name in VERDICTS)


def test_kinds_do_not_overlap() -> None:
    assert sum(Kind) == (1 << len(Kind)) - 1
