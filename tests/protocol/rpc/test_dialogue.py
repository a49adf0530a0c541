"""What a connection may have by default."""

from bridge.protocol.rpc.dialogue import Limits, Withdraw


def test_default_limits() -> None:  # RR-7: 4 MiB
    limits = Limits()
    assert limits.stub == 0x400000
    assert limits.held >= limits.stub  # the largest request fits
    assert limits.calls >= 1000


def test_a_withdrawn_call_may_still_be_waited_for() -> None:  # RR-13: CO_CANCEL, not ORPHANED
    assert Withdraw(1) == Withdraw(1, orphaned=False)
