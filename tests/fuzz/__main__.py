"""`make fuzz MINUTES=5`: every target, guided by coverage (atheris), the time shared equally.

    python -m tests.fuzz --minutes 5 [--only packets] [--keep]

New inputs that reach new code stay in a scratch folder; `--keep` copies the smallest of them to
tests/fuzz/corpus. A crash prints the input that does it and ends with 1.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.targets import CORPUS, TARGETS, seeds

KEPT = 20  # of each target
LONGEST = 2048


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only", choices=sorted(TARGETS))
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    chosen = [given.only] if given.only else list(TARGETS)
    seconds = max(1, int(60 * given.minutes / len(chosen)))
    failed = [name for name in chosen if not fuzz(name, seconds, keep=given.keep)]
    print(f"{len(chosen)} targets, {seconds} s each: {', '.join(failed) or 'no fault'}")
    return 1 if failed else 0


def fuzz(name: str, seconds: int, *, keep: bool) -> bool:
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    for number, seed in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(seed)
    command = [sys.executable, "-m", "tests.fuzz.one", name, str(folder)]
    command += [f"-max_total_time={seconds}", "-max_len=65536", "-rss_limit_mb=1024", "-timeout=10"]
    command += [f"-artifact_prefix={folder}/crash-", "-verbosity=0", "-print_final_stats=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    print(f"{name}: {runs[0].split(':')[-1].strip() if runs else '?'} runs in {folder}")
    if done.returncode:
        print(done.stderr[-4000:])
    elif keep:
        _keep(name, folder)
    return done.returncode == 0


def _keep(name: str, folder: Path) -> None:
    """Short ones are the ones a person can read."""
    target = CORPUS / name
    target.mkdir(parents=True, exist_ok=True)
    found = sorted(
        (f for f in folder.iterdir() if not f.name.startswith(("seed-", "crash-"))),
        key=lambda f: f.stat().st_size,
    )
    for file in [f for f in found if f.stat().st_size <= LONGEST][-KEPT:]:
        shutil.copy(file, target / file.name[:16])


if __name__ == "__main__":
    sys.exit(main())
