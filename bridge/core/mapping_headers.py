"""`headers:` of a mapping as it is written and checked; `header_rules` makes records of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from bridge.model.errors import ConfigError

OURS: Final = "msmq."

# Digest data-model.md section 4, and what the bridge adds.
_TABLE: Final = """
    v id source dest dest.qm dest.multi queue peer transport hops arrived outcome wire value-error
    label correlation app extension class body-type priority delivery ack journal deadletter
    sent ttrq ttbr expires lookup admin admin.multi response response.multi
    tx.seqid tx.seq tx.prev tx.id tx.first tx.last tx.final-ack tx.status-queue
    sender cert auth signature hash provider privacy encrypted enc
    trace connector connector.qm soap soap.compound srmp.expires
"""
_COMPOUND: Final = "msmq.soap.compound"
HEADERS: Final = frozenset(OURS + name for name in _TABLE.split())
# What `cloudevents: true` makes, unless `add` or `rename` has made it.
CLOUDEVENTS: Final = frozenset(
    ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_subject", "content-type")
)

_NAME: Final = r"^[^\x00-\x1f\x7f]{1,255}\Z"
HeaderName = Annotated[str, Meta(pattern=_NAME, description="the name of a header")]
KnownHeader = Annotated[
    str,
    Meta(
        pattern=_NAME,
        description="the name of a header",
        extra_json_schema={"enum": sorted(HEADERS)},
    ),
]
HeaderValue = Annotated[str, Meta(max_length=4096, description="text of at most 4096 characters")]
HeaderPrefix = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f]{0,100}\Z",
        description="at most 100 characters, none of them a control character",
    ),
]


class HeaderRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which MSMQ properties become record headers. Names are those of the table (`msmq.label`),
    whatever `prefix` and `rename` make of them in the record."""

    include: Literal["all", "none"] | tuple[KnownHeader, ...] = "all"
    """all, none or a list of names."""
    exclude: tuple[KnownHeader, ...] = ()
    """Names that are left out."""
    rename: Mapping[KnownHeader, HeaderName] = {}
    """Our name -> the name in the record."""
    add: Mapping[HeaderName, HeaderValue] = {}
    """Constant headers."""
    prefix: HeaderPrefix = OURS
    """What the names of properties begin with, in place of `msmq.`; renamed ones excepted."""
    cloudevents: bool = False
    """Add `ce_*` headers: the record is a CloudEvent in binary mode. One that `add` or `rename`
    makes stays as it is."""

    def __post_init__(self) -> None:
        if not isinstance(self.include, str):
            _check_known("include", self.include)
        _check_known("exclude", self.exclude)
        _check_known("rename", self.rename)
        self._check_left_out()
        self._check_renamed()
        self._check_prefix()
        self._check_added()

    def includes(self, name: str) -> bool:
        """Whether the property of that name (`msmq.label`) becomes a header."""
        if self.include == "none" or name in self.exclude:
            return False
        return self.include == "all" or name in self.include

    @property
    def wants_compound(self) -> bool:
        """Whether `msmq.soap.compound` is asked for by its name; it repeats the body. Design D7"""
        return self.includes(_COMPOUND) and (self.include != "all" or _COMPOUND in self.rename)

    def name_of(self, name: str) -> str:
        """What the header `msmq.…` is called in the record."""
        return self.rename.get(name) or self.prefix + name.removeprefix(OURS)

    def made(self) -> frozenset[str]:
        """Every name that a record may have, as it is in the record."""
        made = {self.name_of(name) for name in HEADERS if self.includes(name)} | set(self.add)
        return frozenset(made | CLOUDEVENTS if self.cloudevents else made)

    def _check_left_out(self) -> None:
        for index, name in enumerate(self.exclude):
            if self.include == "none" or (self.include != "all" and name in self.include):
                other = "none" if self.include == "none" else "it"
                what = f"headers.exclude names '{name}', but headers.include says {other}"
                raise ConfigError(what, where=f"exclude/{index}", mend="leave it out")
        for name in self.rename:
            if not self.includes(name):
                what = f"headers.rename names '{name}', which is left out"
                raise ConfigError(what, where=f"rename/{name}", mend="leave it out here too")

    def _check_renamed(self) -> None:
        taken = {self.name_of(n): n for n in HEADERS if self.includes(n) and n not in self.rename}
        for name, target in self.rename.items():
            first = taken.setdefault(target, name)
            if first != name:
                what = f"headers.rename calls '{name}' '{target[:80]}', as '{first}' is called"
                raise ConfigError(what, where=f"rename/{name}", mend="give it a name of its own")

    def _check_prefix(self) -> None:
        if not self.cloudevents:
            return
        prefixed = {
            self.name_of(name)
            for name in HEADERS
            if self.includes(name) and name not in self.rename
        }
        if twice := prefixed & CLOUDEVENTS:
            what = f"headers.prefix makes '{min(twice)}', and so does headers.cloudevents"
            raise ConfigError(what, where="prefix", mend="choose another prefix")

    def _check_added(self) -> None:
        taken = {self.name_of(name) for name in HEADERS if self.includes(name)}
        for name in self.add:
            where, mend = f"add/{name}", "give it another name"
            if name in taken:
                what = f"headers.add has '{name[:80]}', which another rule makes"
                raise ConfigError(what, where=where, mend=mend)
            if name.startswith(OURS):
                what = f"headers.add has '{name[:80]}', but {OURS}* belongs to the bridge"
                raise ConfigError(what, where=where, mend=mend)


def mend_header(name: str, others: Iterable[str] = ()) -> str:
    """How to mend the name of a header that no record has; empty when it is right."""
    names = HEADERS | set(others)
    if name in names:
        return ""
    guess = name if name.startswith(OURS) else OURS + name
    near = difflib.get_close_matches(guess.lower(), sorted(names), n=1)
    return f"did you mean '{near[0]}'?" if near else "the README has the table of headers"


def _check_known(option: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        where = f"{option}/{name if option == 'rename' else index}"
        if mend := mend_header(name):
            what = f"headers.{option} names '{name[:80]}', which is no header"
            raise ConfigError(what, where=where, mend=mend)
        if name in seen:
            what = f"headers.{option} names '{name}' twice"
            raise ConfigError(what, where=where, mend="keep one")
        seen.add(name)
