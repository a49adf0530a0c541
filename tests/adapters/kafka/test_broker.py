import socket

import pytest

from bridge.adapters.kafka.broker import check_port, free_port, reason_in, settings_for
from bridge.model.errors import BrokerFailed

# As Kafka 4.3.1 logs it.
BIND_FAILURE = """\
2026-11-16 04:46:38,871 WARN QuorumController: [QuorumController id=1] Performing activation.
2026-11-16 04:46:40,415 ERROR DataPlaneAcceptor: Unable to start acceptor for PLAINTEXT
org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:19192.
	at kafka.network.Acceptor.openServerSocket(SocketServer.scala:615)
Caused by: java.net.BindException: Address already in use
2026-11-16 04:46:40,421 ERROR BrokerServer: [BrokerServer id=1] Received a fatal error
java.lang.RuntimeException: Unable to start acceptor for PLAINTEXT
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BIND_FAILURE, "KafkaException: Socket server failed to bind to 127.0.0.1:19192."),
        (
            'Exception in thread "main" org.apache.kafka.ConfigException: Bad value zero\n\tat x',
            "ConfigException: Bad value zero",
        ),
        (
            "Error: Could not find or load main class kafka.Kafka\nmore",
            "Could not find or load main class kafka.Kafka",
        ),
        ("2026-11-16 04:46:40,421 ERROR Kafka$: Exiting\n", "Exiting"),
        ("Killed\n\n", "Killed"),
        ("", "it said nothing"),
    ],
)
def test_one_line_tells_why_a_broker_ended(text: str, reason: str) -> None:
    assert reason_in(text.splitlines()) == reason


def test_a_busy_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerFailed) as caught:
            check_port(port)
    assert str(caught.value) == (
        f"port {port} of 127.0.0.1 is in use; stop what listens there or choose another port"
    )


def test_a_port_that_was_just_closed_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # leaves TIME_WAIT on our side
    check_port(port)


def test_the_broker_is_for_this_machine_only() -> None:
    settings = settings_for(free_port(), {})
    listeners = settings["listeners"].split(",")
    assert [listener.partition("://")[2].partition(":")[0] for listener in listeners] == [
        "127.0.0.1"
    ] * 2


def test_settings_can_be_overridden() -> None:
    settings = settings_for(9092, {"num.partitions": "1"})
    assert settings["num.partitions"] == "1"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
