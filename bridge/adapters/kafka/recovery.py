"""After a broker was killed: tell the metadata that it is dead before it lives again.

A broker that was killed is still the leader of its partitions in the metadata log. Started like
that, its transaction coordinator finds transactions whose commit is decided but not yet marked in
the partitions, tries to mark them while the broker is being fenced for its old session, finds no
leader, takes the partitions for deleted, and forgets the markers. What was committed, and what we
acknowledged, would hang in the topics for ever. So the controller runs alone first, until it has
fenced the dead broker; started after that, the coordinator waits for real leaders.

The controller says that it fences before the record of it is in its log. Ended between the two, it
would have done nothing: so we wait until its log has grown by two batches more. One may have been
on its way before; the other is the fence or comes after it.
"""

import re
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from bridge.adapters.kafka.broker import CHECK_S
from bridge.adapters.kafka.folder import BrokerFolder

FENCE_TIMEOUT_S: Final = 30.0
_METADATA: Final = "__cluster_metadata-0"
_BATCH_HEAD: Final = struct.Struct(">qi")  # base offset, bytes that follow
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
    used = (folder.data / _METADATA).is_dir()
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
        metadata = folder.data / _METADATA
        enough: int | None = None
        while process.poll() is None and time.monotonic() < deadline:
            if enough is None and _fenced(folder.log):
                enough = batches_in(metadata) + 2
            if enough is not None and batches_in(metadata) >= enough:
                return
            time.sleep(CHECK_S)
    finally:
        folder.create()  # its own logging again


def _fenced(log: Path) -> bool:
    try:
        return _FENCED.search(log.read_text(errors="replace")) is not None
    except FileNotFoundError:
        return False


def batches_in(log: Path) -> int:
    """Whole record batches of a partition's log: it grows by one at least every half second."""
    count = 0
    for segment in log.glob("*.log"):
        with suppress(FileNotFoundError), segment.open("rb") as file:
            size, end = segment.stat().st_size, 0
            while len(head := file.read(_BATCH_HEAD.size)) == _BATCH_HEAD.size:
                length = _BATCH_HEAD.unpack(head)[1]
                end += _BATCH_HEAD.size + length
                if length <= 0 or end > size:
                    break
                file.seek(end)
                count += 1
    return count
