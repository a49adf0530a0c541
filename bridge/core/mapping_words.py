"""The words of the mapping language: names of queues and topics, keys, places for bodies.

Each is text that has been checked: `parse` raises ConfigError with what is wrong and how to mend
it, and `PATTERN` tells editors nearly the same (it goes into `mappings/schema.json`).
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from bridge.core.json_path import JsonPath
from bridge.core.patterns import (
    MAX_TOPIC,
    PLACEHOLDERS,
    PRIVATE,
    depends_on_message,
    has_wildcard,
    is_legal_topic,
)
from bridge.model.errors import ConfigError

MAX_QUEUE_NAME: Final = 124  # MS-MQMQ 2.1.1
CLOSED: Final = ("private$\\order_queue$", "private$\\notify_queue$")  # to applications (DM-14)
KEYS: Final = ("stream", "message_id", "correlation_id", "label", "source", "none")

_S3: Final = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\x21-\x7e]*)?"
_PRIVATE: Final = r"[Pp][Rr][Ii][Vv][Aa][Tt][Ee]\$"


class QueuePath(str):
    """`private$\\name` or `name`, with `*` and `?` as wildcards: queues of this queue manager;
    case does not count."""

    __slots__ = ()
    PATTERN: ClassVar[str] = (
        rf'^({_PRIVATE}\\)?(?!{_PRIVATE}[/*?])[^\x00-\x1f\x7f\\;+,"]{{1,{MAX_QUEUE_NAME}}}$'
    )

    @classmethod
    def parse(cls, text: str) -> QueuePath:
        private = text.lower().startswith(PRIVATE)
        name = text[len(PRIVATE) :] if private else text
        _check_queue_name(name)
        path = cls(PRIVATE + name if private else name)
        if path.lower() in CLOSED:
            raise ConfigError(
                "is a queue of the queue manager itself", mend="applications cannot send there"
            )
        return path

    @property
    def name(self) -> str:
        return self.removeprefix(PRIVATE)

    @property
    def has_wildcard(self) -> bool:
        return has_wildcard(self)


def _check_queue_name(name: str) -> None:
    """Queue 1-124 characters without `\\ ; + , "`. MS-MQMQ 2.1.1"""
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in name):
        raise ConfigError(
            "has a control character in it",
            mend="leave out the double quotes, or write \\\\ for a backslash in them",
        )
    if name.lower().startswith("private$/"):
        raise ConfigError("has a slash after private$", mend="write private$\\name")
    if name.lower().startswith(("private$*", "private$?")):
        raise ConfigError("has no backslash after private$", mend="write private$\\*")
    if "\\" in name:
        raise ConfigError(
            "has more than private$\\ before its name",
            mend="write private$\\name or name, without a computer's name",
        )
    if bad := re.search(r'[;+,"]', name):
        raise ConfigError(f"has a {bad[0]} in it", mend='a queue name has no \\ ; + , "')
    if not 1 <= len(name) <= MAX_QUEUE_NAME:
        raise ConfigError(
            f"must be 1 to {MAX_QUEUE_NAME} characters, not {len(name)}",
            mend="write private$\\name or name",
        )


class Topic(str):
    """A Kafka topic, or the pattern of one with {queue}, {label} or {source} in it."""

    __slots__ = ()
    PATTERN: ClassVar[str] = (
        rf"^(?!\.{{1,2}}$)([A-Za-z0-9._-]|\{{(queue|label|source)\}}){{1,{MAX_TOPIC}}}$"
    )

    @classmethod
    def parse(cls, text: str) -> Topic:
        bare = text
        for placeholder in PLACEHOLDERS:
            bare = bare.replace(placeholder, "x")
        if "{" in bare or "}" in bare:
            raise ConfigError(
                "has an unknown placeholder", mend=f"there are {', '.join(PLACEHOLDERS)}"
            )
        if not is_legal_topic(bare):
            raise ConfigError(
                "is not a legal Kafka topic",
                mend=f"use 1 to {MAX_TOPIC} letters, digits, dots, underscores or hyphens",
            )
        return cls(text)


class JournalTopic(Topic):
    """As Topic, but one for all messages of a queue: only {queue} is filled in."""

    __slots__ = ()
    PATTERN: ClassVar[str] = Topic.PATTERN.replace("(queue|label|source)", "queue")

    @classmethod
    def parse(cls, text: str) -> JournalTopic:
        if depends_on_message(text):
            raise ConfigError(
                "depends on the message, but a queue has one journal", mend="use only {queue}"
            )
        return cls(Topic.parse(text))


class Key(str):
    """Where the record's key comes from."""

    __slots__ = ()
    CHOICES: ClassVar[tuple[str, ...]] = KEYS
    PATTERN: ClassVar[str] = r"^(header:[^\x00-\x1f\x7f]{1,255}|json:\$[.\[].{1,999})$"

    @classmethod
    def parse(cls, text: str) -> Key:
        if text.startswith("json:$"):
            _check_path(text.removeprefix("json:"))
        if text in KEYS or re.fullmatch(cls.PATTERN[1:-1], text):
            return cls(text)
        raise ConfigError(
            "is not a key this bridge knows",
            mend=f"use {', '.join(KEYS)}, header:NAME or json:$.path",
        )

    @property
    def header(self) -> str:
        """NAME of `header:NAME`, else empty."""
        return self[7:] if self.startswith("header:") else ""

    @property
    def json_path(self) -> str:
        """`$.path` of `json:$.path`, else empty."""
        return self[5:] if self.startswith("json:") else ""


def _check_path(text: str) -> None:
    try:
        JsonPath.parse(text)
    except ConfigError as error:
        raise ConfigError(f"has a path that {error.what}", mend=error.mend) from error


class Claims(str):
    """Where the bodies of a claim check lie: a folder, or `s3://bucket/prefix`."""

    __slots__ = ()
    PATTERN: ClassVar[str] = rf"^({_S3}|(?![A-Za-z][A-Za-z0-9+.-]*://)[^\x00-\x1f\x7f]{{1,1024}})$"

    @classmethod
    def parse(cls, text: str) -> Claims:
        if re.fullmatch(cls.PATTERN[1:-1], text):
            return cls(text)
        raise ConfigError(
            "is neither a folder nor an object path", mend="write a folder or s3://bucket/prefix"
        )
