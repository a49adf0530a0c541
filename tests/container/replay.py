"""Builds an image without an engine: every COPY and RUN of the Containerfile, in a scratch folder.

    python -m tests.container.replay --target bridge [--scratch DIR]

The folder `root` stands for `/` of the stage that is being built, so what a stage writes about
itself (the first line of a script) is still true in the stage that copies it. ENV values that are
paths get that folder in front. A command that names an absolute path itself, or needs the rights
of root, is not run but listed: nothing here may touch the machine.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.container.recipe import Stage, Step, lineage, read_recipe

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "examples" / "container"
CONTAINERFILE: Final = FOLDER / "Containerfile"
NEEDS_ROOT: Final = ("apt-get", "groupadd", "useradd", "chown")
_ABSOLUTE = re.compile(r"(?:^|[\s=:'\"])/\w")
_OUTSIDE: Final = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
# Faster, and the files are the same: no byte code, what is in the caches, links instead of copies.
_LEAN: Final = {"PIP_NO_CACHE_DIR": "0", "UV_COMPILE_BYTECODE": "0", "UV_LINK_MODE": "hardlink"}
STEP_S: Final = 600.0


class Replay:
    """One image. `skipped` are the commands that were not run."""

    def __init__(self, scratch: Path, *, lean: bool = False) -> None:
        self._instead = _LEAN if lean else {}
        self.root = scratch / "root"
        self._done = scratch / "stages"
        self._stages = read_recipe(CONTAINERFILE)
        self.skipped: list[str] = []

    def build(self, target: str) -> Path:
        """The folder that stands for `/` of the target."""
        for name in self._needed(target):
            self._build(self._stages[name])
        return self.root

    def _needed(self, target: str) -> list[str]:
        """The stages in their order: its ancestors, and those it copies from."""
        names = {target}
        while True:
            more = set(names)
            for name in names:
                more |= {stage.name for stage in lineage(self._stages, name)}
                copies = self._stages[name].all("COPY")
                more |= {flags["from"] for flags, _ in map(Step.flags, copies) if "from" in flags}
            if more == names:
                return [name for name in self._stages if name in names]
            names = more

    def _build(self, stage: Stage) -> None:
        if self.root.exists():  # the stage before is done
            self._done.mkdir(exist_ok=True)
            self.root.rename(self._done / (self.root / ".stage").read_text())
        self.root.mkdir(parents=True)
        if stage.parent in self._stages:
            _link_tree(self._done / stage.parent, self.root)
        (self.root / ".stage").unlink(missing_ok=True)  # a link to the parent's
        (self.root / ".stage").write_text(stage.name)
        self._environment = {k: v for k, v in os.environ.items() if k not in _OUTSIDE}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._folder = self.root
        for above in lineage(self._stages, stage.name):
            for step in above.steps:
                self._do(step, is_own=above is stage)

    def _do(self, step: Step, is_own: bool) -> None:
        match step.word:
            case "ENV":
                for name, value in step.pairs().items():
                    self._environment[name] = self._moved(value)
            case "WORKDIR":
                self._folder = self._inside(step.rest)
                self._folder.mkdir(parents=True, exist_ok=True)
            case "COPY" if is_own:
                self._copy(step)
            case "RUN" if is_own:
                for command in step.rest.split(" && "):
                    self._run(command.strip())

    def _moved(self, value: str) -> str:
        parts = [self._environment["PATH"] if p == "$PATH" else p for p in value.split(":")]
        return ":".join(str(self._inside(p)) if p in value and p[:1] == "/" else p for p in parts)

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else self._folder / path

    def _copy(self, step: Step) -> None:
        flags, (*sources, target) = step.flags()
        base = self._done / flags["from"] if "from" in flags else ROOT
        goal = self._inside(target)
        for source in sources:
            path = base / source.lstrip("/")
            if path.is_dir():
                if base is ROOT:
                    shutil.copytree(path, goal, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    _link_tree(path, goal)
            else:
                goal.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, goal)

    def _run(self, command: str) -> None:
        if command.split()[0] in NEEDS_ROOT or _ABSOLUTE.search(command):
            self.skipped.append(command)
            return
        subprocess.run(
            ["bash", "-euc", command],
            cwd=self._folder,
            env={**self._environment, **self._instead},
            stdin=subprocess.DEVNULL,
            timeout=STEP_S,
            check=True,
        )


def _link_tree(source: Path, goal: Path) -> None:
    """Links instead of copies: nothing changes a file in place."""

    def link(a: str, b: str) -> None:
        os.link(a, b, follow_symlinks=False)

    shutil.copytree(source, goal, symlinks=True, dirs_exist_ok=True, copy_function=link)


def size_of(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if not p.is_dir())


def main() -> int:
    options = argparse.ArgumentParser(description="Build an image without an engine.")
    options.add_argument("--target", default="bridge", choices=list(read_recipe(CONTAINERFILE)))
    options.add_argument("--scratch", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        replay = Replay(given.scratch or Path(temporary))
        root = replay.build(given.target)
        app = root / "opt" / "msmq-bridge"
        shown = subprocess.run([app / "bin/msmq-bridge", "--version"], capture_output=True)
        print(f"{given.target}: {shown.stdout.decode().strip()}, {size_of(root) >> 20} MiB")
        for command in replay.skipped:
            print(f"not run here: {command}")
    return shown.returncode


if __name__ == "__main__":
    sys.exit(main())
