"""What `make setup` and the image install: only what the lock files name, by its hash."""

import re
from pathlib import Path

from tests.container.test_container import pins

ROOT = Path(__file__).parents[2]
RECIPES = ("Makefile", ".ci/run", "examples/container/Containerfile")
OURS = ("--editable .", "dist/msmq_bridge-*.whl")  # built here


def installs(recipe: str) -> list[str]:
    text = (ROOT / recipe).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if re.search(r"\bpip .*\binstall ", line)]


def test_every_install_names_hashes_or_is_our_own() -> None:
    found = [line for recipe in RECIPES for line in installs(recipe)]
    assert len(found) >= 6
    for line in found:
        for part in re.split(r"&&", line):
            if "install " not in part or " pip" not in part:
                continue
            is_ours = "--no-deps" in part and part.rstrip().endswith(OURS)
            assert is_ours or "--require-hashes -r" in part, part


def test_one_uv() -> None:
    [(name, version)] = pins(ROOT / ".ci" / "uv.lock").items()
    assert name == "uv"
    assert pins(ROOT / "examples/container/build.lock")["uv"] == version, "run 'make lock'"
