"""`mappings/schema.json`: the structs of `bridge.core.mapping_rules` as a JSON Schema.

Types, `Meta` rules and defaults come from the fields, words from the strings under them. Rules
between two keys (`order: key` needs a key) are beyond it: `msmq-bridge map validate` knows them
all.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from bridge.core.mapping_rules import Defaults, QueueMapping

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Final[Mapping[object, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}
_RULES: Final = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


def mapping_schema() -> dict[str, Any]:
    """Of one mapping file."""
    return {
        "$schema": DRAFT,
        "title": "msmq-bridge mappings",
        "description": "Which queues there are and what becomes of their messages.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            "queues": {
                "description": "The queues that are served.",
                "type": ["array", "null"],
                "items": struct_schema(QueueMapping, may_be_null=False),
            },
            "defaults": {"description": _words(Defaults.__doc__)} | struct_schema(Defaults),
        },
    }


def struct_schema(kind: type[msgspec.Struct], *, may_be_null: bool = True) -> dict[str, Any]:
    """Of the settings of one struct, in a file of any kind."""
    words = field_words(kind)
    fields = msgspec.structs.fields(kind)
    made: dict[str, Any] = {
        "type": ["object", "null"] if may_be_null else "object",
        "additionalProperties": False,
        "properties": {f.encode_name: _field(f, words.get(f.name, "")) for f in fields},
    }
    if required := [f.encode_name for f in fields if f.required]:
        made["required"] = required
    return made


def _field(field: msgspec.structs.FieldInfo, words: str) -> dict[str, Any]:
    made: dict[str, Any] = {"description": words} if words else {}
    made |= _type(field.type)
    default = _default(field)
    if default is not None:
        made["default"] = default
    return made


def _default(field: msgspec.structs.FieldInfo) -> Any:
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default is msgspec.NODEFAULT or isinstance(default, msgspec.Struct):
        return None
    if isinstance(default, str | PurePath):
        return str(default)
    return list(default) if isinstance(default, tuple) else default


def _type(kind: Any) -> dict[str, Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(args)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin in (Union, UnionType):
        return _union(args)
    if origin is tuple:
        return {"type": ["array", "null"], "items": _type(args[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {
            "type": ["object", "null"],
            "propertyNames": _type(args[0]),
            "additionalProperties": _type(args[1]),
        }
    if issubclass(kind, msgspec.Struct) and not hasattr(kind, "parse"):
        return struct_schema(kind)
    if pattern := getattr(kind, "PATTERN", ""):
        rule = {"pattern": pattern}
        choices = list(getattr(kind, "CHOICES", ()))
        return {"type": "string"} | ({"anyOf": [{"enum": choices}, rule]} if choices else rule)
    return {"type": _PLAIN.get(kind, "string")}


def _annotated(args: tuple[Any, ...]) -> dict[str, Any]:
    made = _type(args[0])
    for note in args[1:]:
        for name, rule in _RULES.items():
            value = getattr(note, name, None)
            if value is not None:
                made[rule] = value.replace(r"\Z", "$") if rule == "pattern" else value
        made |= note.extra_json_schema or {}
    return made


def _union(args: tuple[Any, ...]) -> dict[str, Any]:
    members = [_type(member) for member in args]
    null = {"type": "null"}
    if len(members) == 2 and null in members:
        made = next(member for member in members if member != null)
        if isinstance(made["type"], str):
            made["type"] = [made["type"], "null"]
        return made
    for member in members:  # in a choice null is no empty list
        if isinstance(member["type"], list):
            member["type"] = member["type"][0]
    return {"anyOf": members}


@cache
def field_words(kind: type) -> Mapping[str, str]:
    """The string under each field, of the class and those it is made from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            found |= _words_of(base)
    return found


def _words_of(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = _words(text)
    return found


def _words(text: str | None) -> str:
    return " ".join((text or "").split())
