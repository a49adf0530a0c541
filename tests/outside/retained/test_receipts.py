"""What senders over HTTP hear of messages that left a retained queue. SR-44, SR-45, SR-46; DM-17"""

import time

import pytest

from tests.outside.appliance import Appliance
from tests.outside.retained.clerk import DEADLETTER, Clerk, path
from tests.outside.srmp.bench import settle
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import ZERO, Flow, Mail, Receipt, correlation, date, url

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
WAYS = {"received": (0x4000, "positive"), "purged": (0xC001, "negative")}


def asked(one: Box, other: Box, flags: str) -> str:
    inner = f"<sendTo>{other.url}</sendTo>{flags}"
    return (
        f"<durable/><deliveryReceiptRequest><sendTo>{one.url}</sendTo></deliveryReceiptRequest>"
        f"<commitmentReceiptRequest>{inner}</commitmentReceiptRequest>"
    )


def leave(clerk: Clerk, way: str, queue: str, count: int) -> None:
    if way == "purged":
        assert clerk.purge(queue) == count
    else:
        assert len(clerk.receive_all(queue)) == count


@pytest.mark.parametrize("way", WAYS)
def test_commitment_receipts_leave_with_the_removal(
    appliance: Appliance, clerk: Clerk, poster: Poster, catcher: Catcher, way: str
) -> None:
    """SR-42: delivered when it is in its queue; SR-44: committed when it left, if that was asked
    for: positiveOnly, negativeOnly, both or neither."""
    arrived, gone = catcher.box(), catcher.box()
    kind, decision = WAYS[way]
    flags = ["<positiveOnly/>", "<negativeOnly/>", "<negativeOnly/><positiveOnly/>"]
    mails = [
        Mail(to=url("http"), body=one.encode(), label=one, services=asked(arrived, gone, one))
        for one in flags
    ]
    assert poster.post_all(mails) == [200] * 3
    assert {one.type for one in arrived.wait(3)} == {"delivery"}
    clerk.wait(path("http"), 3)
    settle(poster, catcher)
    assert gone.caught == []  # nobody has received them yet (SR-46)
    leave(clerk, way, path("http"), 3)
    wanted = [mails[0 if decision == "positive" else 1], mails[2]]
    receipts = gone.wait(2)
    for mail, receipt in zip(wanted, receipts, strict=True):
        assert receipt == Receipt(
            type="commitment",
            action=f"MSMQ:{mail.label}".replace("<", "&lt;").replace(">", "&gt;"),
            to=gone.url,
            via=mail.to,
            number=receipt.number,
            source=appliance.guid,
            sent=receipt.sent,
            kind=kind,
            priority=3,
            correlation=correlation(mail.source, mail.number),
            at=receipt.at,
            acked=f"uuid:{mail.number}@{mail.source}",
            decision=decision,
        )
    settle(poster, catcher)
    assert (len(arrived.receipts), len(gone.receipts)) == (3, 2)


@pytest.mark.parametrize("way", WAYS)
def test_final_receipts_of_a_stream_leave_with_the_removal(
    appliance: Appliance, clerk: Clerk, poster: Poster, box: Box, catcher: Catcher, way: str
) -> None:
    """SR-45: for each message with DeadLetter, and only those; the stream receipt comes at once."""
    kind, decision = WAYS[way]
    flow = Flow(to=url("httptx"), receipts=box.url)
    mails = [flow.mail(1), flow.mail(2, flags="<DeadLetter/>"), flow.mail(3, flags="<Journal/>")]
    assert poster.post_all(mails) == [200] * 3
    box.wait_last(3)
    clerk.wait(path("httptx"), 3)
    settle(poster, catcher)
    assert {one.type for one in box.receipts} == {"stream"}
    leave(clerk, way, path("httptx"), 3)
    [final] = [
        one
        for one in box.until(lambda found: any(one.type == "final" for one in found))
        if one.type == "final"
    ]
    assert final == Receipt(
        type="final",
        action="MSMQ:QM Ordering Ack",
        to=box.url,
        via=flow.to,
        number=final.number,
        source=appliance.guid,
        sent=final.sent,
        kind=kind,
        priority=0,
        correlation=ZERO,
        stream=flow.stream,
        last=2,
        at=final.at,
        acked=f"uuid:{mails[1].number}@{mails[1].source}",
        decision=decision,
    )
    settle(poster, catcher)
    assert [one.type for one in box.receipts].count("final") == 1


def test_receipts_survive_a_crash_between(
    appliance: Appliance, clerk: Clerk, catcher: Catcher
) -> None:
    """SR-48: all that a later receipt needs is kept with the message, in Kafka."""
    stream, gone = catcher.box(), catcher.box()
    flow = Flow(to=url("httptx"), receipts=stream.url)
    services = asked(catcher.box(), gone, "<positiveOnly/>")
    with Poster(appliance.srmp_address) as poster:
        mail = flow.mail(1, flags="<DeadLetter/>", services=services, label="kept")
        assert poster.connect().post(mail) == 200
    clerk.wait(path("httptx"), 1)
    appliance.restart(empty_data=True, kill=True)
    assert clerk.receive(path("httptx")) is not None
    [receipt] = gone.wait(1)
    assert (receipt.type, receipt.action, receipt.kind) == ("commitment", "MSMQ:kept", 16384)
    finals = stream.until(lambda found: any(one.type == "final" for one in found))
    assert [one.last for one in finals if one.type == "final"] == [1]


def test_a_purged_message_that_asked_for_it_is_a_dead_letter(
    clerk: Clerk, poster: Poster
) -> None:  # 2.14, MC-MQSRM 3.1.7.3.2: over HTTP also when it is purged, if it is plain
    before = clerk.holds(DEADLETTER)
    mails = [Mail(to=url("http"), body=b"dead", flags="<DeadLetter/>"), Mail(to=url("http"))]
    assert poster.post_all(mails) == [200] * 2
    clerk.wait(path("http"), 2)
    assert clerk.purge(path("http")) == 2
    [letter] = clerk.wait(DEADLETTER, before + 1)[before:]
    assert (letter.id, letter.body, letter.kind) == (mails[0].id, b"dead", 0xC001)


def test_a_message_whose_expires_at_has_passed_leaves_its_queue(
    clerk: Clerk, poster: Poster, catcher: Catcher
) -> None:
    """MC-MQSRM 2.2.5.1.1: it MUST be discarded; 3.1.5.1.5: class 49154, negative."""
    arrived, gone = catcher.box(), catcher.box()
    now = int(time.time())
    services = asked(arrived, gone, "<negativeOnly/>")
    mails = [
        Mail(to=url("http"), body=b"soon", expires=date(now + 3), services=services),
        Mail(to=url("http"), body=b"later", expires=date(now + 3600), services=services),
    ]
    assert poster.post_all(mails) == [200] * 2
    arrived.wait(2)
    [receipt] = gone.wait(1)
    assert (receipt.type, receipt.kind, receipt.decision) == ("commitment", 49154, "negative")
    assert receipt.acked == f"uuid:{mails[0].number}@{mails[0].source}"
    assert time.time() > now + 3
    assert [one.id for one in clerk.wait(path("http"), 1)] == [mails[1].id]
    assert clerk.purge(path("http")) == 1
