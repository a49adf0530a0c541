"""`make bench`: what the bridge moves, beside a raw transactional producer, in one run.

    python -m tests.bench [--only PATTERN] [--quick] [--json FILE] [--chart FILE] [--set KEY=VALUE]

Everything runs on one broker, one thing at a time. Machines are noisy: compare within one run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.bench.chart import draw
from tests.bench.neighbours import Neighbours
from tests.bench.report import document, show
from tests.bench.runner import Runner
from tests.bench.scenarios import NAMES, chosen
from tests.bench.subject import parse_settings


def main() -> int:
    given = _arguments()
    wanted = chosen(given.only)
    if not wanted:
        print(f"nothing is called *{given.only}*; there are:", *NAMES, sep="\n  ", file=sys.stderr)
        return 2
    settings = parse_settings(given.set)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="msmq-bench-") as name,
        EmbeddedKafka(Path(name) / "kafka") as kafka,
    ):
        neighbours = Neighbours()
        runner = Runner(Path(name), kafka.bootstrap_servers, settings, quick=given.quick)
        try:
            results = runner.run(wanted)
            others = neighbours.cores()
        finally:
            runner.stop()
    seconds = time.monotonic() - started
    told = document(results, quick=given.quick, settings=settings, seconds=seconds, others=others)
    show(told)
    for file, text in ((given.json, json.dumps(told, indent=2) + "\n"), (given.chart, draw(told))):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"written: {file}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="part of a name; * and ?")
    parser.add_argument("--quick", action="store_true", help="an eighth of it: to try things")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="an SVG of them")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of bridge.yaml, its value as JSON: shards=4",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
