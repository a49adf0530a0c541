"""Whose queue it is, and whether it takes the message: routing, quotas, access, signatures."""

import time
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import HOST, Appliance, Settings
from tests.outside.conftest import Broker
from tests.outside.rawconnection import LOCAL
from tests.outside.records import create_topics
from tests.outside.srmp.bench import Topics, settle
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.post import Poster
from tests.outside.srmp.signing import DSA, DSIG, VALUE, digest, method_of, reference, signature
from tests.outside.srmp.wire import (
    Flow,
    Mail,
    Part,
    body_part,
    date,
    multipart,
    request,
    url,
    whole,
)

pytestmark = pytest.mark.kafka


def token() -> bytes:
    return f"body {uuid4()}".encode()


def where(topics: Topics, mail: Mail) -> list[str]:
    """The queues that have it."""
    found = topics.with_id(mail.id)
    return [one.header["msmq.queue"].decode().lower() for one in found]


# -- routing, 3.2 ---------------------------------------------------------------------------

_P = "private$\\plain"
_P2 = "private$\\plain2"
OURS: dict[str, str] = {
    # SR-13: configured names, local addresses, localhost; without case and port
    "http://BRIDGE01/msmq/private$/plain": _P,
    "http://bridge01/MSMQ/PRIVATE$/PLAIN": _P,
    "http://Bridge01:8080/msmq/private$/plain": _P,
    "http://127.0.0.1/msmq/private$/plain": _P,
    "http://127.0.0.1:80/msmq/private$/plain": _P,
    "http://localhost/msmq/private$/plain": _P,
    "http://machine2/msmq/private$/plain": _P,
    "HTTP://machine2/msmq/private$/plain": _P,
    "https://BRIDGE01/msmq/private$/plain": _P,  # 1.5: another scheme is no error
    # SR-16, 1.1: `/` = `\`, no case
    "http://BRIDGE01/msmq\\private$\\plain": _P,
    "http://BRIDGE01/msmq/private$\\plain": _P,
    "http://BRIDGE01/msmq/catalog": "catalog",
    "http://BRIDGE01/MSMQ/Catalog": "catalog",
    # SR-14: first match in configured order, without case; a trailing * is any rest
    "http://BRIDGE01/msmq/ext/one": _P,
    "http://bridge01/MSMQ/EXT/ONE": _P,
    "http://BRIDGE01/msmq/ext/two": _P2,
    "http://BRIDGE01/msmq/ext/one/more": _P2,
    "http://nat.example.com/msmq/in/late": _P2,
    "http://NAT.example.com/msmq/in/": _P2,
    # SR-13 D: the host of a From is ours
    "http://nat.example.com/msmq/private$/plain": _P,
}
FOREIGN = (
    # SR-13
    "http://elsewhere/msmq/private$/plain",
    "http://BRIDGE01.elsewhere/msmq/private$/plain",
    "http://BRIDGE011/msmq/private$/plain",
    "http://192.0.2.7/msmq/private$/plain",
    "http://machine1/msmq/private$/plain",  # redirect_out is for what we send
    # SR-16
    "http://BRIDGE01/msmq/private$/nowhere",
    "http://BRIDGE01/msmq/plain",
    "http://BRIDGE01/msmq/private$/catalog",
    "http://BRIDGE01/msmq/private$/",
    "http://BRIDGE01/msmq/",
    "http://BRIDGE01/msmq/private$/plain/x",
    "http://BRIDGE01/private$/plain",
    "http://BRIDGE01/",
    "http://BRIDGE01",
    "http:///msmq/private$/plain",
    "http://",
    "http://nat.example.com/msmq/in",
    # DM-14: no application sends there
    "http://BRIDGE01/msmq/private$/plain;journal",
    "http://BRIDGE01/msmq/private$/plain;poison",
    "http://BRIDGE01/msmq/system$;deadletter",
    # SR-17
    "http://BRIDGE01/msmq/private$/orders",
)


def test_names_that_are_ours(poster: Poster, topics: Topics) -> None:  # SR-11, SR-13 to SR-16
    mails = {to: Mail(to=to, body=token()) for to in OURS}
    assert {to: poster.post(mail) for to, mail in mails.items()} == dict.fromkeys(OURS, 200)
    found = topics.by_id()
    queues = {
        to: [one.header["msmq.queue"].decode().lower() for one in found[mail.id]]
        for to, mail in mails.items()
    }
    assert queues == {to: [name] for to, name in OURS.items()}


def test_names_that_are_not(poster: Poster, topics: Topics) -> None:  # SR-13, SR-16, SR-17
    mails = {to: Mail(to=to, body=token()) for to in FOREIGN}
    assert {to: poster.post(mail) for to, mail in mails.items()} == dict.fromkeys(FOREIGN, 400)
    found = topics.by_id()
    assert not [to for to, mail in mails.items() if mail.id in found]


def test_a_multicast_name_without_a_queue(poster: Poster, topics: Topics) -> None:
    """SR-12: dropped; which of the two answers is not said."""
    mail = Mail(to="MSMQ:MULTICAST=234.1.1.1:8001", body=token())
    assert poster.post(mail) in (200, 400)
    assert not where(topics, mail)


def test_a_stream_to_a_plain_queue(poster: Poster, topics: Topics, box: Box) -> None:
    """SR-17: 400, and no stream is made of it."""
    flow = Flow(to=url("plain"), receipts=box.url)
    assert poster.post(flow.mail(1)) == 400
    assert topics.numbers("plain", flow) == []
    plain = Mail(to=url("orders"), body=token(), services="<durable/>")
    assert poster.post(plain) == 400
    assert not where(topics, plain)


def test_the_target_does_not_matter(poster: Poster, topics: Topics) -> None:
    """SR-2: the queue comes from `to`, a differing target is only logged."""
    for target in ("/msmq/private$/orders", "/msmq/private$/nowhere", "/", "/x?y=z", "*"):
        mail = Mail(to=url("plain"), body=token())
        content = multipart(mail.envelope.encode(), [body_part(mail.body)])
        assert poster.post(whole(content, target=target)) == 200
        assert where(topics, mail) == [_P]
    lost = Mail(to=url("nowhere"), body=token())
    content = multipart(lost.envelope.encode(), [body_part(lost.body)])
    assert poster.post(whole(content, target="/msmq/private$/plain")) == 400


# -- quotas and access ----------------------------------------------------------------------


def test_the_quota_of_a_queue(poster: Poster, topics: Topics, box: Box) -> None:
    """SR-7 D: 500 and nothing changes; SR-24: so the same message may come again."""
    big, small = b"b" * 8192, token()
    mail = Mail(to=url("full"), body=big)
    assert [poster.post(mail), poster.post(mail)] == [500, 500]
    assert not where(topics, mail)
    assert poster.post(replace(mail, body=small)) == 200
    assert [one.value for one in topics.with_id(mail.id)] == [small]
    flow = Flow(to=url("fulltx"), receipts=box.url)
    assert poster.post(flow.mail(1, body=big)) == 500  # SR-6: the stream does not advance
    assert poster.post(flow.mail(1)) == 200
    assert poster.post(flow.mail(2, body=big)) == 500
    assert poster.post(flow.mail(3)) == 200  # a gap: dropped
    assert poster.post(flow.mail(2)) == 200
    assert topics.numbers("fulltx", flow) == [1, 2]
    box.wait_last(2)
    assert 3 not in box.lasts


def test_senders_that_may_not(poster: Poster, topics: Topics) -> None:
    """SR-26, SR-8: 200, dropped; D6: but not without a trace."""
    mails = [Mail(to=url(name), body=token()) for name in ("closed", "signed")]
    for mail in mails:
        assert poster.post(mail) == 200
        assert not where(topics, mail)
        assert topics.audited(mail.id) or topics.audited(str(mail.source))
    friend = Mail(to=url("open"), body=token())
    assert poster.post(friend) == 200
    assert where(topics, friend) == ["private$\\open"]


def test_a_signature_does_not_authenticate(poster: Poster, topics: Topics, box: Box) -> None:
    """SR-41: `digest only`, so a queue that demands authentication refuses it: 200, dropped."""
    body = token()
    mail = Mail(to=url("signed"), body=body, header=signature(reference(body)))
    assert poster.post(mail) == 200
    assert not where(topics, mail)
    flow = Flow(to=url("signedtx"), receipts=box.url)
    assert poster.post(flow.mail(1)) == 200
    assert topics.numbers("signedtx", flow) == []


BODY, EXTENSION = b"what is signed", b"\0more\xff"


def signatures() -> dict[str, tuple[str, bool]]:
    """The element, and whether the message is taken. SR-40"""
    good, extra = reference(BODY), reference(EXTENSION, name="extension")
    value = f"<DigestValue>{digest(BODY)}</DigestValue>"
    sha1 = method_of("sha1")
    return {
        "none": ("", True),
        "SHA-1": (signature(good), True),
        "MD5": (signature(reference(BODY, method="md5")), True),
        "both": (signature(good + extra), True),
        "both, the other way round": (signature(extra + good), True),
        "only the extension": (signature(extra), True),
        "a wrong digest": (signature(reference(b"other")), False),
        "a wrong digest of the extension": (
            signature(good + reference(b"other", name="extension")),
            False,
        ),
        "the digest of the other method": (
            signature(reference(BODY, inner=method_of("md5") + value)),
            False,
        ),
        "three references": (signature(good + extra + reference(BODY, name="third")), False),
        "two for the body": (signature(good + reference(BODY)), False),
        "of an attachment that is not there": (signature(reference(BODY, name="photo")), False),
        "no reference": (signature(""), False),
        "no SignatureMethod": (signature(good, method=""), False),
        "another SignatureMethod": (signature(good, method=DSA.replace("#dsa", "#rsa")), True),
        "the DSA of 2000/09": (
            signature(good, method=DSA.replace("2000/02", "2000/09")),
            True,
        ),
        "no SignatureValue": (signature(good, value=""), False),
        "no SignedInfo": (f'<Signature xmlns="{DSIG}">{VALUE}</Signature>', False),
        "no DigestMethod": (signature(reference(BODY, inner=value)), False),
        "the digest of SHA-1 as SHA-256": (
            signature(reference(BODY, inner=method_of("sha256") + value)),
            False,
        ),
        "a DigestMethod that is not known": (
            signature(reference(BODY, inner=method_of("sha3-256") + value)),
            True,
        ),
        "no DigestValue": (signature(reference(BODY, inner=sha1)), False),
    }


def test_signatures(poster: Poster, topics: Topics) -> None:
    """MC-MQSRM 3.1.5.1.6.1: what is wrong is dropped, with 200; what cannot be checked is taken,
    and not authenticated."""
    cases = signatures()
    mails = {
        name: Mail(to=url("plain"), body=BODY, header=text) for name, (text, _) in cases.items()
    }
    parts = [body_part(BODY), Part(f"extension@{UUID(int=1)}", EXTENSION)]
    answers = {
        name: poster.post(whole(multipart(mail.envelope.encode(), parts)))
        for name, mail in mails.items()
    }
    assert answers == dict.fromkeys(cases, 200)
    found = topics.by_id()
    taken = {name: mail.id in found for name, mail in mails.items()}
    assert taken == {name: good for name, (_, good) in cases.items()}
    records = [record for mail in mails.values() for record in found.get(mail.id, ())]
    assert not [record for record in records if "msmq.auth" in record.header]


# -- an appliance with other settings -------------------------------------------------------

LISTED = "127.0.0.3"


@pytest.fixture(scope="module")
def strict(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory, catcher: Catcher
) -> Iterator[Appliance]:
    """Discards what is expired, holds little, sends receipts to a few addresses only."""
    prefix = f"strict-{uuid4().hex[:8]}"
    settings = Settings(
        manager={"quota_kb": 16},
        listen={"srmp": 0},
        srmp={
            "expired": "discard",
            "receipt_targets": ["sender", LISTED, f"127.0.0.4:{catcher.port}", "127.0.8.0/24"],
        },
    )
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture(scope="module")
def kept(strict: Appliance) -> Iterator[Topics]:
    with Topics(strict) as topics:
        yield topics


@pytest.fixture
def strict_poster(strict: Appliance) -> Iterator[Poster]:
    with Poster(strict.srmp_address).connect() as poster:
        yield poster


def test_the_quota_of_the_machine(strict_poster: Poster, kept: Topics) -> None:
    """SR-6: 500, no state change."""
    mail = Mail(to=url("plain"), body=b"b" * 100_000)
    assert [strict_poster.post(mail), strict_poster.post(mail)] == [500, 500]
    assert not where(kept, mail)
    assert strict_poster.post(replace(mail, body=b"small")) == 200
    assert where(kept, mail) == [_P]


def test_expired_messages_may_be_discarded(strict_poster: Poster, kept: Topics) -> None:
    """SR-61: 200, dropped; SR-62: the earlier of TTrq and expiresAt counts."""
    now = int(time.time())
    fresh = Mail(to=url("plain"), body=token())
    by_ttrq = Mail(to=url("plain"), body=token(), sent=now - 5000, ttrq=1000)
    by_date = Mail(to=url("plain"), body=token(), expires=date(now - 1000), sent=now - 5000)
    bare = Mail(to=url("plain"), body=token(), expires=date(now - 1000), bare=True)
    found = [strict_poster.post(mail) for mail in (fresh, by_ttrq, by_date, bare)]
    assert found == [200] * 4
    assert len(kept.with_body(fresh.body)) == 1
    for mail in (by_ttrq, by_date, bare):
        assert not kept.with_body(mail.body)
    assert kept.audited(by_ttrq.id) or kept.audited(str(by_ttrq.source))  # D6


def test_an_expired_message_tells_its_sender(strict_poster: Poster, catcher: Catcher) -> None:
    """SR-61: a negative commitment receipt, 49154, if negativeOnly; none without it. SR-44"""
    told, silent = catcher.box(LISTED), catcher.box(LISTED)
    old = int(time.time()) - 5000
    for box, flag in ((told, "<negativeOnly/>"), (silent, "<positiveOnly/>"), (silent, "")):
        services = (
            f"<commitmentReceiptRequest><sendTo>{box.url}</sendTo>{flag}"
            "</commitmentReceiptRequest>"
            f"<deliveryReceiptRequest><sendTo>{silent.url}</sendTo></deliveryReceiptRequest>"
        )
        mail = Mail(to=url("plain"), services=services, sent=old, ttrq=1000, label="late")
        assert strict_poster.post(mail) == 200
    [receipt] = told.wait(1)
    assert (receipt.type, receipt.decision, receipt.kind) == ("commitment", "negative", 49154)
    assert receipt.action == "MSMQ:late"
    assert silent.receipts == []


def test_an_expired_message_of_a_stream(
    strict_poster: Poster, kept: Topics, catcher: Catcher
) -> None:
    """SR-61: dropped, but its number is acknowledged; a negative final receipt with DeadLetter."""
    box, commitment = catcher.box(LISTED), catcher.box(LISTED)
    flow = Flow(to=url("orders"), receipts=box.url)
    old = int(time.time()) - 5000
    services = (
        f"<durable/><commitmentReceiptRequest><sendTo>{commitment.url}</sendTo><negativeOnly/>"
        "</commitmentReceiptRequest>"
    )
    late = flow.mail(2, sent=old, ttrq=1000, flags="<DeadLetter/>", services=services, label="late")
    assert strict_poster.post_all([flow.mail(1), late, flow.mail(3)]) == [200] * 3
    assert kept.numbers("orders", flow) == [1, 3]
    box.wait_last(3)
    receipts = box.until(lambda all_: any(one.type == "final" for one in all_))
    [final] = [one for one in receipts if one.type == "final"]
    assert (final.decision, final.kind, final.last) == ("negative", 49154, 2)
    [told] = commitment.wait(1)
    assert (told.type, told.decision, told.kind) == ("commitment", "negative", 49154)


def test_receipts_go_only_where_they_may(
    strict_poster: Poster, kept: Topics, catcher: Catcher
) -> None:
    """SR-49: hosts, host:port, networks, and `sender`; the message is taken in any case.

    127.0.0.1 is on no list, however it is spelled.
    """
    allowed = [catcher.box(host) for host in (LISTED, "127.0.0.4", "127.0.8.200", LOCAL)]
    spelled = ("127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "localhost")
    barred = [catcher.box(host) for host in (*spelled, "127.0.9.1", "127.0.0.5", "0.0.0.0")]
    with Catcher() as other:
        barred.append(other.box("127.0.0.4"))
        asking = [
            Mail(
                to=url("plain"),
                body=token(),
                services=f"<deliveryReceiptRequest><sendTo>{box.url}</sendTo>"
                "</deliveryReceiptRequest>",
            )
            for box in (*barred, *allowed)
        ]
        streams = [Flow(to=url("orders"), receipts=box.url) for box in (*barred, *allowed)]
        mails = [*asking, *(flow.mail(number) for flow in streams for number in (1, 2))]
        answers = strict_poster.post_all(mails)
        assert answers == [200] * len(mails)
        for box in allowed:
            box.until(lambda found: {one.type for one in found} == {"stream", "delivery"})
        assert [box.url for box in barred if box.caught] == []
    assert kept.count(mail.body for mail in asking) == [1] * len(asking)
    assert all(kept.numbers("orders", flow) == [1, 2] for flow in streams)


def test_expired_messages_are_delivered_by_default(
    poster: Poster, topics: Topics, catcher: Catcher
) -> None:
    """SR-61: as 3.1.5.1.4 has it."""
    now = int(time.time())
    mail = Mail(to=url("plain"), body=token(), sent=now - 500_000, expires=date(now - 100_000))
    assert poster.post(request(mail)) == 200
    assert where(topics, mail) == [_P]
    settle(poster, catcher)


def test_the_host_of_the_request_does_not_matter(poster: Poster, topics: Topics) -> None:
    """SR-13: it is the host in `to` that counts."""
    ours, theirs = Mail(to=url("plain")), Mail(to=url("plain", "elsewhere"))
    for mail, host, status in ((ours, "elsewhere", 200), (theirs, HOST, 400)):
        content = multipart(mail.envelope.encode(), [])
        assert poster.post(whole(content, host=host)) == status
    assert (where(topics, ours), where(topics, theirs)) == ([_P], [])
