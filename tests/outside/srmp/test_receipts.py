"""Receipts we send: which, to whom, when again, and where never. SR-42 to SR-49, SR-81, SR-83"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from uuid import UUID, uuid4

import psutil
import pytest

from tests.outside.appliance import HOST, Appliance
from tests.outside.srmp.bench import PEER, PEER_IP, Topics, settle
from tests.outside.srmp.catcher import Box, Catcher, Caught
from tests.outside.srmp.conftest import Connect
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import ZERO, Flow, Mail, Receipt, correlation, url
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def delivery(to: str) -> str:
    return f"<deliveryReceiptRequest><sendTo>{to}</sendTo></deliveryReceiptRequest>"


def commitment(to: str, flags: str = "<positiveOnly/>") -> str:
    inner = f"<sendTo>{to}</sendTo>{flags}"
    return f"<commitmentReceiptRequest>{inner}</commitmentReceiptRequest>"


def expected(mail: Mail, box: Box, appliance: Appliance, like: Receipt) -> Receipt:
    """What a delivery or commitment receipt says, but for its own id and times. 3.7"""
    positive = like.type == "commitment"
    return Receipt(
        type="commitment" if positive else "delivery",
        action=f"MSMQ:{mail.label}",
        to=box.url,
        via=mail.to,
        number=like.number,
        source=appliance.guid,
        sent=like.sent,
        kind=16384 if positive else 2,
        priority=3,
        correlation=correlation(mail.source, mail.number),
        at=like.at,
        acked=f"uuid:{mail.number}@{mail.source}",
        decision="positive" if positive else "",
    )


# -- which receipts -------------------------------------------------------------------------


def test_a_delivery_receipt(poster: Poster, appliance: Appliance, box: Box) -> None:
    """SR-42: after the commit; V6: its Correlation is the original Identifier."""
    source = UUID("32221eda-9376-46df-b6ed-783091123831")
    mail = Mail(
        to=url("plain"), source=source, number=32852, label="order 1", services=delivery(box.url)
    )
    before = int(time.time())
    assert poster.post(mail) == 200
    [receipt] = box.wait(1)
    assert receipt == expected(mail, box, appliance, receipt)
    assert receipt.correlation == "2h4iMnaT30a27XgwkRI4MVSAAAA="
    assert before - 1 <= receipt.at <= receipt.sent <= time.time() + 1


def test_both_receipts(poster: Poster, appliance: Appliance, catcher: Catcher) -> None:
    """SR-47: each to the queue its request names; SR-46: the broker has it, so it is received."""
    one, two = catcher.box(), catcher.box()
    for services in (
        delivery(one.url) + commitment(two.url),
        commitment(two.url, "<negativeOnly/><positiveOnly/>") + delivery(one.url),
    ):
        mail = Mail(to=url("plain"), services=f"<durable/>{services}", label="both")
        seen = len(one.receipts)
        assert poster.post(mail) == 200
        for box, name in ((one, "delivery"), (two, "commitment")):
            receipt = box.wait(seen + 1)[seen]
            assert receipt.type == name
            assert receipt == expected(mail, box, appliance, receipt)
    assert (len(one.receipts), len(two.receipts)) == (2, 2)


def test_one_queue_for_both(poster: Poster, box: Box) -> None:
    """SR-47: as Windows senders have it."""
    mail = Mail(to=url("plain"), services=delivery(box.url) + commitment(box.url))
    assert poster.post(mail) == 200
    assert {one.type for one in box.wait(2)} == {"delivery", "commitment"}


def test_labels_are_repeated(poster: Poster, box: Box) -> None:
    """3.7, <6>: the original's label; bare `MSMQ:` if its action had no prefix."""
    labels = {"Größe 中📦": "MSMQ:Größe 中📦", 'a <b> & "c"': 'MSMQ:a &lt;b&gt; &amp; "c"'}
    for label, action in labels.items():
        seen = len(box.receipts)
        assert poster.post(Mail(to=url("plain"), label=label, services=delivery(box.url))) == 200
        assert box.wait(seen + 1)[seen].action in (action, action.replace('"', "&quot;"))
    mail = Mail(to=url("plain"), action="Generic label", services=delivery(box.url))
    assert poster.post(mail) == 200
    assert box.wait(3)[2].action == "MSMQ:"


def test_no_receipt_that_nobody_asked_for(
    poster: Poster, topics: Topics, catcher: Catcher, box: Box
) -> None:
    """SR-44: no flags = no receipt at all; negativeOnly is not for a message that was received."""
    mails = [
        Mail(to=url("plain"), services=services, flags=flags)
        for services, flags in (
            ("", ""),
            ("<durable/>", "<Journal/><DeadLetter/>"),
            (commitment(box.url, ""), ""),
            (commitment(box.url, "<negativeOnly/>"), "<DeadLetter/>"),
        )
    ]
    assert poster.post_all(mails) == [200] * len(mails)
    assert all(topics.with_id(mail.id) for mail in mails)
    settle(poster, catcher)
    assert box.caught == []


def test_no_receipt_for_what_was_not_taken(poster: Poster, catcher: Catcher, box: Box) -> None:
    """SR-42: only after insertion; SR-44: other reasons have no receipt. SR-5, SR-7, SR-26"""
    services = delivery(box.url) + commitment(box.url, "<positiveOnly/><negativeOnly/>")
    found = [
        poster.post(Mail(to=url(name), services=services, body=b"b" * size))
        for name, size in (("nowhere", 1), ("orders", 1), ("full", 8192), ("closed", 1))
    ]
    assert found == [400, 400, 500, 200]
    assert poster.post(Mail(to=url("signed"), services=services)) == 200
    settle(poster, catcher)
    assert box.caught == []


def test_final_receipts_of_a_stream(
    poster: Poster, appliance: Appliance, topics: Topics, catcher: Catcher
) -> None:
    """SR-45: streamReceipt and commitmentReceipt for each message with DeadLetter, and only those;
    besides them the requests of services are served. SR-42: delivery receipts for streams too."""
    box, asked, arrived = catcher.box(), catcher.box(), catcher.box()
    flow = Flow(to=url("orders"), receipts=box.url)
    services = f"<durable/>{commitment(asked.url)}{delivery(arrived.url)}"
    mails = [
        flow.mail(1, label="one"),
        flow.mail(2, flags="<DeadLetter/>", label="two"),
        flow.mail(3, flags="<Journal/>", services=services, label="three"),
        flow.mail(4, flags="<DeadLetter/>", services=services, label="four"),
    ]
    assert poster.post_all(mails) == [200] * 4
    box.wait_last(4)
    receipts = box.until(lambda all_: sum(one.type == "final" for one in all_) == 2)
    for number, receipt in zip(
        (2, 4), [one for one in receipts if one.type == "final"], strict=True
    ):
        mail = mails[number - 1]
        assert receipt == Receipt(
            type="final",
            action="MSMQ:QM Ordering Ack",
            to=box.url,
            via=flow.to,
            number=receipt.number,
            source=appliance.guid,
            sent=receipt.sent,
            kind=16384,
            priority=0,
            correlation=ZERO,
            stream=flow.stream,
            last=number,
            at=receipt.at,
            acked=f"uuid:{mail.number}@{mail.source}",
            decision="positive",
        )
    for other, name in ((asked, "commitment"), (arrived, "delivery")):
        assert [(one.type, one.action) for one in other.wait(2)] == [
            (name, "MSMQ:three"),
            (name, "MSMQ:four"),
        ]
    for place, one in enumerate(receipts):  # what has arrived is told before what became of it
        told = [before.last for before in receipts[:place] if before.type == "stream"]
        assert one.type != "final" or max(told, default=0) >= one.last
    assert topics.numbers("orders", flow) == [1, 2, 3, 4]
    settle(poster, catcher)
    assert {one.type for one in box.receipts} == {"stream", "final"}
    assert sum(one.type == "final" for one in box.receipts) == 2


# -- again, and never again -----------------------------------------------------------------


@pytest.fixture
def others() -> Iterator[list[Catcher]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Catcher()) for _ in range(5)]


def test_what_an_answer_means(poster: Poster, topics: Topics, others: list[Catcher]) -> None:
    """1.4: 2xx is success, 400 is for ever, everything else is tried again; SR-49: no redirects.

    Each at a port of its own: one that is in trouble must not hold up another.
    """
    failing, gone, refusing, moving, busy = (one.box() for one in others)
    trap = others[0].box()
    failing.plan(500)
    refusing.plan(400)
    moving.plan(302, location=trap.url)
    busy.plan(404)
    others[1].down()
    mails = [
        Mail(to=url("plain"), services=delivery(box.url), label=box.path)
        for box in (failing, gone, refusing, moving, busy)
    ]
    assert poster.post_all(mails) == [200] * 5
    assert all(topics.with_id(mail.id) for mail in mails)  # they do not wait for their receipts
    for box in (failing, refusing, moving, busy):
        box.wait(1)
    others[1].up()
    seconds = 70.0  # SR-76: every 20 s or sooner
    gone.wait(1, seconds)
    for box, times in ((failing, 2), (moving, 2), (busy, 2)):
        receipts = box.wait(times, seconds)
        assert len({one.number for one in receipts}) == 1  # the same receipt
        assert box.caught[-1].answer == 200
        assert len(receipts) == times
    assert len(refusing.caught) == 1
    assert trap.caught == []


def test_a_queue_in_trouble_does_not_hold_up_its_neighbour(
    poster: Poster, others: list[Catcher]
) -> None:
    """SR-70, SR-75: it is a queue that becomes Inactive, not the host it is on."""
    bad, good = others[0].box(), others[0].box()
    bad.plan(500)
    assert poster.post(Mail(to=url("plain"), services=delivery(bad.url))) == 200
    bad.wait(1)
    flow = Flow(to=url("orders"), receipts=good.url)
    asking = Mail(to=url("plain"), services=delivery(good.url))
    assert poster.post_all([flow.mail(1), asking]) == [200] * 2
    good.until(lambda found: {one.type for one in found} == {"stream", "delivery"}, 60)
    assert len(bad.caught) == 1  # its second try is not due yet


def test_receipts_survive_a_kill(
    connect: Connect, appliance: Appliance, topics: Topics, others: list[Catcher]
) -> None:
    """SR-81 to SR-83: the catcher is away, kill -9, an empty data folder: they come, once.

    And no id is used again, not even after a crash (SR-80, SR-82).
    """
    box, wanted, before = others[0].box(), others[0].box(), others[0].box()
    mails = [Mail(to=url("plain"), services=delivery(before.url)) for _ in range(5)]
    assert connect().post_all(mails) == [200] * 5
    before.wait(5)
    others[0].down()
    flow = Flow(to=url("orders"), receipts=box.url)
    mail = Mail(to=url("plain"), services=delivery(wanted.url) + commitment(wanted.url))
    last = flow.mail(3, flags="<DeadLetter/>")
    assert connect().post_all([mail, flow.mail(1), flow.mail(2), last]) == [200] * 4
    appliance.kill()
    others[0].up()
    appliance.restart(empty_data=True)
    assert {one.type for one in wanted.wait(2, 60)} == {"delivery", "commitment"}
    receipts = box.until(lambda found: {one.type for one in found} == {"stream", "final"}, 60)
    assert {one.last for one in receipts} == {3}
    assert topics.numbers("orders", flow) == [1, 2, 3]
    assert connect().post_all([replace(one, source=uuid4()) for one in mails]) == [200] * 5
    numbers = [one.number for one in (*before.wait(10), *receipts, *wanted.receipts)]
    assert len(numbers) == len(set(numbers)) >= 14


# -- where they go, and where never ---------------------------------------------------------


def remote_hosts(appliance: Appliance) -> set[str]:
    """Whoever the process has a connection to, or tries to."""
    found = psutil.Process(appliance.pid).net_connections("inet")
    return {one.raddr.ip for one in found if one.raddr}


@pytest.mark.parametrize("host", ["192.0.2.1", "169.254.169.254", "[fe80::1]", "0.0.0.0"])
def test_no_receipt_to_a_stranger(
    poster: Poster,
    appliance: Appliance,
    topics: Topics,
    catcher: Catcher,
    host: str,
) -> None:
    """The message is taken, the host is not called: receipts go to the sender's own address, at the
    port and path of the URL. Link-local is never allowed."""
    there = f"http://{host}:{catcher.port}/msmq/private$/x{uuid4().hex}"
    mail = Mail(to=url("plain"), services=delivery(there) + commitment(there))
    flow = Flow(to=url("orders"), receipts=there)
    assert poster.post_all([mail, flow.mail(1), flow.mail(2)]) == [200] * 3
    assert topics.with_id(mail.id)
    assert topics.numbers("orders", flow) == [1, 2]
    settle(poster, catcher)
    assert not remote_hosts(appliance) & {host.strip("[]")}
    catcher.wait(lambda: len(_caught(catcher, there)) >= 3, 20)
    assert {one.reached for one in _caught(catcher, there)} == {poster.local}  # the sender's
    assert {one.headers["host"] for one in _caught(catcher, there)} == {f"{host}:{catcher.port}"}


def _caught(catcher: Catcher, there: str) -> list[Caught]:
    return [one for one in catcher.everything if one.target in there]


def test_a_name_is_not_trusted(poster: Poster, topics: Topics, catcher: Catcher) -> None:
    """Tricks with URLs do not change the host: an unknown one is the sender's own address."""
    port = catcher.port
    secret = uuid4().hex
    urls = [
        f"http://stranger.invalid:{port}/{secret}",
        f"http://127.0.0.1.stranger.invalid:{port}/{secret}",
        f"http://127.0.0.1:{port}@stranger.invalid:{port}/{secret}",
        f"http://stranger.invalid#@127.0.0.1:{port}/{secret}",
        f"http://stranger.invalid:99999/{secret}",
        f"http://[::/{secret}",
    ]
    mails = [Mail(to=url("plain"), services=delivery(one), body=b"x") for one in urls]
    answers = [poster.post(mail) for mail in mails]
    assert set(answers) <= {200, 400}
    for mail, answer in zip(mails, answers, strict=True):
        assert len(topics.with_id(mail.id)) == (answer == 200)
    assert answers[:2] == [200, 200]
    settle(poster, catcher)
    catcher.wait(lambda: sum(secret in one.target for one in catcher.everything) >= 2, 20)
    caught = [one for one in catcher.everything if secret in one.target]
    assert {one.reached for one in caught} == {poster.local}
    assert {one.headers["host"] for one in caught} == {
        f"stranger.invalid:{port}",
        f"127.0.0.1.stranger.invalid:{port}",
    }


def test_a_url_cannot_write_a_request(poster: Poster, catcher: Catcher) -> None:
    """A line end in a url must not become one in the head."""
    box = catcher.box()
    for evil in (
        "&#13;&#10;X-Evil: 1",
        "%0d%0aX-Evil: 1",
        " HTTP/1.1&#13;&#10;&#13;&#10;GET /evil",
    ):
        text = delivery(f"{box.url}{evil}")
        assert poster.post(Mail(to=url("plain"), services=text)) in (200, 400)
    settle(poster, catcher)
    for one in catcher.everything:
        assert "x-evil" not in one.headers
        assert one.method == "POST"


def test_peers_are_reached_where_they_are(poster: Poster, catcher: Catcher) -> None:
    """8.1: name overrides. The host of `peers`, the port of the url; `to` and Host stay."""
    box = catcher.box(PEER.upper())
    mail = Mail(to=url("plain"), services=delivery(box.url))
    flow = Flow(to=url("orders"), receipts=box.url)
    assert poster.post_all([mail, flow.mail(1)]) == [200] * 2
    box.until(lambda found: {one.type for one in found} == {"delivery", "stream"})
    assert {one.to for one in box.receipts} == {box.url}
    assert {one.reached for one in box.caught} == {PEER_IP}
    hosts = {one.headers["host"].lower() for one in box.caught}
    assert hosts == {f"{PEER}:{catcher.port}"}


def test_a_receipt_does_not_go_to_a_queue_of_ours(
    poster: Poster, appliance: Appliance, topics: Topics
) -> None:
    """It would be a way to any of our ports; `redirect_out` is the operator's way to allow it."""
    host, port = appliance.srmp_address
    there = f"http://{host}:{port}/MSMQ/private$/plain2?{uuid4().hex}"
    mail = Mail(to=url("plain"), services=delivery(there) + commitment(there), label="to us")
    assert poster.post(mail) == 200
    eventually(lambda: appliance.log.count(f"no receipt for {there}") == 2)
    assert not [one for one in topics.all("plain2") if one.header.get("msmq.label") == b"to us"]


def test_we_take_what_we_send_as_a_receipt(
    poster: Poster, appliance: Appliance, catcher: Catcher, topics: Topics
) -> None:
    """SR-50: receipts for a host that is found elsewhere come to us, as that host would post them;
    a receipt asks for no receipt."""
    box = catcher.box_at("machine1", "plain2", f"?{uuid4().hex}")
    there = f"http://machine1{box.path}"
    mail = Mail(to=url("plain"), services=delivery(there) + commitment(there), label="for us")
    assert poster.post(mail) == 200
    box.wait(2)
    for one in box.caught:
        body = one.body.replace(there.encode(), url("plain2").encode())
        head = f"POST /msmq/private$/plain2 HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: text/xml\r\n"
        head += f'SOAPAction: "MSMQMessage"\r\nContent-Length: {len(body)}\r\n\r\n'
        assert poster.post(head.encode() + body) == 200
    ours = str(appliance.guid).encode()

    def found() -> list[bytes]:
        wanted = [one for one in topics.all("plain2") if one.header.get("msmq.source") == ours]
        wanted = [one for one in wanted if one.header.get("msmq.label") == b"for us"]
        return sorted(one.header["msmq.class"] for one in wanted)

    eventually(lambda: len(found()) >= 2)
    assert found() == [b"16384", b"2"]


def test_redirect_out(poster: Poster, catcher: Catcher) -> None:
    """SR-18: connect to the host of To; the message, `to` and the path stay."""
    box = catcher.box_at("machine1", f"Out-{uuid4().hex[:8]}")
    there = f"http://machine1{box.path}"
    flow = Flow(to=url("orders"), receipts=there)
    asking = Mail(to=url("plain"), services=delivery(there))
    assert poster.post_all([flow.mail(1), asking]) == [200] * 2
    receipts = box.until(lambda found: {one.type for one in found} == {"delivery", "stream"})
    assert {one.to for one in receipts} == {there}
    assert {one.headers["host"] for one in box.caught} == {"machine1"}
