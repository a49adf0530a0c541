"""The settings themselves; how a file of them is read is tested in adapters/test_config_files."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bridge.config import (
    Address,
    Config,
    ListenConfig,
    PeerName,
    QueueManagerConfig,
    ReceiptTarget,
    Redirect,
    Router,
    RpcConfig,
    Secret,
    SrmpConfig,
)
from bridge.model.errors import ConfigError
from bridge.model.guid import NULL_GUID

GUID_TEXT = "11111111-2222-3333-4444-555555555555"


def test_the_defaults_of_the_design() -> None:
    config = Config()
    assert config.queue_manager == QueueManagerConfig(
        id=None,
        names=(),
        quota_kb=8388608,
        insecure_nacks=False,
        clock_skew_s=0,
        pin_senders="warn",
        adopt_streams="ask",
    )
    ports = msgspec.structs.asdict(config.listen)
    assert ports == {
        "host": "0.0.0.0",
        "binary": 1801,
        "ping": 3527,
        "srmp": 80,
        "srmp_tls": None,
        "rpc": 2103,
        "rpc_qp": 2105,
        "endpoint_mapper": 135,
        "lease": 0,
        "admin": 9180,
        "admin_host": "127.0.0.1",
        "per_address": 1024,
    }
    assert config.srmp.receipt_targets == ("sender",)
    assert config.rpc.minimum_level == "privacy"
    assert (config.topic_prefix, config.shards) == ("_msmq-bridge", 2)


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Config().shards = 3  # type: ignore[misc]


def test_every_key_of_the_tree_is_closed() -> None:
    values = [getattr(Config(), name) for name in Config.__struct_fields__]
    parts = [value for value in values if isinstance(value, msgspec.Struct)]
    assert len(parts) == 7
    assert all(part.__struct_config__.forbid_unknown_fields for part in (*parts, Config()))


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("10.0.0.7:1802", "10.0.0.7", 1802, "10.0.0.7:1802"),
        ("sender01", "sender01", 1801, "sender01:1801"),
        ("[FD00::0007]:99", "fd00::7", 99, "[fd00::7]:99"),
        ("[::1]", "::1", 1801, "[::1]:1801"),
    ],
)
def test_an_address(text: str, host: str, port: int, shown: str) -> None:
    address = Address.parse(text)
    assert address == Address(host, port)
    assert str(address) == shown


def refuses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    "text", ["", ":1801", "a:", "a:0", "a:65536", "a b", "[1.2.3.4]", "::1", "a:1:2", "u@h", "a/b"]
)
def test_not_an_address(text: str) -> None:
    assert refuses(Address.parse, text)


@pytest.mark.parametrize(
    "text", ["*", "sender", "host", "host:80", "10.0.0.0/8", "fd00::/8", "::1", "[::1]:80"]
)
def test_a_receipt_target(text: str) -> None:  # SR-49
    assert ReceiptTarget.parse(text) == text


@pytest.mark.parametrize("text", ["", "a b", "10.0.0.1/8", "http://a/", "1:2:3", "host:0"])
def test_not_a_receipt_target(text: str) -> None:
    assert refuses(ReceiptTarget.parse, text)


def test_the_case_of_a_peer_does_not_count() -> None:
    assert PeerName.parse("SENDER01") == "sender01"
    with pytest.raises(ValueError, match="name"):
        PeerName.parse("{1111}")


def test_a_port_is_given_once() -> None:
    with pytest.raises(ConfigError, match="both 1801") as caught:
        ListenConfig(rpc=1801)
    assert caught.value.where == "rpc"
    ListenConfig(binary=0, rpc=0, srmp=None, srmp_tls=None)  # free or off is no clash
    ListenConfig(ping=1801)  # UDP


def test_redirects_are_urls() -> None:  # SR-14
    Redirect(source="https://a:8443/x/*", target="http://b")
    for source, target, where in [
        ("a", "http://b", "from"),
        ("http://a*b/", "http://b", "from"),
        ("http://a/", "http://b/*", "to"),
    ]:
        with pytest.raises(ConfigError) as caught:
            Redirect(source=source, target=target)
        assert caught.value.where == where


@pytest.mark.parametrize("name", ["transactional.id", "acks", "enable.idempotence"])
def test_what_exactly_once_rests_on_is_ours(name: str) -> None:
    with pytest.raises(ConfigError, match="set by the bridge") as caught:
        Config(kafka={name: 0})
    assert caught.value.where == f"kafka/{name}"


def test_our_own_values_may_be_repeated() -> None:
    Config(kafka={"acks": "all", "enable.idempotence": True, "isolation.level": "read_committed"})


def test_rules_of_single_values() -> None:
    with pytest.raises(ConfigError, match="zeros"):
        QueueManagerConfig(id=NULL_GUID)
    with pytest.raises(ConfigError, match="more than 0"):
        RpcConfig(release_after_s=0)
    for file, env in ((None, None), (Path("x"), "Y"), (None, "")):
        with pytest.raises(ConfigError, match="either"):
            Secret(file=file, env=env)


def test_a_standby_needs_a_kafka_of_both() -> None:
    with pytest.raises(ConfigError, match=r"set kafka\.bootstrap\.servers"):
        Config(standby=True)
    assert Config(standby=True, kafka={"bootstrap.servers": "broker:9092"}).lease_s == 6.0
    assert not Config().standby


@pytest.mark.parametrize(
    "text",
    ["10.0.0.5", "10.0.0.0/8", "fd00::/8", GUID_TEXT, f"{GUID_TEXT}@10.0.0.0/8"],
)
def test_routers(text: str) -> None:
    assert Router.parse(text) == text


@pytest.mark.parametrize("text", ["", "router01", "S-1-1-0", f"{GUID_TEXT}@", f"{GUID_TEXT}@x"])
def test_not_a_router(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Router.parse(text)


@pytest.mark.parametrize(
    ("text", "host", "shown"),
    [
        ("[::1]:1801", "::1", "[::1]:1801"),
        ("[FE80:0::1%eth0]:1801", "fe80::1%eth0", "[fe80::1%eth0]:1801"),
        ("[fd00::7]", "fd00::7", "[fd00::7]:1801"),
        ("[::ffff:10.1.2.3]:1801", "10.1.2.3", "10.1.2.3:1801"),
    ],
)
def test_ipv6_addresses(text: str, host: str, shown: str) -> None:
    address = Address.parse(text)
    assert (address.host, str(address)) == (host, shown)


def test_names_of_peers_have_one_spelling() -> None:
    assert PeerName.parse("[FD00:0::7]") == PeerName.parse("fd00::7") == "fd00::7"
    assert PeerName.parse("::ffff:10.1.2.3") == "10.1.2.3"
    assert PeerName.parse("Sender01") == "sender01"


def test_client_certificates_need_https() -> None:
    srmp = SrmpConfig(client_ca=Path("ca.pem"))
    with pytest.raises(ConfigError, match=r"listen\.srmp_tls") as caught:
        Config(srmp=srmp)
    assert caught.value.where == "srmp/client_ca"
    assert Config(srmp=srmp, listen=ListenConfig(srmp_tls=443)).srmp is srmp
