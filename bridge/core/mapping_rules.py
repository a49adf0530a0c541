"""Which queues there are and what becomes of their messages: `mappings/*.yaml` (design 3.3).

Values only; `bridge.adapters.config_files` reads them and adds line and column to a complaint.
`UNSUPPORTED` is the one list of what is understood but not done yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from bridge.core.access import AllowedSender
from bridge.model.errors import ConfigError

PRIVATE: Final = "private$\\"
MAX_QUEUE_NAME: Final = 124  # MS-MQMQ 2.1.1
MAX_TOPIC: Final = 249
PLACEHOLDERS: Final = ("{queue}", "{label}", "{source}")

_TOPIC: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_TOPIC}}}")
_NOT_IN_TOPIC: Final = re.compile(r"[^A-Za-z0-9._-]")
_KEYS: Final = ("stream", "message_id", "correlation_id", "label", "source", "none")


class QueuePath(str):
    """`private$\\name` or `name`: a queue of this queue manager; case does not count."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> QueuePath:
        private = text.lower().startswith(PRIVATE)
        name = text[len(PRIVATE) :] if private else text
        _check_queue_name(name)
        return cls(PRIVATE + name if private else name)

    @property
    def name(self) -> str:
        return self.removeprefix(PRIVATE)

    @property
    def has_wildcard(self) -> bool:
        return "*" in self or "?" in self


def _check_queue_name(name: str) -> None:
    """Queue 1-124 characters without `\\ ; + , "`. MS-MQMQ 2.1.1"""
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in name):
        raise ConfigError(
            "has a control character in it",
            mend="leave out the double quotes, or write \\\\ for a backslash in them",
        )
    if name.lower().startswith("private$/"):
        raise ConfigError("has a slash after private$", mend="write private$\\name")
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


def is_legal_topic(text: str) -> bool:
    return _TOPIC.fullmatch(text) is not None and text not in (".", "..")


class Key(str):
    """Where the record's key comes from."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Key:
        kind, _, rest = text.partition(":")
        if text in _KEYS or (kind == "header" and rest) or (kind == "json" and rest[:1] == "$"):
            return cls(text)
        raise ConfigError(
            "is not a key this bridge knows",
            mend=f"use {', '.join(_KEYS)}, header:NAME or json:$.path",
        )


Refusal = tuple[Callable[[Any], bool], str]


def _other_than(*values: object) -> Refusal:
    return (lambda value: value not in values), f"leave it out, or write {values[0]!r}"


_GIVEN: Final[Refusal] = (bool, "leave it out")

# Understood, but not done yet: option -> (refused values, how to mend). Shrinks with every version.
UNSUPPORTED: Final[Mapping[str, Refusal]] = {
    "queue": (lambda queue: QueuePath(queue).has_wildcard, "list each queue"),
    "topic": (
        lambda topic: "{label}" in topic or "{source}" in topic,
        "use only {queue} or a fixed name",
    ),
    "unknown": _other_than("reject"),
    "mode": _other_than("forward"),
    "key": _other_than("stream", "message_id", "correlation_id", "label", "source", "none"),
    "order": _other_than("stream"),
    "value": _other_than("body"),
    "headers/include": _other_than("all"),
    "headers/exclude": _GIVEN,
    "headers/rename": _GIVEN,
    "headers/add": _GIVEN,
    "headers/prefix": _other_than("msmq."),
    "headers/cloudevents": _GIVEN,
    "oversize": _other_than("reject"),
    "allow_read": (lambda allow: allow is not None, "leave it out"),
}


def _option(settings: Struct, option: str) -> Any:
    value: Any = settings
    for step in option.split("/"):
        value = getattr(value, step, None)
    return value


Kilobytes = Annotated[int, Meta(ge=1, le=0xFFFFFFFF, description="a size in KB (1 or more)")]
HeaderName = Annotated[
    str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z", description="the name of a header")
]
Allowed = Annotated[
    AllowedSender, Meta(description="a sender's GUID, a SID, an address or a network")
]
Sender = Annotated[str, Meta(min_length=1, max_length=256, description="the name of a sender")]
Protection = Literal["none", "optional", "required"]


class HeaderRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which MSMQ properties become record headers."""

    include: Literal["all", "none"] | tuple[HeaderName, ...] = "all"
    """all, none or a list of names."""
    exclude: tuple[HeaderName, ...] = ()
    """Names that are left out."""
    rename: Mapping[HeaderName, HeaderName] = {}
    """Our name -> the name in the record."""
    add: Mapping[HeaderName, str] = {}
    """Constant headers."""
    prefix: str = "msmq."
    """What the names of properties begin with."""
    cloudevents: bool = False
    """Add `ce_*` headers."""


class QueueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a queue may say, and `defaults` may say for all of them."""

    transactional: bool = False
    """Takes transactional messages only; otherwise non-transactional ones only."""
    mode: Literal["forward", "retain"] = "forward"
    """forward: accepted = received; retain: readable by remote read until removed."""
    key: Key = Key("stream")
    """The record's key."""
    order: Literal["stream", "key"] = "stream"
    """What picks the partition; `key` gives up the order of a stream."""
    timestamp: Literal["arrival", "sent"] = "arrival"
    """The record's timestamp."""
    value: Literal["body", "text", "json", "envelope"] = "body"
    """The record's value; `body` is the bytes, untouched."""
    headers: HeaderRules = HeaderRules()
    """The record's headers."""
    quota_kb: Kilobytes | None = None
    """What the queue may hold; absent = no limit. A forward queue: the size of one message."""
    journal_quota_kb: Kilobytes | None = None
    """What its journal may hold; absent = no limit."""
    oversize: Literal["reject", "chunk", "claim-check"] = "reject"
    """A body that is larger than the topic takes."""
    authenticate: Protection = "none"
    """Whether messages must be signed."""
    encrypt: Protection = "none"
    """Whether messages must be encrypted."""
    allow: tuple[Allowed, ...] | None = None
    """Who may send: GUIDs, SIDs, addresses or networks; absent = everybody."""
    allow_read: tuple[Sender, ...] | None = None
    """Who may read; absent = everybody who is let in by RPC."""

    def __post_init__(self) -> None:
        for option, (refused, mend) in UNSUPPORTED.items():
            value = _option(self, option)
            if value is not None and refused(value):
                shown = f" '{value[:80]}'" if isinstance(value, str) and value.isprintable() else ""
                what = f"{option.replace('/', '.')}{shown} is not supported yet in this version"
                raise ConfigError(what, where=option, mend=mend)


class Defaults(QueueSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For every queue that does not say otherwise, and for queues that nobody listed."""

    unknown: Literal["reject", "auto-create"] = "reject"
    """What happens to a message for a queue that is not listed."""


class QueueMapping(QueueSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `queues`."""

    queue: QueuePath
    """The queue's path name on this queue manager."""
    topic: Topic | None = None
    """Where its messages go; absent = named after the queue."""
    journal: Topic | None = None
    """Topic of its target journal; absent = the journal stays empty."""

    @property
    def topic_name(self) -> str:
        """The topic with {queue} filled in; a character that Kafka refuses becomes a hyphen."""
        queue = _NOT_IN_TOPIC.sub("-", self.queue.name)
        return queue if self.topic is None else self.topic.replace("{queue}", queue)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_legal_topic(_NOT_IN_TOPIC.sub("x", self.topic_name)):
            raise ConfigError(
                f"its topic would be '{self.topic_name[:80]}', which Kafka refuses",
                where="topic" if self.topic else "queue",
                mend=f"set a 'topic' of 1 to {MAX_TOPIC} characters",
            )


class Mappings(Struct, frozen=True, kw_only=True):
    """All mapping files together."""

    queues: tuple[QueueMapping, ...] = ()
    defaults: Defaults = Defaults()

    def by_name(self) -> dict[str, QueueMapping]:
        """Keyed by the path name in lower case."""
        return {mapping.queue.lower(): mapping for mapping in self.queues}
