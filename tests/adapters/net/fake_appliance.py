"""Stands in for the appliance behind the admin port."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridge.adapters.admin_token import TOKEN_FILE, make_token
from bridge.adapters.net.admin_server import AdminServer
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.stream_desk import StreamDesk
from bridge.adapters.telemetry import Telemetry
from bridge.config import AdminConfig
from bridge.model.errors import SinkUnavailable
from tests.adapters.net.fake_watch import FakeWatch

TOKEN = "generated"  # of a server that was given none  # noqa: S105
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class FakeAppliance:
    def __init__(self, desk: QueueDesk | None = None) -> None:
        self.desk = desk
        self.watch = FakeWatch(desk)
        self.streams = StreamDesk(list)
        self.reasons: list[str] = []
        self.fails = False
        self.away = ""
        self.reload_fault: Exception | None = None
        self.forgives = False  # a reload with force
        self.asked: list[tuple[str, str]] = []
        self.verdicts: list[dict[str, Any]] = []
        self.answer: dict[str, object] = {
            "ready": True,
            "queue_manager": {
                "id": "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
                "names": ["BRIDGE01", "bridge01"],
            },
            "listeners": {"binary": "127.0.0.1:1801", "admin": "127.0.0.1:9180"},
            "kafka": {"bootstrap.servers": "broker1:9092"},
            "sessions": [{"peer": "10.0.0.7:2000", "state": "OPEN"}],
            "totals": {"messages": 12, "records": 12},
            "streams": 3,
        }

    def status(self) -> dict[str, object]:
        if self.fails:
            raise RuntimeError("a bug of ours")
        return self.answer

    def ready(self) -> tuple[bool, list[str]]:
        return not self.reasons, self.reasons

    async def trace(self, kind: str, text: str) -> list[dict[str, Any]]:
        if self.away:
            raise SinkUnavailable(self.away)
        self.asked.append((kind, text))
        return self.verdicts

    async def reload(self, force: bool) -> dict[str, object]:
        if self.reload_fault is not None and not (force and self.forgives):
            raise self.reload_fault
        return {"applied": ["private$\\orders"], "unchanged": 2}


@asynccontextmanager
async def admin_server(
    appliance: FakeAppliance,
    telemetry: Telemetry | None = None,
    token_file: Path | None = None,
    settings: AdminConfig | None = None,
    data: Path | None = None,
) -> AsyncIterator[str]:
    """Runs the real server on a free port; gives its URL. In `data` a token is generated, as the
    appliance does; without it the generated token is TOKEN."""
    settings = settings or AdminConfig(token_file=token_file)
    with tempfile.TemporaryDirectory() as folder:
        generated = (data or Path(folder)) / TOKEN_FILE
        if data is None:
            generated.write_text(TOKEN)
        else:
            make_token(generated)
        server = AdminServer(appliance, telemetry or Telemetry(), settings, (), generated)
        address = await server.start("127.0.0.1", 0)
        try:
            yield f"http://{address}"
        finally:
            await server.stop()
