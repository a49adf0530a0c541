"""`headers:` of a mapping, compiled into one function on the header table. Design 3.3

In this order:

1. `include` and `exclude` choose by our own names (`msmq.label`); `exclude` wins. `include` never
   drops `msmq.value-error`, which says why a value is not what was asked for; `exclude` may.
2. `rename` gives what was chosen the name that is written there, without any prefix.
3. `prefix` replaces the leading `msmq.` of the rest.
4. `add` puts constants in.
5. `cloudevents` adds what the Kafka binding 1.0.2 wants in binary mode, made from the table before
   any rule, so nothing has to be included for it. What stands there already (by `rename` or
   `add`) stays, so `add: {ce_type: com.example.order}` does what it seems to do:

   | Header | From |
   |---|---|
   | ce_specversion | 1.0 |
   | ce_id | the message id, `guid\\ordinal` |
   | ce_source | `/msmq/` and the GUID of the sender's queue manager: with the id unique for ever |
   | ce_type | com.microsoft.msmq.message |
   | ce_subject | the queue, `private$\\orders` |
   | ce_time | SentTime in RFC 3339; absent if the sender set none |
   | content-type | by `value`: application/json, text/plain; charset=utf-8, or octets |

`msmq.id` and `msmq.queue` are what parity is proven by: without them `reconcile` cannot see the
records of this queue, and without all of `REBUILD` a record does not become a message again.
That may be what the user wants; `warnings` says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from bridge.core.mapping_headers import HEADERS, HeaderRules
from bridge.core.ports import Headers

HeaderRule = Callable[[Headers], Headers]

VALUE_ERROR: Final = "msmq.value-error"
EVENT_TYPE: Final = b"com.microsoft.msmq.message"
PARITY: Final = ("msmq.id", "msmq.queue")
REBUILD: Final = ("msmq.id", "msmq.source", "msmq.dest", "msmq.transport")
OCTETS: Final = b"application/octet-stream"
CONTENT_TYPES: Final[Mapping[str, bytes]] = {
    "body": OCTETS,
    "text": b"text/plain; charset=utf-8",
    "json": b"application/json",
    "envelope": b"application/json",
}


def compile_rules(rules: HeaderRules, value: str = "body") -> HeaderRule | None:
    """None if there is nothing to do. `value` is the mapping's, for the content type."""
    if rules == HeaderRules():
        return None
    names = {name: rules.name_of(name) for name in HEADERS if _chosen(rules, name)}
    added = {name: text.encode("utf-8", "surrogatepass") for name, text in rules.add.items()}
    content_type = CONTENT_TYPES.get(value, OCTETS)
    cloudevents = rules.cloudevents

    def apply(headers: Headers) -> Headers:
        made = {names[name]: data for name, data in headers.items() if name in names}
        made.update(added)
        if cloudevents:
            _add_event(made, headers, content_type)
        return made

    return apply


def _chosen(rules: HeaderRules, name: str) -> bool:
    return rules.includes(name) or (name == VALUE_ERROR and name not in rules.exclude)


def _add_event(made: Headers, headers: Headers, content_type: bytes) -> None:
    """CloudEvents 1.0, Kafka protocol binding 3.2."""
    made.setdefault("ce_specversion", b"1.0")
    made.setdefault("ce_id", headers["msmq.id"])
    made.setdefault("ce_source", b"/msmq/" + headers["msmq.source"])
    made.setdefault("ce_type", EVENT_TYPE)
    if queue := headers.get("msmq.queue"):
        made.setdefault("ce_subject", queue)
    if sent := headers.get("msmq.sent"):
        moment = datetime.fromtimestamp(int(sent), UTC).replace(tzinfo=None)
        made.setdefault("ce_time", f"{moment.isoformat()}Z".encode())
    made.setdefault("content-type", OCTETS if VALUE_ERROR in headers else content_type)


def warnings(rules: HeaderRules) -> list[str]:
    """What the user should know about these rules, a line each."""
    found = []
    if lost := _lost(rules, PARITY):
        found.append(f"reconcile cannot prove parity without the header {lost}")
    if lost := _lost(rules, REBUILD):
        found.append(f"a record cannot become a message again without the header {lost}")
    return found


def _lost(rules: HeaderRules, names: tuple[str, ...]) -> str:
    """Left out or called otherwise: nobody finds it by its name."""
    return ", ".join(n for n in names if not rules.includes(n) or rules.name_of(n) != n)
