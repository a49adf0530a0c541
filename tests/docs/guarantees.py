"""What GUARANTEES.md says, for its tests: the tests that prove it, and the rights it asks for."""

import re
from dataclasses import dataclass

import pytest

from tests.docs.runner import ROOT

PAGE = ROOT / "GUARANTEES.md"
_PROOF = re.compile(r"\[`(?P<name>test_\w+)`\]\((?P<file>tests/[\w/]+\.py)\)")
_PROMISE = re.compile(r"^\| (?P<number>[A-Z]\d+) \| (?P<rest>.+) \|$", re.M)
_RIGHT = re.compile(
    r"^\| (?P<kind>Topic|Group|TransactionalId) \| `(?P<name>[^`]+)` "
    r"\| (?P<pattern>prefixed|literal) \| (?P<operations>[\w, ]+) \|",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Proof:
    file: str
    name: str

    @property
    def node(self) -> str:
        return f"{self.file}::{self.name}"


@dataclass(frozen=True, slots=True)
class Right:
    """One ACL: of `kind` the resource, or all that begin so."""

    kind: str
    name: str
    pattern: str
    operation: str


def promises(text: str) -> dict[str, list[Proof]]:
    """Rows of the tables, by their number, with the tests that they name."""
    return {
        row["number"]: [Proof(m["file"], m["name"]) for m in _PROOF.finditer(row["rest"])]
        for row in _PROMISE.finditer(text)
    }


def rights(text: str) -> list[Right]:
    return [
        Right(row["kind"], row["name"], row["pattern"], operation.strip())
        for row in _RIGHT.finditer(text)
        for operation in row["operations"].split(",")
    ]


class Proofs:
    """Watches a run: which of the tests that the page names have passed."""

    def __init__(self, text: str) -> None:
        self._named = {proof.node for row in promises(text).values() for proof in row}
        self._passed: set[str] = set()

    def note(self, node: str, outcome: str) -> None:
        if outcome == "passed":
            self._passed.add(node.partition("[")[0])

    def missing(self) -> list[str]:
        return sorted(self._named - self._passed)

    # -- as a plugin of pytest --------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.note(report.nodeid, report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A whole run must have proven all of it."""
        if exitstatus == 0 and is_whole(session.config) and (missing := self.missing()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter = session.config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                for node in missing:
                    reporter.write_line(f"GUARANTEES.md names it, and it did not pass: {node}")


def is_whole(config: pytest.Config) -> bool:
    """Nothing was chosen by whoever began the run."""
    option = config.option
    chosen = (option.keyword, option.markexpr, option.deselect, option.collectonly)
    return config.args_source is config.ArgsSource.TESTPATHS and not any(chosen)
