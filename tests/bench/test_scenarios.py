import pytest

from tests.bench.sample import sample_results
from tests.bench.scenarios import (
    FLOODS,
    HALF_WINDOW,
    MAIN,
    NAMES,
    SMALL,
    TARGETS,
    called,
    chosen,
    verdicts,
)


def test_names_are_unique_and_chosen_by_a_part() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert chosen("") == list(NAMES)
    assert chosen("transactional/1KiB/64") == [MAIN.name, f"{MAIN.name}+1000idle"]
    assert chosen("latency") == ["latency/steady", "latency/bursts"]
    assert chosen("express/*/64") == ["bridge/express/1KiB/64", "bridge/express/64KiB/64"]
    assert chosen("srmp") == [
        *("bridge/srmp-durable/1KiB/1", "bridge/srmp-durable/1KiB/8", "bridge/srmp-stream/1KiB/8")
    ]
    assert chosen("remote") == ["remote/scan", "remote/receive", "remote/consume"]
    assert chosen("spark") == ["spark/backfill", "spark/sink"]
    assert chosen("nothing") == []


def test_who_sends() -> None:
    assert [flood.who for flood in FLOODS if flood.size == SMALL][:4] == [
        *("1 session", "8 sessions", "64 sessions", "64 sessions and 1,000 idle")
    ]
    assert [flood.who for flood in FLOODS if flood.is_http] == [
        *("1 connection", "8 connections", "8 connections")
    ]
    assert [called(kind) for kind in ("express", "srmp-stream")] == ["express", "SRMP stream"]


def test_a_stream_goes_to_a_transactional_queue() -> None:  # SR-17
    by_kind = {flood.kind: flood.queue for flood in FLOODS}
    assert by_kind["srmp-stream"] == by_kind["transactional"] == "private$\\orders"
    assert by_kind["srmp-durable"] == by_kind["express"] == "private$\\plain"


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
