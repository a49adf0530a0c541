"""YAML text to located values, with its bounds."""

from pathlib import Path

import pytest

from bridge.adapters.yaml_tree import MAX_BYTES, Mark, Node, parse_yaml, quoted, read_yaml
from bridge.model.errors import ConfigError


def value_of(text: str) -> object:
    return parse_yaml(text.encode(), "f").value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-0x1F", -31),
        ("0o17", 15),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("-.inf", float("-inf")),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("~", None),
        ("", None),
        ("2020-01-01", "2020-01-01"),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("private$\\orders", "private$\\orders"),
        ("\ufefftext", "text"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_values_know_where_they_are() -> None:
    tree = parse_yaml(b"# c\na: 1\nb:\n  - x\n  - {k: v}\n", "f")
    assert tree.mark == Mark("f", 2, 1)
    assert isinstance(tree.value, dict)
    assert tree.value["a"] == (Mark("f", 2, 1), Node(Mark("f", 2, 4), 1))
    items = tree.value["b"][1].value
    assert isinstance(items, list)
    assert str(items[0].mark) == "f:4:5"
    assert isinstance(items[1].value, dict)
    assert str(items[1].value["k"][1].mark) == "f:5:9"


def test_nothing_is_where_its_key_is() -> None:
    tree = parse_yaml(b"a:\n\nb: {c: }\n", "f").value
    assert isinstance(tree, dict)
    assert tree["a"][1] == Node(Mark("f", 1, 3), None)
    inner = tree["b"][1].value
    assert isinstance(inner, dict)
    assert inner["c"][1].mark.line == 3


def refused(data: bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(data, "f")
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def test_an_alias_is_followed() -> None:
    tree = parse_yaml(b"a: &x [1]\nb: *x\n", "f").value
    assert isinstance(tree, dict)
    assert tree["a"][1] == tree["b"][1]


def test_an_alias_bomb_is_only_too_many_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "too many" in str(refused("\n".join(lines).encode()))


@pytest.mark.parametrize("data", [b"a: &a [*a]", b"[" * 40 + b"]" * 40, b"[" * 700, b"{a: " * 700])
def test_depth_is_bounded(data: bytes) -> None:
    error = refused(data)
    assert "too deep" in str(error)
    assert error.where.startswith("f:1:")


def test_duplicate_keys_are_refused_at_the_second() -> None:
    error = refused(b"a: 1\nb: {c: 1,\n  c: 2}\n")
    assert error.where == "f:3:3"
    assert "first in line 2" in error.what


@pytest.mark.parametrize(
    ("text", "where", "word"),
    [
        ('a: 1\nb: "x\nc: 1\nd: 2\n', "f:2:4", "close the quotes"),
        ("a: 1\nb: 'x\nc: 1\n", "f:2:4", "noticed in line 4"),
        ("a: 1\nb: [x,\n  y\nc: 1\n", "f:2:4", "close the bracket"),
        ("a: 1\nb: {x: y\nc: 1\n", "f:2:4", "close the bracket"),
        ("a: 1\nb\nc: 2\n", "f:2:1", "key: value"),
        ("a: [x}\n", "f:1:6", "close the bracket"),
    ],
)
def test_what_is_not_closed_is_named_where_it_begins(text: str, where: str, word: str) -> None:
    error = refused(text.encode())
    assert error.where == where
    assert word in str(error)


def test_other_encodings_are_refused() -> None:
    assert refused(b"a: 1\nb: \xff\n").where == "f:2:4"
    assert "UTF-8" in str(refused("a: 1".encode("utf-16")))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"#" * (MAX_BYTES + 1))
    for name, word in (("none", "no such file"), (".", "cannot be read"), ("large", "1 MiB")):
        with pytest.raises(ConfigError, match=word) as caught:
            read_yaml(tmp_path / name)
        assert caught.value.where == str(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(Path("a\0b"))


def test_quoted_is_short_and_on_one_line() -> None:
    assert quoted("private$\\a") == "'private$\\a'"
    assert quoted("a\nb\x1b") == "'a\\nb\\x1b'"
    assert len(quoted("x" * 500)) == 82
