"""After a broker was killed: tell the metadata that it is dead before it lives again.

A broker that was killed is still the leader of its partitions in the metadata log. Started like
that, its transaction coordinator finds transactions whose commit is decided but not yet marked in
the partitions, tries to mark them while the broker is being fenced for its old session, finds no
leader, takes the partitions for deleted, and forgets the markers. What was committed, and what we
acknowledged, would hang in the topics for ever. So the controller runs alone first, until it has
fenced the dead broker; started after that, the coordinator waits for real leaders.
"""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from bridge.adapters.kafka.broker import CHECK_S
from bridge.adapters.kafka.folder import BrokerFolder

FENCE_TIMEOUT_S: Final = 30.0
_FENCED: Final = re.compile(r"[Ff]enc(?:ing|ed) broker \d+")
_KEPT: Final = (
    "node.id",
    "controller.listener.names",
    "listener.security.protocol.map",
    "controller.quorum.bootstrap.servers",
)
_LOGGER: Final = """
logger.controller.name = org.apache.kafka.controller
logger.controller.level = INFO
"""


class Process(Protocol):
    def poll(self) -> int | None: ...


def was_killed(folder: BrokerFolder) -> bool:
    """It ran here and did not end in order."""
    used = (folder.data / "__cluster_metadata-0").is_dir()
    return used and not (folder.data / ".kafka_cleanshutdown").exists()


def controller_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The same node without its broker, quick to see that nobody is there."""
    listeners = settings["listeners"].split(",")
    return {
        **{name: settings[name] for name in _KEPT},
        "process.roles": "controller",
        "listeners": next(text for text in listeners if text.startswith("CONTROLLER")),
        "broker.session.timeout.ms": "1000",
    }


def fence_dead_broker(
    folder: BrokerFolder, settings: Mapping[str, str], run: Callable[[], Process]
) -> None:
    """`run` starts the controller alone; returns when it has fenced, or has nothing to fence."""
    folder.write_properties(controller_settings(settings), folder.data)
    with folder.log4j.open("a", encoding="ascii") as file:
        file.write(_LOGGER)
    folder.clear_logs()
    try:
        process = run()
        deadline = time.monotonic() + FENCE_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            if _fenced(folder.log):
                return
            time.sleep(CHECK_S)
    finally:
        folder.create()  # its own logging again


def _fenced(log: Path) -> bool:
    try:
        return _FENCED.search(log.read_text(errors="replace")) is not None
    except FileNotFoundError:
        return False
