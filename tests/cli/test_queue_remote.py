"""`msmq-bridge queue` against another host. MS-MQRR by the fake server of the digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.remote_host import Host
from tests.protocol.rpc.reader.running import ORDERS


def fill(host: Host, count: int) -> None:
    for number in range(count):
        host.fake.put(ORDERS, b"m%d" % number, label=f"label {number}")


def test_list(host: Host) -> None:
    fill(host, 2)
    first, second = host.told("queue", "list", "--queue", ORDERS, "--queue", "nope")
    assert (first["queue"], first["opens"], first["first"]["label"]) == (ORDERS, True, "label 0")
    assert (second["queue"], second["opens"], second["first"]) == ("nope", False, None)
    assert "no such queue" in second["error"]


def test_list_as_a_table(host: Host) -> None:
    fill(host, 1)
    host.fake.queues["empty"] = []
    assert host.run("queue", "list", "--queue", ORDERS, "--queue", "empty") == 0
    assert "label 0" in host.out
    assert "(empty)" in host.out


def test_list_without_names(host: Host) -> None:
    """Remote read cannot list: what every host has is tried, and the user is told."""
    host.fake.queues["system$;deadletter"] = []
    told = host.told("queue", "list")
    assert [row["queue"] for row in told] == [
        "system$;deadletter",
        "system$;deadxact",
        "system$;journal",
    ]
    assert [row["opens"] for row in told] == [True, False, False]
    assert "cannot list queues" in host.err


def test_list_when_none_opens(host: Host) -> None:
    assert host.run("queue", "list", "--queue", "nope") == 1
    assert "none of these queues opens" in host.err


def test_peek(host: Host) -> None:
    fill(host, 5)
    told = host.told("queue", "peek", ORDERS, "--limit", "2")
    assert [row["label"] for row in told] == ["label 0", "label 1"]
    last = told[-1]["lookup_id"]
    assert f"--after {last}" in host.err
    told = host.told("queue", "peek", ORDERS, "--after", str(last))
    assert [row["label"] for row in told] == ["label 2", "label 3", "label 4"]
    (one,) = host.told("queue", "peek", ORDERS, "--lookup-id", str(last))
    assert one["label"] == "label 1"
    assert len(host.fake.bodies(ORDERS)) == 5


def test_peek_a_body(host: Host, tmp_path: Path) -> None:
    fill(host, 2)
    out = tmp_path / "body"
    assert host.run("queue", "peek", ORDERS, "--raw", str(out)) == 0
    assert out.read_bytes() == b"m0"


def test_receive(host: Host) -> None:
    fill(host, 5)
    told = host.told("queue", "receive", ORDERS, "--count", "3")
    assert [row["label"] for row in told] == ["label 0", "label 1", "label 2"]
    assert host.fake.removed == [b"m0", b"m1", b"m2"]
    wanted = host.fake.queues[ORDERS][1].lookup_id
    (one,) = host.told("queue", "receive", ORDERS, "--lookup-id", str(wanted))
    assert one["label"] == "label 4"
    assert host.run("queue", "receive", ORDERS, "--lookup-id", str(wanted)) == 1
    assert str(wanted) in host.err


def test_receive_nothing(host: Host) -> None:
    assert host.run("queue", "receive", ORDERS) == 1
    assert "there is no message" in host.err


def test_purge(host: Host) -> None:
    fill(host, 2)
    assert host.run("queue", "purge", ORDERS) == 1  # nobody to ask
    assert "--yes" in host.err
    assert len(host.fake.bodies(ORDERS)) == 2
    assert host.told("queue", "purge", ORDERS, "--yes")["purged"] is True
    assert host.fake.bodies(ORDERS) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "peek", ORDERS, "--config", "bridge.yaml"),
        ("queue", "receive", ORDERS, "--config", "bridge.yaml"),
        ("queue", "purge", ORDERS, "--yes", "--config", "bridge.yaml"),
        ("queue", "list", "--config", "bridge.yaml"),
    ],
)
def test_one_place_only(host: Host, arguments: tuple[str, ...]) -> None:
    assert host.run(*arguments) == 1
    assert "--config: does not go with --host" in host.err


def test_a_queue_that_is_not_there(host: Host) -> None:
    assert host.run("queue", "peek", "nope") == 1
    assert "there is no such queue (0xC00E0003)" in host.err


def test_a_wrong_user(host: Host) -> None:
    assert host.run("queue", "peek", ORDERS, user="bob") == 1
    assert len(host.err.splitlines()) == 1
    assert "secret" not in host.err
    assert host.fake.calls == []


def test_nobody_there(host: Host) -> None:
    host.served.port = 1
    assert host.run("queue", "peek", ORDERS) == 1
    assert "127.0.0.1:1" in host.err
