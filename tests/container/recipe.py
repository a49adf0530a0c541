"""A Containerfile as data: its stages and their instructions, as far as ours uses the language."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

KNOWN: Final = (
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN"),
    *("STOPSIGNAL", "USER", "WORKDIR"),
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Step(Struct, frozen=True):
    """One instruction."""

    line: int
    word: str
    rest: str

    def words(self) -> list[str]:
        return shlex.split(self.rest)

    def array(self) -> list[str]:
        """Of the exec form."""
        found: list[str] = json.loads(self.rest)
        return found

    def pairs(self) -> dict[str, str]:
        """Of ENV and LABEL."""
        return dict(word.split("=", 1) for word in self.words())

    def flags(self) -> tuple[dict[str, str], list[str]]:
        """`--from=x a b` -> ({from: x}, [a, b])"""
        words = self.words()
        flags = [w for w in words if w.startswith("--")]
        named = dict(flag[2:].split("=", 1) for flag in flags)
        return named, [w for w in words if w not in flags]


class Stage(Struct):
    """From one FROM to the next."""

    name: str
    parent: str  # another stage's name, or an image
    steps: list[Step] = field(default_factory=list)

    def all(self, word: str) -> list[Step]:
        return [step for step in self.steps if step.word == word]


def read_recipe(path: Path) -> dict[str, Stage]:
    """The stages by name, in their order; ARG before the first FROM is filled in."""
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    for step in _steps(path.read_text(encoding="utf-8")):
        if step.word not in KNOWN:
            raise ValueError(f"line {step.line}: nobody knows {step.word}")
        if step.word == "FROM":
            parent, _, name = _filled(step.rest, arguments).partition(" AS ")
            stage = stages[name] = Stage(name, parent)
        elif not stages:
            arguments |= step.pairs()
        else:
            stage.steps.append(step)
    return stages


def lineage(stages: dict[str, Stage], name: str) -> list[Stage]:
    """The stage and those it is made from, the eldest first."""
    found = [stages[name]]
    while found[0].parent in stages:
        found.insert(0, stages[found[0].parent])
    return found


def last(stages: dict[str, Stage], name: str, word: str) -> Step:
    """The instruction that counts in the image of a stage."""
    return [step for stage in lineage(stages, name) for step in stage.all(word)][-1]


def _steps(text: str) -> Iterator[Step]:
    begun: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        begun.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            word, _, rest = " ".join(part.strip() for part in begun).partition(" ")
            yield Step(number - len(begun) + 1, word, rest.strip())
            begun = []
    if begun:
        raise ValueError("the last line goes on")


def _filled(text: str, values: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda m: values[m[1] or m[2]], text)
