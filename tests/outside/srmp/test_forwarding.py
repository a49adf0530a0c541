"""Messages that are redirected to another host go there: SR-13, SR-15; MC-MQSRM 3.1.5.1.3

What the next hop must get is written from the digest: the request as its sender wrote it, with
`<to>` for the next hop.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import server_context
from tests.outside.appliance import HOST, Appliance, Settings
from tests.outside.conftest import Broker
from tests.outside.rawconnection import soon
from tests.outside.records import Record, create_topics, read_topic
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Box, Catcher, Caught
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import (
    BOUNDARY,
    Flow,
    Mail,
    Part,
    body_part,
    content_type,
    head,
    multipart,
    stream_id,
    text_request,
    url,
    whole,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

NAMES = ("plain", "parts", "stream", "refused", "bad", "late", "down", "kill", "full", "round")
RETRY = 45  # seconds: the retransmission time, and some for a slow machine
QUOTA_KB = 8192


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(["nexthop"], tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(pair: tuple[Path, Path]) -> Iterator[Catcher]:
    with Catcher(tls=server_context(*pair)) as catcher:
        yield catcher


@pytest.fixture(scope="module")
def appliance(
    kafka: Broker,
    tmp_path_factory: pytest.TempPathFactory,
    catcher: Catcher,
    secure: Catcher,
    pair: tuple[Path, Path],
) -> Iterator[Appliance]:
    """Of this module alone: what it may hold is bounded, and it is killed."""
    prefix = f"forward-{uuid4().hex[:8]}"
    redirects = {on(name): far(catcher, name).url for name in NAMES}
    redirects[on("tls")] = far(secure, "tls").url.replace("http:", "https:")
    redirects[on("any/*")] = far(catcher, "plain").url
    srmp = {
        "redirect_in": [{"from": one, "to": to} for one, to in redirects.items()],
        "ca_file": str(pair[0]),
        "receipt_targets": [],  # it is not asked for what the operator named himself
    }
    settings = Settings(
        manager={"quota_kb": QUOTA_KB},
        peers={"nexthop": "127.0.0.1"},
        listen={"srmp": 0},
        srmp=srmp,
    )
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues], 1)
    appliance.start()
    yield appliance
    appliance.terminate()


def on(name: str) -> str:
    """What senders write."""
    return f"http://{HOST}/msmq/on/{name}"


def far(catcher: Catcher, name: str) -> Box:
    """Where it goes."""
    return catcher.box_at("nexthop", f"far-{name}")


def wait(catcher: Catcher, box: Box, count: int, seconds: float = 20) -> list[Caught]:
    catcher.wait(lambda: len(box.caught) >= count, seconds)
    found = box.caught
    assert len(found) >= count, found
    return found


def at_next_hop(mail: Mail, box: Box) -> bytes:
    """The body of its request, as the next hop must get it. Digest 1.3"""
    envelope = replace(mail, to=box.url).envelope.encode()
    return multipart(envelope, [body_part(mail.body, mail.source)])


def check_head(caught: Caught, appliance: Appliance, port: int) -> None:
    """Digest 1.2, and that we were on the way: RFC 9110 7.6.3"""
    assert caught.method == "POST"
    assert caught.headers == {
        "host": f"nexthop:{port}",
        "content-type": content_type(),
        "content-length": str(len(caught.body)),
        "soapaction": '"MSMQMessage"',
        "proxy-accept": "NonInteractiveClient",
        "via": f"1.1 {appliance.guid}",
    }


def verdicts(appliance: Appliance, mail: Mail) -> list[dict[str, Any]]:
    records = read_topic(appliance.bootstrap, appliance.audit_topic)
    return [e for one in records for e in json.loads(one.value) if e["id"] == mail.id]


def until_told(appliance: Appliance, mail: Mail, *reasons: str) -> list[dict[str, Any]]:
    """Its verdicts, once there are as many; the last one comes with a transaction of its own."""
    deadline = soon(20)
    while len(found := verdicts(appliance, mail)) < len(reasons):
        assert soon(0) < deadline, found
    assert [entry["reason"] for entry in found] == list(reasons)
    return found


def rejects(appliance: Appliance, mail: Mail) -> list[Record]:
    found = read_topic(appliance.bootstrap, appliance.rejects_topic)
    return [one for one in found if one.header.get("msmq.id") == mail.id.encode()]


WAITS, TAKEN = "waits-for-the-next-hop", "taken-by-the-next-hop"
RECEIPTS = (
    "<durable/><deliveryReceiptRequest><sendTo>http://127.0.0.1:9/d</sendTo>"
    "</deliveryReceiptRequest>"
)


def test_regular_and_durable(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """SR-15: byte for byte but for `<to>`; no record of ours; the verdict says where to."""
    box = far(catcher, "plain")
    mails = [
        Mail(to=on("plain"), body=b"a regular one", label="r"),
        Mail(to=on("plain").upper().replace("HTTP", "http"), services=RECEIPTS, body=b"durable"),
        Mail(to=on("any/thing"), bare=True, body=b"without Msmq"),
        Mail(to=on("plain"), header='<x:y xmlns:x="urn:x" se:mustUnderstand="0">ä</x:y>'),
    ]
    for mail in mails:
        assert poster.post(mail) == 200
    caught = wait(catcher, box, 4)
    assert [one.body for one in caught] == [at_next_hop(mail, box) for mail in mails]
    for one in caught:
        check_head(one, appliance, catcher.port)
        assert one.target == "/msmq/private$/far-plain"  # 1.1: in small letters
    first, second = until_told(appliance, mails[0], WAITS, TAKEN)
    assert (first["verdict"], second["verdict"]) == ("forwarded", "forwarded")
    assert first["dest"] == f"DIRECT={box.url}"
    assert first["transport"] == "http"
    with Topics(appliance) as topics:
        assert all(topics.with_body(mail.body) == [] for mail in mails if mail.body)


def test_attachments(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """Parts and bare envelopes as they came, counted or not, whatever they hold. 1.3"""
    box = far(catcher, "parts")
    mail = Mail(to=on("parts"), body_type=8)
    there = replace(mail, to=box.url)
    parts = [
        Part(f"extension@{mail.source}", bytes(range(256))),
        Part(f"body@{mail.source}", b"\r\n--" + BOUNDARY.encode() + b"--\r\n" + bytes(100_000)),
        Part("other@x", b"of no meaning"),
    ]

    def bodies(text: str) -> list[bytes]:
        soap = text.encode()
        loose = multipart(soap, [Part("body@x", b"abc")], counted=False, gap=b"\r\n")
        return [multipart(soap, parts), multipart(b" %s\n" % soap, parts), loose]

    for sent in bodies(mail.envelope):
        assert poster.post(whole(sent)) == 200
    assert poster.post(whole(mail.envelope.encode(), kind="text/xml")) == 200
    *multiparts, bare = wait(catcher, box, 4)
    assert [one.body for one in multiparts] == bodies(there.envelope)
    assert bare.body == there.envelope.encode()
    assert bare.headers["content-type"] == "text/xml"


def test_a_stream(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """A hop: no order is checked, nothing is acknowledged, repeated ones go on again (SR-37)."""
    box, receipts = far(catcher, "stream"), catcher.box()
    flow = Flow(to=on("stream"), receipts=receipts.url)
    mails = [flow.mail(1), flow.mail(2), flow.mail(5), flow.mail(9, 5)]
    for mail in mails:
        assert poster.post(mail) == 200
    wait(catcher, box, 4)
    until_told(appliance, mails[0], WAITS, TAKEN)
    assert poster.post(mails[0]) == 200
    caught = wait(catcher, box, 5)
    expected = [at_next_hop(mail, box) for mail in (*mails, mails[0])]
    assert [one.body for one in caught] == expected
    assert receipts.caught == []
    assert f"<sendReceiptsTo>{receipts.url}</sendReceiptsTo>".encode() in caught[0].body
    assert not [row for row in appliance.status()["stream_list"] if flow.to in row["destination"]]


def test_over_tls(appliance: Appliance, secure: Catcher, poster: Poster) -> None:
    """1.1: HTTPS same content over TLS; the name in the URL is the one that is proven."""
    box = far(secure, "tls")
    mail = Mail(to=on("tls"), body=b"a secret")
    assert poster.post(mail) == 200
    (caught,) = wait(secure, box, 1)
    there = replace(mail, to=box.url.replace("http:", "https:"))
    assert caught.body == multipart(there.envelope.encode(), [body_part(mail.body, mail.source)])
    check_head(caught, appliance, secure.port)


def test_what_the_next_hop_does_not_want(
    appliance: Appliance, catcher: Catcher, poster: Poster
) -> None:
    """1.4: 400 is permanent. D6: a record among the rejects and a verdict; the next one goes on."""
    box = far(catcher, "refused")
    box.plan(400)
    one, two = (Mail(to=on("refused"), body=b"no", label=text) for text in ("one", "two"))
    assert [poster.post(mail) for mail in (one, two)] == [200, 200]
    assert [c.body for c in wait(catcher, box, 2)] == [at_next_hop(m, box) for m in (one, two)]
    _, told = until_told(appliance, one, WAITS, "refused-by-the-next-hop")
    assert (told["verdict"], told["class"]) == ("rejected", 0x8000)
    (record,) = rejects(appliance, one)
    assert record.value == b"no"
    assert record.header["msmq.label"] == b"one"
    assert record.header["msmq.soap"] == one.envelope.encode()  # as it came
    assert record.header["__connect.errors.exception.message"] == b"refused-by-the-next-hop"
    assert record.header["__connect.errors.stage"] == b"FORWARDING"
    until_told(appliance, two, WAITS, TAKEN)
    assert rejects(appliance, two) == []


def test_a_stream_goes_on_after_a_message_that_the_next_hop_does_not_want(
    appliance: Appliance, catcher: Catcher, poster: Poster
) -> None:
    """MC-MQSRM 3.1.7.2.5: a sender deletes a message on 400. It gets no receipt for the one that
    was refused there, sends it again, and hears 400 from us."""
    box = far(catcher, "refused")
    seen = len(box.caught)
    flow = Flow(to=on("refused"), receipts="http://127.0.0.1:9/o")
    box.plan(200, 400)
    first, second = flow.mail(1), flow.mail(2)
    assert [poster.post(mail) for mail in (first, second)] == [200, 200]
    until_told(appliance, second, WAITS, "refused-by-the-next-hop")
    assert poster.post(second) == 400
    third = flow.mail(3, previous=1)
    assert poster.post(third) == 200
    until_told(appliance, third, WAITS, TAKEN)
    assert len(box.caught) == seen + 3
    assert len(rejects(appliance, second)) == 2


def test_malformed_and_foreign(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """SR-5, SR-13: 400 before anything is stored; without a redirection nothing is forwarded."""
    mail = Mail(to=on("plain"), body=b"broken")
    broken = mail.envelope.replace("<TTrq>", "<TTrq>x")
    assert poster.post(text_request(broken, b"broken")) == 400
    assert poster.post(Mail(to="http://nexthop/msmq/private$/plain", body=b"broken")) == 400
    assert poster.post(Mail(to=f"http://{HOST}/msmq/on", body=b"broken")) == 400
    assert poster.post(Mail(to=url("plain"), body=b"here")) == 200
    assert verdicts(appliance, mail) == []
    assert not [one for one in catcher.everything if b"broken" in one.body]


def test_what_goes_round_ends(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """RFC 9110 7.6.3: a hop that leads back to us says that we had it before."""
    box = far(catcher, "round")
    mail = Mail(to=on("round"), body=b"round and round")
    assert poster.post(mail) == 200
    (caught,) = wait(catcher, box, 1)
    until_told(appliance, mail, WAITS, TAKEN)
    again = multipart(mail.envelope.encode(), [body_part(mail.body, mail.source)])
    more = f"Via: 1.1 other, {caught.headers['via']}\r\n"
    assert poster.post(head(len(again), more=more) + again) == 400
    until_told(appliance, mail, WAITS, TAKEN, "too-many-hops")
    assert len(box.caught) == 1


def test_again_and_in_order(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    """SR-75, SR-76: 5xx, and nobody there: it waits, nothing overtakes it, `status` shows it.

    SR-63: one whose time is over meanwhile is not sent. A stream that is repeated while it waits
    is not stored again.
    """
    bad, late, down = (far(catcher, name) for name in ("bad", "late", "down"))
    bad.plan(503)
    late.plan(500)
    flow = Flow(to=on("down"), receipts="http://127.0.0.1:9/r")
    first = [Mail(to=on("bad"), body=b"bad %d" % n) for n in range(3)]
    brief = Mail(to=on("late"), body=b"brief", ttrq=1, flags="<DeadLetter/>")
    lasting = Mail(to=on("late"), body=b"lasting")
    assert [poster.post(mail) for mail in (*first, brief, lasting)] == [200] * 5
    wait(catcher, bad, 1)
    wait(catcher, late, 1)
    catcher.down()
    try:
        mails = [flow.mail(1), Mail(to=on("down"), body=b"between"), flow.mail(2)]
        repeated = [mails[0], mails[2]]
        assert [poster.post(mail) for mail in (*mails, *repeated)] == [200] * 5
        waiting = {row["url"]: row for row in appliance.status()["forwards"]}
        assert waiting[down.url]["waiting"] == 3
        assert waiting[bad.url] == {
            "url": bad.url,
            "waiting": 3,
            "bytes": sum(len(at_next_hop(mail, bad)) for mail in first),
            "failing": True,
        }
    finally:
        catcher.up()
    bodies = [one.body for one in wait(catcher, down, 3, RETRY)]
    assert bodies == [at_next_hop(mail, down) for mail in mails]
    bodies = [one.body for one in wait(catcher, bad, 4, RETRY)]
    assert bodies == [at_next_hop(mail, bad) for mail in (first[0], *first)]
    bodies = [one.body for one in wait(catcher, late, 2, RETRY)]
    assert bodies == [at_next_hop(mail, late) for mail in (brief, lasting)]
    _, told = until_told(appliance, brief, WAITS, "time-to-reach-queue-over")
    assert (told["verdict"], told["class"]) == ("expired", 0x8002)
    assert [record.value for record in rejects(appliance, brief)] == [b"brief"]
    dead = read_topic(appliance.bootstrap, f"{appliance.prefix}.deadletter")  # SR-65
    assert [record.value for record in dead] == [b"brief"]
    until_told(appliance, mails[2], WAITS, WAITS, TAKEN)  # the second: its copy waited


def test_a_kill_between_200_and_the_next_hop(appliance: Appliance, catcher: Catcher) -> None:
    """D1: what was answered with 200 is there after kill -9, with an empty data folder; in the
    order that its sender had it in."""
    box = far(catcher, "kill")
    catcher.down()
    try:
        guid = uuid4()
        flow = Flow(to=on("kill"), receipts="http://127.0.0.1:9/r", stream=stream_id(guid))
        plain = Mail(to=on("kill"), body=b"regular", source=guid)
        mails = [flow.mail(1, source=guid), plain, flow.mail(2, source=guid)]
        with Poster(appliance.srmp_address).connect() as poster:
            assert [poster.post(mail) for mail in mails] == [200] * 3
        appliance.kill()
    finally:
        catcher.up()
    appliance.restart(empty_data=True)
    caught = wait(catcher, box, 3)
    assert [one.body for one in caught] == [at_next_hop(mail, box) for mail in mails]
    for one in caught:
        check_head(one, appliance, catcher.port)
    until_told(appliance, mails[2], WAITS, TAKEN)
    assert box.url not in [row["url"] for row in appliance.status()["forwards"]]


def test_what_waits_is_bounded(appliance: Appliance, catcher: Catcher) -> None:
    """SR-6: over the machine's quota 500, the sender keeps it; what is for here goes on. The
    messages are nearly as large as SRMP allows."""
    box = far(catcher, "full")
    box.plan(503)
    poster = Poster(appliance.srmp_address).connect()
    large = [Mail(to=on("full"), body=bytes(4_000_000)) for _ in range(3)]
    assert [poster.post(mail) for mail in large] == [200, 200, 500]
    assert poster.post(Mail(to=url("plain"), body=b"not forwarded")) == 200
    wait(catcher, box, 3, RETRY)
    until_told(appliance, large[1], WAITS, TAKEN)
    assert poster.post(large[2]) == 200
    bodies = [one.body for one in wait(catcher, box, 4)]
    assert bodies == [at_next_hop(mail, box) for mail in (large[0], *large)]
    until_told(appliance, large[2], "machine-quota", WAITS, TAKEN)
    poster.close()


def test_what_is_counted(appliance: Appliance, catcher: Catcher, poster: Poster) -> None:
    mail = Mail(to=on("plain"), body=b"counted")
    assert poster.post(mail) == 200
    until_told(appliance, mail, WAITS, TAKEN)
    _, text = appliance.get("/metrics")
    assert 'msmq_bridge_forwards_total{result="taken"}' in text
    assert 'msmq_bridge_messages_total{class="",transport="http",verdict="forwarded"}' in text
    assert "msmq_bridge_waiting_forwards 0.0" in text
    assert "msmq_bridge_waiting_forward_bytes 0.0" in text
