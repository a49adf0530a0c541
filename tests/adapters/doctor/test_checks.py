from bridge.adapters.doctor.checks import CHECKS


def test_a_check_comes_after_what_it_needs() -> None:
    seen: set[str] = set()
    for check in CHECKS:
        assert set(check.needs) <= seen, check.id
        seen.add(check.id)
    assert len(seen) == len(CHECKS)
