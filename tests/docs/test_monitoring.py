"""The files of examples/monitoring name what /metrics really has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.docs.monitoring import Family, exercised, families
from tests.docs.runner import ROOT

FOLDER = ROOT / "examples" / "monitoring"
ANYWHERE = frozenset(("instance", "job"))  # labels that Prometheus adds
PROMTOOL = shutil.which("promtool")
NEEDS_PROMTOOL = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (apt package prometheus)"
)
_SERIES = re.compile(r"\b(msmq_bridge_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_BY = re.compile(r"\bby \(([^)]*)\)")
_ROW = re.compile(r"^\| `(msmq_bridge_\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", re.M)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    return families(exercised(tmp_path_factory.mktemp("appliance")))


@pytest.fixture(scope="module")
def series(real: dict[str, Family]) -> dict[str, frozenset[str]]:
    return {name: labels for family in real.values() for name, labels in family.series.items()}


def rules() -> list[dict[str, Any]]:
    text = (FOLDER / "alerts.yaml").read_text(encoding="utf-8")
    return [rule for group in YAML(typ="safe").load(text)["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def complaints(expression: str, series: dict[str, frozenset[str]]) -> Iterator[str]:
    """Metrics and labels that nobody has."""
    named, known = _SERIES.findall(expression), set(ANYWHERE)
    if not named:
        yield "it names no metric"
    for name, matchers in named:
        labels = series.get(name)
        if labels is None:
            yield f"there is no {name}"
            continue
        known |= labels
        for label in _LABEL.findall(matchers):
            if label not in labels | ANYWHERE:
                yield f"{name} has no label {label}"
    for group in _BY.findall(expression):
        for label in re.split(r",\s*", group):
            if label not in known:
                yield f"no metric here has a label {label}"


def test_what_is_wrong_is_found(series: dict[str, frozenset[str]]) -> None:
    assert list(complaints("rate(msmq_bridge_messages_total[5m])", series)) == []
    for wrong in (
        "1",
        "msmq_bridge_message_total > 0",
        "msmq_bridge_messages > 0",
        'msmq_bridge_ready{queue="x"}',
        "sum by (peer) (msmq_bridge_ready)",
        "msmq_bridge_commit_seconds",
    ):
        assert list(complaints(wrong, series)), wrong


def test_the_table_is_what_the_appliance_has(real: dict[str, Family]) -> None:
    rows = _ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    told = {
        name: Family(name, kind, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels, _ in rows
    }
    assert len(told) == len(rows)
    assert told == real


# -- alerts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_names_what_is_there_and_says_what_to_do(
    rule: dict[str, Any], series: dict[str, frozenset[str]]
) -> None:
    if rule["alert"] != "MsmqBridgeDown":  # `up` is Prometheus's own
        assert list(complaints(rule["expr"], series)) == []
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "runbook"}
    assert len(rule["annotations"]["runbook"]) > 100
    shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    kept = _BY.findall(rule["expr"])
    if kept:
        assert all(shown <= set(re.split(r",\s*", group)) for group in kept)


def test_what_must_be_alerted_is() -> None:
    """The list of the issue, in its order."""
    names = {rule["alert"].removeprefix("MsmqBridge") for rule in rules()}
    assert names >= {
        *("NotReady", "KafkaAway", "CommitSlow", "OldestMessageWaits", "RejectsRising"),
        *("CloneDetected", "RetainedRecordLost", "DiskFilling", "WaitingAcksGrow"),
        *("DeadLettersRising", "Refusals"),
    }


@NEEDS_PROMTOOL
@pytest.mark.parametrize(
    "command", [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts.test.yaml")]
)
def test_promtool(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["promtool", *command], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


@NEEDS_PROMTOOL
def test_the_tests_of_the_alerts_can_fail(tmp_path: Path) -> None:
    for name in ("alerts.yaml", "alerts.test.yaml"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("cloned_guids > 0", "cloned_guids > 1"))
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts.test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1


@NEEDS_PROMTOOL
def test_the_scrape_configuration() -> None:
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yaml"],
        cwd=FOLDER,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (FOLDER / "prometheus.yaml").read_text(encoding="utf-8")
    (job,) = YAML(typ="safe").load(text)["scrape_configs"]
    assert f'job="{job["job_name"]}"' in rules()[0]["expr"]


def test_the_tests_know_every_alert_and_only_real_metrics(
    series: dict[str, frozenset[str]],
) -> None:
    text = (FOLDER / "alerts.test.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r'alertname="(\w+)"', text)) == {rule["alert"] for rule in rules()}
    for test in YAML(typ="safe").load(text)["tests"]:
        for one in test["input_series"]:
            if not one["series"].startswith("up{"):
                assert list(complaints(one["series"], series)) == []


# -- the dashboard ----------------------------------------------------------------------------


def test_the_dashboard_is_one_of_grafana_10() -> None:
    board = dashboard()
    assert board["schemaVersion"] >= 38
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["instance"]["definition"] == "label_values(msmq_bridge_ready, instance)"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    assert "id" not in board  # Grafana gives its own


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_asks_for_what_is_there(
    panel: dict[str, Any], series: dict[str, frozenset[str]]
) -> None:
    assert panel["type"] in ("timeseries", "stat")
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert list(complaints(target["expr"], series)) == []
        assert target["expr"].count("{") == target["expr"].count('instance=~"$instance"')
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        if groups := _BY.findall(target["expr"]):
            assert all(shown <= set(re.split(r",\s*", group)) for group in groups)


def test_no_panel_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_metric_is_on_the_dashboard_or_in_an_alert(real: dict[str, Family]) -> None:
    """But for a few that say nothing by themselves."""
    told = json.dumps(dashboard()) + json.dumps(rules())
    unused = {name for name, family in real.items() if not any(s in told for s in family.series)}
    assert unused == {
        "msmq_bridge_build_info",
        "msmq_bridge_process_virtual_memory_bytes",
        "msmq_bridge_waiting_forward_bytes",
    }
