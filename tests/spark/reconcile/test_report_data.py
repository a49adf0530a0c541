"""report.json: typed, described by its schema, the same bytes for the same findings."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from msmq_jobs.reconcile.report_data import checked, report_json, report_schema, schema_text
from msmq_jobs.reconcile.rules import VERDICTS
from tests.adapters.test_config_files import ROOT
from tests.spark.reconcile.sample import clean, hostile, week

SCHEMA = report_schema()


def test_the_schema_file_is_what_the_code_makes() -> None:
    text = (ROOT / "spark/msmq_jobs/reconcile/report.schema.json").read_bytes()
    assert text == schema_text(), "run: python -m msmq_jobs.reconcile.report_data > its file"
    Draft202012Validator.check_schema(SCHEMA)


def test_every_field_is_described() -> None:
    for name, part in SCHEMA["$defs"].items():
        assert part["description"], name
        assert part["additionalProperties"] is False, name
        for key, field in part["properties"].items():
            assert field.get("description", "").endswith(".") or "$ref" in field, (name, key)


@pytest.mark.parametrize("make", [week, clean, hostile])
def test_reports_keep_the_schema(make: Any) -> None:
    told = json.loads(report_json(checked(make())))
    assert list(Draft202012Validator(SCHEMA).iter_errors(told)) == []
    assert checked(told) == checked(make())


def test_design_names_are_there() -> None:  # design 3.5
    told = json.loads(report_json(checked(week())))
    assert told["parity"] is False
    assert set(told["verdicts"]) == set(VERDICTS)
    assert len(VERDICTS) == 10
    assert told["queues"][0]["queue"]
    assert told["inputs"]["mapping"]["hash"]


def shuffled(value: Any, random: Random) -> Any:
    if isinstance(value, dict):
        keys = random.sample(list(value), k=len(value))
        return {key: shuffled(value[key], random) for key in keys}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


def test_the_same_findings_are_the_same_bytes() -> None:
    found = week(3)
    found["queues"][0]["latency_ms"] = {"p50": 5, "p99": 7, "max": 9}
    again = shuffled(found, Random(1))
    again["queues"][0]["latency_ms"] = {"max": 9.0, "p99": 7.0, "p50": 5.0}
    told = report_json(checked(found))
    assert told == report_json(checked(again))
    assert b'"classes"' in told.split(b'"first"')[0]  # sorted keys


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("verdicts", "lost"), 1),
        (("verdicts", "missing"), -1),
        (("queues", 0, "verdicts"), {"lost": 1}),
        (("queues", 0, "latency_ms"), {"p50": -1, "p99": 1, "max": 1}),
        (("thresholds",), {"missing": 5}),
        (("thresholds",), {"lost": "5"}),
        (("offenders",), {"lost": []}),
        (("timeline", "bucket_s"), 0),
        (("repair", "surplus"), "1"),
        (("inputs", "window", "in_flight_s"), None),
        (("surprise",), 1),
    ],
)
def test_what_is_not_in_the_contract_is_refused(path: tuple[Any, ...], value: Any) -> None:
    found = week()
    place: Any = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(msgspec.ValidationError):
        checked(found)
    assert list(Draft202012Validator(SCHEMA).iter_errors(found))


def test_half_a_surrogate_pair_does_not_stop_the_report() -> None:
    found = week()
    found["queues"][0]["queue"] = "private$\\a\ud800b"
    found["queues"][0]["classes"] = {"0x8002 \udfff": 1}
    told = json.loads(report_json(checked(found)))
    assert told["queues"][0]["queue"] == "private$\\a\ufffdb"
    assert told["queues"][0]["classes"] == {"0x8002 \ufffd": 1}
