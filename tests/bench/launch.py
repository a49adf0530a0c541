"""`msmq-bridge` with two more signals, so that the product itself needs no hooks.

    python -m tests.bench.launch samples.json serve --config bridge.yaml

SIGUSR1 collects garbage, SIGUSR2 starts the sampler and, the second time, writes what it saw.
"""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

from bridge.cli.app import main
from tests.bench.sampler import Sampler


def launch(out: Path, arguments: list[str]) -> int:
    signal.signal(signal.SIGUSR1, lambda *_: gc.collect())
    signal.signal(signal.SIGUSR2, Sampler(out).toggle)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(launch(Path(sys.argv[1]), sys.argv[2:]))
