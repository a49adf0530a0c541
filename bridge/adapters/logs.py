"""The log: text for a terminal, JSON lines for everything else. Always stderr.

A line is one fact: a message, and fields that a program can read. What a peer says cannot begin a
line of its own, grow it without end, or flood it (`bursts.py`), and secrets are masked
(`masking.py`). Metrics count what is left out, too.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TextIO

from bridge.adapters.bursts import WINDOW_S, Bursts
from bridge.adapters.masking import SECRETS

_log = logging.getLogger(__name__)
BURST: Final = 20  # lines of one kind in ten seconds
NEWS: Final = 200  # of those that are no warnings and no refusals, sessions above all
MAX_TEXT: Final = 2_000  # characters of a message
MAX_FIELD: Final = 300
MAX_TRACEBACK: Final = 20_000
_LOOK_AT: Final = 4 * MAX_TRACEBACK  # characters in which secrets are searched
_PLAIN: Final = frozenset("-_.:/\\$@[]*+#,")
_FIRST: Final = ("time", "level", "logger", "message", "exception")  # names no field may take


def fields(**values: object) -> dict[str, Any]:
    """For `extra=`: what a program wants to read beside the message. Empty ones are left out."""
    return {"fields": {name: v for name, v in values.items() if v != "" and v is not None}}


def setup_logging(level: str = "INFO", form: str = "auto", stream: TextIO | None = None) -> None:
    """`form`: auto, text, json. To stderr; stdout belongs to the commands' output.

    A second call replaces the first."""
    stream = sys.stderr if stream is None else stream
    is_text = form == "text" or (form == "auto" and stream.isatty())
    handler = CalmHandler(stream)
    handler.setFormatter(TextLines() if is_text else JsonLines())
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, CalmHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    threading.excepthook = _log_thread


def _log_thread(died: threading.ExceptHookArgs) -> None:
    """A bug in a thread is a line, too: masked, cut, and JSON where all is."""
    if died.exc_type is SystemExit:
        return
    name = died.thread.name if died.thread is not None else "?"
    trace = (died.exc_type, died.exc_value or died.exc_type(), died.exc_traceback)
    _log.error("thread %s has died", name, exc_info=trace)


def say_what_was_left_out(*, all_of_it: bool = False) -> None:
    """Now and then, and at the end: a flood that is over is summed up although nobody speaks."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, CalmHandler):
            handler.catch_up(all_of_it=all_of_it)


class _Kind(NamedTuple):
    logger: str
    level: int
    template: str
    reason: str
    transport: str


class CalmHandler(logging.StreamHandler[TextIO]):
    """The same again and again is said a few times, then summed up."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._bursts = Bursts[_Kind]()

    def emit(self, record: logging.LogRecord) -> None:
        """Under the handler's lock."""
        self._sum_up()
        kind = _kind(record)
        is_news = kind.level <= logging.INFO and "refused" not in kind.template
        if self._bursts.admits(kind, NEWS if is_news else BURST, time.monotonic()):
            super().emit(record)

    def catch_up(self, *, all_of_it: bool = False) -> None:
        self.acquire()
        try:
            self._sum_up(all_of_it=all_of_it)
        finally:
            self.release()

    def _sum_up(self, *, all_of_it: bool = False) -> None:
        for kind, count in self._bursts.over(time.monotonic(), all_of_them=all_of_it):
            name, level, template, reason, transport = kind or _OTHERS
            line = logging.LogRecord(
                name, level, "", 0, "%d more like this in %d s: %s", (), None, None
            )
            line.args = (count, WINDOW_S, template)
            line.fields = fields(more=count, reason=reason, transport=transport)["fields"]
            super().emit(line)


_OTHERS: Final = _Kind("bridge", logging.WARNING, "lines of many kinds", "", "")


def _kind(record: logging.LogRecord) -> _Kind:
    told = _fields(record)
    return _Kind(
        record.name,
        record.levelno,
        str(record.msg)[:200],
        str(told.get("reason", ""))[:60],
        str(told.get("transport", ""))[:20],
    )


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found = getattr(record, "fields", None)
    return found if isinstance(found, dict) else {}


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters more)"


def _masked(text: str, most: int) -> str:
    """Masked before it is cut: half a secret would not be known any more."""
    shown = SECRETS.hide(text[:_LOOK_AT])
    if len(text) > _LOOK_AT:
        return f"{shown[:most]}… ({len(text) - most} characters more)"
    return _cut(shown, most)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # a wrong template must not lose the line
        text = f"{record.msg!r} % {record.args!r}"
    return _masked(text, MAX_TEXT)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = record.exc_text or ""
    if not text and record.exc_info and record.exc_info[0] is not None:
        text = formatter.formatException(record.exc_info)
    if record.stack_info:
        text = f"{text}\n{record.stack_info}" if text else str(record.stack_info)
    if len(text) > MAX_TRACEBACK:  # the last lines say what it was
        text = f"…\n{SECRETS.hide(text[-_LOOK_AT:])[-MAX_TRACEBACK:]}"
    return SECRETS.hide(text)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class TextLines(logging.Formatter):
    """`time LEVEL logger: message field=value …`; a traceback follows, indented."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_at(record)} {record.levelname} {record.name}: {_printable(_message(record))}"
        for name, value in _fields(record).items():
            line += f" {name}={_quoted(name, value)}"
        for more in _traceback(self, record).splitlines():
            line += f"\n    {_printable(more)}"
        return line


def _quoted(name: str, value: object) -> str:
    text = _field(name, value)
    if not isinstance(text, str):
        return str(text)
    shown = _printable(text)
    if shown and all(c.isalnum() or c in _PLAIN for c in shown):
        return shown
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _field(name: str, value: object) -> object:
    """A number, true or false as they are; all others as text, masked and cut."""
    if isinstance(value, bool | int | float):
        return value
    return SECRETS.hide_value(name, _masked(str(value), MAX_FIELD))


class JsonLines(logging.Formatter):
    """One object per line, ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _at(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in _fields(record).items():
            line[f"{name}_" if name in _FIRST else name] = _field(name, value)
        if trouble := _traceback(self, record):
            line["exception"] = trouble
        return json.dumps(line)
