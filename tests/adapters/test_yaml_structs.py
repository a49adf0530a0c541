"""Located values to structs: one fault of each kind; the real structs have their own tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from bridge.adapters.yaml_structs import (
    Faults,
    Gathering,
    faults_of,
    items_of,
    keys_of,
    read_struct,
)
from bridge.adapters.yaml_tree import parse_yaml
from bridge.model.errors import ConfigError


class Even(int):
    @classmethod
    def parse(cls, text: str) -> "Even":
        if int(text) % 2:
            raise ConfigError("is odd", mend="add one")
        return cls(text)


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    must: int
    level: Literal["low", "high"] = "low"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    small: Annotated[int, Meta(le=9, description="a digit")] | None = 3
    mixed: str | bool | Inner = "x"
    many: tuple[Inner, ...] = ()
    either: Literal["all"] | tuple[str, ...] = "all"
    table: Mapping[str, float] = {}
    place: Path = Path("here")
    even: Even = Even(2)

    def __post_init__(self) -> None:
        if self.table.get("sum") == 0:
            raise ConfigError("nothing", where="table/sum", mend="more")


BASE = Path("/base")


def read(text: str) -> Sample:
    return read_struct(parse_yaml(text.encode(), "f"), Sample, base=BASE)


def test_values_of_every_kind() -> None:
    assert read("") == Sample(place=BASE / "here")
    assert read("{small: null, place: /x, even: '4'}") == Sample(
        small=None, place=Path("/x"), even=Even(4)
    )
    assert read("mixed: true").mixed is True
    assert read("mixed: {must: 1}").mixed == Inner(must=1)
    assert read("many: [{must: 1}, {must: 2, level: high}]").many[1] == Inner(must=2, level="high")
    assert read("either: [a, b]").either == ("a", "b")
    assert read("table: {a: 1, b: 2.5}").table == {"a": 1.0, "b": 2.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "small: 10",
            "f:1:8: 'small' must be a digit or null, not 10; correct it, or leave it out",
        ),
        ("smal: 1", "f:1:1: unknown key 'smal'; did you mean 'small'?"),
        ("mixed: [1]", "f:1:8: 'mixed' must be text or true or false or a value, not a list"),
        ("many: [{level: low}]", "f:1:8: 'many[0].must' is missing; add a line 'must: ...'"),
        ("many: [{must: x}]", "f:1:15: 'many[0].must' must be a whole number, not the text 'x'"),
        ("many: [{must: 1, level: hihg}]", "f:1:25: 'many[0].level' must be one of low, high, not"),
        ("either: some", "f:1:9: 'either' must be one of all or a list, not the text 'some'"),
        ("table: {a: b}", "f:1:12: 'table.a' must be a number, not the text 'b'"),
        ("even: '3'", "f:1:7: 'even' is odd; add one"),
        ("even: x", "f:1:7: 'even' must be text, not the text 'x'"),
        ("even: 3", "f:1:7: 'even' must be text, not 3; put it in quotes"),
        ("a: 1\n", "f:1:1: unknown key 'a'; the keys here are small, mixed"),
        ("x:\n- 1\ntable:\n  sum: 0", "f:1:1: unknown key 'x'"),
        ("table:\n  sum: 0", "f:2:8: nothing; more"),
    ],
)
def test_faults(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith(message)


def test_every_fault_is_found() -> None:
    text = """\
smal: 1
small: 10
many: [{must: x}, {level: low}, {must: 1, level: hi}]
table: {a: b, c: d}
even: '3'
"""
    with pytest.raises(Faults) as caught:
        read(text)
    places = [fault.where for fault in caught.value.faults]
    assert places[0] == caught.value.where == "f:1:1"
    assert sorted(places) == [
        "f:1:1",
        "f:2:8",
        "f:3:15",
        "f:3:19",
        "f:3:50",
        "f:4:12",
        "f:4:18",
        "f:5:7",
    ]
    assert str(caught.value) == str(caught.value.faults[0])


def test_gathering_lets_other_errors_pass() -> None:
    gathering = Gathering()
    with pytest.raises(ZeroDivisionError), gathering:
        raise ZeroDivisionError
    gathering.check()
    one = ConfigError("one", where="f:1:1")
    with gathering:
        raise one
    with pytest.raises(ConfigError) as caught:
        gathering.check()
    assert caught.value is one
    assert faults_of(one) == (one,)


def test_a_fault_of_an_item_is_found_by_its_number() -> None:
    class Listed(msgspec.Struct, frozen=True, kw_only=True):
        names: tuple[str, ...] = ()

        def __post_init__(self) -> None:
            raise ConfigError("bad\u2028name", where="names/1", mend="x")

    with pytest.raises(ConfigError) as caught:
        read_struct(parse_yaml(b"names: [a,\n  b]", "f"), Listed, base=BASE)
    assert str(caught.value) == "f:2:3: bad\\u2028name; x"


def test_what_is_not_written_is_inherited() -> None:
    node = parse_yaml(b"small: 1", "f")
    parent = Sample(small=7, table={"a": 1.0})
    made = read_struct(node, Sample, base=BASE, inherit=parent)
    assert (made.small, made.table) == (1, {"a": 1.0})


def test_groups_and_lists_may_be_empty() -> None:
    nothing = parse_yaml(b"", "f")
    assert keys_of(nothing, "x") == {}
    assert items_of(nothing, "x") == []
