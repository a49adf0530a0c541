"""The same message twice: SR-21 to SR-25."""

from dataclasses import replace
from functools import partial
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.siege import together
from tests.outside.srmp.bench import Topics, settle
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.conftest import Connect
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import NULL, Flow, Mail, request, text_request, url

pytestmark = pytest.mark.kafka


def token() -> bytes:
    return f"body {uuid4()}".encode()


def bodies(topics: Topics, mail: Mail) -> list[bytes]:
    return [one.value for one in topics.with_id(mail.id)]


def with_id_of(mail: Mail, guid: UUID) -> bytes:
    """The GUID in `id` is another than SourceQmGuid."""
    text = mail.envelope.replace(f"@{mail.source}</id>", f"@{guid}</id>")
    return text_request(text, mail.body)


def test_the_same_identifier_twice(poster: Poster, topics: Topics) -> None:
    """SR-21: discard, and 200; whatever else has changed. Express ones as well. An id counts in one
    queue: what is sent to another one is another message."""
    for services in ("", "<durable/>"):
        mail = Mail(to=url("plain"), body=token(), services=services)
        again = replace(mail, body=token(), label="other")
        other = replace(mail, body=token(), to=url("plain2"))
        assert [poster.post(one) for one in (mail, mail, again, other)] == [200] * 4
        assert sorted(bodies(topics, mail)) == sorted([mail.body, other.body])


def test_one_write_with_many_of_them(poster: Poster, topics: Topics) -> None:
    """SR-24: also while the first is not committed yet."""
    mails = [Mail(to=url("plain"), body=token()) for _ in range(5)]
    assert poster.post_all([*mails, *mails, *reversed(mails)]) == [200] * 15
    assert [bodies(topics, mail) for mail in mails] == [[mail.body] for mail in mails]


def test_many_connections_with_the_same(appliance: Appliance, topics: Topics) -> None:
    mails = [Mail(to=url("plain"), body=token()) for _ in range(10)]

    def send() -> None:
        with Poster(appliance.srmp_address).connect() as poster:
            assert poster.post_all(mails) == [200] * len(mails)

    together([partial(send)] * 6)
    assert [bodies(topics, mail) for mail in mails] == [[mail.body] for mail in mails]


def test_other_numbers_are_other_messages(poster: Poster, topics: Topics) -> None:
    source = uuid4()
    mails = [Mail(to=url("plain"), body=b"same", source=source, number=n) for n in range(1, 6)]
    assert poster.post_all(mails) == [200] * 5
    assert [bodies(topics, mail) for mail in mails] == [[b"same"]] * 5


def test_the_null_identifier_bypasses_it(poster: Poster, topics: Topics) -> None:
    """SR-21: {NULL, 1}, which every message without Msmq has; also when Msmq says so."""
    mark = token()
    bare = Mail(to=url("plain"), body=mark, bare=True)
    spelled = Mail(to=url("plain"), body=mark, source=NULL, number=1)
    assert poster.post_all([bare, bare, spelled, spelled]) == [200] * 4
    assert len(topics.with_body(mark)) == 4
    counted = Mail(to=url("plain"), body=token(), source=NULL, number=2**31 + 7)
    assert poster.post_all([counted, counted]) == [200] * 2
    assert len(topics.with_body(counted.body)) == 1


def test_the_source_makes_the_identity(poster: Poster, topics: Topics) -> None:
    """SR-23: {SourceQmGuid, n}; the GUID in `id` does not count."""
    one = Mail(to=url("plain"), body=token())
    other = replace(one, source=uuid4(), body=token())
    shared = uuid4()
    assert poster.post(with_id_of(one, shared)) == 200
    assert poster.post(with_id_of(other, shared)) == 200  # one `id`, two sources
    assert poster.post(with_id_of(one, uuid4())) == 200  # two `id`, one source
    assert bodies(topics, one) == [one.body]
    assert bodies(topics, other) == [other.body]


def test_a_refused_message_is_not_remembered(poster: Poster, topics: Topics) -> None:
    """SR-24: the id is recorded only if the message was stored; SR-5, SR-7, SR-26"""
    mail = Mail(to=url("nowhere"), body=token())
    assert poster.post(mail) == 400  # no such queue
    assert poster.post(replace(mail, to=url("orders"))) == 400  # a transactional one
    assert poster.post(text_request(mail.envelope.replace("<App>0", "<App>x"), b"")) == 400
    assert poster.post(replace(mail, to=url("full"), body=b"b" * 8192)) == 500  # its quota
    assert poster.post(replace(mail, to=url("closed"))) == 200  # no access
    assert bodies(topics, mail) == []
    assert poster.post_all([replace(mail, to=url("plain"))] * 2) == [200] * 2
    assert bodies(topics, mail) == [mail.body]


def test_streams_skip_the_table(poster: Poster, topics: Topics, box: Box) -> None:
    """SR-25: their numbers tell duplicates; three messages may share one Identifier."""
    flow, plain = Flow(to=url("orders"), receipts=box.url), Mail(to=url("plain"), body=token())
    shared = {"source": plain.source, "number": plain.number}
    assert poster.post(plain) == 200
    assert poster.post_all([flow.mail(n, **shared) for n in (1, 2, 3)]) == [200] * 3  # type: ignore[arg-type]
    assert topics.numbers("orders", flow) == [1, 2, 3]


def test_a_duplicate_has_no_second_receipt(poster: Poster, catcher: Catcher, box: Box) -> None:
    """SR-42: a delivery receipt is for a message that was put in the queue."""
    services = f"<deliveryReceiptRequest><sendTo>{box.url}</sendTo></deliveryReceiptRequest>"
    mail = Mail(to=url("plain"), services=services)
    assert poster.post_all([mail] * 4) == [200] * 4
    box.wait(1)
    settle(poster, catcher)
    assert len(box.receipts) == 1


def test_the_table_survives(connect: Connect, appliance: Appliance, topics: Topics) -> None:
    """SR-22, SR-80: kill -9 in the middle of a burst and an empty data folder; design 3.2.

    SR-3, SR-20: what was answered is there. What was not is sent again, and nothing is there twice.
    """
    first = [Mail(to=url("plain"), body=token()) for _ in range(2)]
    burst = [Mail(to=url("plain"), body=token(), services="<durable/>") for _ in range(100)]
    poster = connect()
    assert poster.post_all(first) == [200] * 2
    poster.send(b"".join(map(request, burst)))
    answered = [poster.read_answer().status for _ in range(20)]
    assert answered == [200] * 20
    appliance.restart(empty_data=True, kill=True)
    assert topics.count(mail.body for mail in burst[:20]) == [1] * 20
    again = connect()
    assert set(again.post_all([*burst, *first])) == {200}
    found = topics.by_id()
    for mail in (*burst, *first):
        assert [one.value for one in found[mail.id]] == [mail.body]
