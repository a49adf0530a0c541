"""What an embedded broker is made of: its settings, its storage, its command, its first answer."""

import errno
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka.folder import BrokerFolder, new_cluster_id
from bridge.adapters.private_files import PRIVATE_UMASK
from bridge.model.errors import BrokerFailed

HOST: Final = "127.0.0.1"
MIB: Final = 1024 * 1024
FORMAT_TIMEOUT_S: Final = 60.0
CHECK_S: Final = 0.05

_JVM_FLAGS: Final = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)
_SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # One node holds the only copy of everything.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Few partitions of its own: they are made and loaded at start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "num.partitions": "4",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.retention.minutes": "5256000",  # ten years
    # An MSMQ message has up to 4 MiB of body, and its properties go into headers.
    "message.max.bytes": str(10 * MIB),
    "replica.fetch.max.bytes": str(10 * MIB),
    "socket.request.max.bytes": str(100 * MIB),
    # What a dead producer left open is aborted a second after its timeout, not ten.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # The controller must not fence a broker that only stood still (a frozen machine, a long pause):
    # for a moment its partitions would have no leader, and the coordinator could forget the markers
    # of a committed transaction. One that was killed is fenced at its next start, by recovery.py.
    "broker.session.timeout.ms": "60000",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(32 * MIB),
    "log.cleaner.backoff.ms": "5000",  # a start reads what is not compacted yet
    "num.network.threads": "2",
    "num.io.threads": "4",
}


def settings_for(port: int, extra: Mapping[str, str]) -> dict[str, str]:
    controller = f"{HOST}:{free_port(avoid=port)}"
    return {
        **_SETTINGS,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.quorum.bootstrap.servers": controller,
        **extra,
    }


def java_command(java: Path, libs: Path, folder: BrokerFolder, *arguments: str) -> list[str]:
    """To be run inside the folder; the names of its files are relative."""
    logging = f"-Dlog4j2.configurationFile={folder.log4j.name}"
    return [str(java), *_JVM_FLAGS, logging, "-cp", f"{libs.absolute()}/*", *arguments]


def free_port(avoid: int = 0) -> int:
    while True:
        with socket.create_server((HOST, 0)) as probe:
            port = int(probe.getsockname()[1])
        if port != avoid:
            return port


def check_port(port: int) -> None:
    """BrokerFailed if nobody could listen there."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "is in use; stop what listens there or choose another port"
        else:
            why = f"cannot be used ({error.strerror}); choose another port"
        raise BrokerFailed(f"port {port} of {HOST} {why}") from error


def format_storage(
    folder: BrokerFolder, java: Path, libs: Path, settings: Mapping[str, str]
) -> None:
    """Formats a new folder beside the data and adopts it whole, so a crash leaves no half."""
    fresh = folder.fresh_data()
    folder.write_properties(settings, fresh)
    tool = ("kafka.tools.StorageTool", "format", "--standalone", "-t", new_cluster_id())
    command = java_command(java, libs, folder, *tool, "-c", folder.properties.name)
    try:
        done = subprocess.run(
            command,
            cwd=folder.path,
            capture_output=True,
            umask=PRIVATE_UMASK,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerFailed(f"cannot format {folder.data} for Kafka: {error}") from error
    if done.returncode != 0:
        reason = reason_in((done.stdout + done.stderr).splitlines())
        raise BrokerFailed(f"cannot format {folder.data} for Kafka: {reason}")
    folder.adopt(fresh)


def wait_ready(
    process: "subprocess.Popen[str]", folder: BrokerFolder, port: int, timeout_s: float
) -> None:
    """Until the broker answers a metadata request; BrokerFailed as soon as it cannot."""
    deadline = time.monotonic() + timeout_s
    while not _answers(port):
        if process.poll() is not None:
            raise BrokerFailed(f"the embedded Kafka in {folder.path} did not start: {why(folder)}")
        if time.monotonic() >= deadline:
            raise BrokerFailed(
                f"the embedded Kafka in {folder.path} does not answer on {HOST}:{port} "
                f"after {timeout_s:g} s; see {folder.log}"
            )
        _pause(process)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
    try:
        # A broker that is still fenced is not in its own metadata.
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def _pause(process: "subprocess.Popen[str]") -> None:
    try:
        process.wait(CHECK_S)
    except subprocess.TimeoutExpired:
        return


def why(folder: BrokerFolder) -> str:
    """One line for why the broker ended, from its log or from what the JVM printed."""
    lines = [*_lines(folder.output), *_lines(folder.log)]
    return f"{reason_in(lines)}; see {folder.log}"


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


_THROWN: Final = re.compile(
    r'^(?:Exception in thread "[^"]*" )?(?:[\w$]+\.)+(\w+(?:Exception|Error): .+)'
)
_LOGGED: Final = re.compile(r"^[\d-]+ [\d:,]+ (?:ERROR|FATAL) \S+ (.+)|^Error: (.+)")


def reason_in(lines: Sequence[str]) -> str:
    """The first exception that was told, else the first error, else the last line."""
    for pattern in (_THROWN, _LOGGED):
        for line in lines:
            if match := pattern.match(line):
                return str(match[match.lastindex or 0]).strip()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
