"""Metrics as Prometheus reads them, and the lines that go with them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge.adapters.telemetry import (
    MAX_LABEL_VALUES,
    MAX_QUEUES,
    MAX_WARNED,
    SessionFacts,
    Telemetry,
)


def samples(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    body, content_type = telemetry.exposition()
    assert content_type.startswith("text/plain")
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_everything_that_is_counted() -> None:
    telemetry = Telemetry()
    telemetry.session_opened()
    telemetry.session_opened()
    telemetry.session_closed("peer hung up")
    telemetry.message("accepted", count=3)
    telemetry.message("accepted", count=2, transport="http")
    telemetry.message("rejected", "NACK_BAD_DST_Q")
    telemetry.records("orders", 3)
    telemetry.transaction("committed", messages=4, seconds=0.02)
    telemetry.bytes_received(1000)
    telemetry.refusal("malformed")
    telemetry.rpc_call("answered")
    telemetry.rpc_connections.set(3)
    telemetry.forward("taken")
    telemetry.waiting_forwards.set(4)
    telemetry.waiting_forward_bytes.set(5000)
    telemetry.streams.set(7)
    telemetry.pending_messages.set(2)
    telemetry.kafka_up.set(1)
    telemetry.ack_seconds["binary"].observe(0.3)
    found = samples(telemetry)
    expected = {
        ("msmq_bridge_sessions_opened_total",): 2,
        ("msmq_bridge_sessions",): 1,
        ("msmq_bridge_sessions_closed_total", "peer hung up"): 1,
        ("msmq_bridge_messages_total", "", "binary", "accepted"): 3,
        ("msmq_bridge_messages_total", "", "http", "accepted"): 2,
        ("msmq_bridge_messages_total", "NACK_BAD_DST_Q", "binary", "rejected"): 1,
        ("msmq_bridge_records_total", "orders"): 3,
        ("msmq_bridge_transactions_total", "committed"): 1,
        ("msmq_bridge_bytes_received_total",): 1000,
        ("msmq_bridge_refusals_total", "malformed"): 1,
        ("msmq_bridge_rpc_calls_total", "answered"): 1,
        ("msmq_bridge_rpc_connections",): 3,
        ("msmq_bridge_forwards_total", "taken"): 1,
        ("msmq_bridge_waiting_forwards",): 4,
        ("msmq_bridge_waiting_forward_bytes",): 5000,
        ("msmq_bridge_streams",): 7,
        ("msmq_bridge_pending_messages",): 2,
        ("msmq_bridge_kafka_up",): 1,
        ("msmq_bridge_batch_messages_sum",): 4,
        ("msmq_bridge_commit_seconds_count",): 1,
        ("msmq_bridge_ack_seconds_bucket", "0.5", "binary"): 1,
        ("msmq_bridge_ack_seconds_bucket", "0.25", "binary"): 0,
        ("msmq_bridge_ack_seconds_count", "https"): 0,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_records_by_topic() -> None:
    telemetry = Telemetry()
    telemetry.records("orders", 3)
    telemetry.records("orders", 1)
    telemetry.records("inbox", 2)
    assert telemetry.record_counts() == {"orders": 4, "inbox": 2}


def test_every_metric_carries_the_prefix_and_a_text() -> None:
    families = list(Telemetry().registry.collect())
    assert len(families) >= 14
    assert all(family.name.startswith("msmq_bridge_") for family in families)
    assert all(family.documentation for family in families)


def test_two_appliances_do_not_share_metrics() -> None:
    first, second = Telemetry(), Telemetry()
    first.session_opened()
    assert samples(second)[("msmq_bridge_sessions_opened_total",)] == 0


def test_a_stranger_cannot_make_labels_without_end() -> None:
    telemetry = Telemetry()
    for number in range(MAX_LABEL_VALUES + 50):
        telemetry.refusal(f"reason-{number}")
        telemetry.records(f"topic-{number}", 1)
    telemetry.refusal("reason-0")
    found = samples(telemetry)
    names = [key for key in found if key[0] == "msmq_bridge_refusals_total"]
    assert len(names) == MAX_LABEL_VALUES + 1
    assert found[("msmq_bridge_refusals_total", "other")] == 50
    assert found[("msmq_bridge_refusals_total", "reason-0")] == 2
    assert found[("msmq_bridge_records_total", "other")] == 50


def test_the_deepest_queues_have_a_gauge_and_the_rest_a_sum() -> None:
    telemetry = Telemetry()
    assert not [key for key in samples(telemetry) if "retained_messages" in key[0]]
    telemetry.retained = lambda: [(f"q{n}", n, 10 * n) for n in range(1, MAX_QUEUES + 4)]
    found = samples(telemetry)
    depths = {key[1]: v for key, v in found.items() if key[0] == "msmq_bridge_retained_messages"}
    assert len(depths) == MAX_QUEUES + 1
    assert depths[f"q{MAX_QUEUES + 3}"] == MAX_QUEUES + 3
    assert depths["other"] == 1 + 2 + 3
    assert found["msmq_bridge_retained_bytes", "other"] == 60
    telemetry.retained = lambda: [("half a \ud800 pair", 1, 1)]  # lawful in a name
    assert b"half a ? pair" in telemetry.exposition()[0]


def test_removals_by_reason() -> None:
    telemetry = Telemetry()
    telemetry.removal("ACK_RECEIVE")
    telemetry.removal("NACK_Q_PURGED")
    telemetry.removal("NACK_Q_PURGED", True)
    found = samples(telemetry)
    for reason in ("ACK_RECEIVE", "NACK_Q_PURGED", "LOST"):
        assert found["msmq_bridge_retained_removals_total", reason] == 1


def test_openmetrics_is_given_to_those_who_ask() -> None:
    body, content_type = Telemetry().exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_a_topic_that_is_kept_has_its_name_whatever_comes() -> None:
    telemetry = Telemetry()
    telemetry.keep_topic("_msmq-bridge.deadletter")
    for number in range(MAX_LABEL_VALUES):
        telemetry.records(f"topic-{number}", 1)
    telemetry.records("_msmq-bridge.deadletter", 2)
    assert samples(telemetry)["msmq_bridge_records_total", "_msmq-bridge.deadletter"] == 2


def test_how_long_the_first_of_a_queue_has_waited() -> None:
    telemetry = Telemetry()
    telemetry.retained = lambda: [("a", 2, 10), ("b", 1, 5)]
    telemetry.head_seconds = {"a": 12.5, "b": None}.get
    found = samples(telemetry)
    assert found["msmq_bridge_retained_head_seconds", "a"] == 12.5
    assert ("msmq_bridge_retained_head_seconds", "b") not in found


def test_under_a_megabyte_whatever_is_connected() -> None:
    """10,000 streams, 1,000 sessions, 1,000 queues and topics with the longest names there are."""
    telemetry = Telemetry()
    for number in range(1_000):
        telemetry.session_opened()
        telemetry.session_closed(f"reason {number}")
        telemetry.refusal(f"reason {number}")
        telemetry.records(f"{number}".ljust(249, "x"), 1)
        for transport in ("binary", "http", "https"):
            telemetry.message("rejected", f"CLASS_{number}", transport=transport)
    telemetry.streams.set(10_000)
    names = [f"{n}".ljust(1_000, "y") for n in range(1_000)]
    telemetry.retained = lambda: [(name, 1, 1) for name in names]
    telemetry.head_seconds = lambda _queue: 1.0
    body, _ = telemetry.exposition()
    assert len(body) < 1_000_000
    found = samples(telemetry)
    assert found["msmq_bridge_records_total", "other"] == 800
    assert found["msmq_bridge_retained_messages", "other"] == 900
    assert len(found) < 4_000


def test_a_refusal_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry()
    telemetry.refused("malformed", "10.0.0.1:5", "no signature", "binary", queue_manager="")
    (line,) = caplog.records
    assert (line.getMessage(), line.levelname) == ("refused", "WARNING")
    assert line.__dict__["fields"] == {
        "reason": "malformed",
        "peer": "10.0.0.1:5",
        "transport": "binary",
        "detail": "no signature",
    }
    assert samples(telemetry)["msmq_bridge_refusals_total", "malformed"] == 1


def test_a_session_that_is_over_is_told_to_who_wants_to_know() -> None:
    telemetry, told = Telemetry(), list[SessionFacts]()
    telemetry.on_session = told.append
    facts = SessionFacts(transport="rpc", peer="p", was_open=False)
    telemetry.session_over(facts)
    assert told == [facts]


def test_some_refusals_are_logged_once_for_each_address(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry()
    with caplog.at_level("WARNING"):
        for peer in ("10.0.0.7:1", "10.0.0.7:2", "10.0.0.8:3", "[fe80::1]:4"):
            telemetry.refused("other-queue-manager", peer)
        for port in range(3):
            telemetry.refused("packet", f"10.0.0.7:{port}")
        for number in range(MAX_WARNED):  # strangers push the oldest out, no more
            telemetry.refused("other-queue-manager", f"10.1.{number >> 8}.{number & 255}:1")
        caplog.clear()
        telemetry.refused("other-queue-manager", "10.0.0.7:5")
        telemetry.refused("other-queue-manager", "10.0.0.7:6")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    counted = samples(telemetry)
    assert counted["msmq_bridge_refusals_total", "other-queue-manager"] == 6 + MAX_WARNED
