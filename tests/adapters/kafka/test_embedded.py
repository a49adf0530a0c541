"""A real broker, its life and its deaths."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka.embedded import EmbeddedKafka, running_broker, stop_broker
from bridge.model.errors import BrokerFailed
from tests.support.kafka import create_topic, read_topic, transactional_producer, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka

MIB = 1024 * 1024
# Starts the broker from a thread that ends: the broker must outlive that, but not the process.
OWNER = """
import sys, threading
from pathlib import Path
from bridge.adapters.kafka.embedded import EmbeddedKafka

broker = EmbeddedKafka(Path(sys.argv[1]))
starter = threading.Thread(target=broker.start)
starter.start()
starter.join()
print(broker.pid, broker.port, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One that these tests may stop, kill and freeze; each leaves it running."""
    with EmbeddedKafka(tmp_path_factory.mktemp("a folder, odd ünd long")) as broker:
        yield broker


def produce(bootstrap: str, topic: str, value: bytes, **config: object) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    failures: list[object] = []
    producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None]


def answers(bootstrap: str, timeout_s: float) -> bool:
    try:
        AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=timeout_s)
    except KafkaException:
        return False
    return True


def test_it_answers_metadata_and_makes_no_topic_by_itself(kafka: EmbeddedKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    metadata = admin.list_topics(timeout=30)
    assert [str(one) for one in metadata.brokers.values()] == [f"{kafka.bootstrap_servers}/1"]
    assert metadata.cluster_id == kafka.state.cluster_id
    asked = admin.list_topics("nobody-made-me", timeout=30)
    assert asked.topics["nobody-made-me"].error is not None


def test_it_takes_a_message_of_5_mib(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("large"))
    value = bytes(range(256)) * (5 * MIB // 256)
    limit = {"message.max.bytes": 6 * MIB}
    produce(kafka.bootstrap_servers, topic, value, **limit)
    (message,) = read_topic(kafka.bootstrap_servers, topic)
    assert message.value() == value


def test_what_is_aborted_is_invisible(kafka: EmbeddedKafka) -> None:  # design 5
    topic = create_topic(kafka.bootstrap_servers, unique("aborted"), partitions=2)
    producer = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    for value, end in (("no", producer.abort_transaction), ("yes", producer.commit_transaction)):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, value, partition=partition)
        producer.flush(30)
        end(30)
    assert [message.value() for message in read_topic(kafka.bootstrap_servers, topic)] == [
        b"yes",
        b"yes",
    ]
    everything = read_topic(kafka.bootstrap_servers, topic, isolation="read_uncommitted")
    assert [message.value() for message in everything] == [b"no", b"yes"] * 2


def test_an_open_transaction_hides_what_follows(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("open"))
    producer = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    producer.begin_transaction()
    producer.produce(topic, "later")
    producer.flush(30)
    assert read_topic(kafka.bootstrap_servers, topic, open_transactions=True) == []
    producer.commit_transaction(30)
    assert [message.value() for message in read_topic(kafka.bootstrap_servers, topic)] == [b"later"]


def test_its_files_are_for_our_user_only(broker: EmbeddedKafka) -> None:
    topic = create_topic(broker.bootstrap_servers, unique("secret"))
    produce(broker.bootstrap_servers, topic, b"a message")
    modes = {path: path.stat().st_mode & 0o077 for path in broker.folder.rglob("*")}
    assert any(path.suffix == ".log" and path.parent.name.startswith(topic) for path in modes)
    assert [path for path, mode in modes.items() if mode] == []


def test_a_restart_keeps_port_cluster_and_data(broker: EmbeddedKafka) -> None:
    topic = create_topic(broker.bootstrap_servers, unique("kept"))
    produce(broker.bootstrap_servers, topic, b"still here")
    before = broker.state
    broker.restart()
    assert broker.pid != before.pid
    assert broker.state.bootstrap_servers == before.bootstrap_servers
    assert broker.state.cluster_id == before.cluster_id
    assert [message.value() for message in read_topic(broker.bootstrap_servers, topic)] == [
        b"still here"
    ]


def test_a_killed_broker_comes_back_with_its_data(broker: EmbeddedKafka) -> None:
    topic = create_topic(broker.bootstrap_servers, unique("kept"))
    produce(broker.bootstrap_servers, topic, b"still here")
    broker.kill()
    assert broker.wait_dead(0)
    assert not broker.running
    assert running_broker(broker.folder) is None
    with pytest.raises(BrokerFailed, match="died"):
        broker.raise_if_failed()
    broker.start()
    assert [message.value() for message in read_topic(broker.bootstrap_servers, topic)] == [
        b"still here"
    ]


def test_a_broker_that_dies_by_itself_is_noticed_and_can_be_started(broker: EmbeddedKafka) -> None:
    psutil.Process(broker.pid).send_signal(signal.SIGKILL)
    assert broker.wait_dead(30)
    broker.start()
    assert answers(broker.bootstrap_servers, 30)


def test_a_suspended_broker_is_silent_until_resumed(broker: EmbeddedKafka) -> None:
    broker.suspend()
    try:
        assert not answers(broker.bootstrap_servers, 0.5)
        assert broker.running
    finally:
        broker.resume()
    assert answers(broker.bootstrap_servers, 30)


def test_a_second_broker_on_the_folder_is_refused(broker: EmbeddedKafka) -> None:
    with pytest.raises(BrokerFailed) as caught:
        EmbeddedKafka(broker.folder).start()
    assert str(caught.value) == (
        f"{broker.folder} is in use by the broker with pid {broker.pid} on "
        f"{broker.bootstrap_servers}; stop that one or choose another folder"
    )
    with pytest.raises(BrokerFailed, match="is in use"):
        broker.start()
    assert broker.running


def test_a_busy_port_is_refused(broker: EmbeddedKafka, tmp_path: Path) -> None:
    second = EmbeddedKafka(tmp_path, broker.port)
    with pytest.raises(BrokerFailed, match=rf"^port {broker.port} of 127\.0\.0\.1 is in use"):
        second.start()
    assert running_broker(tmp_path) is None


def test_a_broker_that_cannot_start_says_why_in_one_line(broker: EmbeddedKafka) -> None:
    broker.stop()
    wrong = EmbeddedKafka(broker.folder, settings={"num.io.threads": "many"})
    with pytest.raises(BrokerFailed) as caught:
        wrong.start()
    assert str(caught.value) == (
        f"the embedded Kafka in {broker.folder} did not start: ConfigException: Invalid value many "
        "for configuration num.io.threads: Not a number of type INT; "
        f"see {broker.folder / 'kafka.log'}"
    )
    assert running_broker(broker.folder) is None
    broker.start()


def test_a_folder_that_cannot_be_formatted_is_left_unformatted(tmp_path: Path) -> None:
    wrong = EmbeddedKafka(tmp_path, settings={"num.io.threads": "many"})
    with pytest.raises(BrokerFailed, match=r"^cannot format .*: ConfigException: Invalid value"):
        wrong.start()
    assert not (tmp_path / "logs").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.properties").mkdir()
    with pytest.raises(BrokerFailed, match=r"^cannot start a broker in .*Is a directory"):
        EmbeddedKafka(tmp_path).start()


def test_one_that_is_too_slow_is_ended(tmp_path: Path) -> None:
    slow = EmbeddedKafka(tmp_path, start_timeout_s=0)
    with pytest.raises(BrokerFailed, match=r"does not answer on 127\.0\.0\.1:\d+ after 0 s; see "):
        slow.start()
    assert not psutil.pid_exists(slow.pid)


def test_no_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BrokerFailed, match=r"^no java on PATH"):
        EmbeddedKafka(tmp_path).start()


def test_it_dies_with_its_owner_and_the_next_owner_takes_over(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, port = map(int, owner.stdout.readline().split())
        assert answers(f"127.0.0.1:{port}", 30)
        owner.kill()
    # At once: the orphan may still be ending, the folder and the port are waited for.
    with EmbeddedKafka(tmp_path, port) as heir:
        eventually(lambda: not psutil.pid_exists(pid), 10)
        assert heir.pid != pid
        assert answers(heir.bootstrap_servers, 30)


def test_it_dies_with_its_owner_even_when_suspended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline().split()[0])
        psutil.Process(pid).suspend()
        owner.kill()
    eventually(lambda: not psutil.pid_exists(pid), 30)


def test_stop_on_a_folder_stops_whoever_runs_there(broker: EmbeddedKafka) -> None:
    state = running_broker(broker.folder)
    assert state == broker.state
    assert stop_broker(broker.folder) == state
    assert broker.wait_dead(30)
    broker.raise_if_failed()  # it was told to
    assert stop_broker(broker.folder) is None
    broker.start()
