"""Traces, if somebody wants them: is the SDK here, and is the collector there?"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from bridge.adapters.doctor.finding import Finding, fail, ok, skip, warn
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.tracing import ENDPOINTS, is_wanted

CONNECT_S: Final = 2.0
_PORTS: Final = {"http": 80, "https": 443}


def traces(visit: Visit) -> Iterator[Finding]:
    config = visit.config.otel
    if not is_wanted(config, os.environ):
        yield skip("nobody asks for traces")
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        yield fail("OpenTelemetry is not installed", mend="pip install 'msmq-bridge[otel]'")
        return
    url = config.endpoint or next(os.environ[n] for n in ENDPOINTS if os.environ.get(n))
    yield _collector(url)


def _collector(url: str) -> Finding:
    mend = "check otel.endpoint, or the OTEL_* variables; until then spans are lost, nothing else"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 4318)
        socket.create_connection((host, port), CONNECT_S).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return warn(f"no collector answers there ({reason})", "collector", mend=mend)
    return ok(f"a collector listens on {host}:{port}")
