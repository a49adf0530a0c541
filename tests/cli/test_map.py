"""`msmq-bridge map list | add | remove | validate | schema` through the real entry."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bridge.adapters.mapping_schema import mapping_schema
from bridge.cli import app as program
from bridge.cli.app import main

FILE = """\
# Our queues.
queues:
  # Exactly once.
  - queue: private$\\orders   # the old name
    topic: orders
    transactional: true

  - queue: private$\\ord*
    topic: 'all.{label}'
    headers: {cloudevents: true}
  - queue: private$\\order?
    journal: '{queue}.journal'

# The rest.
defaults:
  key: label
"""
Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _with_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "COMMANDS", tuple(dict.fromkeys((*program.COMMANDS, "map"))))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.yaml"
    path.write_text(FILE)
    return path


def failed(capsys: Printed, *arguments: str) -> str:
    """The one line of the error."""
    assert main(["map", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("msmq-bridge: error: ")
    return printed.err


def test_list_is_what_the_appliance_would_do(file: Path, capsys: Printed) -> None:
    assert main(["map", "list", "--mappings", str(file), "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["queue"], row["topic"], row["kind"], row["where"]) for row in rows] == [
        ("private$\\orders", "orders", "transactional", f"{file}:4"),
        ("private$\\order?", "{queue}", "plain", f"{file}:11"),  # the most literal characters
        ("private$\\ord*", "all.{label}", "plain", f"{file}:8"),
    ]
    assert {row["key"] for row in rows} == {"label"}  # of the defaults
    assert rows[2]["headers"]["cloudevents"] is True
    assert rows[1]["journal"] == "{queue}.journal"


def test_list_for_people_and_as_yaml(file: Path, capsys: Printed) -> None:
    assert main(["map", "list", "-m", str(file)]) == 0
    out = capsys.readouterr().out
    for word in ("queue", "private$\\orders", "transactional", "label", f"{file}:4"):
        assert word in out
    assert main(["map", "list", "-m", str(file), "-o", "yaml"]) == 0
    assert YAML(typ="safe").load(capsys.readouterr().out)[0]["queue"] == "private$\\orders"


def test_list_shows_what_becomes_of_other_queues(file: Path, capsys: Printed) -> None:
    file.write_text("defaults: {unknown: auto-create}")
    assert main(["map", "list", "-m", str(file), "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["queue"], row["topic"], row["kind"]) == ("(any other)", "{queue}", "any")
    assert row["where"] == f"{file}:1"
    file.write_text("\ndefaults: {unknown: auto-create, transactional: true}")
    main(["map", "list", "-m", str(file), "-o", "json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["kind"], row["where"]) == ("transactional", f"{file}:2")


def test_the_configuration_says_where_the_mappings_are(file: Path, capsys: Printed) -> None:
    config = file.parent / "bridge.yaml"
    config.write_text("mappings: m.yaml\ntopic_prefix: own\n")
    assert main(["map", "list", "--config", str(config), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    error = failed(capsys, "add", "x", "--topic", "own.state", "-c", str(config))
    assert "topic of the bridge itself" in error
    other = file.parent / "other.yaml"
    other.write_text("queues: [{queue: z}]")
    assert main(["map", "list", "-c", str(config), "-m", str(other), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["queue"] == "z"


def test_add_keeps_everything_else(file: Path, capsys: Printed) -> None:
    arguments = ["private$\\new*", "--topic", "{queue}", "--transactional", "--key", "json:$.id"]
    more = ["--order", "key", "--value", "json", "--timestamp", "sent", "--oversize", "chunk"]
    sets = ["--set", "quota_kb=1024", "--set", "headers={include: none}", "--journal", "new.j"]
    assert main(["map", "add", *arguments, *more, *sets, "-m", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "added": "private$\\new*",
        "where": f"{file}:13",
    }
    entry = """\
  - queue: private$\\new*
    topic: '{queue}'
    key: json:$.id
    order: key
    value: json
    timestamp: sent
    journal: new.j
    oversize: chunk
    transactional: true
    quota_kb: 1024
    headers: {include: none}
"""
    assert file.read_text() == FILE.replace("\n# The rest", entry + "\n# The rest")


def test_remove_takes_back_what_add_did(file: Path, capsys: Printed) -> None:
    file.chmod(0o640)
    assert main(["map", "add", "new", "--plain", "-m", str(file)]) == 0
    assert "transactional: false" in file.read_text()
    assert main(["map", "remove", "NEW", "-m", str(file), "-o", "yaml"]) == 0
    assert "removed: NEW" in capsys.readouterr().out
    assert file.read_text() == FILE
    assert file.stat().st_mode & 0o777 == 0o640


def test_remove_takes_the_comment_above_along(file: Path) -> None:
    assert main(["map", "remove", "private$\\orders", "-m", str(file)]) == 0
    start, end = FILE.index("  # Exactly"), FILE.index("  - queue: private$\\ord*")
    assert file.read_text() == FILE[:start] + FILE[end:]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["add", "PRIVATE$\\Orders"], "is mapped at"),
        (["add", "a;b"], "has a ; in it"),
        (["add", "a\nb"], "cannot be written on one line"),
        (["add", "a", "--topic", "x/y"], "legal Kafka topic"),
        (["add", "a", "--key", "none", "--order", "key"], "nothing to pick"),
        (["add", "a", "--value", "jsn"], "did you mean 'json'"),
        (["add", "a", "--set", "quota_kb"], "KEY=YAML"),
        (["add", "a", "--set", "quota_kb=0"], "1 or more"),
        (["add", "a", "--set", "qouta_kb=1"], "did you mean 'quota_kb'"),
        (["add", "a", "--topic", "x", "--set", "topic=y"], "given twice"),
        (["add", "a", "--set", "allow=[1"], "quote the value"),
        (["add", "a", "--file", "other.yaml"], "is not read"),
        (["remove", "nothing"], "is not mapped"),
    ],
)
def test_nothing_is_written_when_it_would_be_wrong(
    file: Path, capsys: Printed, arguments: list[str], word: str
) -> None:
    assert word in failed(capsys, *arguments, "-m", str(file))
    assert file.read_text() == FILE
    assert list(file.parent.iterdir()) == [file]


def test_which_file_of_a_folder(tmp_path: Path, capsys: Printed) -> None:
    folder = tmp_path / "mappings"
    assert main(["map", "add", "a", "-m", str(folder)]) == 0
    assert (folder / "queues.yaml").read_text() == "queues:\n  - queue: a\n"
    assert main(["map", "add", "b", "-m", str(folder)]) == 0  # the only one
    assert main(["map", "add", "c", "-m", str(folder), "--file", "c.yaml"]) == 0
    assert (folder / "c.yaml").read_text() == "queues:\n  - queue: c\n"
    assert main(["map", "add", "d", "-m", str(folder), "-f", str(folder / "c.yaml")]) == 0
    capsys.readouterr()
    assert "say which one: c.yaml, queues.yaml" in failed(capsys, "add", "e", "-m", str(folder))
    for name in ("x.test.yaml", "../x.yaml", "x.txt"):
        assert "would not be read" in failed(capsys, "add", "e", "-m", str(folder), "--file", name)
    assert "is mapped at" in failed(capsys, "add", "A", "-m", str(folder), "--file", "c.yaml")
    new = tmp_path / "new.yaml"
    assert main(["map", "add", "a", "-m", str(new)]) == 0
    assert new.is_file()


def test_a_broken_file_is_not_edited(file: Path, capsys: Printed) -> None:
    file.write_text("queues:\n  - queue: a\n    topics: b\n")
    assert f"{file}:3:5: unknown key" in failed(capsys, "add", "x", "-m", str(file))
    assert f"{file}:3:5: unknown key" in failed(capsys, "remove", "a", "-m", str(file))
    assert f"{file}:3:5: unknown key" in failed(capsys, "list", "-m", str(file))


def test_validate(file: Path, capsys: Printed) -> None:
    assert main(["map", "validate", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "valid": True,
        "files": [str(file)],
        "queues": 3,
    }
    assert main(["map", "validate", "-m", str(file)]) == 0
    assert "yes" in capsys.readouterr().out


BAD = "queues:\n  - queue: a\n    topics: b\n  - {queue: b, key: x}\ndefaults: {mode: kept}\n"


def test_validate_names_every_fault(file: Path, capsys: Printed) -> None:
    file.write_text(BAD)
    assert main(["map", "validate", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 3
    for line, place in zip(lines, ("3:5", "4:21", "5:18"), strict=True):
        assert line.startswith(f"msmq-bridge: error: {file}:{place}: ")
        assert "; " in line


def test_validate_for_programs(file: Path, capsys: Printed) -> None:
    file.write_text(BAD)
    assert main(["map", "validate", str(file), "-o", "json"]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    answer = json.loads(printed.out)
    assert answer["valid"] is False
    assert answer["faults"][0] == {
        "file": str(file),
        "line": 3,
        "column": 5,
        "what": "unknown key 'topics' in 'queues[0]'",
        "mend": "did you mean 'topic'?",
    }
    missing = file.parent / "none"
    assert main(["map", "validate", str(missing), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["faults"][0]["file"] == str(missing)


def test_validate_looks_at_the_configuration_too(file: Path, capsys: Printed) -> None:
    config = file.parent / "bridge.yaml"
    config.write_text("mapings: x\n")
    assert f"{config}:1:1: unknown key" in failed(capsys, "validate", "-c", str(config))


def test_schema(capsys: Printed) -> None:
    assert main(["map", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == mapping_schema()
    assert main(["map", "schema", "-o", "yaml"]) == 0
    assert YAML(typ="safe").load(capsys.readouterr().out) == mapping_schema()


@pytest.mark.parametrize("command", ["list", "add", "remove", "validate", "schema"])
def test_every_help_has_an_example(command: str, capsys: Printed) -> None:
    assert main(["map", command, "--help"]) == 0
    assert f"Example: msmq-bridge map {command}" in capsys.readouterr().out


def test_no_command_shows_the_help(capsys: Printed) -> None:
    assert main(["map"]) == 2
    assert "Usage:" in capsys.readouterr().out
