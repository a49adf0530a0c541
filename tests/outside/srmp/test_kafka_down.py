"""Kafka stands still: nothing is accepted, nobody is told it was. Design D3, SR-3, SR-4

The appliance may send no receipts at all, so that this is tested too. SR-49
"""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import HOST, Appliance, Settings
from tests.outside.rawconnection import LOCAL, soon
from tests.outside.records import create_topics
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.post import HungUpError, Poster
from tests.outside.srmp.wire import Flow, Mail, request, url

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
ON = f"http://{HOST}/msmq/on"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, in place of the shared one: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("down")) as broker:
        yield broker


@pytest.fixture(scope="module")
def appliance(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory, catcher: Catcher
) -> Iterator[Appliance]:
    prefix = f"down-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    srmp = {
        "receipt_targets": [],
        "redirect_in": [{"from": ON, "to": f"http://far:{catcher.port}/MSMQ/Private$/away"}],
        "redirect_out": [{"from": "http://far/*", "to": f"http://127.0.0.1:{catcher.port}/"}],
    }
    settings = Settings(listen={"srmp": 0}, srmp=srmp)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues], 1)
    appliance.start()
    yield appliance
    appliance.terminate()


def answer(poster: Poster) -> int:
    """0 is the end of the connection: to a sender it means the same as 5xx. 1.4"""
    try:
        return poster.read_answer(soon(20)).status
    except HungUpError:
        return 0


def insist(appliance: Appliance, mail: Mail, box: Box) -> None:
    """As a sender does it: again, until it is taken."""
    deadline = soon(60)
    status = 0
    while status != 200:
        assert soon(0) < deadline, f"still {status}"
        with Poster(appliance.srmp_address).connect() as poster:
            status = poster.try_post(mail)
        if status != 200:
            box.pause(0.5)


def test_nothing_is_accepted(appliance: Appliance, kafka: EmbeddedKafka, catcher: Catcher) -> None:
    """5.1: store fails: 500, no change; SR-24: a retry after it is no duplicate.

    SR-4: an answer well inside 20 s. Then all is sent again, and is there once.
    """
    box, far = catcher.box(), catcher.box_at("far", "away")
    flow = Flow(to=url("orders"), receipts=box.url)
    mails = [
        flow.mail(1),
        Mail(to=url("plain"), body=b"express"),
        Mail(to=url("plain"), body=b"durable", services="<durable/>"),
        flow.mail(2),
        Mail(to=ON, body=b"to be forwarded"),  # SR-15
    ]
    posters = [Poster(appliance.srmp_address).connect() for _ in mails]
    kafka.suspend()
    try:
        for poster, mail in zip(posters, mails, strict=True):
            poster.send(request(mail))
        answers = [answer(poster) for poster in posters]
        assert set(answers) <= {0, 500, 503}
        assert not appliance.is_ready()
        assert far.caught == []
    finally:
        kafka.resume()
        for poster in posters:
            poster.close()
    for mail in mails:
        insist(appliance, mail, box)
    with Topics(appliance) as topics:
        assert topics.numbers("orders", flow) == [1, 2]
        for body in (b"express", b"durable"):
            assert len(topics.with_body(body)) == 1
    catcher.wait(lambda: far.caught, 20)
    _, _, body = request(replace(mails[-1], to=far.url)).partition(b"\r\n\r\n")
    assert {one.body for one in far.caught} == {body}  # maybe twice: its id tells the next hop


def test_no_targets_at_all(appliance: Appliance, catcher: Catcher) -> None:
    """SR-49: an empty list is nobody, not everybody; not even the sender itself."""
    box = catcher.box(LOCAL)
    flow = Flow(to=url("orders"), receipts=box.url)
    asked = f"<deliveryReceiptRequest><sendTo>{box.url}</sendTo></deliveryReceiptRequest>"
    mail = Mail(to=url("plain"), services=asked)
    for one in (flow.mail(1), mail, flow.mail(2)):
        insist(appliance, one, box)
    with Topics(appliance) as topics:
        assert topics.numbers("orders", flow) == [1, 2]
        assert len(topics.with_id(mail.id)) == 1
    box.pause(1.5)  # nothing tells that nothing comes
    assert box.caught == []
