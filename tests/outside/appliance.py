"""The appliance as its operator starts it: a process, a configuration file, ports it tells us.

Only the documented surfaces are used: `serve --config`, the line per listener on stdout,
`status -o json`, `/readyz` and `/metrics`.
"""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import UUID, uuid4

from tests.outside.rawmsmq import Name, direct
from tests.outside.rawsender import Address, soon

ROOT = Path(__file__).parents[2]
HOST = "BRIDGE01"
# Short name -> transactional. The queue is private$\<name>, its topic <prefix>-<name>.
QUEUES: Mapping[str, bool] = {
    "plain": False,
    "plain2": False,
    "bulk": False,
    "fuzz": False,
    "orders": True,
    "orders2": True,
    "many": True,
}
_LISTENER = re.compile(
    r"\b(binary|admin|ping|srmp|rpc|rpc_qp|endpoint_mapper)\b.*?((?:\d{1,3}\.){3}\d{1,3}|localhost|\[::\]):(\d+)",
    re.I,
)
_TELLING = ("srmp", "rpc", "rpc_qp", "endpoint_mapper")  # they say where they are
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.eE+-]+)$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one module wants beside the defaults; `queues` are mapping entries by short name."""

    queues: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    manager: Mapping[str, object] = field(default_factory=dict)  # queue_manager
    peers: Mapping[str, str] = field(default_factory=dict)
    listen: Mapping[str, object] = field(default_factory=dict)
    srmp: Mapping[str, object] = field(default_factory=dict)
    rpc: Mapping[str, object] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)  # of remote readers: their passwords
    defaults: Mapping[str, object] = field(default_factory=dict)  # of the mappings
    top: Mapping[str, object] = field(default_factory=dict)  # further keys of the file
    token: str = ""  # of the admin port


def queue(name: str, host: str = HOST) -> Name:
    return direct(f"OS:{host}\\private$\\{name}")


def number_of(name: str) -> int:
    """T-25: the number of a private queue is a hash of its name."""
    number = 0
    for character in name:
        number = (33 * number + ord(character)) & 0xFFFFFFFF
    return number


def command() -> list[str]:
    program = Path(sys.executable).with_name("msmq-bridge")
    return [str(program)] if program.exists() else [sys.executable, "-m", "bridge.cli.app"]


class Appliance:
    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        prefix: str,
        guid: UUID | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.guid = guid or uuid4()
        self.data = folder / "data"
        self.config = folder / "bridge.yaml"
        self.lines: list[str] = []
        self.listeners: dict[str, Address] = {}
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._news = threading.Condition()
        self.settings = settings or Settings()
        self._write_configuration()

    def configure(self, settings: Settings) -> None:
        """For the next start."""
        self.settings = settings
        self._write_configuration()

    def _write_configuration(self) -> None:
        """JSON is YAML too."""
        wanted = self.settings
        off = dict.fromkeys(("ping", "srmp", "srmp_tls", "rpc", "rpc_qp", "endpoint_mapper"))
        mappings, users = self.folder / "mappings.yaml", self.folder / "users.yaml"
        token = self.folder / "admin.token"
        token.write_text(wanted.token)
        settings = {
            "queue_manager": {"id": str(self.guid), "names": [HOST, "127.0.0.1"], **wanted.manager},
            "peers": dict(wanted.peers),
            "listen": {"host": "127.0.0.1", "binary": 0, "admin": 0, **off, **wanted.listen},
            "srmp": dict(wanted.srmp),
            "admin": {"token_file": str(token)} if wanted.token else {},
            "rpc": {**({"users": str(users)} if wanted.users else {}), **wanted.rpc},
            "kafka": {"bootstrap.servers": self.bootstrap},
            "topic_prefix": self.prefix,
            "data": str(self.data),
            "mappings": str(mappings),
            **wanted.top,
        }
        usual = {name: {"transactional": kind} for name, kind in QUEUES.items()}
        entries: dict[str, Mapping[str, object]] = {**usual, **wanted.queues}
        queues = [
            {"queue": f"private$\\{name}", "topic": self.topic(name), **entry}
            for name, entry in entries.items()
        ]
        self.queues = list(entries)
        self.data.mkdir(exist_ok=True)
        self.config.write_text(json.dumps(settings, indent=1))
        described = {"queues": queues, "defaults": dict(wanted.defaults)}
        mappings.write_text(json.dumps(described, indent=1))
        passwords = {name: {"password": password} for name, password in wanted.users.items()}
        users.write_text(json.dumps(passwords, indent=1))

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    @property
    def audit_topic(self) -> str:
        return f"{self.prefix}.audit"

    @property
    def rejects_topic(self) -> str:
        return f"{self.prefix}.rejects"

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def binary_address(self) -> Address:
        return self.listeners["binary"]

    @property
    def srmp_address(self) -> Address:
        return self.listeners["srmp"]

    @property
    def admin_url(self) -> str:
        host, port = self.listeners["admin"]
        return f"http://{host}:{port}"

    @property
    def log(self) -> str:
        with self._news:
            return "\n".join(self.lines)

    def start(self, seconds: float = 60.0) -> None:
        assert self._process is None
        self.listeners = {}
        self._process = subprocess.Popen(
            [*command(), "serve", "--config", str(self.config)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group of its own: what we end is ours
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        try:
            self._wait_until_ready(soon(seconds))
        except BaseException:
            self.kill()
            raise

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                if found := _LISTENER.search(line):
                    name, host, port = found.groups()
                    host = "::1" if host == "[::]" else host  # reached at this
                    self.listeners.setdefault(name.lower(), (host, int(port)))
                self._news.notify_all()

    def _wait_until_ready(self, deadline: float) -> None:
        listen = self.settings.listen
        wanted = {"binary", "admin", *(name for name in listen if name in _TELLING)}
        while soon(0) < deadline:
            with self._news:
                told = self._news.wait_for(lambda: wanted <= set(self.listeners), 5)
            assert self.process.poll() is None, f"serve ended at once:\n{self.log}"
            if not told:
                self._ask_status()
            elif self.is_ready():
                return
            else:
                self._pause()
        raise AssertionError(f"not ready in time:\n{self.log}")

    def _pause(self) -> None:
        """Between two polls; ends early when the process does."""
        try:
            self.process.wait(0.1)
        except subprocess.TimeoutExpired:
            return

    def status(self) -> dict[str, Any]:
        """What `status -o json` tells."""
        asked = subprocess.run(
            [*command(), "status", "--config", str(self.config), "-o", "json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        answer: dict[str, Any] = json.loads(asked.stdout)
        return answer

    def _ask_status(self) -> None:
        """For when the lines of `serve` do not look as `_LISTENER` thinks."""
        try:
            told = self.status()
        except subprocess.SubprocessError:
            return
        with self._news:
            for name, place in told.get("listeners", {}).items():
                host, _, port = str(place).rpartition(":")
                if port.isdigit():
                    self.listeners.setdefault(name, (host.rpartition("/")[2], int(port)))

    @property
    def bearer(self) -> dict[str, str]:
        """The header with the token of the admin port: the one of the settings, else the one that
        the appliance has generated."""
        token = self.settings.token or (self.data / "admin.token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> tuple[int, str]:
        return self._ask("GET", path)

    def post(self, path: str) -> tuple[int, str]:
        return self._ask("POST", path)

    def _ask(self, method: str, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self.listeners["admin"], timeout=30)
        try:
            connection.request(method, path, headers=self.bearer)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def closed_for_a_reason(self) -> float:
        """The sum of all counters on /metrics that carry a label `reason`."""
        status, text = self.get("/metrics")
        assert status == 200, text
        samples = _SAMPLE.findall(text)
        return sum(
            float(value)
            for name, labels, value in samples
            if name.endswith("_total") and re.search(r'\b\w*reason="', labels)
        )

    def wait_for_reasons(self, at_least: float) -> None:
        """The peer may see the end of the connection a moment before the counter is up."""
        deadline = soon(5)
        while (now := self.closed_for_a_reason()) < at_least:
            assert soon(0) < deadline, f"{now} closings have a reason, expected {at_least}"

    def kill(self) -> None:
        self._stop(signal.SIGKILL)

    def terminate(self) -> None:
        self._stop(signal.SIGTERM)

    def _stop(self, number: signal.Signals) -> None:
        """End the group we started, and nothing else."""
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        for reader in self._readers:
            reader.join(10)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()

    def restart(self, *, empty_data: bool = True, kill: bool = False) -> None:
        """Again with the same configuration and Kafka; the ports are new ones."""
        self._stop(signal.SIGKILL if kill else signal.SIGTERM)
        if empty_data:
            shutil.rmtree(self.data)
            self.data.mkdir()
        self.start()
