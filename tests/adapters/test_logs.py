"""The log as people and programs read it, and what nobody can do to it."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters import logs
from bridge.adapters.kafka import client
from bridge.adapters.logs import (
    BURST,
    MAX_TRACEBACK,
    CalmHandler,
    fields,
    say_what_was_left_out,
    setup_logging,
)
from bridge.adapters.masking import Secrets

LOGGER = logging.getLogger("bridge.sample")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, threading.excepthook
    root.handlers[:] = []
    yield
    threading.excepthook = hook
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def text() -> io.StringIO:
    stream = Terminal()
    setup_logging("info", stream=stream)
    return stream


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    setup_logging("info", stream=stream)
    return stream


def objects(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_text_on_a_terminal(text: io.StringIO) -> None:
    LOGGER.info("session closed", extra=fields(peer="10.0.0.1:5", user="a b", messages=3, none=""))
    LOGGER.debug("not shown")
    (line,) = text.getvalue().splitlines()
    at, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", at)
    assert rest == ('INFO bridge.sample: session closed peer=10.0.0.1:5 user="a b" messages=3')


def test_json_lines_otherwise(lines: io.StringIO) -> None:
    LOGGER.warning("%s closed", "it", extra=fields(peer="p", seconds=0.5, ok=True, level="x"))
    (told,) = objects(lines)
    assert re.fullmatch(r"[\d-]+T[\d:.]+\+00:00", told.pop("time"))
    assert told == {
        "level": "WARNING",
        "logger": "bridge.sample",
        "message": "it closed",
        "peer": "p",
        "seconds": 0.5,
        "ok": True,
        "level_": "x",
    }


@pytest.mark.parametrize(("form", "is_json"), [("text", False), ("json", True)])
def test_what_was_asked_for_wins(form: str, is_json: bool) -> None:
    for stream in (Terminal(), io.StringIO()):
        setup_logging("info", form, stream)
        LOGGER.info("x")
        assert stream.getvalue().startswith("{") is is_json


def test_a_second_call_replaces_the_first(lines: io.StringIO) -> None:
    again = io.StringIO()
    setup_logging("warning", stream=again)
    LOGGER.info("x")
    assert lines.getvalue() == again.getvalue() == ""
    assert len([h for h in logging.getLogger().handlers if isinstance(h, CalmHandler)]) == 1


# -- hostile text -----------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", ["a\nFAKE LINE\x1b[31m", "a\r\nb\u2028c\x85d", "\ud800"])
def test_a_peer_cannot_begin_a_line(hostile: str, text: io.StringIO) -> None:
    LOGGER.info("peer says %s", hostile, extra=fields(label=hostile))
    assert len(text.getvalue().splitlines()) == 1
    assert text.getvalue()[:-1].isprintable()


@given(st.text(), st.text())
def test_any_text_is_one_line_in_both_forms(message: str, value: str) -> None:
    for formatter in (logs.TextLines(), logs.JsonLines()):
        record = logging.LogRecord("n", logging.INFO, "", 0, "%s", (message,), None)
        record.fields = {"value": value}
        line = formatter.format(record)
        assert len(line.splitlines()) == 1
        line.encode()


def test_a_label_of_a_megabyte_does_not_grow_the_line(
    text: io.StringIO, lines: io.StringIO
) -> None:
    LOGGER.info("%s", "x" * 1_000_000, extra=fields(label="y" * 1_000_000))
    (told,) = objects(lines)
    assert len(told["message"]) < 2_100
    assert told["message"].endswith("(998000 characters more)")
    assert len(told["label"]) < 350


def test_the_traceback_of_a_bug_follows_indented(text: io.StringIO) -> None:
    try:
        raise RuntimeError("ours\n2026-01-01T00:00:00.000+00:00 INFO forged: line")
    except RuntimeError:
        LOGGER.exception("failed")
    first, *rest = text.getvalue().splitlines()
    assert first.endswith("ERROR bridge.sample: failed")
    assert rest[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in rest)


def test_a_traceback_is_a_field_in_json_and_bounded(lines: io.StringIO) -> None:
    try:
        raise RuntimeError("x" * 200_000 + "the end")
    except RuntimeError:
        LOGGER.exception("failed")
    (told,) = objects(lines)
    assert told["exception"].endswith("the end")
    assert len(told["exception"]) < MAX_TRACEBACK + 10


def test_a_wrong_template_loses_no_line() -> None:
    record = logging.LogRecord("n", logging.INFO, "", 0, "%d of %s", ("x",), None)
    assert "%d of %s" in json.loads(logs.JsonLines().format(record))["message"]


# -- secrets ----------------------------------------------------------------------------------


@pytest.fixture
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Secrets()
    secrets.add("hunter2-of-kafka")
    monkeypatch.setattr(logs, "SECRETS", secrets)


@pytest.mark.usefixtures("_secret")
@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_masked_in_messages_fields_and_tracebacks(form: str) -> None:
    stream = io.StringIO()
    setup_logging("info", form, stream)
    try:
        raise RuntimeError("sasl said hunter2-of-kafka")
    except RuntimeError:
        LOGGER.exception(
            "with %s",
            {"p": "hunter2-of-kafka"},
            extra=fields(x="hunter2-of-kafka", token="abc"),  # noqa: S106
        )
    assert "hunter2" not in stream.getvalue()
    assert "abc" not in stream.getvalue()
    assert stream.getvalue().count("***") == 5  # twice in the traceback


@pytest.mark.usefixtures("_secret")
def test_a_secret_across_the_cut_is_not_shown_in_part(lines: io.StringIO) -> None:
    LOGGER.info("%s", "x" * 1_995 + "hunter2-of-kafka")
    assert "hunt" not in lines.getvalue()


@pytest.mark.usefixtures("_secret")
def test_what_librdkafka_says_is_masked(lines: io.StringIO) -> None:
    """Its own lines, by its own logger: the client is real, nobody listens there."""
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "hunter2-of-kafka",  # librdkafka shows this one in its debug lines
        "sasl.password": "hunter2-of-kafka",
        "client.id": "hunter2-of-kafka",
        "debug": "conf,security",
        "log_level": 7,
    }
    logger = logging.getLogger("librdkafka-of-a-test")
    logger.setLevel(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    producer = Producer(client._common(settings), logger=logger)
    producer.poll(0.2)
    told = [line for line in objects(lines) if line["logger"] == "librdkafka-of-a-test"]
    assert any("***" in line["message"] for line in told)
    assert "hunter2" not in lines.getvalue()


# -- floods -----------------------------------------------------------------------------------


def test_a_flood_is_a_burst_and_a_sum(lines: io.StringIO) -> None:
    for port in range(500):
        LOGGER.warning("refused", extra=fields(reason="malformed", peer=f"10.0.0.1:{port}"))
    LOGGER.warning("refused", extra=fields(reason="another", peer="10.0.0.2:1"))
    say_what_was_left_out(all_of_it=True)
    told = objects(lines)
    assert [t["reason"] for t in told] == ["malformed"] * BURST + ["another", "malformed"]
    assert told[-1]["message"] == "480 more like this in 10 s: refused"
    assert (told[-1]["level"], told[-1]["more"]) == ("WARNING", 480)


def test_sessions_may_be_many_and_still_end(lines: io.StringIO) -> None:
    for port in range(1_000):
        LOGGER.info("session opened", extra=fields(transport="binary", peer=f"10.0.0.1:{port}"))
    assert len(objects(lines)) == logs.NEWS


def test_a_sum_comes_by_itself_when_the_window_is_over(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(BURST + 1):
        LOGGER.warning("again")
    say_what_was_left_out()
    assert len(objects(lines)) == BURST

    class Later:
        @staticmethod
        def monotonic() -> float:
            return 1e12

    monkeypatch.setattr(logs, "time", Later)
    say_what_was_left_out()
    assert objects(lines)[-1]["message"] == "1 more like this in 10 s: again"


# -- bugs in threads --------------------------------------------------------------------------


@pytest.mark.usefixtures("_secret")
def test_a_thread_that_dies_is_a_line(lines: io.StringIO) -> None:
    def fail() -> None:
        raise RuntimeError("with hunter2-of-kafka")

    thread = threading.Thread(target=fail, name="follower")
    thread.start()
    thread.join()
    (told,) = objects(lines)
    assert (told["message"], told["level"]) == ("thread follower has died", "ERROR")
    assert told["exception"].endswith("RuntimeError: with ***")
