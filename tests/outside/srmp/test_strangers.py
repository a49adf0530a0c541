"""A stranger posts in a victim's name. HTTP proves no GUID, but it does prove an address."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, queue
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Box
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import (
    Flow,
    Mail,
    Step,
    body_part,
    multipart,
    stream_id,
    url,
    whole,
)
from tests.outside.strangers import STRANGE_IP, VICTIM_IP, plain, session, step

pytestmark = pytest.mark.kafka
_ids = count(1)
Post = Callable[[Mail], int]


@pytest.fixture
def posting(appliance: Appliance) -> Iterator[Callable[[str], Post]]:
    """Posts from an address, over a new connection each: the appliance may have been restarted."""
    with ExitStack() as stack:

        def from_address(local: str) -> Post:
            def post(mail: Mail) -> int:
                poster = Poster(appliance.srmp_address)
                poster.local = local
                stack.callback(poster.close)
                return poster.connect().post(mail)

            return post

        yield from_address


@pytest.fixture
def victim(posting: Callable[[str], Post]) -> Post:
    return posting(VICTIM_IP)


@pytest.fixture
def stranger(posting: Callable[[str], Post]) -> Post:
    return posting(STRANGE_IP)


def mail_of(source: UUID, number: int, name: str = "plain") -> Mail:
    body = f"{source} {number}".encode()
    return Mail(to=url(name), source=source, number=number, body=body, services="<durable/>")


def test_ids_are_remembered_for_each_address(victim: Post, stranger: Post, topics: Topics) -> None:
    """The stranger is first with the victim's ids; the victim's mails are no duplicates of them."""
    source = uuid4()
    for number in range(1, 6):
        spoofed = replace(mail_of(source, number), body=b"spoofed")
        assert stranger(spoofed) == 200
    mails = [mail_of(source, number) for number in range(1, 6)]
    assert [victim(mail) for mail in mails] == [200] * 5
    assert [victim(mail) for mail in mails] == [200] * 5  # these are
    assert topics.count(mail.body for mail in mails) == [1] * 5


def test_ids_of_both_protocols_are_apart(
    appliance: Appliance, stranger: Post, topics: Topics
) -> None:
    source = uuid4()
    for number in (1, 2, 3):
        assert stranger(replace(mail_of(source, number), body=b"spoofed")) == 200
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([plain(source, n) for n in (1, 2, 3)])
    records = topics.of(source, [appliance.topic("plain")])
    sent = [one.value for one in records if one.header["msmq.transport"] == b"binary"]
    assert sorted(sent) == [b"plain 1", b"plain 2", b"plain 3"]


def test_the_ids_survive_a_kill(
    appliance: Appliance, victim: Post, stranger: Post, topics: Topics
) -> None:
    source = uuid4()
    first, second = mail_of(source, 1), mail_of(source, 2)
    assert victim(first) == 200
    for mail in (first, second):
        assert stranger(replace(mail, body=b"spoofed")) == 200
    appliance.restart(empty_data=True, kill=True)
    assert [victim(first), victim(second)] == [200, 200]
    assert topics.count([first.body, second.body]) == [1, 1]


def test_a_binary_stream_is_not_moved_over_http(
    appliance: Appliance, stranger: Post, topics: Topics, box: Box
) -> None:
    """Neither by SourceQmGuid nor by the id of a stream, to whichever spelling of the queue."""
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([step(source, 1)])
        for to in (url("orders"), url("orders", "127.0.0.1")):
            flow = Flow(to=to, receipts=box.url, stream=stream_id(source), source=source)
            for number in (1, 2, 3):
                stranger(flow.mail(number))
        sender.send_all_windowed([step(source, 2)])
    bodies = [one.value for one in topics.of(source, [appliance.topic("orders")])]
    assert [body for body in bodies if body.startswith(b"step")] == [b"step 1", b"step 2"]


def test_a_denied_mail_is_not_remembered(victim: Post, stranger: Post, topics: Topics) -> None:
    source = uuid4()
    mail = mail_of(source, 1, "mine")
    assert stranger(mail) == 200  # no access is not told to a stranger
    assert topics.with_id(mail.id) == []
    assert victim(mail) == 200
    assert [one.value for one in topics.with_id(mail.id)] == [mail.body]


def test_a_denied_stream_moves_nothing(
    victim: Post, stranger: Post, topics: Topics, box: Box
) -> None:
    """Before it exists, while it runs, ahead of it and behind it; receipts go to its owner."""
    source = uuid4()
    flow = Flow(to=url("minetx"), receipts=box.url, stream=stream_id(source), source=source)
    elsewhere = replace(flow, receipts="http://127.0.0.9:9/stolen")
    for number in (1, 2, 7):
        stranger(elsewhere.mail(number, start=True))
    assert victim(flow.mail(1)) == 200
    newer = replace(elsewhere, stream=stream_id(source, timestamp=0x7FFFFFFF))
    for mail in (elsewhere.mail(1), elsewhere.mail(9, 1), newer.mail(1), newer.mail(2)):
        stranger(mail)
    assert victim(flow.mail(2)) == 200
    box.wait_last(2)
    assert topics.numbers("minetx", flow) == [1, 2]


def test_numbers_without_end(victim: Post, stranger: Post, topics: Topics, box: Box) -> None:
    """The largest numbers there are, in a stream that is the stranger's own business."""
    source = uuid4()
    for current in (2**31 - 1, 2**32 - 1, 2**63, 2**64):
        wild = Step(
            stream=f"uid:{source}\\{2**64 - 1}", current=current, previous=0, receipts=box.url
        )
        stranger(replace(mail_of(source, next(_ids), "orders"), step=wild))
    flow = Flow(to=url("orders"), receipts=box.url, stream=stream_id(source), source=source)
    assert [victim(flow.mail(number)) for number in (1, 2)] == [200, 200]
    assert topics.numbers("orders", flow) == [1, 2]


@pytest.mark.parametrize("text", ["&#xD800;", "\ud800", "&#0;", "\x00"], ids=ascii)
def test_an_odd_string_is_its_own_trouble(
    appliance: Appliance, victim: Post, topics: Topics, text: str
) -> None:
    """In the source, the label, the id of a stream and the place for receipts."""
    good, pid = mail_of(uuid4(), next(_ids)), appliance.pid
    marks = ("<SourceQmGuid>", "<action>MSMQ:", "<to>http://", "<id>uuid:")
    for mark in marks:
        envelope = replace(good, number=next(_ids)).envelope.replace(mark, mark + text)
        with Poster(appliance.srmp_address).connect() as poster:
            poster.try_post(_raw(envelope))
    assert victim(good) == 200
    assert [one.value for one in topics.with_id(good.id)] == [good.body]
    assert appliance.pid == pid
    assert appliance.process.poll() is None


def _raw(envelope: str) -> bytes:
    return whole(multipart(envelope.encode("utf-8", "surrogatepass"), [body_part(b"odd")]))


def test_one_address_with_one_id_over_both_protocols(
    appliance: Appliance, victim: Post, topics: Topics
) -> None:
    """The same id over both protocols from one address: two messages, and neither is lost."""
    source = uuid4()
    with session(appliance, source, local=VICTIM_IP) as sender:
        sender.send_all_windowed([plain(source, 1, queue("plain2"))])
    mail = mail_of(source, 1, "plain2")
    assert victim(mail) == 200
    bodies = [one.value for one in topics.of(source, [appliance.topic("plain2")])]
    assert sorted(bodies) == sorted([b"plain 1", mail.body])
