"""librdkafka's properties of `bridge.yaml` as those of the Java client in Spark's connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridge.model.errors import ConfigError

# The same in both.
_SAME: Final = frozenset(
    (
        *("bootstrap.servers", "security.protocol", "client.id", "client.rack"),
        *("sasl.kerberos.service.name", "ssl.key.password", "ssl.keystore.location"),
        *("ssl.keystore.password", "fetch.max.bytes", "request.timeout.ms"),
    )
)
_RENAMED: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.mechanism": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
}
_LOGIN: Final = ("sasl.username", "sasl.password")
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# A connection may rest on these; the rest is tuning, which the other client does in its own way.
_CONNECTION: Final = ("ssl.", "sasl.", "security.", "oauthbearer.")


def java_options(settings: Mapping[str, Any]) -> dict[str, str]:
    """Raises ConfigError for what a connection rests on and Java's client cannot be told so."""
    made: dict[str, str] = {}
    for name, value in settings.items():
        if name in _LOGIN:
            continue
        if name in _SAME:
            made[name] = _text(value)
        elif name in _RENAMED:
            made[_RENAMED[name]] = _text(value)
        elif name == "ssl.endpoint.identification.algorithm":
            made[name] = "" if _text(value) == "none" else _text(value)
        elif name.startswith(_CONNECTION):
            mend = "leave it out, or read exports on a host that needs no such property"
            raise ConfigError("has no counterpart in Spark", where=f"kafka.{name}", mend=mend)
    if "security.protocol" in made:
        made["security.protocol"] = made["security.protocol"].upper()
    if "ssl.truststore.location" in made:
        made["ssl.truststore.type"] = "PEM"
    if "sasl.username" in settings:
        made["sasl.jaas.config"] = _jaas(made.get("sasl.mechanism", "PLAIN"), settings)
    return made


def _jaas(mechanism: str, settings: Mapping[str, Any]) -> str:
    module = _MODULES.get(mechanism.upper())
    if module is None:
        mend = f"use one of {', '.join(_MODULES)}"
        raise ConfigError(
            f"{mechanism} takes no user name", where="kafka.sasl.mechanism", mend=mend
        )
    user, password = (_quoted(settings.get(name, "")) for name in _LOGIN)
    return f"{module} required username={user} password={password};"


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
