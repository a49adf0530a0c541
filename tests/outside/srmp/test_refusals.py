"""What is answered with 400 and leaves no trace, what must not be, and what is only ignored."""

import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.cases import (
    ACCEPTED,
    REFUSED,
    Made,
    commitment_receipt,
    delivery_receipt,
    final_receipt,
    make,
    stream_receipt,
)
from tests.outside.srmp.conftest import Connect
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import (
    BOUNDARY,
    NULL,
    ZERO,
    Mail,
    Part,
    body_part,
    content_type,
    head,
    multipart,
    request,
    text_request,
    url,
    whole,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka


def token() -> bytes:
    return f"body {uuid4()}".encode()


@pytest.fixture(scope="module")
def refused(appliance: Appliance) -> dict[str, int]:
    """All of them over one connection, and the answers."""
    with Poster(appliance.srmp_address).connect() as poster:
        return {f"{one.base}: {one.name}": poster.post(make(one).request) for one in REFUSED}


@pytest.mark.parametrize("name", [f"{one.base}: {one.name}" for one in REFUSED])
def test_a_message_that_breaks_the_rules(refused: dict[str, int], name: str) -> None:
    """SR-5: discard, 400."""
    assert refused[name] == 400


def test_what_breaks_the_rules_leaves_no_record(connect: Connect, topics: Topics) -> None:
    """SR-5: no state change; the connection goes on, and so does everybody else's work."""
    made = [make(one) for one in REFUSED]
    poster = connect()
    requests: list[bytes] = []
    for one in made:
        requests += [one.request, request(Mail(to=url("plain"), body=b"good"))]
    answers = poster.post_all(requests)
    assert answers == [400, 200] * len(made)
    bodies = {one.body for one in made}
    ids = {one.id.encode() for one in made if not one.id.startswith(str(NULL))}
    assert not topics.anywhere(lambda one: one.value in bodies or one.header["msmq.id"] in ids)


def test_what_must_be_accepted(poster: Poster, topics: Topics) -> None:
    """Digest 3.1: because Microsoft's own examples do it."""
    made = [make(one) for one in ACCEPTED]
    assert {one.name: poster.post(one.request) for one in made} == {one.name: 200 for one in made}
    counts = topics.count(one.body for one in made)
    assert dict(zip([one.name for one in made], counts, strict=True)) == {
        one.name: 1 for one in made
    }


def framings() -> dict[str, bytes]:
    """Bodies that cannot be cut into parts."""
    mail = Mail(to=url("plain"), body=token())
    text, part = mail.envelope.encode(), body_part(mail.body)
    good = multipart(text, [part])
    size = b"Content-Length: %d\r\n" % len(text)
    inner = b"Content-Length: %d\r\n" % len(mail.body)
    end = f"--{BOUNDARY}--\r\n".encode()
    return {
        "no boundary": whole(good, kind="multipart/related; type=text/xml"),
        "an empty boundary": whole(good, kind='multipart/related; boundary=""'),
        "another boundary": whole(good, kind=content_type("other")),
        "another type": whole(text, kind="text/plain"),
        "JSON": whole(b"{}", kind="application/json"),
        "a form": whole(b"a=b", kind="application/x-www-form-urlencoded"),
        "no type": whole(good).replace(b"Content-Type: multipart", b"X-Type: multipart", 1),
        "an empty body": whole(b""),
        "no envelope": whole(multipart(b"", [part])),
        "the envelope is too long": whole(good.replace(size, b"Content-Length: 5\r\n")),
        "the envelope is too short": whole(good.replace(size, b"Content-Length: 99999\r\n")),
        "the body is too long": whole(good.replace(inner, b"Content-Length: 3\r\n")),
        "the body is too short": whole(good.replace(inner, b"Content-Length: 4194304\r\n")),
        "a negative length": whole(good.replace(inner, b"Content-Length: -1\r\n")),
        "a length that is no number": whole(good.replace(inner, b"Content-Length: 0x10\r\n")),
        "no end": whole(good.removesuffix(end)),
        "the end is another delimiter": whole(good.removesuffix(end) + b"--other--\r\n"),
        "a part without a head": whole(good.replace(b"\r\n\r\n", b"\r\n")),
        "junk before it": whole(b"junk" + good),
        "two bodies": whole(multipart(text, [part, part])),
    }


def test_what_cannot_be_cut_into_parts(connect: Connect, topics: Topics) -> None:
    """1.3: else 400. After each of them the connection takes a good one, or is closed."""
    found = {}
    for name, data in framings().items():
        poster = connect()
        found[name] = poster.post(data)
        assert poster.try_post(Mail(to=url("plain"), body=b"after")) in (200, 0)
    assert found == dict.fromkeys(found, 400)


def test_other_methods(connect: Connect) -> None:
    """1.4: nothing but 200, 400, 500 and 503 exists."""
    good = whole(multipart(Mail(to=url("plain")).envelope.encode(), []))
    for method in (b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"MSMQ"):
        assert connect().try_post(good.replace(b"POST", method, 1)) == 400
        bare = head(0).replace(b"POST", method, 1).replace(b"Content-Length: 0\r\n", b"")
        assert connect().try_post(bare) == 400


# -- receipts that come to us ---------------------------------------------------------------


def attached(mail: Mail) -> bytes:
    return text_request(mail.envelope, b"attachment")


def plain_xml(mail: Mail) -> bytes:
    return whole(mail.envelope.encode(), kind="text/xml")


def test_receipts_with_attachments(poster: Poster) -> None:
    """2.2.2: a receipt has none."""
    for mail in (delivery_receipt(), commitment_receipt(), stream_receipt(), final_receipt()):
        assert poster.post(attached(mail)) == 400
        parts = [Part("photo@x", b"y")]
        assert poster.post(whole(multipart(mail.envelope.encode(), parts))) == 400


def test_receipts_to_a_queue_become_records(poster: Poster, topics: Topics) -> None:
    """SR-50: delivery and commitment receipts are inserted, each once. SR-19"""
    mails = [
        delivery_receipt(),
        commitment_receipt(),
        *(commitment_receipt(kind=kind, decision="negative") for kind in (32769, 49152, 49153)),
        *(commitment_receipt(kind=kind, decision="negative") for kind in (49154, 49156)),
    ]
    for mail in mails + mails:
        assert poster.post(plain_xml(mail)) == 200
    for mail in mails:
        [record] = topics.with_id(mail.id)
        assert record.value == b""
        assert record.header["msmq.class"] == b"%d" % mail.kind
        assert record.header["msmq.soap"] == mail.envelope.encode()


def test_receipts_to_the_order_queue_are_ignored(poster: Poster, topics: Topics) -> None:
    """SR-51, SR-53: of streams that nobody knows; SR-17 D: exempt from the transactional check."""
    mails = [
        stream_receipt(),
        final_receipt(),
        final_receipt(kind=49153, decision="negative"),
        stream_receipt("ORDER_QUEUE$"),
    ]
    for mail in mails:
        assert poster.post(plain_xml(mail)) == 200
        assert not topics.with_id(mail.id)


def unknown_types() -> Sequence[Mail]:
    """Rows that the table in 3.3 does not have."""
    user = Mail(to=url("plain"), body=b"")
    delivery, commitment = delivery_receipt().header, commitment_receipt().header
    stream = stream_receipt().header
    return [
        *(replace(user, kind=kind) for kind in (1, 2, 5, 255, 16384, 32769, 65535)),
        delivery_receipt(kind=0),
        delivery_receipt(kind=255),
        replace(delivery_receipt(), header=delivery + commitment),
        replace(delivery_receipt(), header=delivery + stream),
        commitment_receipt(kind=0),
        commitment_receipt(kind=2),
        commitment_receipt(kind=32769),  # positive
        commitment_receipt(kind=16384, decision="negative"),
        commitment_receipt(kind=32768, decision="negative"),
        stream_receipt("plain", kind=0),
        replace(stream_receipt("plain"), label="another label"),
        replace(final_receipt("plain"), label="another label"),
        final_receipt("plain", kind=255),
    ]


def test_unknown_types_are_ignored(poster: Poster, topics: Topics) -> None:
    """3.3, SR-8: 200, and nothing happens."""
    mails = [replace(one, number=number) for number, one in enumerate(unknown_types(), 900_000)]
    mails = [replace(one, source=uuid4(), correlation=ZERO) for one in mails]
    found = [poster.post(plain_xml(mail)) for mail in mails]
    assert found == [200] * len(mails)
    there = topics.by_id()
    assert [mail for mail in mails if mail.id in there] == []


def test_stream_receipts_are_no_messages(poster: Poster, topics: Topics) -> None:
    """SR-51: wherever they are addressed to, they are for us and not for the queue."""
    for mail in (stream_receipt("plain"), final_receipt("plain")):
        assert poster.post(plain_xml(mail)) == 200
        assert not topics.with_id(mail.id)


def test_the_cases_are_many() -> None:
    """And each one is its own."""
    assert len({(one.base, one.name) for one in REFUSED}) == len(REFUSED) >= 60
    assert len({made.id for made in map(make, REFUSED)}) > 100
    assert isinstance(make(ACCEPTED[0]), Made)


def test_the_name_of_another_host_is_shown(poster: Poster, appliance: Appliance) -> None:
    """MC-MQSRM 3.1.5.1.3: 400, and the sender deletes the message: the operator must see it."""
    host = f"old-{uuid4().hex[:8]}"
    mails = [Mail(to=f"http://{host.upper()}:8080/msmq/private$/plain") for _ in range(3)]
    assert [poster.post(mail) for mail in mails] == [400] * 3
    status = json.loads(appliance.get("/api/status")[1])
    assert [one["messages"] for one in status["rejected_hosts"] if one["host"] == host] == [3]
    eventually(lambda: host in appliance.log)
    assert "queue_manager.names" in appliance.log
