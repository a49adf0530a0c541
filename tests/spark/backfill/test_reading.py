"""Rows so far, from the notes of readers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msmq_jobs.backfill.reading import Reading


def test_the_parts_of_a_source_are_summed_up() -> None:
    told: list[tuple[str, int]] = []
    reading = Reading(lambda *news: told.append(news))
    one, two = Path(reading.place("a")), Path(reading.place("b"))
    reading.look()
    assert told == []
    (one / "0").write_text("500")
    (one / "1").write_text("70")
    (two / "0").write_text("")  # being written
    reading.look()
    reading.look()  # no news
    assert told == [("a", 570)]
    (one / "0").write_text("20")  # a task that begins again takes nothing back
    reading.look()
    (one / "0").write_text("1000")
    reading.look()
    assert told == [("a", 570), ("a", 1070)]
    reading._folder.cleanup()


def test_sources_that_are_opened_at_the_same_moment_have_places_of_their_own() -> None:
    names = [str(n) for n in range(400)]
    told: dict[str, int] = {}
    together = threading.Barrier(8)

    def opened(some: list[str]) -> None:
        together.wait(60)
        for name in some:
            (Path(reading.place(name)) / "0").write_text(str(int(name) + 1))

    with Reading(told.__setitem__) as reading, ThreadPoolExecutor(8) as pool:
        list(pool.map(opened, (names[n::8] for n in range(8))))
        reading.look()
    assert told == {name: int(name) + 1 for name in names}


def test_it_looks_by_itself_and_leaves_nothing_behind() -> None:
    is_told = threading.Event()
    with Reading(lambda *_: is_told.set()) as reading:
        place = Path(reading.place("a"))
        (place / "0").write_text("1")
        assert is_told.wait(60)
    assert not place.exists()
    assert not reading._thread.is_alive()
