"""`make soak`: faults by a seed, a verdict at the end.

    python -m tests.chaos --minutes 20 [--seed 42] [--only srmp] [--plan] [--bug swap]

The seed repeats the schedule of faults and the content of the messages; which instruction a fault
hits is up to the machine.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.bugs import BUGS
from tests.chaos.fleet import KINDS
from tests.chaos.handover import HANDOVER, HANDOVER_KINDS, LEASE_S, handovers
from tests.chaos.hostile import BROKER
from tests.chaos.posters import HTTP_KINDS
from tests.chaos.read_bugs import READ_BUGS
from tests.chaos.run import RATE, SENDERS, Settings, print_plan, run, tell
from tests.chaos.schedule import BINARY, HOSTILE, HTTP, RETAINED, Step, steps
from tests.chaos.senders import BINARY_KINDS, RETAINED_KINDS

PLANNED = 60  # steps that --plan prints
RETAINED_RATE = 50.0  # about what its readers take: each look is at all that is left
_KINDS = {
    BINARY: BINARY_KINDS,
    HTTP: HTTP_KINDS,
    RETAINED: RETAINED_KINDS,
    HANDOVER: HANDOVER_KINDS,
}


def _steps(seed: int, only: str) -> Iterator[Step]:
    return handovers(seed) if only == HANDOVER else steps(seed, only)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--senders", type=int, default=SENDERS)
    parser.add_argument("--rate", type=float, default=None, help="messages a second, of all")
    parser.add_argument(
        "--bug", choices=sorted(BUGS | READ_BUGS), default="", help="plant it in the bridge"
    )
    parser.add_argument(
        "--only",
        choices=(BINARY, HTTP, RETAINED, HANDOVER, HOSTILE),
        default="",
        help="senders of one kind, a leader and its standby, or strangers alone",
    )
    parser.add_argument("--plan", action="store_true", help="print the schedule, do nothing")
    return parser.parse_args()


def main() -> int:
    options = _options()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    if options.plan:
        print_plan(_steps(seed, options.only), PLANNED)
        return 0
    tell(f"chaos: {options.minutes:g} minutes, seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    settings = Settings(
        seed=seed,
        seconds=options.minutes * 60,
        senders=options.senders,
        rate=options.rate or (RETAINED_RATE if options.only == RETAINED else RATE),
        kinds=_KINDS.get(options.only, KINDS),
        bug=options.bug,
        lease_s=LEASE_S if options.only == HANDOVER else 0,
        is_hostile=options.only in ("", HOSTILE),
    )
    with EmbeddedKafka(folder / "kafka", settings=BROKER) as broker:
        verdict = asyncio.run(run(broker, folder, _steps(seed, options.only), settings))
    if verdict.passed:
        shutil.rmtree(folder)
        return 0
    tell(f"logs and the broker's data are kept in {folder}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
