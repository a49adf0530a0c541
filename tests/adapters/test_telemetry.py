"""Metrics as Prometheus reads them, and the lines that go with them."""

from prometheus_client.parser import text_string_to_metric_families

from bridge.adapters.telemetry import MAX_LABEL_VALUES, MAX_QUEUES, Telemetry


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
    telemetry.ack_seconds.observe(0.3)
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
        ("msmq_bridge_ack_seconds_bucket", "0.5"): 1,
        ("msmq_bridge_ack_seconds_bucket", "0.25"): 0,
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
