"""Broken mapping files and configurations: mutations of good ones, and some written by hand.

Each is a name, the bytes, and the line that the complaint must name (0: the file as a whole).
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

SEED = 5
PER_FILE = 80  # mutations that are taken of each good file

GOOD_MAPPINGS = r"""# Queues of the shop.
queues:
  # Exactly once and in order.
  - queue: private$\orders
    topic: orders
    transactional: true
    mode: forward
    key: message_id
    order: stream
    timestamp: arrival
    value: body
    quota_kb: 1048576
    journal: orders.journal
    journal_quota_kb: 2048
    oversize: reject
    authenticate: none
    encrypt: optional
    headers:
      include: all
      exclude: [msmq.wire]
      rename: {msmq.label: title}
      add: {env: prod}
      prefix: mq.
      cloudevents: true
    allow:
      - 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77
      - 10.0.0.0/8

  - queue: private$\events*
    topic: events.{label}
    key: json:$.order.id
    order: key
    value: json
    oversize: claim-check
    claims: s3://bucket/prefix

  - queue: Public Queue
    key: header:msmq.label
    value: envelope

defaults:
  unknown: auto-create
  timestamp: sent
"""

GOOD_CONFIG = """# The appliance.
queue_manager:
  id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77
  names: [BRIDGE01, bridge01.example.com]
  quota_kb: 8388608
  insecure_nacks: false
  clock_skew_s: 0
peers:
  11111111-2222-3333-4444-555555555555: 127.0.0.1:1801
listen:
  host: 0.0.0.0
  binary: 1801
  ping: 3527
  srmp: 80
  srmp_tls: 443
  rpc: 2103
  admin: 9180
  admin_host: 127.0.0.1
srmp:
  expired: deliver
  redirect_out: []
  receipt_targets: [sender, loopback]
admin:
  token_file: admin.token
rpc:
  minimum_level: privacy
  users: users.yaml
  old_ntlm: false
  release_after_s: 300
kafka:
  bootstrap.servers: broker1:9092
topic_prefix: _msmq-bridge
data: state
mappings: mappings.yaml
shards: 2
"""


class Broken(NamedTuple):
    name: str
    data: bytes
    line: int


class Line(NamedTuple):
    """`key: value` in a good file; `value` is empty when more lines belong to it."""

    number: int  # from 1
    indent: str
    dash: str
    key: str
    value: str

    def text(self, *, key: str | None = None, value: str | None = None) -> str:
        key = self.key if key is None else key
        value = self.value if value is None else value
        return f"{self.indent}{self.dash}{key}: {value}".rstrip()


_LINE = re.compile(r"( *)(- )?([\w.-]+): ?(.*)")
Mutation = Callable[[Line, list[str], random.Random], tuple[list[str] | bytes, int] | None]


def lines_of(text: str) -> list[Line]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _LINE.fullmatch(line):
            found.append(Line(number, match[1], match[2] or "", match[3], match[4]))
    return found


def replaced(lines: list[str], number: int, *new: str) -> list[str]:
    return [*lines[: number - 1], *new, *lines[number:]]


# --- one way to break a line each -------------------------------------------------------------


def misspelled(line: Line, lines: list[str], chance: random.Random) -> tuple[list[str], int] | None:
    if line.key[0].isdigit() or line.key == "bootstrap.servers":
        return None  # any name will do there
    at = chance.randrange(len(line.key) + 1)
    key = line.key[:at] + chance.choice("qxz") + line.key[at:]
    return replaced(lines, line.number, line.text(key=key)), line.number


def repeated(line: Line, lines: list[str], _: random.Random) -> tuple[list[str], int] | None:
    if line.dash or not line.value:
        return None
    same = line.text()
    return replaced(lines, line.number, same, same), line.number + 1


def of_wrong_type(
    line: Line, lines: list[str], chance: random.Random
) -> tuple[list[str], int] | None:
    if not line.value:
        return None
    value = chance.choice(["[[1]]", "{x: {y: z}}", "[{a: b}]"])
    if value == "{x: {y: z}}" and line.key in ("rename", "add"):
        value = "[[1]]"
    return replaced(lines, line.number, line.text(value=value)), line.number


BAD_VALUES = {
    "queue": ["''", "a;b", "SERVER\\private$\\x", "7", "private$/x", "q" * 125, "private$*"],
    "topic": ["a/b", "'a b'", "''", "..", "'{body}'", "t" * 250, "5"],
    "transactional": ["yes", "1", "'true'", "maybe"],
    "mode": ["retained", "forwards", "both"],
    "key": ["body", "'header:'", "json:order", "json:$..x", "header:msmq.labl", "Stream", "1"],
    "order": ["streams", "true", "partition"],
    "timestamp": ["now", "2020-01-01", "arival"],
    "value": ["jsn", "bytes", "true"],
    "quota_kb": ["0", "-1", "1GB", "1.5", "true", "99999999999999"],
    "journal": ["a/b", "'{label}'", "''"],
    "journal_quota_kb": ["0", "lots"],
    "oversize": ["chunks", "drop", "claim_check"],
    "claims": ["ftp://x/y", "''", "7"],
    "authenticate": ["maybe", "true"],
    "encrypt": ["always", "1"],
    "include": ["some", "[]x", "[msmq.nothing]", "['']"],
    "exclude": ["msmq.wire", "[msmq.wires]", "[7]", "[msmq.wire, msmq.wire]"],
    "rename": ["{msmq.lable: x}", "{msmq.label: msmq.id2, msmq.id: msmq.id2}", "{msmq.label: 7}"],
    "add": ["{mq.label: x}", "{msmq.x: y}", "{env: 1}", "{env: }"],
    "prefix": ["7", "true", '"\\x01"'],
    "cloudevents": ["yes", "binary", "1"],
    "unknown": ["create", "accept", "true"],
    "id": ["3f8a0c5e", "12345", "00000000-0000-0000-0000-000000000000", "'{x}'"],
    "names": ["BRIDGE01", "[7]", "['a b']", "[{a: b}]"],
    "insecure_nacks": ["yes", "0"],
    "clock_skew_s": ["-1", "5m", ".nan"],
    "host": ["[::]", "http://here/", "7"],
    "binary": ["65536", "-1", "'1801'"],
    "ping": ["off", "3527/udp"],
    "srmp": ["x", "1801"],
    "rpc": ["99999", "1801"],
    "admin": ["127.0.0.1:9180", "1801"],
    "expired": ["drop", "false"],
    "redirect_out": ["[{from: x}]", "[{from: http://a/, to: b}]", "{}x"],
    "receipt_targets": ["sender", "['not a host']", "[10.0.0.1/8]"],
    "token_file": ["1", "''"],
    "minimum_level": ["privcy", "6"],
    "users": ["{a: b}", "7"],
    "old_ntlm": ["1", "maybe"],
    "release_after_s": ["0", "300s"],
    "bootstrap.servers": ["[a, b]", "null", "{path: x}"],
    "topic_prefix": ["a/b", "''", "7"],
    "data": ["5", "''", "~"],
    "mappings": ["{queues: []}", "''"],
    "shards": ["0", "two", "257"],
}


def of_bad_value(
    line: Line, lines: list[str], chance: random.Random
) -> tuple[list[str], int] | None:
    if line.key not in BAD_VALUES or not line.value:
        return None
    value = chance.choice(BAD_VALUES[line.key])
    return replaced(lines, line.number, line.text(value=value)), line.number


def not_yaml(line: Line, lines: list[str], chance: random.Random) -> tuple[list[str], int] | None:
    if not line.value:
        return None
    value = chance.choice(
        [
            '"never closed',
            "'never closed",
            "[never, closed",
            "{never: closed",
            '"\\q"',
            "*nobody",
            "@x",
            "`x`",
            "%x",
            "a: b: c",
            "!secret x",
            "!!int x",
            "- x",
            "[x}",
            '"x" y',
            "bell \x07",
            "zero \x00",
            "|x",
        ]
    )
    return replaced(lines, line.number, line.text(value=value)), line.number


def with_a_tab(line: Line, lines: list[str], _: random.Random) -> tuple[list[str], int] | None:
    if not line.indent or line.dash:
        return None
    return replaced(lines, line.number, "\t" + line.text().lstrip()), line.number


def too_deep(line: Line, lines: list[str], _: random.Random) -> tuple[list[str], int] | None:
    """One space too many, under a line that has its value already."""
    above = _LINE.fullmatch(lines[line.number - 2])
    if line.dash or above is None or not above[4] or above[4][0] in "[{":
        return None
    return replaced(lines, line.number, " " + line.text()), line.number


def not_deep_enough(line: Line, lines: list[str], _: random.Random) -> tuple[list[str], int] | None:
    above = _LINE.fullmatch(lines[line.number - 2])
    if not line.indent or line.dash or above is None or not above[4]:
        return None
    return replaced(lines, line.number, line.text()[1:]), line.number


def without_a_colon(line: Line, lines: list[str], _: random.Random) -> tuple[list[str], int] | None:
    """The key alone: it goes on from the line above, or has no value."""
    above = _LINE.fullmatch(lines[line.number - 2])
    if line.dash or above is None or above[4][:1] not in ("[", "{"):
        return None
    return replaced(lines, line.number, line.text().replace(":", "", 1)), line.number


def in_another_encoding(line: Line, lines: list[str], _: random.Random) -> tuple[bytes, int] | None:
    if not line.value:
        return None
    text = "\n".join(replaced(lines, line.number, line.text(value="caf\xe9"))) + "\n"
    return text.encode("latin-1"), line.number


def another_document(
    line: Line, lines: list[str], _: random.Random
) -> tuple[list[str], int] | None:
    if line.indent or all(above.startswith("#") for above in lines[: line.number - 1]):
        return None  # before the first key it is the beginning of the first
    return replaced(lines, line.number, "---", line.text()), line.number


MUTATIONS: tuple[Mutation, ...] = (
    misspelled,
    repeated,
    of_wrong_type,
    of_bad_value,
    not_yaml,
    with_a_tab,
    too_deep,
    not_deep_enough,
    without_a_colon,
    in_another_encoding,
    another_document,
)


def mutated(good: str, prefix: str) -> Iterator[Broken]:
    """The same ones in every run."""
    chance = random.Random(SEED)
    lines = good.splitlines()
    places = [(line, mutation) for line in lines_of(good) for mutation in MUTATIONS]
    places += [(line, kind) for line in lines_of(good) for kind in (of_bad_value, not_yaml)]
    chance.shuffle(places)
    seen: set[bytes] = {good.encode()}
    for line, mutation in places:
        made = mutation(line, lines, chance)
        if made is None:
            continue
        changed, number = made
        data = changed if isinstance(changed, bytes) else ("\n".join(changed) + "\n").encode()
        if data in seen:
            continue
        seen.add(data)
        yield Broken(f"{prefix}-{line.number}-{mutation.__name__}-{len(seen)}", data, number)
        if len(seen) > PER_FILE:
            return


# --- by hand: § is on the line that must be named ----------------------------------------------

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
)
MAPPINGS_BY_HAND = {
    "no-queue": "queues:\n§  - topic: a\n",
    "an-entry-of-nothing": "queues:\n  - queue: a\n§  -\n",
    "a-list-of-names": "queues:\n§  - orders\n",
    "not-a-list": "queues:\n§  orders: {topic: orders}\n",
    "a-list-as-file": "§- queue: a\n",
    "only-text": "# x\n§hello\n",
    "an-unknown-section": "queues: []\n§default: {}\n",
    "queue-in-defaults": "defaults:\n§  queue: a\n",
    "twice": "queues:\n  - queue: private$\\a\n§  - queue: PRIVATE$\\A\n",
    "pattern-twice": "queues:\n  - queue: a*\n§  - queue: A*\n",
    "shared-by-accident": "queues:\n  - queue: private$\\a\n§  - queue: a\n",
    "order-without-key": "queues:\n  - queue: a\n    key: none\n§    order: key\n",
    "order-by-default": "defaults:\n  key: none\nqueues:\n  - queue: a\n§    order: key\n",
    "journal-is-topic": "queues:\n  - queue: a\n    topic: x\n§    journal: x\n",
    "journal-is-queue": "queues:\n  - queue: a\n§    journal: a\n",
    "journal-by-label": "queues:\n  - queue: a\n§    journal: j.{label}\n",
    "a-header-nobody-makes": "queues:\n  - queue: a\n§    key: header:title\n",
    "rename-twice": (
        "queues:\n- queue: a\n  headers:\n    rename:\n      msmq.id: x\n§      msmq.label: x\n"
    ),
    "rename-onto-another": (
        "queues:\n- queue: a\n  headers:\n    rename:\n§      msmq.label: msmq.id\n"
    ),
    "rename-excluded": (
        "queues:\n- queue: a\n  headers:\n    exclude: [msmq.id]\n    rename:\n§      msmq.id: x\n"
    ),
    "exclude-of-none": (
        "queues:\n- queue: a\n  headers:\n    include: none\n    exclude:\n§      - msmq.id\n"
    ),
    "add-what-is-there": "queues:\n- queue: a\n  headers:\n    add:\n§      msmq.label: x\n",
    "prefix-of-events": "queues:\n- queue: a\n  headers:\n§    prefix: ce_\n    cloudevents: true",
    "the-order-queue": "queues:\n§  - queue: private$\\order_queue$\n",
    "retain": "queues:\n  - queue: a\n    mode: retain\n§    oversize: chunk\n",
    "a-mode-of-no-queue": "queues:\n  - queue: a\n§    mode: keep\n",
    "a-reader-without-a-name": "queues:\n  - queue: a\n    allow_read:\n§      - 'DOM\\'\n",
    "a-bad-network": "queues:\n  - queue: a\n    allow:\n      - 10.0.0.0/8\n§      - 10.0.0.1/8\n",
    "a-topic-too-long": (
        "queues:\n  - queue: " + "q" * 124 + "\n§    topic: '{queue}{queue}{queue}'\n"
    ),
    "a-queue-of-dots": "queues:\n§  - queue: ..\n",
    "backslash-in-quotes": 'queues:\n§  - queue: "private$\\orders"\n',
    "newline-in-quotes": 'queues:\n§  - queue: "private$\\norders"\n',
    "a-merge-key": "queues:\n  - &a {queue: a}\n§  - {<<: *a, queue: b}\n",
    "an-alias-in-itself": "§queues: &a [*a]\n",
    "too-deep": "§queues: " + "[" * 40 + "]" * 40 + "\n",
    "far-too-deep": "§queues: " + "[" * 2000 + "]" * 2000 + "\n",
    "a-complex-key": "queues: []\n§? [a, b]\n: c\n",
    "python-object": "§queues: !!python/object/apply:os.system [x]\n",
    "json-with-a-comma": '{"queues": [{"queue": "a",\n§  "topics": "b"}]}\n',
    "two-documents": "queues: []\n§---\nqueues: []\n",
    "windows-line-ends": "queues:\r\n  - queue: a\r\n§    topics: b\r\n",
    "after-words-in-other-scripts": "# 注文 заказы\nqueues:\n  - queue: ñ\n§    topics: b\n",
}
CONFIG_BY_HAND = {
    "ports-collide": "listen:\n  binary: 1801\n§  srmp: 1801\n",
    "a-port-and-a-default": "listen:\n§  srmp: 2103\n",
    "an-owned-property": "kafka:\n  a: b\n§  transactional.id: mine\n",
    "acks": "kafka:\n§  acks: 1\n",
    "a-secret-of-both": "kafka:\n§  sasl.password: {file: x, env: Y}\n",
    "a-secret-of-nothing": "kafka:\n§  sasl.password: {}\n",
    "no-target": "srmp:\n  redirect_in:\n§    - from: http://a/msmq/*\n",
    "a-star-inside": "srmp:\n  redirect_in:\n§    - from: http://a/*/b\n      to: http://c/d\n",
    "a-peer-twice": "peers:\n  SENDER: a\n§  sender: b\n",
    "a-peer-in-braces": "peers:\n§  '{1111}': a\n",
    "a-section-of-text": "§listen: 9180\n",
    "a-section-as-list": "rpc:\n§  - minimum_level: none\n",
    "a-section-too-deep": "listen:\n  host: a\n§    binary: 1\n",
    "queues-here": "§queues: []\n",
    "a-home-of-nobody": "§data: ~nobody-of-this-name/x\n",
    "a-key-without-value": "topic_prefix: a\n§data\nshards: 2\n",
    "nothing": "§shards:\ntopic_prefix: a\n",
    "nothing-at-the-end": "topic_prefix: a\n§shards:\n\n",
}
# What has no line of its own, or is too large to write down.
WHOLE_MAPPINGS = {
    "too-large": b"#" * (1 << 20) + b"\n",
    "utf-16": "queues: []".encode("utf-16"),
    "a-bomb": BOMB.encode(),
    "binary": bytes(range(256)),
    "a-zero": b"\0",
}


def by_hand(texts: dict[str, str], prefix: str) -> Iterator[Broken]:
    for name, text in texts.items():
        line = text[: text.index("§")].count("\n") + 1
        yield Broken(f"{prefix}-{name}", text.replace("§", "").encode(), line)


def broken_mappings() -> list[Broken]:
    whole = [Broken(f"mappings-{name}", data, 0) for name, data in WHOLE_MAPPINGS.items()]
    return [
        *mutated(GOOD_MAPPINGS, "mappings"),
        *by_hand(MAPPINGS_BY_HAND, "mappings"),
        *whole,
    ]


def broken_configs() -> list[Broken]:
    return [*mutated(GOOD_CONFIG, "config"), *by_hand(CONFIG_BY_HAND, "config")]
