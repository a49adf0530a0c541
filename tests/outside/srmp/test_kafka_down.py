"""Kafka stands still: nothing is accepted, nobody is told it was. Design D3, SR-3, SR-4"""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import Appliance, Settings
from tests.outside.rawconnection import soon
from tests.outside.records import create_topics
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.post import HungUpError, Poster
from tests.outside.srmp.wire import Flow, Mail, request, url

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, in place of the shared one: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("down")) as broker:
        yield broker


@pytest.fixture(scope="module")
def appliance(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Appliance]:
    prefix = f"down-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    settings = Settings(listen={"srmp": 0})
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


def test_nothing_is_accepted(appliance: Appliance, kafka: EmbeddedKafka, catcher: Catcher) -> None:
    """5.1: store fails: 500, no change; SR-24: a retry after it is no duplicate.

    SR-4: an answer well inside 20 s. Then all is sent again, and is there once.
    """
    box = catcher.box()
    flow = Flow(to=url("orders"), receipts=box.url)
    mails = [
        flow.mail(1),
        Mail(to=url("plain"), body=b"express"),
        Mail(to=url("plain"), body=b"durable", services="<durable/>"),
        flow.mail(2),
    ]
    kafka.suspend()
    try:
        posters = [Poster(appliance.srmp_address).connect() for _ in mails]
        for poster, mail in zip(posters, mails, strict=True):
            poster.send(request(mail))
        answers = [answer(poster) for poster in posters]
        assert set(answers) <= {0, 500, 503}
        assert box.caught == []
        assert not appliance.is_ready()
    finally:
        kafka.resume()
        for poster in posters:
            poster.close()
    with Topics(appliance) as topics:
        for mail in mails:
            deadline = soon(60)
            status = 0
            while status != 200:
                assert soon(0) < deadline, f"still {status}"
                with Poster(appliance.srmp_address).connect() as poster:
                    status = poster.try_post(mail)
                if status != 200:
                    box.pause(0.5)
        box.wait_last(2)
        assert topics.numbers("orders", flow) == [1, 2]
        for body in (b"express", b"durable"):
            assert len(topics.with_body(body)) == 1
