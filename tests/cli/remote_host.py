"""A host that serves remote read, and commands run against it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.cli.app import main
from bridge.cli.remote import PASSWORD
from tests.adapters.reader.served import Served

Capture = pytest.CaptureFixture[str]


class Host:
    def __init__(self, served: Served, capsys: Capture, patch: pytest.MonkeyPatch) -> None:
        self.served, self.fake, self._capsys = served, served.fake, capsys
        patch.setenv(PASSWORD, "secret")
        self.out = self.err = ""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.served.port}"

    def run(self, *arguments: str, user: str | None = "ann") -> int:
        where = ["--host", self.address, *(["--user", user] if user else [])]
        code = main([*arguments, *where])
        self.out, self.err = self._capsys.readouterr()
        return code

    def told(self, *arguments: str) -> Any:
        assert self.run(*arguments, "-o", "json") == 0, self.err
        return json.loads(self.out)
