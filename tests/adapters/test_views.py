"""The lists of the web page, over fake shards and sessions."""

import asyncio
import random

from bridge.adapters.paging import Page, Question
from bridge.adapters.queue_desk import QueueInfo
from bridge.adapters.views import Views, mapping_page, queue_page
from bridge.core.mapping_rules import QueueMapping, QueuePath, Topic
from bridge.core.posted import Posted
from bridge.model.verdict import Cursor
from tests.adapters.fake_pumps import FakePump, connection, guid, pumps

ORDERS = "DIRECT=OS:bridge01\\private$\\orders"


def streams(question: Question, *made: FakePump) -> Page:
    async def ask() -> Page:
        return await Views(lambda: pumps(*made), list).streams(question)

    return asyncio.run(ask())


def sessions(question: Question, count: int) -> Page:
    async def ask() -> Page:
        made = [connection(number) for number in range(count)]
        random.shuffle(made)
        return await Views(list, lambda: made).sessions(question)

    return asyncio.run(ask())


def test_sessions() -> None:
    async def ask() -> Page:
        made = [connection(7, received=9, decided=4), connection(3, dialed=object(), state="X")]
        return await Views(list, lambda: made).sessions(Question())

    page = asyncio.run(ask())
    assert page.rows[1] == {
        "peer": "10.0.0.7:2000",
        "queue_manager": str(guid(7)),
        "state": "OPEN",
        "direction": "in",
        "received": 9,
        "decided": 4,
        "waiting": 5,
    }
    assert page.rows[0]["direction"] == "out"


def test_a_thousand_sessions_have_an_order() -> None:  # a set has none
    page = sessions(Question(offset=10, limit=2), 1000)
    assert page.total == 1000
    assert page == sessions(Question(offset=10, limit=2), 1000)
    found = sessions(Question(search="10.0.3.9"), 1000)
    assert [row["peer"] for row in found.rows][:2] == ["10.0.3.9:2000", "10.0.3.90:2000"]
    most = sessions(Question(sort="received", descending=True, limit=1), 1000)
    assert most.rows[0]["received"] == 999


def test_streams_of_every_shard_and_kind() -> None:
    one, two = FakePump(), FakePump()
    one.shard.streams.advance((guid(1), ORDERS), Cursor(1 << 62, 7))
    posted = Posted(id=5, text="t", number=3, receipted=2, at=1_700_000_000, receipts_to="http://a")
    two.shard.posted.advance((guid(2), "http://b/q"), posted)
    page = streams(Question(), one, two)
    assert page.rows == [
        {
            "source": str(guid(1)),
            "destination": ORDERS,
            "transport": "binary",
            "sequence_id": "4611686018427387904",  # not what a double makes of it
            "number": 7,
        },
        {
            "source": str(guid(2)),
            "destination": "http://b/q",
            "transport": "http",
            "sequence_id": "5",
            "number": 3,
            "receipted": 2,
            "rejects": 0,
            "last_access": 1_700_000_000,
            "receipts_to": "http://a",
        },
    ]
    for sort in ("source", "destination", "transport", "sequence_id", "number"):
        assert streams(Question(sort=sort), one, two).found == 2
    assert streams(Question(search="HTTP://B"), one, two).rows == page.rows[1:]


def test_streams_that_sleep_are_searched_and_stay_asleep() -> None:
    pump = FakePump()
    for number in range(50):
        key = f"stream/{guid(number)}/{ORDERS}{number}"
        pump.shard.streams.restore(key, b'{"sequence_id":1,"number":%d}' % number)
    page = streams(Question(search=f"{guid(7)} orders7"), pump)
    assert [(row["source"], row["number"]) for row in page.rows] == [(str(guid(7)), 7)]
    assert (page.found, page.total) == (1, 50)
    plain = streams(Question(offset=48), pump)
    assert [row["number"] for row in plain.rows] == [48, 49]
    assert pump.shard.streams._rows == {}


def test_a_name_of_any_length_is_cut() -> None:
    pump = FakePump()
    pump.shard.streams.advance((guid(1), "x" * 60_000 + "end"), Cursor(1, 1))
    (row,) = streams(Question(search="xend"), pump).rows
    assert row["destination"] == "x" * 500 + "\u2026"


def test_acks() -> None:
    pump = FakePump()
    pump.shard.owe(3, host="sender01")

    async def ask() -> Page:
        return await Views(lambda: pumps(pump), list).acks(Question())

    assert asyncio.run(ask()).rows == [{"peer": "sender01", "waiting": 3}]


def test_queues_have_what_their_topics_got() -> None:
    infos = [
        QueueInfo(name="private$\\a", mode="forward", transactional=True, topic="a"),
        QueueInfo(name="private$\\b", mode="retain", transactional=False, topic="b", messages=4),
        QueueInfo(name="system$;deadletter", mode="system", transactional=False, topic=""),
    ]
    topics = [{"topic": "a", "records": 12, "per_second": 1.5}]
    page = queue_page(infos, topics, Question(sort="records", descending=True))
    assert [(row["name"], row["records"], row["per_second"]) for row in page.rows] == [
        ("private$\\a", 12, 1.5),
        ("private$\\b", 0, 0.0),
        ("system$;deadletter", None, None),  # what is not there comes last
    ]
    assert queue_page(infos, topics, Question(search="retain")).rows[0]["messages"] == 4


def test_mappings() -> None:
    made = QueueMapping(queue=QueuePath("private$\\shop-*"), topic=Topic("shop.{label}"))
    page = mapping_page([made], Question(search="shop"))
    assert page.rows[0]["topic"] == "shop.{label}"
    assert page.rows[0]["is_dynamic"] is True
    assert mapping_page([made], Question(search="orders")).found == 0
