"""SECURITY.md names tests and modules: they have to be there."""

import ast
import re
from pathlib import Path

from bridge.adapters.telemetry import Telemetry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def threats() -> list[list[str]]:
    table = PAGE.partition("## Threats")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]  # without the head


def test_every_threat_has_a_proof_that_exists() -> None:
    rows = threats()
    assert len(rows) >= 20
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for threat, _, proofs in rows:
        named = re.findall(r"`([^`]+)`", proofs)
        assert named, threat
        for proof in named:
            if proof.startswith("make "):
                assert proof.removeprefix("make ") in targets, proof
                continue
            file, _, test = proof.partition("::")
            assert (ROOT / file).is_file(), proof
            assert not test or test in functions(ROOT / file), proof


def test_every_other_name_exists_too() -> None:
    for name in re.findall(r"`(tests/[\w/]+\.py)`", PAGE):
        assert (ROOT / name).is_file()


def test_every_bound_has_a_gauge_and_a_test_that_exist() -> None:
    table = PAGE.partition("## What a peer can make us keep")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows[1:]) >= 10
    metrics = Telemetry().exposition()[0].decode()
    for what, _, _, _, gauges, tests in rows[1:]:
        for gauge in re.findall(r"`([^`]+)`", gauges):
            assert f"# TYPE msmq_bridge_{gauge} gauge" in metrics, what
        named = re.findall(r"`([^`]+)`", tests)
        assert named, what
        for test in named:
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), what
            assert not name or name in functions(ROOT / file), what
