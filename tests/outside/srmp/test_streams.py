"""Streams row by row of table 5.1, and when their receipts come. SR-30 to SR-39"""

from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import pytest

from tests.outside.appliance import HOST, Appliance
from tests.outside.rawconnection import soon
from tests.outside.records import Record
from tests.outside.srmp.bench import Topics, settle
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.conftest import Connect
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import ZERO, Flow, Mail, Receipt, request, stream_id, url

pytestmark = pytest.mark.kafka
ORDERS = url("orders")


@pytest.fixture
def flow(box: Box) -> Flow:
    return Flow(to=ORDERS, receipts=box.url)


def send(poster: Poster, *mails: Mail) -> None:
    """Each answered with 200, one after the other."""
    assert [poster.post(mail) for mail in mails] == [200] * len(mails)


def records(topics: Topics, flow: Flow) -> list[Record]:
    return [one for one in topics.all("orders") if one.value.startswith(flow.name.encode())]


# -- which messages are taken: 5.1 ----------------------------------------------------------


def test_start_and_in_order(poster: Poster, topics: Topics, flow: Flow, box: Box) -> None:
    """None + start -> Pending; same id, in order. SR-30 a, b"""
    send(poster, *(flow.mail(n) for n in range(1, 8)))
    assert topics.numbers("orders", flow) == [1, 2, 3, 4, 5, 6, 7]
    found = records(topics, flow)
    assert [one.header["msmq.tx.seq"] for one in found] == [b"%d" % n for n in range(1, 8)]
    assert box.wait_last(7)[-1].stream == flow.stream


@pytest.mark.parametrize(
    ("current", "start"), [(2, False), (1, False), (2, True), (7, True), (4294967295, False)]
)
def test_no_stream_and_anything_but_a_start(
    poster: Poster,
    topics: Topics,
    flow: Flow,
    box: Box,
    catcher: Catcher,
    current: int,
    start: bool,
) -> None:
    """None + anything else: 200, dropped, no receipt; and the real start still works."""
    send(poster, flow.mail(current, start=start))
    settle(poster, catcher)
    assert (topics.numbers("orders", flow), box.caught) == ([], [])
    send(poster, flow.mail(1))
    assert topics.numbers("orders", flow) == [1]


def test_duplicates_are_acknowledged_again(
    poster: Poster, topics: Topics, flow: Flow, box: Box
) -> None:
    """Same id, current <= N: 200, not inserted, re-acknowledged with N. SR-37"""
    mails = [flow.mail(n) for n in (1, 2, 3)]
    send(poster, *mails)
    before = len(box.wait_last(3))
    send(poster, mails[0])
    again = box.wait(before + 1)[before]
    assert (again.last, again.stream) == (3, flow.stream)
    send(poster, mails[2], mails[1])
    assert box.wait(before + 2)[before + 1].last == 3
    send(poster, flow.mail(4))
    box.wait_last(4)
    assert topics.numbers("orders", flow) == [1, 2, 3, 4]
    assert box.lasts == sorted(box.lasts)


def test_gaps_are_dropped(poster: Poster, topics: Topics, flow: Flow, box: Box) -> None:
    """Same id, gap: 200, dropped; no buffering, no gap filling: go-back-N. SR-30"""
    send(poster, flow.mail(1), flow.mail(3), flow.mail(4, 3), flow.mail(9, 2))
    assert topics.numbers("orders", flow) == [1]
    assert box.wait_last(1)[-1].last == 1
    send(poster, *(flow.mail(n) for n in (2, 3, 4)))
    assert topics.numbers("orders", flow) == [1, 2, 3, 4]
    box.wait_last(4)
    assert set(box.lasts) <= {1, 2, 3, 4}


def test_gaps_that_previous_bridges(poster: Poster, topics: Topics, flow: Flow, box: Box) -> None:
    """SR-30 c: current > N and previous <= N; SR-35: the receipt says the last one accepted."""
    send(poster, flow.mail(1), flow.mail(5, 1), flow.mail(9, 3), flow.mail(10))
    send(poster, flow.mail(4294967295, 10))
    expected = [1, 5, 9, 10, 4294967295]
    assert topics.numbers("orders", flow) == expected
    assert box.wait_last(4294967295)[-1].last == 4294967295


def test_several_connections(
    connect: Connect, topics: Topics, flow: Flow, box: Box
) -> None:  # SR-33
    posters = [connect() for _ in range(4)]
    for number in range(1, 25):
        send(posters[number % 4], flow.mail(number))
    assert topics.numbers("orders", flow) == list(range(1, 25))
    box.wait_last(24)


def test_all_at_once_over_several_connections(
    connect: Connect, topics: Topics, flow: Flow, box: Box
) -> None:
    """Whatever order they come in: once, in order, and resending brings the rest. SR-33"""
    posters = [connect() for _ in range(4)]
    mails = [flow.mail(number) for number in range(1, 17)]
    for _ in range(2):
        for turn, poster in enumerate(posters):
            poster.send(b"".join(map(request, mails[turn::4])))
        assert {poster.read_answer().status for poster in posters for _ in range(4)} == {200}
    found = topics.numbers("orders", flow)
    assert found == list(range(1, len(found) + 1))
    send(posters[0], *mails)
    assert topics.numbers("orders", flow) == list(range(1, 17))
    box.wait_last(16)


def test_two_spellings_are_two_streams(poster: Poster, topics: Topics, catcher: Catcher) -> None:
    """Key = GUID of streamId and `to` as sent: D in 3.5, DM-8"""
    one, two = catcher.box(), catcher.box()
    first = Flow(to=ORDERS, receipts=one.url)
    second = replace(
        first,
        to=f"http://{HOST.lower()}/MSMQ/private$/Orders",
        receipts=two.url,
        name=f"2-{first.name}",
    )
    send(poster, first.mail(1), second.mail(1), first.mail(2), second.mail(2), second.mail(3))
    assert topics.numbers("orders", first) == [1, 2]
    assert topics.numbers("orders", second) == [1, 2, 3]
    assert one.wait_last(2)[-1].via == first.to
    assert two.wait_last(3)[-1].via == second.to


def test_the_source_may_vary(poster: Poster, topics: Topics, flow: Flow, box: Box) -> None:
    """4.4 varies SourceQmGuid within a stream; they still lie in one partition. DM-36"""
    send(poster, *(flow.mail(n, source=uuid4()) for n in range(1, 9)))
    assert topics.numbers("orders", flow) == list(range(1, 9))
    box.wait_last(8)


@pytest.mark.parametrize("tag", ["Stream", "stream"])
def test_both_spellings_of_the_element(
    poster: Poster, topics: Topics, box: Box, tag: str
) -> None:  # 2.2.5.3
    flow = Flow(to=ORDERS, receipts=box.url, tag=tag)
    other = replace(flow, tag="stream" if tag == "Stream" else "Stream")
    send(poster, flow.mail(1), other.mail(2), flow.mail(3))
    assert topics.numbers("orders", flow) == [1, 2, 3]
    box.wait_last(3)


def test_a_start_on_a_later_message(
    poster: Poster, topics: Topics, flow: Flow, box: Box, catcher: Catcher
) -> None:
    """Digest 3.1: ignore it; receipts go on to where message 1 said."""
    other = catcher.box()
    send(poster, flow.mail(1), replace(flow, receipts=other.url).mail(2, start=True))
    send(poster, flow.mail(3))
    assert topics.numbers("orders", flow) == [1, 2, 3]
    box.wait_last(3)
    assert other.caught == []


# -- new ids --------------------------------------------------------------------------------


def successor(flow: Flow, box: Box, ordinal: int, timestamp: int = 0x65000000) -> Flow:
    guid = flow.stream.removeprefix("uid:").partition("\\")[0]
    stream = stream_id(guid, ordinal, timestamp)
    return replace(flow, stream=stream, receipts=box.url, name=f"{ordinal}-{flow.name}")


def test_a_new_stream_id(
    poster: Poster, topics: Topics, flow: Flow, box: Box, catcher: Catcher
) -> None:
    """Unknown id, start: the old one is receipted and archived, the new one begins. 5.1"""
    fresh = catcher.box()
    new = successor(flow, fresh, 2)
    send(poster, flow.mail(1), flow.mail(2), new.mail(1), new.mail(2))
    box.wait_last(2)
    assert fresh.wait_last(2)[-1].stream == new.stream
    assert {one.stream for one in box.receipts} == {flow.stream}
    assert topics.numbers("orders", flow) == [1, 2]
    assert topics.numbers("orders", new) == [1, 2]


def test_an_archived_id(
    poster: Poster, topics: Topics, flow: Flow, box: Box, catcher: Catcher
) -> None:
    """SR-38: a message 1 of it is a duplicate, acknowledged with the recorded number."""
    fresh = catcher.box()
    new = successor(flow, fresh, 2)
    send(poster, flow.mail(1), flow.mail(2), new.mail(1))
    before = len(box.wait_last(2))
    fresh.wait_last(1)
    send(poster, flow.mail(1))
    again = box.wait(before + 1)[before]
    assert (again.type, again.last, again.stream) == ("stream", 2, flow.stream)
    send(poster, flow.mail(2))
    assert box.wait(before + 2)[before + 1].last == 2
    send(poster, new.mail(2))
    fresh.wait_last(2)
    assert topics.numbers("orders", flow) == [1, 2]
    assert topics.numbers("orders", new) == [1, 2]


def test_a_lower_id_is_taken(
    poster: Poster, topics: Topics, flow: Flow, box: Box, catcher: Catcher
) -> None:
    """SR-38: a sender's clock may go back."""
    fresh = catcher.box()
    lower = successor(flow, fresh, 1, timestamp=0x10000000)
    send(poster, flow.mail(1), lower.mail(1), lower.mail(2))
    assert fresh.wait_last(2)[-1].stream == lower.stream
    assert topics.numbers("orders", lower) == [1, 2]
    box.wait_last(1)


def test_another_id_without_a_start(
    poster: Poster, topics: Topics, flow: Flow, box: Box, catcher: Catcher
) -> None:
    """Other id, no start: 200, dropped; the stream that runs goes on."""
    stray = successor(flow, catcher.box(), 2)
    send(poster, flow.mail(1), stray.mail(1, start=False), stray.mail(2), flow.mail(2))
    assert topics.numbers("orders", stray) == []
    assert topics.numbers("orders", flow) == [1, 2]
    box.wait_last(2)
    assert {one.stream for one in box.receipts} == {flow.stream}


# -- receipts -------------------------------------------------------------------------------


def test_one_receipt_for_a_burst(poster: Poster, catcher: Catcher, flow: Flow, box: Box) -> None:
    """SR-34, SR-36: 500 ms after the last message, cumulative."""
    assert poster.post_all([flow.mail(n) for n in range(1, 31)]) == [200] * 30
    box.wait_last(30)
    settle(poster, catcher)
    assert box.lasts[-1] == 30
    assert len(box.lasts) <= 2  # one, unless the machine stood still in the middle


def test_a_receipt_after_ten_seconds_at_most(poster: Poster, flow: Flow, box: Box) -> None:
    """SR-34: every message restarts the timer, but none waits for longer than 10 s."""
    number, started, gaps = 0, soon(0), [0.0]
    while not box.caught:
        number += 1
        before = soon(0)
        assert before - started < 14, "no receipt for a stream that never pauses"
        send(poster, flow.mail(number))
        box.pause(0.2)
        gaps.append(soon(0) - before)
    if max(gaps) < 0.4:  # we never paused ourselves
        assert box.lasts[0] >= 8 / 0.4
    assert box.lasts[0] <= number


def test_the_number_never_falls(poster: Poster, flow: Flow, box: Box) -> None:
    """8.1: with duplicates, gaps and new messages mixed; and never what was not sent. SR-36"""
    for number in range(1, 6):
        send(poster, flow.mail(number), flow.mail(1), flow.mail(number + 2))
        box.wait_last(number)
    assert box.lasts == sorted(box.lasts)
    assert box.lasts[-1] == 5


def test_a_receipt_byte_for_byte(poster: Poster, appliance: Appliance, catcher: Catcher) -> None:
    """Digest 3.7; the box checks layout and head of every receipt, here are the values."""
    box = catcher.box(query="?SenderStream=XRntV&Mixed=Case")
    stream = stream_id(str(uuid4()).upper(), 5)
    flow = Flow(to=f"http://{HOST}:80/msmq/Private$/orders", receipts=box.url, stream=stream)
    send(poster, flow.mail(1, label="not repeated"))
    [receipt] = box.wait(1)
    assert receipt == Receipt(
        type="stream",
        action="MSMQ:QM Ordering Ack",
        to=box.url.replace("&", "&amp;"),  # case and query kept
        via=flow.to,
        number=receipt.number,
        source=appliance.guid,
        sent=receipt.sent,
        kind=255,
        priority=0,
        correlation=ZERO,
        stream=stream,  # echoed, upper case as it came
        last=1,
    )
    [caught] = box.caught
    assert caught.target == box.path.lower()  # 1.1: Windows lower-cases it
    assert caught.headers["host"] == f"127.0.0.1:{catcher.port}"


def test_every_receipt_has_its_own_id(poster: Poster, catcher: Catcher) -> None:
    """8.1: never reused, Windows drops repeats."""
    boxes = [catcher.box() for _ in range(4)]
    flows = [Flow(to=ORDERS, receipts=box.url) for box in boxes]
    for number in (1, 2):
        send(poster, *(flow.mail(number) for flow in flows))
        for box in boxes:
            box.wait_last(number)
    seen = [(one.source, one.number) for box in boxes for one in box.receipts]
    assert len(seen) >= 8
    assert len(seen) == len(set(seen))


def test_streams_of_many_senders(connect: Connect, topics: Topics, catcher: Catcher) -> None:
    """A receipt names one stream (SR-36); ten of them side by side do not disturb each other."""
    boxes = [catcher.box() for _ in range(10)]
    flows = [Flow(to=ORDERS, receipts=box.url) for box in boxes]
    posters = [connect() for _ in flows]
    for poster, flow in zip(posters, flows, strict=True):
        poster.send(b"".join(request(flow.mail(n)) for n in range(1, 21)))
    for poster in posters:
        assert [poster.read_answer().status for _ in range(20)] == [200] * 20
    for box, flow in zip(boxes, flows, strict=True):
        box.wait_last(20)
        assert {one.stream for one in box.receipts} == {flow.stream}
        assert all(a < b for a, b in pairwise(box.lasts))
        assert topics.numbers("orders", flow) == list(range(1, 21))


def test_a_stream_goes_on_after_a_kill(
    connect: Connect, appliance: Appliance, topics: Topics, flow: Flow, box: Box
) -> None:
    """Restart row of 5.1, SR-81: number and url are kept; kill -9 and an empty data folder."""
    send(connect(), *(flow.mail(n) for n in (1, 2, 3)))
    box.wait_last(3)
    appliance.restart(empty_data=True, kill=True)
    poster = connect()
    before = len(box.receipts)
    send(poster, flow.mail(3), flow.mail(5), flow.mail(1))
    assert box.wait(before + 1)[before].last == 3
    send(poster, flow.mail(4), flow.mail(5))
    box.wait_last(5)
    assert topics.numbers("orders", flow) == [1, 2, 3, 4, 5]
