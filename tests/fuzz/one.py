"""One target under atheris: `python -m tests.fuzz.one NAME CORPUS [libFuzzer flags]`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["bridge"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    name, *rest = sys.argv[1:]
    atheris.Setup([sys.argv[0], *rest], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
