"""Whether there are traces. The SDK is imported only if there are: see `otel`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from bridge.adapters.masking import SECRETS
from bridge.adapters.telemetry import SessionFacts
from bridge.config import OtelConfig
from bridge.model.errors import ConfigError
from bridge.model.message import Message
from bridge.model.verdict import Verdict

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_SHORTEST: Final = 4  # characters of a header's value that may be a secret


class Tracing(Protocol):
    """Told when something is over; never in the way of what goes on."""

    def batch(
        self,
        result: str,
        decided: Iterable[tuple[Message, Verdict]],
        *,
        shard: str,
        messages: int,
        records: int,
        began_ns: int,
    ) -> None:
        """One transaction. `decided` is walked through once, if it is committed."""

    def session(self, facts: SessionFacts) -> None: ...

    def close(self) -> None:
        """Blocks a little: what is left is sent."""


def open_tracing(config: OtelConfig, instance: str) -> Tracing | None:
    """None: nobody wants traces. ConfigError: somebody does, and the SDK is not installed."""
    if not is_wanted(config, os.environ):
        return None
    try:
        from bridge.adapters import otel
    except ImportError as error:
        raise ConfigError(
            f"traces need OpenTelemetry, which is not installed ({error.name})",
            where="otel",
            mend="pip install 'msmq-bridge[otel]', or leave otel and OTEL_* out",
        ) from error
    for name in _HEADERS:  # tokens of collectors
        pairs = os.environ.get(name, "").split(",")
        SECRETS.add(*[v for v in (p.partition("=")[2] for p in pairs) if len(v) >= _SHORTEST])
    return otel.Otel.over_http(config, instance)


def is_wanted(config: OtelConfig, environment: Mapping[str, str]) -> bool:
    """The file, or the variables that OpenTelemetry has for it."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if config.endpoint is not None:
        return True
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip() != "otlp":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)
