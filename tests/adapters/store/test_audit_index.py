"""Where verdicts are: a view that may be lost, asked from several threads. Design D6"""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bridge.adapters.store.audit_index import CORRELATION, ID, KINDS, LABEL, AuditIndex, Place
from bridge.core.audit import encode, entry_of
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED
from tests.core.messages import SENDER, plain


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "index.sqlite"  # the folder is made


@pytest.fixture
def index(file: Path) -> Iterator[AuditIndex]:
    made = AuditIndex(file)
    yield made
    made.close()


def record(*messages: Message) -> bytes:
    (value,) = encode([entry_of(message, ACCEPTED) for message in messages])
    return value


def name(ordinal: int) -> str:
    return f"{SENDER}\\{ordinal}"


def fill(index: AuditIndex, *offsets: int, partition: int = 0) -> None:
    index.add((Place(partition, n), record(plain(n, label=f"L{n}"))) for n in offsets)


def test_by_id_label_and_correlation(index: AuditIndex) -> None:
    index.add(
        [
            (Place(0, 7), record(plain(1, label="Order 1", correlation_id=bytes(range(20))))),
            (Place(1, 9), record(plain(2), plain(3, label="Order 3"))),
        ]
    )
    assert KINDS == (ID, LABEL, CORRELATION)
    assert index.find(ID, name(1), 10) == [Place(0, 7)]
    assert index.find(ID, name(2), 10) == index.find(LABEL, "Order 3", 10) == [Place(1, 9)]
    assert index.find(CORRELATION, bytes(range(20)).hex(), 10) == [Place(0, 7)]
    assert index.find(ID, name(4), 10) == []
    assert index.find(LABEL, name(1), 10) == []  # of one kind is not of another
    assert index.find(LABEL, "", 10) == index.find(CORRELATION, "00" * 20, 10) == []


def test_case_does_not_count(index: AuditIndex) -> None:
    index.add([(Place(0, 0), record(plain(1, label="ÄRGER", correlation_id=b"\xab" * 20)))])
    assert index.find(ID, name(1).upper(), 10)
    assert index.find(LABEL, "ärger", 10)
    assert index.find(CORRELATION, "AB" * 20, 10)


def test_the_newest_first_and_not_too_many(index: AuditIndex) -> None:
    for offset in (5, 1, 9, 3):
        index.add([(Place(0, offset), record(plain(1)))])
    assert [p.offset for p in index.find(ID, name(1), 10)] == [9, 5, 3, 1]
    assert [p.offset for p in index.find(ID, name(1), 2)] == [9, 5]


def test_positions_are_behind_what_is_in_it(index: AuditIndex) -> None:
    assert index.positions() == {}
    fill(index, 0, 1, 4)
    fill(index, 7, partition=1)
    assert index.positions() == {0: 5, 1: 8}
    fill(index, 5)
    assert index.positions() == {0: 6, 1: 8}


def test_a_record_that_comes_again_is_there_once(index: AuditIndex) -> None:
    fill(index, 3)
    fill(index, 3)
    assert index.find(ID, name(3), 10) == [Place(0, 3)]


@pytest.mark.parametrize("value", [b"", b"[]", b"no json", b'{"id": 1}', b"[{}]", b"\xff"])
def test_what_we_did_not_write_is_passed_over(index: AuditIndex, value: bytes) -> None:
    index.add([(Place(0, 0), value), (Place(0, 1), record(plain(1)))])
    assert index.positions() == {0: 2}
    assert index.find(ID, name(1), 10) == [Place(0, 1)]


def test_a_newer_version_may_write_more(index: AuditIndex) -> None:
    value = msgspec.json.encode([{"id": "a\\1", "verdict": "accepted", "news": [1]}])
    index.add([(Place(0, 0), value)])
    assert index.find(ID, "a\\1", 10) == [Place(0, 0)]


def test_half_a_surrogate_pair(index: AuditIndex) -> None:
    """Lawful in a label; the entry has a question mark for it."""
    index.add([(Place(0, 0), record(plain(1, label="x\ud800")))])
    assert index.find(LABEL, "x?", 10) == [Place(0, 0)]


def test_it_survives(file: Path) -> None:
    first = AuditIndex(file)
    fill(first, 0, 1, 2)
    first.close()
    second = AuditIndex(file)
    assert second.positions() == {0: 3}
    assert second.find(LABEL, "l2", 10) == [Place(0, 2)]
    second.close()


@pytest.mark.parametrize("damage", ["half", "garbage", "empty"])
def test_half_a_file_is_begun_anew(file: Path, damage: str) -> None:
    first = AuditIndex(file)
    fill(first, *range(2000))
    first.close()
    whole = file.read_bytes()
    assert len(whole) > 3 * 4096
    cut = whole[: len(whole) // 2 // 4096 * 4096]
    file.write_bytes({"half": cut, "garbage": b"x" * 9000, "empty": b""}[damage])
    second = AuditIndex(file)
    assert second.positions() == {}
    fill(second, 0)
    assert second.find(ID, name(0), 10) == [Place(0, 0)]
    second.close()


def test_several_threads_at_once(index: AuditIndex) -> None:
    faults: list[BaseException] = []

    def work(partition: int) -> None:
        try:
            for offset in range(50):
                fill(index, offset, partition=partition)
                assert Place(partition, offset) in index.find(ID, name(offset), 100)
                index.positions()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert index.positions() == dict.fromkeys(range(4), 50)


def test_a_sender_takes_one_row_of_a_record(file: Path, index: AuditIndex) -> None:
    index.add([(Place(0, 0), record(*(plain(n) for n in range(100, 400))))])
    with sqlite3.connect(file) as db:
        assert db.execute("select count(*) from span").fetchone() == (1,)
        assert db.execute("select count(*) from mark").fetchone() == (0,)
    assert index.find(ID, name(100), 9) == index.find(ID, name(399), 9) == [Place(0, 0)]
    assert index.find(ID, name(99), 9) == index.find(ID, name(400), 9) == []


def test_an_id_that_is_no_number_is_found_too(index: AuditIndex) -> None:
    odd = ["uuid:1@host", f"{SENDER}\\", f"{SENDER}\\{'9' * 40}", f"{SENDER}\\-1"]
    entries = [{"id": one} for one in odd]
    index.add([(Place(0, 3), msgspec.json.encode(entries))])
    for one in odd:
        assert index.find(ID, one, 9) == [Place(0, 3)]


def test_a_file_with_other_tables_is_built_anew(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as db:
        db.execute("create table position (partition integer primary key, next integer)")
        db.execute("insert into position values (0, 77)")
    made = AuditIndex(file)
    assert made.positions() == {}
    fill(made, 4)
    made.close()
    again = AuditIndex(file)
    assert again.positions() == {0: 5}
    again.close()
