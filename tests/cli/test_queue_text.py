"""Messages and queues for people and for programs."""

from typing import Any

from bridge.adapters.net.queue_routes import shown
from bridge.cli.queue_text import (
    BODY,
    body_text,
    cut,
    message_rows,
    message_sheet,
    queue_rows,
    with_value,
)
from bridge.core.message_data import read_data
from tests.adapters.net.fake_desk import ORDERS, held

VT_LPWSTR = 31


def row(number: int = 1, **fields: Any) -> dict[str, Any]:
    return shown(held(number, **fields))


def text_of(**fields: Any) -> str:
    return body_text(read_data(row(**fields)))


def test_a_body_is_shown_as_what_it_is() -> None:
    assert text_of(body="Grüße".encode("utf-16-le"), body_type=VT_LPWSTR) == "Grüße"
    assert text_of(body=b'{"id": 7}') == '{"id": 7}'
    assert text_of(body=b"<order/>") == "<order/>"
    assert "81fe02" in text_of(body=b"\x81\xfe\x02").replace(" ", "")


def test_an_encrypted_body_is_not_guessed_at() -> None:
    message = row(body=b"plain looking", encrypted=True)
    assert "value" not in with_value(message)


def test_programs_get_the_value_beside_the_bytes() -> None:
    found = with_value(row(body="7".encode("utf-16-le"), body_type=VT_LPWSTR))
    assert found["value"] == "7"
    assert found["body"] == "NwA="  # base64, as everywhere
    unreadable = with_value(row(body=b"\x00\xff\xfe"))
    assert "value" not in unreadable


def test_rows_leave_out_what_says_nothing() -> None:
    (plain,) = message_rows([row()])
    assert {"lookup_id", "message_id", "label", "arrived", "size", "body"} == plain.keys()
    first, second = message_rows([row(1, is_locked=True), row(2, message_class=0xC002)])
    assert (first["state"], second["state"]) == ("locked", "")
    assert first["class"] == ""
    assert second["class"]


def test_a_sheet_has_all_of_one_message() -> None:
    sheet = message_sheet(row(7, body=b"x" * 1000, is_locked=True, aborts=2, moves=1, moved_at=5))
    assert sheet["lookup_id"] == 7
    assert sheet["locked"] is True
    assert sheet["size"] == 1000
    assert sheet["body"] == "x" * BODY + "... (1000 characters)"
    assert sheet["  msmq.sub.aborts"] == "2"
    assert "headers" not in sheet


def test_queues() -> None:
    told = {
        "name": ORDERS,
        "mode": "retain",
        "transactional": True,
        "topic": "orders",
        "messages": 3,
        "bytes": 300,
        "journal": "orders.journal",
        "journal_messages": 2,
        "subqueues": {"retry": 4, "poison": 1},
        "readers": 1,
        "quota_kb": None,
    }
    (found,) = queue_rows([told])
    assert found["kind"] == "transactional"
    assert found["journal"] == "orders.journal (2)"
    assert found["subqueues"] == "poison (1), retry (4)"
    (bare,) = queue_rows([{"name": "q", "subqueues": "nonsense"}])
    assert (bare["journal"], bare["subqueues"]) == ("", "")


def test_cut() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc... (4 characters)"
