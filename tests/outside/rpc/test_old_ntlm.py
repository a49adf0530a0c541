"""Readers that send NTLMv1 with extended session security, with stock impacket. MS-NLMP 3.3.1"""

import pytest
from impacket import ntlm

from tests.outside.appliance import Appliance, Settings
from tests.outside.rpc.conftest import OpenReader, Send, path
from tests.outside.rpc.reader import Account, FaultError
from tests.outside.siege import sample

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues={f"kept{number}": {"mode": "retain", "allow_read": ["*"]} for number in range(1, 9)},
        listen={"rpc": 0},
        users={"ann": "secret", "eve": "other"},
        rpc={"old_ntlm": True, "minimum_level": "connect"},
    )


@pytest.fixture(autouse=True)
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """impacket: "if false will fall back to NTLMv1 (or NTLMv1 with ESS a.k.a NTLM2)"."""
    monkeypatch.setattr(ntlm, "USE_NTLMv2", False)


@pytest.mark.parametrize("level", [2, 5, 6])
def test_an_old_reader(
    appliance: Appliance, kept: str, send: Send, open_reader: OpenReader, level: int
) -> None:
    reader = open_reader(Account("ann", "secret", level=level))
    queue = reader.open(path(kept))
    send(kept, b"M1")
    assert reader.take(queue, timeout=30_000) == b"M1"
    said = [line for line in appliance.lines if "NTLM2-session" in line]
    assert len(said) == 1  # of one user, however often it logs on
    assert "ann" in said[0]


def test_a_wrong_password(appliance: Appliance, open_reader: OpenReader) -> None:
    before = sample(appliance, "refusals_total", 'reason="rpc-auth-failed"')
    with pytest.raises(FaultError) as caught:
        open_reader(Account("eve", "wrong")).open(path("kept1"))
    assert caught.value.status == 5
    assert sample(appliance, "refusals_total", 'reason="rpc-auth-failed"') == before + 1
