"""The order of checks, their needs and their deadlines."""

import threading
from collections.abc import Iterable

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.adapters.doctor.finding import Finding, Result, fail, ok, skip
from bridge.adapters.doctor.visit import Check, Visit, examine, side_by_side, within
from bridge.model.errors import ConfigError, Unavailable


def told(*checks: Check, whole_s: float = 5.0) -> list[tuple[str, str]]:
    return [(f.id, f.result.value) for f in examine(Visit(None), checks, whole_s)]


def says(finding: Finding, name: str = "a", needs: tuple[str, ...] = ()) -> Check:
    return Check(id=name, run=lambda _: [finding], needs=needs)


def raises(error: Exception) -> Finding:
    def run(_: Visit) -> Iterable[Finding]:
        yield ok("not told: the check did not end")
        raise error

    (finding,) = examine(Visit(None), [Check(id="a", run=run)])
    return finding


def test_what_needs_a_failed_one_is_skipped() -> None:
    assert told(
        says(fail("bad", mend="mend it")),
        says(ok("well"), "b", needs=("a",)),
        says(ok("well"), "c", needs=("b",)),
        says(ok("well"), "d"),
    ) == [("a", "fail"), ("b", "skip"), ("c", "skip"), ("d", "ok")]


def test_a_skipped_one_is_missing_too_but_a_part_of_one_is_not() -> None:
    both = Check(id="a", run=lambda _: [skip("off"), ok("well")])
    assert told(both, says(ok("well"), "b", needs=("a",)))[-1] == ("b", "ok")
    assert told(says(skip("off")), says(ok("well"), "b", needs=("a",)))[-1] == ("b", "skip")


def test_errors_become_findings_with_their_mend() -> None:
    finding = raises(ConfigError("is wrong", where="bridge.yaml:1:2", mend="write it right"))
    assert (finding.found, finding.mend) == ("bridge.yaml:1:2: is wrong", "write it right")
    finding = raises(Unavailable("it is away; start it"))
    assert (finding.found, finding.mend) == ("it is away", "start it")
    finding = raises(KafkaException(KafkaError(KafkaError.NOT_COORDINATOR)))
    assert finding.result is Result.FAIL
    assert "coordinator" in finding.found
    with pytest.raises(ZeroDivisionError):  # a bug of ours stays one
        raises(ZeroDivisionError())


def test_a_check_that_hangs_does_not_hold_up_the_rest() -> None:
    never = threading.Event()

    def hang(_: Visit) -> Iterable[Finding]:
        never.wait()
        return []

    checks = (
        Check(id="slow", run=hang, seconds=0.05),
        says(ok("well"), "b", needs=("slow",)),
        says(ok("well"), "c"),
    )
    assert told(*checks) == [("slow", "fail"), ("b", "skip"), ("c", "ok")]
    whole = Check(id="slow", run=hang, seconds=60)
    assert told(whole, says(ok("well"), "c"), whole_s=0.05) == [("slow", "fail"), ("c", "skip")]
    never.set()


def test_within_passes_on_what_comes() -> None:
    assert within(1.0, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        within(1.0, lambda: 1 // 0)


def test_side_by_side_keeps_the_order() -> None:
    never = threading.Event()

    def slow() -> str:
        never.wait()
        return "never"

    answers = side_by_side(0.1, [lambda: "a", slow, lambda: "c"], late=lambda n: f"late {n}")
    assert answers[:2] == ["a", "late 1"]
    assert answers[2] in ("c", "late 2")
    never.set()
