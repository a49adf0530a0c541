"""Every line of every command block in the README and the examples' pages works as it stands."""

import fcntl
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.docs.runner import ROOT, checkout, run_page

PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]
LONG = ("backfill", "migration-week")  # Spark starts several times in each
PORTS = (1801, 8080, 9180, 8081, 2103)  # of `make run`, and of the examples


@pytest.fixture
def _alone() -> Iterator[None]:
    """`make run` has fixed ports: two runs of these tests on one machine take turns."""
    with (Path(tempfile.gettempdir()) / "msmq-bridge-docs.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for port in PORTS:
            with socket.socket() as probe:
                in_use = probe.connect_ex(("127.0.0.1", port)) == 0
            assert not in_use, f"port {port} is taken: stop what listens there (make run?)"
        yield


@pytest.mark.kafka
@pytest.mark.usefixtures("_alone")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.long] if p.parent.name in LONG else []) for p in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_line_works(page: Path, tmp_path: Path) -> None:
    done = run_page(page, checkout(tmp_path / "repo"))
    assert any(not line.startswith("skipped") for line in done)


def test_only_what_sets_up_or_recurses_is_skipped() -> None:
    """Not a way around a command that does not work."""
    allowed = (
        "git clone ",
        "cd ",
        "make setup",
        "make test",
        "make unit",
        "make bench",
        "make soak",
        "make fuzz",
        "make long",
        "make mass",
        "make profile",
        "make prove-reconcile",
        "make screenshots",
    )
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            if block.skip:
                assert all(command.text.startswith(allowed) for command in block.commands())
