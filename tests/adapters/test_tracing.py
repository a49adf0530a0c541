"""When there are traces, and what is loaded when there are none."""

import subprocess
import sys

import pytest

from bridge.adapters import tracing as module
from bridge.adapters.masking import SECRETS
from bridge.adapters.otel import Otel
from bridge.adapters.tracing import is_wanted, open_tracing
from bridge.config import OtelConfig
from bridge.model.errors import ConfigError

HERE = OtelConfig(endpoint="http://127.0.0.1:4318")
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
ANY = {ENDPOINT: "http://127.0.0.1:4318"}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ENDPOINT, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("config", "environment", "wanted"),
    [
        (OtelConfig(), {}, False),
        (HERE, {}, True),
        (OtelConfig(), ANY, True),
        (OtelConfig(), {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/v1/traces"}, True),
        (OtelConfig(), {ENDPOINT: " "}, False),
        (OtelConfig(), ANY | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (HERE, {"OTEL_SDK_DISABLED": "TRUE"}, False),
        (OtelConfig(ratio=0.5), {}, False),
    ],
)
def test_by_the_file_or_by_the_environment(
    config: OtelConfig, environment: dict[str, str], wanted: bool
) -> None:
    assert is_wanted(config, environment) is wanted


def test_nothing_is_imported_when_there_are_none() -> None:
    program = (
        "import sys, bridge.app, bridge.cli.serve\n"
        "from bridge.adapters.tracing import open_tracing\n"
        "from bridge.config import OtelConfig\n"
        "assert open_tracing(OtelConfig(), 'x') is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={}
    )
    assert done.stdout == "[]\n", done.stderr


def test_without_the_sdk_it_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bridge.adapters.otel", None)
    monkeypatch.delattr("bridge.adapters.otel", raising=False)
    with pytest.raises(ConfigError, match="not installed") as caught:
        open_tracing(HERE, "x")
    assert "msmq-bridge[otel]" in str(caught.value)


def test_the_token_of_a_collector_gets_into_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=token-of-a-collector,x-tenant=1")
    made = open_tracing(HERE, "x")
    assert isinstance(made, Otel)
    made.close()
    assert SECRETS.hide("sent token-of-a-collector, 1") == "sent ***, 1"


def test_an_endpoint_is_a_url() -> None:
    with pytest.raises(ConfigError, match=r"otel\.endpoint"):
        OtelConfig(endpoint="localhost:4318")
    assert module.open_tracing(OtelConfig(), "x") is None
