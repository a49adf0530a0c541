"""`values.schema.json` and `README.md` of the chart, made from the comments in its `values.yaml`.

    python -m tests.helm.chart          writes them, and copies examples/monitoring into files/

The comment above a key is its description; a line `@schema {…}` in it adds rules of JSON Schema.
`{generated: config}` and `{generated: mappings}` stand for what the program itself says of those.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from ruamel.yaml import YAML

from bridge.adapters.mapping_schema import mapping_schema, struct_schema
from bridge.config import Config

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "helm" / "msmq-bridge"
MONITORING: Final = ROOT / "examples" / "monitoring"
COPIED: Final = ("alerts.yaml", "dashboard.json")
DRAFT: Final = "http://json-schema.org/draft-07/schema#"  # what Helm 3 reads
SET_BY_THE_CHART: Final = ("listen", "data", "mappings", "standby")
_HIDDEN: Final = r"(password|secret|key\.pem|jaas\.config)$"

_KEY = re.compile(r"( *)([A-Za-z_][\w-]*):( .*)?")
_TYPES: Final = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}


class Value(msgspec.Struct, frozen=True):
    """One key of values.yaml."""

    path: tuple[str, ...]
    words: str
    rules: dict[str, Any]
    default: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_section(self) -> bool:
        """Whether its keys stand in values.yaml; a map with free keys is a value."""
        free = self.rules.keys() & {"additionalProperties", "generated"}
        return isinstance(self.default, dict) and bool(self.default) and not free


def read_values(text: str) -> list[Value]:
    """In their order; a key without words is an error."""
    data = load_yaml(text)
    found: list[Value] = []
    above: list[str] = []
    path: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("# "):
            above.append(line.strip()[2:])
            continue
        if match := _KEY.fullmatch(line):
            path = [*path[: len(match[1]) // 2], match[2]]
            if not _is_inside_free(found, path):
                found.append(_value(tuple(path), above, data))
        above = []
    return found


def _is_inside_free(found: list[Value], path: list[str]) -> bool:
    return any(v.path == tuple(path[: len(v.path)]) and not v.is_section for v in found)


def _value(path: tuple[str, ...], above: list[str], data: Any) -> Value:
    for key in path:
        data = data[key]
    rules: dict[str, Any] = {}
    for line in above:
        if line.startswith("@schema "):
            rules |= load_yaml(line.removeprefix("@schema "))
    words = " ".join(line for line in above if not line.startswith("@schema "))
    if not words:
        raise ValueError(f"{'.'.join(path)} has no words")
    return Value(path, words, rules, data)


def load_yaml(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


# -- values.schema.json -------------------------------------------------------------------------


def schema(values: list[Value]) -> dict[str, Any]:
    top: dict[str, Any] = {"$schema": DRAFT, "title": "Values of msmq-bridge"} | _section(
        values, ()
    )
    return top


def _section(values: list[Value], path: tuple[str, ...]) -> dict[str, Any]:
    inside = [value for value in values if value.path[:-1] == path]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {value.path[-1]: _property(value, values) for value in inside},
    }


def _property(value: Value, values: list[Value]) -> dict[str, Any]:
    made: dict[str, Any] = {"description": value.words}
    if value.is_section:
        return made | _section(values, value.path)
    if source := value.rules.get("generated"):
        return made | {"config": config_schema, "mappings": queues_schema}[source]()
    made |= {"type": _TYPES[type(value.default)], "default": value.default}
    if made["type"] in ("object", "array") and not value.rules:
        raise ValueError(f"{value.name}: what may be in it? Say it in a line '@schema {{…}}'")
    return made | value.rules


def config_schema() -> dict[str, Any]:
    """bridge.yaml as `bridge.config` has it, less what the chart sets itself."""
    made = _for_go(struct_schema(Config))
    for name in SET_BY_THE_CHART:
        made["properties"].pop(name, None)
    # A ConfigMap is no place for a password.
    made["properties"]["kafka"]["patternProperties"] = {
        _HIDDEN: {"type": "object", "description": "{file: path} or {env: NAME}."}
    }
    return {"type": "object"} | {k: v for k, v in made.items() if k != "type"}


def queues_schema() -> dict[str, Any]:
    made = _for_go(mapping_schema())
    return {"type": "object"} | {key: made[key] for key in ("additionalProperties", "properties")}


def _for_go(part: Any) -> Any:
    """Go's regular expressions look neither ahead nor behind; the program knows those rules."""
    if isinstance(part, dict):
        return {
            key: _for_go(inner)
            for key, inner in part.items()
            if not (key == "pattern" and isinstance(inner, str) and "(?" in inner)
        }
    return [_for_go(inner) for inner in part] if isinstance(part, list) else part


# -- README.md ----------------------------------------------------------------------------------

_BEGIN: Final = "<!-- values: made by 'make chart' -->"
_END: Final = "<!-- end of values -->"


def readme(values: list[Value], old: str) -> str:
    """The page with the table of all values anew."""
    before, begin, rest = old.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError("README.md has no place for the values")
    rows = [_row(value) for value in values if not value.is_section]
    table = "\n".join(("| Value | Default | What it is |", "|---|---|---|", *rows))
    return f"{before}{_BEGIN}\n{table}\n{_END}{after}"


def _row(value: Value) -> str:
    default = json.dumps(value.default).replace("|", "\\|")
    words = value.words.replace("|", "\\|")
    if choices := value.rules.get("enum"):
        words += f" One of {', '.join(map(str, choices))}."
    return f"| `{value.name}` | `{default}` | {words} |"


# -- both ---------------------------------------------------------------------------------------


def made_files() -> dict[Path, str]:
    """What the files should hold."""
    values = read_values((CHART / "values.yaml").read_text(encoding="utf-8"))
    page = CHART / "README.md"
    text = json.dumps(schema(values), indent=2, ensure_ascii=False) + "\n"
    return {
        CHART / "values.schema.json": text,
        page: readme(values, page.read_text(encoding="utf-8")),
    }


def main() -> int:
    for name in COPIED:
        if (MONITORING / name).exists():
            shutil.copyfile(MONITORING / name, CHART / "files" / name)
    for path, text in made_files().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
