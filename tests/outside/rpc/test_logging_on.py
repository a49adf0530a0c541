"""Who gets in by NTLM, with stock impacket: domains, short keys, guessing; and without users."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from impacket import ntlm
from impacket.dcerpc.v5.rpcrt import DCERPCException

from tests.outside.appliance import Appliance, Settings
from tests.outside.conftest import Broker
from tests.outside.records import create_topics
from tests.outside.rpc.conftest import OpenReader, path
from tests.outside.rpc.reader import Account, FaultError, Reader
from tests.outside.siege import sample

pytestmark = pytest.mark.kafka
ACCESS_DENIED = 5
SHORT = (ntlm.NTLMSSP_NEGOTIATE_128, ntlm.NTLMSSP_NEGOTIATE_128 | ntlm.NTLMSSP_NEGOTIATE_56)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues={"kept1": {"mode": "retain", "allow_read": ["*"]}},
        listen={"rpc": 0},
        users={"ann": "secret", "SHOP\\bob": "hidden", "eve": "other"},
    )


def gets_in(open_reader: OpenReader, account: Account) -> bool:
    try:
        return bool(open_reader(account).open(path("kept1")))
    except FaultError as fault:
        if fault.status != ACCESS_DENIED:
            raise
        return False


@pytest.mark.parametrize(
    ("name", "domain", "is_let_in"),
    [
        ("ann", "", True),
        ("ann", "BRIDGE01", True),
        ("ann", "bridge01", True),
        ("ann", ".", True),
        ("ann", "WORKGROUP", True),
        ("ann", "SHOP", False),
        ("ann", "EVIL", False),
        ("bob", "shop", True),
        ("bob", "", False),
        ("bob", "BRIDGE01", False),
    ],
)
def test_domains(open_reader: OpenReader, name: str, domain: str, is_let_in: bool) -> None:
    password = {"ann": "secret", "bob": "hidden"}[name]
    assert gets_in(open_reader, Account(name, password, domain)) is is_let_in


@pytest.mark.parametrize("level", [5, 6])
@pytest.mark.parametrize("flags", SHORT)
def test_a_client_with_short_keys(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch, flags: int, level: int
) -> None:
    """40 or 56 bits satisfy neither integrity nor privacy: the bind is refused."""
    make = ntlm.getNTLMSSPType1

    def weaker(*arguments: Any, **options: Any) -> Any:
        message = make(*arguments, **options)
        message["flags"] &= ~flags
        return message

    monkeypatch.setattr(ntlm, "getNTLMSSPType1", weaker)
    before = sample(appliance, "refusals_total", 'reason="rpc-auth-weak-key"')
    with pytest.raises(DCERPCException):
        Reader(appliance.listeners["rpc"], Account("ann", "secret", level=level))
    assert sample(appliance, "refusals_total", 'reason="rpc-auth-weak-key"') == before + 1


def test_an_old_client(
    appliance: Appliance, open_reader: OpenReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NTLMv1 with extended session security, as XP sends it: only with rpc.old_ntlm."""
    monkeypatch.setattr(ntlm, "USE_NTLMv2", False)
    assert not gets_in(open_reader, Account("ann", "secret"))
    assert sample(appliance, "refusals_total", 'reason="rpc-auth-old-ntlm"') == 1
    monkeypatch.undo()
    assert gets_in(open_reader, Account("ann", "secret"))


def test_guessing(appliance: Appliance, open_reader: OpenReader) -> None:
    """Five at once; then the right password, too, has to wait. Who has been in before has not."""
    assert gets_in(open_reader, Account("ann", "secret"))
    for number in range(5):
        assert not gets_in(open_reader, Account("eve", f"wrong{number}"))
    assert not gets_in(open_reader, Account("Eve", "other"))
    assert sample(appliance, "refusals_total", 'reason="rpc-auth-guessing"') == 1
    for number in range(20):
        gets_in(open_reader, Account(f"user{number}", "wrong"))
    assert sample(appliance, "refusals_total", 'reason="rpc-auth-guessing"') > 1
    assert gets_in(open_reader, Account("ann", "secret"))


@pytest.fixture
def without_users(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    prefix = f"outside-{uuid4().hex[:8]}"
    listen = {"rpc": 0, "rpc_qp": 0, "endpoint_mapper": 0}
    made = Appliance(
        tmp_path_factory.mktemp(prefix),
        kafka.bootstrap_servers,
        prefix,
        settings=Settings(listen={}),
    )
    create_topics(made.bootstrap, [made.topic(name) for name in made.queues])
    text = made.config.read_text()
    for name, port in listen.items():
        text = text.replace(f'"{name}": null', f'"{name}": {port}')
    made.config.write_text(text)
    made.start()
    yield made
    made.terminate()


def test_without_users_the_ports_stay_closed(without_users: Appliance) -> None:
    said = "\n".join(without_users.lines)
    assert not {"rpc", "rpc_qp", "endpoint_mapper"} & set(without_users.listeners)
    assert "closed: rpc, rpc_qp, endpoint_mapper (no rpc.users, no rpc.keytab)" in said
    assert said.count("set rpc.users or rpc.keytab") == 1
