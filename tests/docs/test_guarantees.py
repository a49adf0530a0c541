"""GUARANTEES.md names tests: they are there. That they ran is seen at the end of a whole run."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guarantees import PAGE, Proof, Proofs, promises, rights
from tests.docs.runner import ROOT

ROW = "| A1 | It holds. | [`test_one`](tests/a/test_b.py), [`test_two`](tests/test_c.py) |\n"


def functions_of(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_test_that_is_named_is_there() -> None:
    named = promises(PAGE.read_text())
    proofs = {proof for row in named.values() for proof in row}
    assert len(proofs) > 60
    files = {proof.file: functions_of(ROOT / proof.file) for proof in proofs}
    assert {proof for proof in proofs if proof.name not in files[proof.file]} == set()


def test_every_promise_has_its_proof() -> None:
    named = promises(PAGE.read_text())
    without = {number for number, proofs in named.items() if not proofs}
    assert without == {"C2", "C4"}  # duties of others
    assert all(number[0] in "AERHSNC" for number in named)


def test_how_the_page_is_read() -> None:
    assert promises(ROW + "| | Promise | Proof |\n| B2 | Hm. | none |\n") == {
        "A1": [Proof("tests/a/test_b.py", "test_one"), Proof("tests/test_c.py", "test_two")],
        "B2": [],
    }
    table = "| Group | `x.` | prefixed | Read, DescribeConfigs | why |\n| Topic | y | no row |\n"
    assert [(r.kind, r.name, r.operation) for r in rights(table)] == [
        ("Group", "x.", "Read"),
        ("Group", "x.", "DescribeConfigs"),
    ]


@pytest.mark.parametrize(
    ("reports", "missing"),
    [
        ([], ["tests/a/test_b.py::test_one", "tests/test_c.py::test_two"]),
        ([("tests/a/test_b.py::test_one[x]", "passed")], ["tests/test_c.py::test_two"]),
        (
            [("tests/a/test_b.py::test_one", "passed"), ("tests/test_c.py::test_two", "skipped")],
            ["tests/test_c.py::test_two"],
        ),
        (
            [("tests/a/test_b.py::test_one[x]", "passed"), ("tests/test_c.py::test_two", "passed")],
            [],
        ),
    ],
)
def test_what_did_not_run_is_named(reports: list[tuple[str, str]], missing: list[str]) -> None:
    proofs = Proofs(ROW)
    for node, outcome in reports:
        proofs.note(node, outcome)
    assert proofs.missing() == missing


@pytest.mark.parametrize(
    ("chosen", "code"),
    [((), 1), (("-k", "test_one"), 0)],
)
def test_a_whole_run_without_a_proof_fails(
    tmp_path: Path, chosen: tuple[str, ...], code: int
) -> None:
    tests = tmp_path / "tests"
    (tests / "a").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tests / "a" / "test_b.py").write_text("def test_one(): pass\n")
    (tests / "test_c.py").write_text("import pytest\n@pytest.mark.skip\ndef test_two(): pass\n")
    (tmp_path / "watch.py").write_text(
        "from tests.docs.guarantees import Proofs\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        f"        config.pluginmanager.register(Proofs({ROW!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "watch", *chosen],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    line = "GUARANTEES.md names it, and it did not pass: tests/test_c.py::test_two"
    assert (line in done.stdout) == bool(code)
