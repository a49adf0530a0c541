"""The three answers, as tables of at most 100 columns and as data."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from rich.console import Console, RenderableType

from bridge.adapters.demo.script import Part, Stage, acts
from bridge.adapters.demo.senders import Told
from bridge.adapters.demo.witness import FoundRecord
from bridge.cli.demo_text import LAST, Answers, as_data, as_tables, line, picture, readable
from bridge.core.audit import AuditEntry
from bridge.model.message import Message

STAGE = Stage(
    transactional="private$\\orders", express="private$\\readings", recoverable="private$\\invoices"
)
PARTS = [part for act in acts(STAGE, 4, 1_700_000_000) for part in act]
SHOP = next(part for part in PARTS if part.sender == "shop")
TYPO = next(part for part in PARTS if part.sender == "typo")
WEB = [part for part in acts(STAGE, 4, 1_700_000_000, "127.0.0.1:80")[0] if part.sender == "web"]


def verdict(message: Message, queue: str, **fields: object) -> AuditEntry:
    values = {"verdict": "accepted", "topic": "orders", "partition": 3} | fields
    return AuditEntry(
        id=message.id,
        at=1_700_000_000_123,
        dest=message.destination,
        queue=queue,
        label=message.label,
        transport=message.transport,
        **values,  # type: ignore[arg-type]
    )


def record(message: Message, offset: int, topic: str = "orders", **headers: bytes) -> FoundRecord:
    named = {
        "msmq.label": message.label.encode(),
        "msmq.transport": message.transport.encode(),
        "msmq.tx.seq": b"7",
        "msmq.wire": b"\x10\xff",
        "msmq.soap": b"<se:Envelope>",
    }
    return FoundRecord(
        message_id=message.id,
        topic=topic,
        partition=3,
        offset=offset,
        timestamp_ms=1_700_000_000_123,
        key=b"key" * 20,
        value=message.body,
        headers=named | headers,
    )


REFUSED = {"verdict": "rejected", "message_class": 0x8000, "reason": "unknown-queue"}
NOWHERE = {"topic": "", "partition": -1}
ANSWERS = Answers(
    verdicts=[
        *(verdict(message, SHOP.queue) for message in SHOP.messages),
        verdict(TYPO.messages[0], "", **REFUSED, **NOWHERE),
    ],
    records=[record(message, number) for number, message in enumerate(SHOP.messages)]
    + [record(TYPO.messages[0], 9, "_msmq-bridge.rejects")],
    told=[
        (
            SHOP,
            Told(
                sent=4,
                session_acked=4,
                order_acked=3,
                final_acks=(0x4000,) * 4,
                admin_acks=(0x4000, 2, 0x4000),
            ),
        ),
        (TYPO, Told(sent=1, session_acked=1, order_acked=1, final_acks=(0x8000,))),
        (PARTS[1], Told(sent=4, session_acked=4, order_acked=0)),
    ],
)


def drawn(*parts: RenderableType, width: int = 100) -> list[str]:
    screen = Console(file=io.StringIO(), width=width)
    for part in parts:
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def cells(rows: Sequence[str]) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("│")[1:-1]] for row in rows if "│" in row]


def test_what_came_in() -> None:
    first, _, _ = as_tables(ANSWERS)
    assert drawn(first)[0].startswith("1. What came in?")
    assert cells(drawn(first)) == [
        ["shop", "order 1 … 4", "transactional", "binary", "private$\\orders", "accepted"],
        [
            *("typo", "order for nobody", "transactional", "binary", "private$\\odrers"),
            "rejected: unknown queue",
        ],
    ]


def test_where_it_is() -> None:
    _, second, _ = as_tables(ANSWERS)
    found = cells(drawn(second))
    assert found[0] == ["orders-3@0", f"key    {'key' * 7}ke…", "msmq.label=order 1"]
    assert found[1] == ["", 'value  {"order": 1, "tea": 2}', "msmq.transport=binary"]
    assert found[2] == ["", "", "msmq.tx.seq=7"]
    assert [row[0] for row in found if row[0]] == [
        *("orders-3@0", "orders-3@1", "and 2 more", "_msmq-bridge.rejects-3@9")
    ]
    assert not any("wire" in text for row in found for text in row)


def test_what_the_sender_was_told() -> None:
    _, _, third = as_tables(ANSWERS)
    found = cells(drawn(third, width=200))
    assert found[0][1:] == ["4 of 4", "3 of 4", "final ack: 4 x ACK_RECEIVE (it was received)"]
    assert found[1][3] == "admin queue: 2 x ACK_RECEIVE (it was received)"
    assert found[2][3] == "admin queue: 1 x ACK_REACH_QUEUE (it is in the queue)"
    assert found[3][1:] == [
        *("1 of 1", "1 of 1", "final ack: 1 x NACK_BAD_DST_Q (there is no such queue)")
    ]
    assert found[4][1:] == ["4 of 4", "-", "-"]  # no order acks without transactions


def test_what_a_sender_over_http_was_told() -> None:
    told = Told(sent=4, session_acked=3, order_acked=2, admin_acks=(2, 2))
    answers = Answers(verdicts=[], records=[], told=[(part, told) for part in WEB])
    _, _, third = as_tables(answers)
    receipts = "admin queue: 2 x ACK_REACH_QUEUE (it is in the queue)"
    assert cells(drawn(third, width=200)) == [
        ["web: a stream over HTTP", "200: 3 of 4", "receipt: 2 of 4", receipts],
        ["web: durable, over HTTP", "200: 3 of 4", "-", receipts],
    ]
    assert {row["transport"] for row in as_data(answers)["told"]} == {"http"}


def test_all_fit_on_a_screen() -> None:
    for part in as_tables(ANSWERS):
        assert max(map(len, drawn(part))) <= 100


def test_one_more_is_shown_and_not_counted() -> None:
    three = Answers(verdicts=[], records=ANSWERS.records[:3], told=[])
    _, second, _ = as_tables(three)
    places = [row[0] for row in cells(drawn(second)) if row[0]]
    assert places == ["orders-3@0", "orders-3@1", "orders-3@2"]


def test_nothing_at_all() -> None:
    empty = Answers(verdicts=[], records=[], told=[])
    for part, question in zip(as_tables(empty), ("1. ", "2. ", "3. "), strict=True):
        found = drawn(part)
        assert found[0].startswith(question)
        assert any("nothing" in row for row in found)


def test_as_data() -> None:
    data = json.loads(json.dumps(as_data(ANSWERS)))
    assert list(data) == ["came_in", "in_kafka", "told"]
    assert data["came_in"][0] == {
        "message_id": SHOP.messages[0].id,
        "sender": "shop",
        "queue": "private$\\orders",
        "label": "order 1",
        "transport": "binary",
        "delivery": "transactional",
        "arrived_time": "2023-11-14T22:13:20.123+00:00",
        "verdict": "accepted",
        "class": None,
        "reason": None,
    }
    refused = data["came_in"][-1]
    assert refused["queue"] == "private$\\odrers"
    assert (refused["class"], refused["reason"]) == ("NACK_BAD_DST_Q", "unknown-queue")
    first = data["in_kafka"][0]
    assert (first["topic"], first["partition"], first["offset"]) == ("orders", 3, 0)
    assert (first["key"], first["value"]) == ("key" * 20, '{"order": 1, "tea": 2}')
    expected = {"msmq.label": "order 1", "msmq.transport": "binary", "msmq.tx.seq": "7"}
    assert first["headers"] == expected
    assert data["told"][0] == {
        "sender": "shop",
        "about": "exactly once, in order",
        "queue": "private$\\orders",
        "transport": "binary",
        "delivery": "transactional",
        "sent": 4,
        "session_acked": 4,
        "order_acked": 3,
        "final_acks": {"ACK_RECEIVE": 4},
        "admin_acks": {"ACK_RECEIVE": 2, "ACK_REACH_QUEUE": 1},
    }


def test_a_stranger_s_message_has_no_sender() -> None:
    stranger = Part(sender="", queue="q", delivery="", about="", messages=())
    answers = Answers(verdicts=ANSWERS.verdicts[:1], records=[], told=[(stranger, _nothing())])
    assert as_data(answers)["came_in"][0]["sender"] is None
    first, *_ = as_tables(answers)
    assert cells(drawn(first)) == [["", "order 1", "", "binary", "private$\\orders", "accepted"]]


def _nothing() -> Told:
    return Told(sent=0, session_acked=0, order_acked=0)


def test_readable() -> None:
    assert readable(b"text") == "text"
    assert readable(b"\xff\x00") == "ff00"
    assert readable(b"a\x1b[2J") == "611b5b324a"  # nobody steers the terminal


# -- as they come -----------------------------------------------------------------------------


def test_a_line() -> None:
    assert line(ANSWERS.verdicts[0]) == (
        "2023-11-14T22:13:20.123+00:00 accepted: order 1 over binary to private$\\orders "
        "-> orders-3"
    )
    assert line(ANSWERS.verdicts[-1]) == (
        "2023-11-14T22:13:20.123+00:00 rejected (unknown-queue): order for nobody over binary "
        "to private$\\odrers"
    )


def test_a_line_is_one_line() -> None:
    hostile = AuditEntry(
        id="i\\1",
        verdict="accepted",
        at=0,
        dest="DIRECT=OS:h\\q",
        transport="http",
        label="a\n\x1b",
    )
    assert line(hostile) == "1970-01-01T00:00:00.000+00:00 accepted: a\\n\\x1b over http to q"
    assert "\x1b" not in "".join(drawn(picture([hostile], {}, "x")))


def test_the_picture() -> None:
    found = drawn(picture(ANSWERS.verdicts, {"accepted": 1234, "rejected": 1}, "what arrives"))
    assert found[0] == "● what arrives   1,234 accepted, 1 rejected"
    assert cells(found)[0] == [
        *("22:13:20", "binary", "order 1", "private$\\orders", "accepted", "orders-3")
    ]
    assert cells(found)[-1][3:] == ["private$\\odrers", "rejected: unknown queue", "-"]
    assert max(map(len, found)) <= 100
    assert LAST <= 15  # a screen is not endless
