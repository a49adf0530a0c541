"""What a stranger can make us keep is bounded, and another sender notices nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.rawmsmq import ACK_NA, Message, Name, direct
from tests.outside.rawsender import RawSender
from tests.outside.records import identity, of_source, read_topic
from tests.outside.siege import at_most, sample
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
MIB = 1 << 20
LARGE = bytes(MIB)
_ids = count(1)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(defaults={"unknown": "reject"})


@contextmanager
def sender_at(appliance: Appliance, ip: str) -> Iterator[RawSender]:
    with RawSender(appliance.binary_address) as sender:
        sender.local = ip
        sender.connect().handshake()
        yield sender


def refused(sender: RawSender, *, body: bytes = LARGE, admin: Name | None = None) -> Message:
    """A plain message to a transactional queue; with `admin`, its nack should go there."""
    asks = {} if admin is None else {"admin": admin, "acks": ACK_NA}
    return Message(
        source=sender.guid,
        message_id=next(_ids),
        destination=queue("orders"),
        body=body,
        recoverable=True,
        **asks,  # type: ignore[arg-type]
    )


def serves(appliance: Appliance, ip: str) -> None:
    """Another sender at another address has its message taken, and its reject is whole."""
    with sender_at(appliance, ip) as other:
        good = Message(
            source=other.guid,
            message_id=next(_ids),
            destination=queue("plain"),
            body=b"of somebody else",
            recoverable=True,
        )
        bad = refused(other, body=b"whole")
        other.send_all_windowed([good, bad])
        [record] = of_source(read_topic(appliance.bootstrap, appliance.topic("plain")), other.guid)
        assert record.value == b"of somebody else"
        rejects = read_topic(appliance.bootstrap, appliance.rejects_topic)
        [reject] = of_source(rejects, other.guid)
        assert reject.value == b"whole"


def test_nacks_to_hosts_that_never_answer(appliance: Appliance) -> None:
    """300 MiB of bodies should come back as nacks, each to another host where nothing listens."""
    hosts = [f"TCP:127.66.{n // 250}.{n % 250 + 1}\\private$\\a" for n in range(300)]
    with sender_at(appliance, "127.0.0.66") as stranger, at_most(appliance, 160):  # 66 measured
        for start in range(0, len(hosts), 20):
            part = hosts[start : start + 20]
            stranger.send_all_windowed([refused(stranger, admin=direct(host)) for host in part])
            assert sample(appliance, "dials") <= 8
        assert sample(appliance, "waiting_ack_bytes") <= 32 * MIB
        serves(appliance, "127.0.0.7")
    # What cannot be delivered is soon kept without the bodies.
    eventually(lambda: sample(appliance, "waiting_ack_bytes") < MIB, 120)
    assert sample(appliance, "waiting_acks") <= len(hosts)


def test_more_hosts_than_an_address_may_name(appliance: Appliance) -> None:
    with sender_at(appliance, "127.0.0.67") as stranger:
        messages = [
            refused(
                stranger,
                body=b"",
                admin=direct(f"TCP:127.67.{number // 250}.{number % 250 + 1}\\private$\\a"),
            )
            for number in range(2500)
        ]
        stranger.send_all_windowed(messages)
        assert sample(appliance, "ack_destinations") <= 2000 + 300
        assert sample(appliance, "dials") <= 16
        serves(appliance, "127.0.0.8")


def test_a_restart_loads_what_was_kept(appliance: Appliance) -> None:
    """And comes back with no more than that."""
    before = sample(appliance, "waiting_acks")
    appliance.kill()
    appliance.start()
    assert sample(appliance, "process_resident_memory_bytes") < 250 * MIB
    assert sample(appliance, "waiting_acks") <= before
    assert sample(appliance, "waiting_ack_bytes") <= 32 * MIB
    serves(appliance, "127.0.0.9")


def test_a_flood_of_refused_messages(appliance: Appliance) -> None:
    with sender_at(appliance, "127.0.0.68") as stranger:
        messages = [refused(stranger) for _ in range(60)]
        stranger.send_all_windowed(messages)
        serves(appliance, "127.0.0.10")
    rejects = of_source(read_topic(appliance.bootstrap, appliance.rejects_topic), stranger.guid)
    found = {record.header["msmq.id"]: record for record in rejects}
    assert found.keys() == {identity(m.source, m.message_id) for m in messages}
    bare = [record for record in rejects if not record.value]
    assert bare
    assert {record.header["msmq.body-omitted"] for record in bare} == {b"%d" % MIB}
    assert sample(appliance, "rejects_without_body") >= len(bare)
    audit = read_topic(appliance.bootstrap, appliance.audit_topic)
    verdicts = b"".join(record.value or b"" for record in audit)
    for message in messages:
        assert identity(message.source, message.message_id).replace(b"\\", b"\\\\") in verdicts
