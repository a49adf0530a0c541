"""`mappings/schema.json`: made from the structs, and as strict as a schema can be."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bridge.adapters.mapping_schema import DRAFT, field_words, mapping_schema
from bridge.core.mapping_headers import HeaderRules
from bridge.core.mapping_rules import Defaults, QueueMapping
from tests.adapters.test_config_files import HERE, ROOT
from tests.adapters.test_config_files_mappings import BROKEN_MAPPINGS

SCHEMA = mapping_schema()


def faults(value: object) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(value)]


def loaded(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_the_file_is_what_the_code_makes() -> None:
    text = (ROOT / "mappings/schema.json").read_text(encoding="utf-8")
    assert text == json.dumps(SCHEMA, indent=2) + "\n", "run: msmq-bridge map schema"
    assert json.loads(text)["$schema"] == DRAFT
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", [QueueMapping, Defaults, HeaderRules])
def test_every_field_is_described(kind: type) -> None:
    words = field_words(kind)
    for name in kind.__struct_fields__:  # type: ignore[attr-defined]
        assert words[name].endswith((".", "`")), name


def test_the_precedence_is_told() -> None:
    words = SCHEMA["properties"]["queues"]["items"]["properties"]["queue"]["description"]
    assert "exact name first, then the pattern with the most literal characters" in words


def test_patterns_are_those_of_javascript() -> None:
    text = json.dumps(SCHEMA)
    assert "\\\\Z" not in text
    assert "(?P" not in text


def test_who_may_read_is_offered_by_name() -> None:
    properties = SCHEMA["properties"]["queues"]["items"]["properties"]
    assert properties["mode"]["enum"] == ["forward", "retain"]
    pattern = re.compile(properties["allow_read"]["items"]["pattern"])
    assert all(pattern.search(name) for name in ("*", "bob", r"DOM\bob", r"DOM\HOST$"))
    assert not any(pattern.search(name) for name in ("", "\\bob", "DOM\\", r"a\b\c", "a\0"))


GOOD = r"""
queues:
  - queue: private$\orders
    topic: "{queue}.{label}.{source}"
    transactional: true
    mode: forward
    key: json:$.order.id
    order: key
    timestamp: sent
    value: envelope
    headers:
      include: [msmq.label, msmq.id]
      rename: {msmq.label: title}
      add: {env: prod}
      prefix: ""
      cloudevents: true
    journal: "{queue}.journal"
    quota_kb: 1048576
    journal_quota_kb: null
    oversize: claim-check
    claims: s3://bucket/prefix
    authenticate: optional
    encrypt: required
    allow: [10.0.0.0/8]
  - {queue: "PRIVATE$\\*", key: label, headers: {include: all, exclude: [msmq.wire]}, allow: null}
  - {queue: "ord?rs", headers: null}
defaults: {unknown: auto-create, key: header:msmq.label, allow: []}
"""


@pytest.mark.parametrize("text", [GOOD, "", "queues:\ndefaults:\n", "queues: []"])
def test_good_files_validate(text: str) -> None:
    assert faults(loaded(text)) == []


def test_our_own_files_validate() -> None:
    files = [
        file
        for folder in (ROOT / "mappings", ROOT / "examples")
        for file in folder.rglob("*.yaml")
        if re.search(r"(?m)^queues:", file.read_text(encoding="utf-8"))
        and not file.name.endswith(".test.yaml")
    ]
    assert files
    for file in files:
        assert faults(loaded(file.read_text(encoding="utf-8"))) == [], file


# What takes two keys, two entries or a look at the world is beyond a schema; and a line end behind
# a text is what Python's $ lets pass, other than that of JavaScript.
BEYOND = re.compile(
    "nothing to pick|no record has|is its topic|include says|is called|left out|another rule"
    "|belongs to|and so does|path that|mapped at|share the topic|Kafka refuses|twice"
    "|queue manager itself|GUID, a SID|a network|a SID|did you mean 'msmq.label'|control character"
)


def broken() -> list[str]:
    found = []
    for text, word in BROKEN_MAPPINGS:
        if BEYOND.search(word):
            continue
        bare = text.replace(HERE, "")
        whole = re.match(r"(queues:|queue: {|defaults:|- )", bare)
        try:
            loaded(bare if whole else f"queues:\n- {{{bare}}}")
        except YAMLError:  # nothing for a schema to see
            continue
        found.append(bare if whole else f"queues:\n- {{{bare}}}")
    return found


@pytest.mark.parametrize("text", broken())
def test_broken_files_do_not(text: str) -> None:
    assert faults(loaded(text))


def test_there_are_enough_broken_files() -> None:
    assert len(broken()) > 50
