"""Which queues there are and what becomes of their messages: `mappings/*.yaml` (design 3.3).

Values only; `bridge.adapters.config_files` reads them and adds line and column to a complaint.
Which mapping takes a queue, and what a topic with placeholders becomes: `bridge.core.patterns`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from bridge.core.access import AllowedSender
from bridge.core.mapping_headers import HeaderRules, mend_header
from bridge.core.mapping_words import CLOSED, Claims, JournalTopic, Key, QueuePath, Topic
from bridge.core.patterns import (
    MAX_TOPIC,
    PRIVATE,
    QUEUE,
    PatternTable,
    depends_on_message,
    fill_plainly,
    fill_topic,
    is_legal_topic,
)
from bridge.model.errors import ConfigError

__all__ = [
    "CLOSED",
    "PRIVATE",
    "Claims",
    "Defaults",
    "HeaderRules",
    "JournalTopic",
    "Key",
    "Mappings",
    "QueueMapping",
    "QueuePath",
    "QueueSettings",
    "Topic",
    "is_legal_topic",
]

Kilobytes = Annotated[int, Meta(ge=1, le=0xFFFFFFFF, description="a size in KB (1 or more)")]
Allowed = Annotated[
    AllowedSender,
    Meta(
        description="a sender's GUID, a SID, an address, a network, GUID@network, cn:NAME or "
        "san:NAME"
    ),
]
ReaderName = Annotated[
    str,
    Meta(
        pattern=r"^[^\\\x00-\x1f]{1,104}(\\[^\\\x00-\x1f]{1,104})?\Z",
        description="NAME or DOMAIN\\NAME of a user, or *",
    ),
]
Protection = Literal["none", "optional", "required"]


class QueueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a queue may say, and `defaults` may say for all of them."""

    transactional: bool = False
    """Takes transactional messages only; otherwise non-transactional ones only. In `defaults` with
    `unknown: auto-create`: false lets a queue that is not listed take both."""
    mode: Literal["forward", "retain"] = "forward"
    """forward: accepted = received; retain: readable by remote read until removed."""
    key: Key = Key("stream")
    """The record's key: stream, message_id, correlation_id, label, source, none, header:NAME (a
    property by its name in the table, or a header that `headers` makes) or json:$.path (a value in
    a JSON body)."""
    order: Literal["stream", "key"] = "stream"
    """What picks the partition; `key` gives up the order of a stream."""
    timestamp: Literal["arrival", "sent"] = "arrival"
    """The record's timestamp."""
    value: Literal["body", "text", "json", "envelope"] = "body"
    """The record's value: `body` is the bytes, untouched; `text` and `json` are decoded by body
    type and formatter; `envelope` is JSON with the properties and the body."""
    headers: HeaderRules = HeaderRules()
    """The record's headers."""
    quota_kb: Kilobytes | None = None
    """What the queue may hold; absent = no limit. A forward queue: the size of one message."""
    journal_quota_kb: Kilobytes | None = None
    """What its journal may hold; absent = no limit. A forward queue: the size of one message, and
    of a larger one there is no copy."""
    oversize: Literal["reject", "chunk", "claim-check"] = "reject"
    """A body that is larger than the topic takes: refused, cut into several records, or kept
    outside Kafka with a record that says where."""
    claims: Claims | None = None
    """Where `oversize: claim-check` keeps bodies: s3://bucket/prefix, or a folder (a relative one
    counts from the data folder); absent = `claims` under the data folder."""
    authenticate: Protection = "none"
    """Whether messages must be signed."""
    encrypt: Protection = "none"
    """Whether messages must be encrypted."""
    allow: tuple[Allowed, ...] | None = None
    """Who may send: GUIDs, SIDs, addresses, networks, GUID@network, or cn:NAME and san:NAME of a
    client certificate over HTTPS (`srmp.client_ca`); absent = everybody."""
    allow_read: tuple[ReaderName, ...] | None = None
    """Who may read remotely: NAME, DOMAIN\\NAME, or * for every user; case does not
    count. Absent = nobody, or everybody if `rpc.users` is not set. In `defaults` also for the
    dead-letter queues and the journal of the machine."""

    def __post_init__(self) -> None:
        if self.key == "none" and self.order == "key":
            what = "order: key, but key: none leaves nothing to pick a partition by"
            raise ConfigError(what, where="order", mend="choose a key, or write order: stream")
        if self.mode == "retain":
            self._require_whole()
        name = self.key.header
        if name and (mend := mend_header(name, self.headers.made())):
            what = f"key names the header '{name[:80]}', which no record has"
            raise ConfigError(what, where="key", mend=mend)

    def _require_whole(self) -> None:
        """A reader gets the message back from its record, so the record must have all of it."""
        kept, rules = HeaderRules(), self.headers
        whole = msgspec.structs.replace(rules, add=kept.add, cloudevents=kept.cloudevents)
        for option, wrong, mend in (
            ("value", self.value != "body", "leave it out, or write 'body'"),
            ("oversize", self.oversize != "reject", "leave it out, or write 'reject'"),
            ("headers", whole != kept, "leave out all but 'add' and 'cloudevents'"),
        ):
            if wrong:
                what = f"mode: retain, but {option} leaves records that readers cannot get back"
                raise ConfigError(what, where=option, mend=mend)


class Defaults(QueueSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For every queue that does not say otherwise, and for queues that nobody listed."""

    unknown: Literal["reject", "auto-create"] = "reject"
    """What happens to a message for a queue that is not listed: refused, or its queue is made,
    with these settings and a topic of its name."""

    def mapping(self) -> QueueMapping:
        """For the queues that nobody listed; which one it is stands in the message."""
        names = QueueSettings.__struct_fields__
        return QueueMapping(queue=QueuePath("*"), **{name: getattr(self, name) for name in names})


class QueueMapping(QueueSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `queues`."""

    queue: QueuePath
    """The queue's path name on this queue manager: private$\\name, or name for a public queue.
    `*` stands for any run of characters and `?` for one, case does not count. When several entries
    fit: the exact name first, then the pattern with the most literal characters, then the one that
    stands first."""
    topic: Topic | None = None
    """Where its messages go; absent = named after the queue. {queue}, {label} and {source} are
    filled in; a character that Kafka refuses becomes a hyphen, an empty label no-label."""
    journal: JournalTopic | None = None
    """Topic of its target journal, with {queue} filled in; absent = the journal stays empty."""

    @property
    def template(self) -> str:
        return self.topic or QUEUE

    @property
    def depends_on_message(self) -> bool:
        """{label} or {source} name the topic, so every message may have another."""
        return depends_on_message(self.template)

    @property
    def is_dynamic(self) -> bool:
        """The topic is not known before a message comes: it depends on the message, or on the
        name of a queue that is not spelled out."""
        return self.depends_on_message or (self.queue.has_wildcard and QUEUE in self.template)

    @property
    def topic_name(self) -> str:
        """The topic, when it is known beforehand; else empty."""
        return "" if self.is_dynamic else fill_plainly(self.template, self.queue.name)

    def topic_for(self, queue_name: str, label: str, source: object) -> str:
        """The topic of one message for `queue_name` (a path name of this queue manager)."""
        if not self.is_dynamic:
            return self.topic_name
        return fill_topic(self.template, _bare(queue_name), label, str(source))

    def journal_for(self, queue_name: str) -> str:
        """The journal's topic; empty without one."""
        if self.journal is None:
            return ""
        if self.queue.has_wildcard:
            return fill_topic(self.journal, _bare(queue_name))
        return fill_plainly(self.journal, self.queue.name)

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, name in (
            ("topic" if self.topic else "queue", self.topic_name),
            ("journal", "" if self.queue.has_wildcard else self.journal_for(self.queue)),
        ):
            if name and not is_legal_topic(name):
                raise ConfigError(
                    f"its topic would be '{name[:80]}', which Kafka refuses",
                    where=option,
                    mend=f"set a 'topic' of 1 to {MAX_TOPIC} characters",
                )
        if self.mode == "retain" and self.depends_on_message:
            what = "mode: retain, but its topic depends on the message"
            raise ConfigError(what, where="topic", mend="leave out {label} and {source}")
        if self.journal is not None and self._journal_is_topic():
            what = f"its journal is its topic '{self.template[:80]}'"
            raise ConfigError(what, where="journal", mend=f"try '{self.template[:80]}.journal'")

    def _journal_is_topic(self) -> bool:
        if self.journal == self.template:
            return True
        return not self.is_dynamic and self.journal_for(self.queue) == self.topic_name


def _bare(queue_name: str) -> str:
    private = queue_name[: len(PRIVATE)].lower() == PRIVATE
    return queue_name[len(PRIVATE) :] if private else queue_name


class Mappings(Struct, frozen=True, kw_only=True):
    """All mapping files together."""

    queues: tuple[QueueMapping, ...] = ()
    defaults: Defaults = Defaults()

    def by_name(self) -> dict[str, QueueMapping]:
        """Keyed by the path name in lower case."""
        return {mapping.queue.lower(): mapping for mapping in self.queues}

    def ranked(self) -> tuple[QueueMapping, ...]:
        """As a queue is looked up: exact names as they stand, then patterns by precedence."""
        exact = [m for m in self.queues if not m.queue.has_wildcard]
        return (*exact, *PatternTable((m.queue, m) for m in self.queues if m.queue.has_wildcard))

    def every(self) -> tuple[QueueSettings, ...]:
        """All that a message can meet: the queues, and what unlisted ones are made from."""
        unlisted = (self.defaults,) if self.defaults.unknown == "auto-create" else ()
        return (*self.queues, *unlisted)

    def retained_topics(self) -> frozenset[str]:
        """Those that are the storage of a queue: nothing in them may grow old."""
        kept = [m for m in self.queues if m.mode == "retain"]
        return frozenset(m.topic_name for m in kept) - {""}

    def topics(self) -> tuple[str, ...]:
        """Every topic that is known before a message comes, journals too."""
        found = {mapping.topic_name for mapping in self.queues}
        for m in self.queues:
            if m.journal and not (m.queue.has_wildcard and QUEUE in m.journal):
                found.add(m.journal_for(m.queue))
        return tuple(sorted(found - {""}))
