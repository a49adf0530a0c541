"""What `msmq-bridge init` writes: a configuration that names every key, and a first mapping.

The keys, their defaults and their words are those of `bridge.config`, so they cannot drift. A
setting that is not in force begins with `#` and no space: taking that one character away sets it.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from bridge.adapters.admin_token import TOKEN_FILE, make_token
from bridge.adapters.mapping_schema import field_words, mapping_schema
from bridge.config import Config
from bridge.model.errors import ConfigError

CONFIG: Final = "bridge.yaml"
QUEUES: Final = "mappings/queues.yaml"
SCHEMA: Final = "mappings/schema.json"
WIDTH: Final = 98

_HEAD: Final = """\
# bridge.yaml of msmq-bridge: every setting with its default.
# A line that begins with '#' and no space is a setting that is not in force: take the '#' away to
# set it. An unknown key is refused. Relative paths count from the folder of this file.
"""
# In force from the start: where it keeps its files need not be a folder of root's.
_SET: Final[Mapping[str, str]] = {"data": "data", "admin.token_file": TOKEN_FILE}
# What a default cannot show. Each is a line that `#` keeps out of force.
_SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "queue_manager.names": ("names: [BRIDGE01, bridge01.example.com]",),
    "peers": (
        "11111111-2222-3333-4444-555555555555: 10.0.0.7:1801",
        "SENDER02: sender02.example.com",
    ),
    "srmp.redirect_in": (
        'redirect_in: [{from: "http://bridge01/msmq/ext/*", '
        'to: "http://bridge01/msmq/private$/orders"}]',
    ),
    "kafka": (
        "bootstrap.servers: broker1:9092,broker2:9092",
        "security.protocol: SASL_SSL",
        "sasl.mechanism: SCRAM-SHA-512",
        "sasl.username: bridge",
        "sasl.password: {file: secrets/kafka-password}",
        "ssl.key.password: {env: KAFKA_KEY_PASSWORD}",
    ),
}
_QUEUES_TEXT: Final = """\
# yaml-language-server: $schema=schema.json
# Which queues there are and which Kafka topics their messages become. Every file of this folder
# counts. 'msmq-bridge map validate' checks it, 'map plan' compares it with the cluster.
queues:
  # Transactional messages only: exactly once and in order, per sender.
  - queue: private$\\orders
    topic: orders
    transactional: true

  # Everything else: a plain message is taken once per message id.
  - queue: private$\\inbox
    topic: inbox

# A message for a queue that is not listed is refused; it is kept in the rejects topic.
defaults:
  unknown: reject
"""


def starter_files() -> dict[str, str]:
    """Path in the folder -> text."""
    schema = json.dumps(mapping_schema(), indent=2, ensure_ascii=False) + "\n"
    return {CONFIG: config_text(), QUEUES: _QUEUES_TEXT, SCHEMA: schema}


def config_text() -> str:
    """A `bridge.yaml` that says no more than the defaults, but for where its files are."""
    return "\n".join((_HEAD, *_section(Config, Config(), "")))


def _section(kind: type[msgspec.Struct], default: msgspec.Struct, name: str) -> Iterator[str]:
    words = field_words(kind)
    for field in msgspec.structs.fields(kind):
        path = f"{name}.{field.encode_name}".lstrip(".")
        indent = "  " * path.count(".")
        text = words[field.name] + _choices(field)
        yield from textwrap.wrap(text, WIDTH, **_comment(indent))
        value = getattr(default, field.name)
        if isinstance(value, msgspec.Struct):
            yield f"{indent}{field.encode_name}:"
            yield from _section(type(value), value, path)
        else:
            yield from _setting(path, field, value, indent)
        if not name:
            yield ""


def _choices(field: FieldInfo) -> str:
    kinds = (field.type, *get_args(field.type))  # null may be one of them
    found = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    return f" One of {', '.join(get_args(found))}." if found else ""


def _comment(indent: str) -> dict[str, Any]:
    return {"initial_indent": f"{indent}# ", "subsequent_indent": f"{indent}# "}


def _setting(path: str, field: FieldInfo, value: object, indent: str) -> Iterator[str]:
    samples = _SAMPLES.get(path, ())
    if isinstance(value, Mapping):
        yield f"{indent}{field.encode_name}:"
        yield from (f"{indent}  #{sample}" for sample in samples)
        return
    if path in _SET:
        yield f"{indent}{field.encode_name}: {_SET[path]}   # default: {_shown(value)}"
        return
    yield f"{indent}#{field.encode_name}: {_shown(value)}"
    yield from (f"{indent}#   like {sample}" for sample in samples)


def _shown(value: object) -> str:
    """A default as YAML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def write_starter(folder: Path, *, force: bool) -> list[Path]:
    """All files or none: what is there already is not touched without `force`, and a token never:
    an appliance may be using it."""
    files = {folder / name: text for name, text in starter_files().items()}
    taken = [path.relative_to(folder) for path in files if os.path.lexists(path)]
    if taken and not force:
        what = f"there already: {', '.join(map(str, taken))}"
        mend = "choose another folder, or say --force to overwrite them"
        raise ConfigError(what, where=str(folder), mend=mend)
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        make_token(folder / TOKEN_FILE)
    except OSError as error:
        what = f"cannot write {error.filename} ({error.strerror})"
        mend = "choose a folder of this user's"
        raise ConfigError(what, where=str(folder), mend=mend) from error
    return [*files, folder / TOKEN_FILE]
