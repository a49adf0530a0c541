"""The same connection, for the other client."""

import pytest

from bridge.model.errors import ConfigError
from msmq_jobs.sources.kafka_options import java_options


def test_a_plain_connection() -> None:
    assert java_options({"bootstrap.servers": "a:1,b:2", "linger.ms": 5}) == {
        "bootstrap.servers": "a:1,b:2"
    }


def test_user_and_password() -> None:
    made = java_options(
        {
            "bootstrap.servers": "a:1",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "bob",
            "sasl.password": 'se"c\\ret',
            "ssl.ca.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert made["security.protocol"] == "SASL_SSL"
    assert made["sasl.mechanism"] == "SCRAM-SHA-512"
    assert made["ssl.truststore.location"] == "/ca.pem"
    assert made["ssl.truststore.type"] == "PEM"
    assert made["ssl.endpoint.identification.algorithm"] == ""
    assert made["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="bob" password="se\\"c\\\\ret";'
    )
    assert "sasl.password" not in made


@pytest.mark.parametrize(
    "settings", [{"ssl.key.pem": "x"}, {"sasl.username": "a", "sasl.mechanism": "GSSAPI"}]
)
def test_what_has_no_counterpart_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"kafka\."):
        java_options(settings)
