"""Three Kafka brokers on loopback, each broker and controller in one process, as users have them.

Replication 3, min.insync.replicas 2 for what brokers make by themselves. A node can be killed,
frozen, stopped and started again; `leader_of` says which one to choose.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ClusterMetadata,
    NewTopic,
)

from bridge.adapters.kafka.broker import (
    _SETTINGS,
    HOST,
    free_port,
    java_command,
    reason_in,
    wait_ready,
)
from bridge.adapters.kafka.embedded import _spawn_attached, _told_pid
from bridge.adapters.kafka.folder import BrokerFolder, new_cluster_id
from bridge.adapters.kafka.jars import kafka_jars
from bridge.adapters.kafka.java import find_java
from tests.support.waiting import eventually

_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "broker.session.timeout.ms": "9000",  # Kafka's default: how soon a dead broker is noticed
    "broker.heartbeat.interval.ms": "2000",
}


class Node:
    """One broker with its controller."""

    def __init__(self, folder: Path, number: int, settings: Mapping[str, str], port: int) -> None:
        self.number, self.port = number, port
        self._folder, self._settings = BrokerFolder(folder), settings
        self._process: subprocess.Popen[str] | None = None
        self.pid = 0

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def format(self, cluster_id: str) -> None:
        self._folder.create()
        self._folder.write_properties(self._settings, self._folder.data)
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c")
        properties = self._folder.properties.name
        command = java_command(find_java(), kafka_jars(), self._folder, *tool, properties)
        done = subprocess.run(
            command, cwd=self._folder.path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, reason_in((done.stdout + done.stderr).splitlines())

    def launch(self) -> None:
        """Start it; `wait` returns when it answers."""
        self._folder.clear_logs()
        command = java_command(
            find_java(), kafka_jars(), self._folder, "kafka.Kafka", self._folder.properties.name
        )
        with self._folder.broker_lock() as lock:
            assert lock.acquire(15)
            self._process = _spawn_attached(command, self._folder, lock.fd)
            self.pid = _told_pid(self._process, self._folder)

    def wait(self, seconds: float = 60) -> None:
        assert self._process is not None
        wait_ready(self._process, self._folder, self.port, seconds)

    def start(self) -> None:
        self.launch()
        self.wait()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """In order: leadership is handed on first."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        if self.is_running:
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


class Cluster:
    """Brokers 1, 2, 3 in `nodes`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        ports = [free_port() for _ in range(6)]
        assert len(set(ports)) == len(ports)
        voters = ",".join(f"{n}@{HOST}:{ports[n + 2]}" for n in (1, 2, 3))
        self.nodes = [
            Node(
                folder / f"node-{number}",
                number,
                {
                    **_SETTINGS,
                    **_REPLICATED,
                    "node.id": str(number),
                    "listeners": f"PLAINTEXT://{HOST}:{ports[number - 1]},"
                    f"CONTROLLER://{HOST}:{ports[number + 2]}",
                    "advertised.listeners": f"PLAINTEXT://{HOST}:{ports[number - 1]}",
                    "controller.quorum.voters": voters,
                    **(settings or {}),
                },
                ports[number - 1],
            )
            for number in (1, 2, 3)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def start(self) -> None:
        cluster_id = new_cluster_id()
        for node in self.nodes:
            node.format(cluster_id)
        self.launch_all()

    def launch_all(self) -> None:
        """Nodes that do not run are started, all at once."""
        for node in self.nodes:
            if not node.is_running:
                node.launch()
        for node in self.nodes:
            node.wait()
        eventually(lambda: len(self._metadata().brokers) == len(self.nodes), 60)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def create_topics(self, names: Sequence[str], partitions: int = 4) -> None:
        """With the cluster's own replication, three of them in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for future in admin.create_topics([NewTopic(n, partitions, -1) for n in names]).values():
            future.result(30)
        for name in names:
            eventually(lambda name=name: self._is_in_sync(name, partitions), 60)  # type: ignore[misc]

    def _is_in_sync(self, topic: str, partitions: int) -> bool:
        parts = self._metadata(topic).topics[topic].partitions.values()
        return len(parts) == partitions and all(len(p.isrs) == len(p.replicas) for p in parts)

    def leader_of(self, topic: str, partition: int = 0) -> Node:
        found = self._metadata(topic).topics[topic].partitions[partition].leader
        return next(node for node in self.nodes if node.number == found)

    def _metadata(self, topic: str | None = None) -> ClusterMetadata:
        alive = ",".join(node.address for node in self.nodes if node.is_running)
        client = AdminClient({"bootstrap.servers": alive, "log_level": 0})
        try:
            return (
                client.list_topics(topic, timeout=10) if topic else client.list_topics(timeout=10)
            )
        except KafkaException as error:
            raise AssertionError(error) from error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
