"""The files of `msmq-bridge init` say what `bridge.config` says, and nothing else (design 3.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.mapping_schema import field_words, mapping_schema
from bridge.adapters.starter import CONFIG, QUEUES, SCHEMA, config_text, write_starter
from bridge.config import AdminConfig, Config, Secret
from bridge.model.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_starter(tmp_path / "made" / "here", force=False)
    return tmp_path / "made" / "here"


def leaves(value: msgspec.Struct, name: str = "") -> Iterator[tuple[str, object]]:
    for field in msgspec.structs.fields(value):
        path, inner = f"{name}.{field.encode_name}".lstrip("."), getattr(value, field.name)
        if isinstance(inner, msgspec.Struct):
            yield from leaves(inner, path)
        else:
            yield path, inner


def test_it_is_every_default_but_for_where_its_files_are(folder: Path) -> None:
    assert load_config(folder / CONFIG) == msgspec.structs.replace(
        Config(),
        data=folder / "data",
        mappings=folder / "mappings",
        admin=AdminConfig(token_file=folder / "admin.token"),
    )


def test_its_token_is_for_nobody_else_and_stays(folder: Path) -> None:
    path = folder / "admin.token"
    token = path.read_text()
    assert len(token.strip()) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert write_starter(folder, force=True)[-1] == path
    assert path.read_text() == token  # an appliance may be using it


def test_every_key_is_there_with_its_default(folder: Path) -> None:
    path = folder / CONFIG
    set_all = re.sub(r"(?m)^( *)#(?! )", r"\1", config_text())  # as the head of the file says
    path.write_text(set_all, encoding="utf-8")
    config = load_config(path)
    placed = {
        "data": folder / "data",
        "mappings": folder / "mappings",
        "admin.token_file": folder / "admin.token",
    }
    for name, value in leaves(Config()):
        found = dict(leaves(config))[name]
        if name in ("peers", "kafka"):  # they have no default worth showing, so samples
            assert found
        else:
            assert found == placed.get(name, value), name
        key = name.rpartition(".")[2]
        assert len(re.findall(rf"(?m)^ *#?{key}:", config_text())) >= 1, name
    assert config.kafka["sasl.password"] == Secret(file=folder / "secrets/kafka-password")


def test_the_words_are_those_of_the_settings() -> None:
    text = " ".join(config_text().replace("#", " ").split())
    kinds = [Config, *(type(v) for v in vars_of(Config()) if isinstance(v, msgspec.Struct))]
    words = [word for kind in kinds for word in field_words(kind).values()]
    assert len(words) == len(list(leaves(Config()))) + len(kinds) - 1  # a section has words, too
    assert [word for word in words if word not in text] == []
    assert "One of modern, legacy." in text
    assert max(map(len, config_text().splitlines())) <= 110


def vars_of(value: msgspec.Struct) -> list[object]:
    return [getattr(value, name) for name in value.__struct_fields__]


def test_its_samples_are_right(folder: Path) -> None:
    lines = re.findall(r"(?m)^ *#   like (.+)$", config_text())
    assert [line.partition(":")[0] for line in lines] == ["names", "redirect_in"]
    path = folder / CONFIG
    path.write_text(f"queue_manager: {{{lines[0]}}}\nsrmp: {{{lines[1]}}}\n", encoding="utf-8")
    config = load_config(path)
    assert config.queue_manager.names == ("BRIDGE01", "bridge01.example.com")
    assert config.srmp.redirect_in[0].target == "http://bridge01/msmq/private$/orders"


def test_the_first_mapping(folder: Path) -> None:
    mappings = load_mappings(folder / "mappings")
    assert [(str(m.queue), m.template, m.transactional) for m in mappings.queues] == [
        ("private$\\orders", "orders", True),
        ("private$\\inbox", "inbox", False),
    ]
    assert mappings.defaults.unknown == "reject"
    assert json.loads((folder / SCHEMA).read_text()) == mapping_schema()
    first = (folder / QUEUES).read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=schema.json"


@pytest.mark.parametrize("name", [CONFIG, QUEUES, SCHEMA])
def test_one_file_that_is_there_stops_all(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(ConfigError, match=f"there already: {re.escape(name)};") as caught:
        write_starter(tmp_path, force=False)
    assert "--force" in (caught.value.mend or "")
    assert [p.read_text() for p in tmp_path.rglob("*") if p.is_file()] == ["mine"]
    assert tmp_path / name in write_starter(tmp_path, force=True)
    assert mine.read_text() != "mine"


def test_a_dangling_link_is_something_that_is_there(tmp_path: Path) -> None:
    (tmp_path / CONFIG).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="there already"):
        write_starter(tmp_path, force=False)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write") as caught:
        write_starter(tmp_path / "file" / "folder", force=False)
    assert len(str(caught.value).splitlines()) == 1
