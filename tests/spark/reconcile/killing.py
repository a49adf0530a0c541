"""`reconcile --follow` killed at random, again and again, while messages come; at the end every
verdict is what the oracle says: no record counted twice, none left out.

    make long, or: python -m tests.spark.reconcile.killing --seed 3 --kills 6
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.cli.program import command
from tests.spark.backfill.killing import end, kill_when
from tests.spark.reconcile.planted import Scene
from tests.spark.reconcile.world import ORDERS, PLAIN, SENDERS, Copy, Seen, World
from tests.support.waiting import eventually

SIZE = 40  # messages that come at a time
PATIENCE_S = 900.0
FAULTS: dict[int, dict[str, Any]] = {
    3: {"copies": ()},
    6: {"copies": (Copy(), Copy(behind=3))},
    11: {"copies": (Copy(behind=4),)},
    15: {"copies": (Copy(altered="body"),)},
    18: {"is_sent": False, "audit": ()},
    21: {"audit": ("rejected",), "copies": ()},
    24: {"audit": ("accepted", "duplicate")},
}
VICTIMS = ("driver", "jvm")
MOMENTS = ("staged", "written", "settled")


def batch(number: int, start: int) -> list[Seen]:
    """Senders hold what came first; what comes later is in the audit only."""
    made = []
    for n in range(1, SIZE + 1):
        queue, sender = (ORDERS, PLAIN)[n % 5 == 0], SENDERS[n % 2]
        usual: dict[str, Any] = {"is_sent": not number, "start": start}
        made.append(Seen(number * SIZE + n, queue, sender, **{**usual, **FAULTS.get(n, {})}))
    return made


class Following:
    """The command as a user runs it, its state as a run that is killed leaves it."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, seed: int) -> None:
        self.chance, self._start = random.Random(seed), int(time.time() - 7200) * 1000
        self.messages = batch(0, self._start)
        self._scene = Scene(folder, kafka, World(self.messages), seed)
        self._scene.fill()
        self.state, self._out = folder / "state", folder / "out"

    def more(self) -> None:
        new = batch(len(self.messages) // SIZE, self._start)
        self.messages += new
        self._scene.add(World(new))

    def start(self) -> subprocess.Popen[str]:
        line = command("reconcile", "--config", str(self._scene.config), "--follow")
        line += ["--every", "1s", "--source", str(self._scene.export), "--in-flight", "1s"]
        line += ["--state", str(self.state), "--out", str(self._out)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, **pipes)

    def moment(self, name: str) -> Callable[[], bool]:
        begun = self._next()
        return {
            "staged": lambda: any((self.state / "new").glob("*/_SUCCESS")),
            "written": lambda: (self.state / str(self._next()) / "rows").exists(),
            "settled": lambda: self._next() > begun and self._is_open(),
        }[name]

    def _next(self) -> int:
        with suppress(OSError):
            return int(json.loads((self.state / "state.json").read_text())["next"])
        return 0

    def _is_open(self) -> bool:
        """A batch that the state has may be one that the checkpoint has not."""
        planned, done = (
            {path.name for path in (self.state / "checkpoint" / name).glob("[0-9]*")}
            for name in ("offsets", "commits")
        )
        return bool(planned - done)

    def finish(self, run: subprocess.Popen[str]) -> None:
        """Once it has seen everything, as Ctrl-C ends it: some are missing."""
        wanted = len(self._whole().verdicts())

        def is_done() -> bool:
            assert run.poll() is None, run.communicate()
            with suppress(OSError, ValueError):
                told = json.loads((self._out / "report.json").read_text())
                return bool(told["messages"] == wanted and not self._is_open())
            return False

        eventually(is_done, PATIENCE_S)
        run.send_signal(signal.SIGINT)
        output, _ = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 2, (run.returncode, output[-3000:])

    def check(self) -> None:
        columns = ["message_id", "queue", "verdict"]
        found = ds.dataset(self._out / "verdicts").to_table(columns).to_pylist()
        got = {(row["message_id"], row["queue"]): row["verdict"] for row in found}
        assert len(got) == len(found)
        assert got == self._whole().verdicts()

    def _whole(self) -> World:
        return World(self.messages, window_ms=1000)


def rounds(scene: Following, kills: list[tuple[str, str]]) -> int:
    """How many hit."""
    hit, run = 0, None
    try:
        for kind, moment in kills:
            run = scene.start()
            hit += kill_when(run, kind, scene.moment(moment))
            print(f"killed: {kind}, {moment}", flush=True)
            scene.more()
        run = scene.start()
        scene.finish(run)
        return hit
    finally:
        if run is not None:
            end(run)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}: {asked.kills} kills", flush=True)
    with tempfile.TemporaryDirectory() as name, EmbeddedKafka(Path(name) / "kafka") as kafka:
        scene = Following(Path(name) / "scene", kafka, seed)
        kills = [
            (scene.chance.choice(VICTIMS), MOMENTS[(n + seed) % len(MOMENTS)])
            for n in range(asked.kills)
        ]
        hit = rounds(scene, kills)
        scene.check()
    print(
        f"{hit} of {len(kills)} hit, {len(scene.messages)} messages: each verdict as it should be"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
