from __future__ import annotations

import pytest

from bridge.model.errors import (
    BridgeError,
    BrokerFailed,
    ConfigError,
    IllegalName,
    ProtocolError,
    SinkUnavailable,
    Unavailable,
    WireError,
)


def test_the_tree() -> None:
    assert issubclass(WireError, ProtocolError)
    for outage in (SinkUnavailable, BrokerFailed):
        assert issubclass(outage, Unavailable)
    for kind in (ConfigError, Unavailable, IllegalName, ProtocolError):
        assert issubclass(kind, BridgeError)


def test_a_protocol_error_has_a_label_to_count() -> None:
    fault = ProtocolError("bad-ack", "7 was never sent")
    assert (fault.reason, fault.detail) == ("bad-ack", "7 was never sent")
    assert str(fault) == "bad-ack: 7 was never sent"
    assert str(ProtocolError("idle")) == "idle"


def test_a_wire_error_says_field_value_and_rule() -> None:
    fault = WireError("BaseHeader.Signature", 5, "MS-MQQB 3.1.5.1.2")
    assert (fault.field, fault.value, fault.rule) == (
        "BaseHeader.Signature",
        5,
        "MS-MQQB 3.1.5.1.2",
    )
    assert fault.reason == "malformed"
    assert str(fault) == "malformed: BaseHeader.Signature=5 (MS-MQQB 3.1.5.1.2)"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError("no such port"), "no such port"),
        (ConfigError("no such port", where="a.yaml:3:1"), "a.yaml:3:1: no such port"),
        (
            ConfigError("no such port", where="a.yaml:3:1", mend="use 1801"),
            "a.yaml:3:1: no such port; use 1801",
        ),
        (IllegalName("DIRECT=x", "unknown protocol"), "'DIRECT=x': unknown protocol"),
    ],
)
def test_errors_read_as_one_line(error: BridgeError, text: str) -> None:
    assert str(error) == text


def test_illegal_names_have_their_hresult() -> None:  # MS-MQMQ 2.4
    assert IllegalName.HRESULT == 0xC00E001E
