"""Traces: off, without the SDK, without a collector, and as it should be."""

import socket
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.doctor import traces as module
from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.doctor.traces import traces
from bridge.adapters.tracing import ENDPOINTS
from tests.adapters.doctor.fake_cluster import FakeCluster, one, visit_to


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", *ENDPOINTS):
        monkeypatch.delenv(name, raising=False)


def found(folder: Path, about: str = "", **otel: Any) -> Finding:
    return one(traces, visit_to(FakeCluster(), folder, otel=otel), about)


def test_nobody_wants_them(tmp_path: Path) -> None:
    assert found(tmp_path).result is Result.SKIP


def test_without_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    finding = found(tmp_path, endpoint="http://127.0.0.1:9")
    assert finding.result is Result.FAIL
    assert "msmq-bridge[otel]" in finding.mend


def test_a_collector_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        finding = found(tmp_path, "collector", endpoint=url)
    assert finding.result is Result.WARN
    assert "refused" in finding.found


@pytest.mark.parametrize("by_file", [True, False])
def test_a_collector_that_listens(
    tmp_path: Path, by_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        if not by_file:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        finding = found(tmp_path, **({"endpoint": url} if by_file else {}))
    assert finding.result is Result.OK


def test_a_url_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:port/")
    assert found(tmp_path, "collector").result is Result.WARN
