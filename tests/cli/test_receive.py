"""`msmq-bridge receive`: the other end of `send`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.remote_host import Host
from tests.cli.test_queue_remote import fill
from tests.protocol.rpc.reader.running import ORDERS


def test_receive(host: Host) -> None:
    fill(host, 4)
    told = host.told("receive", "--queue", ORDERS, "--count", "3")
    assert [row["body"] for row in told] == ["bTA=", "bTE=", "bTI="]
    assert host.fake.removed == [b"m0", b"m1", b"m2"]


def test_a_table_of_one(host: Host) -> None:
    fill(host, 1)
    assert host.run("receive", "--queue", ORDERS) == 0
    assert "label 0" in host.out


def test_its_body(host: Host, tmp_path: Path) -> None:
    fill(host, 2)
    out = tmp_path / "body"
    assert host.run("receive", "--queue", ORDERS, "--raw", str(out)) == 0
    assert out.read_bytes() == b"m0"
    assert host.fake.removed == [b"m0"]


def test_it_waits(host: Host) -> None:
    host.fake.on_wait = lambda: fill(host, 1)
    assert host.run("receive", "--queue", ORDERS, "--wait", "30") == 0
    assert host.fake.waits == [30_000]


def test_nothing(host: Host) -> None:
    assert host.run("receive", "--queue", ORDERS) == 1
    assert "there is no message" in host.err


def test_at_no_level(host: Host) -> None:
    fill(host, 1)
    assert host.run("receive", "--queue", ORDERS, "--level", "none", user=None) == 0


def test_a_format_name(host: Host) -> None:
    fill(host, 1)
    assert host.run("receive", "--queue", "DIRECT=OS:any\\private$\\orders") == 0
