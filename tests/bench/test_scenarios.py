import pytest

from tests.bench.sample import sample_results
from tests.bench.scenarios import FLOODS, HALF_WINDOW, MAIN, NAMES, TARGETS, chosen, verdicts


def test_names_are_unique_and_chosen_by_a_part() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert chosen("") == list(NAMES)
    assert chosen("transactional/1KiB/64") == [MAIN.name, f"{MAIN.name}+1000idle"]
    assert chosen("latency") == ["latency/steady", "latency/bursts"]
    assert chosen("express/*/64") == ["bridge/express/1KiB/64", "bridge/express/64KiB/64"]
    assert chosen("nothing") == []


@pytest.mark.parametrize("quick", [False, True])
def test_counts_are_whole_half_windows(quick: bool) -> None:  # QB-45
    assert all(flood.count(quick) % HALF_WINDOW == 0 for flood in FLOODS)


def test_ten_sessions_and_a_thousand_send_as_much() -> None:
    by_name = {flood.name.rpartition("/")[2]: flood for flood in FLOODS[:6]}
    assert 10 * by_name["10"].count(False) == 1000 * by_name["1000"].count(False)


def test_targets_judge_in_their_direction() -> None:
    at_least, at_most = TARGETS[0], TARGETS[1]
    assert [at_least.judge(x) for x in (0.59, 0.6, 1.0)] == [False, True, True]
    assert [at_most.judge(x) for x in (1.0, 2.0, 2.1)] == [True, True, False]
    assert (at_least.wanted, at_most.wanted) == ("≥ 0.6", "≤ 2x")


def test_verdicts_of_what_was_measured() -> None:
    results = sample_results()
    assert len(verdicts(results)) == len(TARGETS)
    assert [v["figure"] for v in verdicts({"latency/steady": {"p99_ms": 100.1}})] == ["p99_ms"]
    assert not verdicts({"latency/steady": {"p99_ms": 100.1}})[0]["reached"]
    assert verdicts({}) == []
