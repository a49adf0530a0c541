"""What is made from values.yaml is up to date, whole and true."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bridge.adapters.yaml_tree import read_yaml
from bridge.config import Config
from tests.helm.chart import (
    CHART,
    COPIED,
    MONITORING,
    ROOT,
    SET_BY_THE_CHART,
    load_yaml,
    made_files,
    read_values,
    schema,
)

VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")


def chart() -> Any:
    return load_yaml((CHART / "Chart.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", made_files(), ids=lambda path: path.name)
def test_it_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == made_files()[path], "run 'make chart'"


@pytest.mark.parametrize("name", COPIED)
def test_the_monitoring_files_are_those_of_the_examples(name: str) -> None:
    copy = CHART / "files" / name
    original = MONITORING / name
    assert copy.stat().st_size > 0
    if original.exists():
        assert copy.read_bytes() == original.read_bytes(), "run 'make chart'"


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart()["appVersion"] == project["version"]
    assert chart()["description"] == project["description"]


# -- every value is described -------------------------------------------------------------------


def leaves(data: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in data.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


def test_every_value_has_its_words_in_the_schema() -> None:
    whole = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    paths = list(leaves(load_yaml(VALUES)))
    assert len(paths) > 100
    for path in paths:
        part = whole
        for key in path:
            if part.get("additionalProperties") == {"type": "string"}:  # a map of free keys
                break
            part = part["properties"][key]
            assert len(part["description"]) > 3, path
            assert part["description"][0].isupper() or part["description"][:6] == "bridge", path


def objects(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        if "properties" in part and isinstance(part["properties"], dict) and "type" in part:
            yield path, part
        for key, inner in part.items():
            yield from objects(inner, f"{path}/{key}")
    elif isinstance(part, list):
        for inner in part:
            yield from objects(inner, path)


def test_unknown_keys_are_refused_everywhere() -> None:
    whole = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    found = list(objects(whole))
    assert len(found) > 30
    assert [path for path, part in found if part["additionalProperties"] is not False] == []


def test_the_defaults_keep_the_schema() -> None:
    whole = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(whole)
    jsonschema.validate(load_yaml(VALUES), whole, cls=jsonschema.Draft7Validator)


def test_config_is_what_the_program_reads_less_what_the_chart_sets() -> None:
    whole = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    known = set(whole["properties"]["config"]["properties"])
    assert known == set(Config.__struct_fields__) - set(SET_BY_THE_CHART)


# -- the maker itself ---------------------------------------------------------------------------


def test_a_value_without_words_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"a\.c has no words"):
        read_values("# Words.\na:\n  # Words.\n  b: 1\n  c: 2\n")


def test_words_belong_to_the_key_below_only() -> None:
    with pytest.raises(ValueError, match="a has no words"):
        read_values("# Of nobody.\n\na: 1\n")


@pytest.mark.parametrize("empty", ["{}", "[]"])
def test_an_empty_map_or_list_must_say_what_may_be_in_it(empty: str) -> None:
    with pytest.raises(ValueError, match="what may be in it"):
        schema(read_values(f"# Words.\na: {empty}\n"))


def test_types_and_rules() -> None:
    made = schema(
        read_values(
            '# One.\n# @schema {minimum: 1}\na: 1\n# Two,\n# more.\nb:\n  # In.\n  c: "x"\n'
            "# Free.\n# @schema {additionalProperties: {type: string}}\nd: {}\n"
        )
    )
    assert made["properties"] == {
        "a": {"description": "One.", "type": "integer", "default": 1, "minimum": 1},
        "b": {
            "description": "Two, more.",
            "type": "object",
            "additionalProperties": False,
            "properties": {"c": {"description": "In.", "type": "string", "default": "x"}},
        },
        "d": {
            "description": "Free.",
            "type": "object",
            "default": {},
            "additionalProperties": {"type": "string"},
        },
    }


def test_the_readme_names_every_value() -> None:
    page = (CHART / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `([\w.]+)` \|", page)
    values = [value.name for value in read_values(VALUES) if not value.is_section]
    assert rows == values
    assert "replicas" in rows
    assert "service.sourceRanges" in rows


def test_the_example_of_the_readme_keeps_the_schema(tmp_path: Path) -> None:
    page = (CHART / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"(?s)```yaml\n(.+?)```", page)
    (tmp_path / "values.yaml").write_text(block, encoding="utf-8")
    assert read_yaml(tmp_path / "values.yaml").value
    whole = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(load_yaml(block), whole, cls=jsonschema.Draft7Validator)
