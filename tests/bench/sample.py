"""Made-up results of every scenario, for the tests of table and chart."""

from typing import Any

from tests.bench.report import document
from tests.bench.scenarios import FLOODS, LATENCIES, MEMORY, RECONCILE, REMOTE, SPARK, START_UP


def sample_results() -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    for number, flood in enumerate(FLOODS, 1):
        results[flood.raw.name] = {"per_second": 40_000.0, "cpu_us": 12.5, "runs": []}
        results[flood.name] = {
            "per_second": 1000.0 * number,
            "of_raw": 0.025 * number,
            "cpu_us": 50.0,
            "cpu_of_raw": 4.0,
            "sender_cpu_us": 1.5,
            "sender_of_bridge": 0.03,
            "of_10_sessions": 1.1,
        }
        if flood.is_http:
            results[flood.name] |= {"p50_ms": 11.0, "p99_ms": 22.0, "max_ms": 33.0}
    for name in LATENCIES:
        results[name] = {"rate": 9000.0, "p50_ms": 15.0, "p99_ms": 99.0, "max_ms": 130.0}
    results[MEMORY] = {
        "sessions": 1000,
        "before_mib": 70.0,
        "after_mib": 77.0,
        "kib_per_session": 7.2,
    }
    results[START_UP] = {
        "streams": 100_000,
        "empty_s": 1.5,
        "full_s": 2.1,
        "plain_read_s": 0.3,
        "of_plain_read": 7.0,
        "added_of_plain_read": 2.0,
    }
    for name in REMOTE:
        results[name] = {
            "messages": 100_000,
            "seconds": 25.0,
            "per_second": 4000.0,
            "cpu_us": 150.0,
            "bridge_cpu_us": 200.0,
        }
    for name in SPARK:
        results[name] = {"messages": 50_000, "seconds": 25.0, "per_second": 2000.0}
    results["spark/backfill"]["of_sink"] = 0.25
    results[RECONCILE] = {"messages": 10_000_000, "join_s": 60.0, "seconds": 84.0, "of_join": 1.4}
    results[RECONCILE] |= {"counted_s": 61.0, "half_s": 41.0, "growth": 2.05, "peak_gib": 2.2}
    return results


def sample() -> dict[str, Any]:
    return document(sample_results(), quick=False, settings={}, seconds=1.0, others=0.5)
