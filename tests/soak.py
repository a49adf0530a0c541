"""`make soak`: kills of the appliance and of its broker under load, again and again.

    python -m tests.soak --minutes 5 [--seed 42]

Senders of express, recoverable and transactional messages never stop; after each round the topics
are read whole and held against what was sent since the start. The seed repeats a schedule; what a
kill hits is up to the machine.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import QUEUES, Appliance
from tests.outside.fleet import Fleet
from tests.outside.ledger import ORDERS, PLAIN, Load, faults, found
from tests.outside.rawmsmq import Message
from tests.outside.rawsender import RawSender
from tests.outside.records import create_topics, read_topic

SENDERS = ("e", "r", "t", "t", "ert", "rt")  # the kinds that each of them sends in turn
MESSAGES = 400  # of each sender in a round
PATIENCE_S = 120.0
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Event:
    """What happens when so many more messages are on the wire, or acked."""

    after: int
    at_an_ack: bool
    action: str


@dataclass(frozen=True, slots=True)
class Round:
    messages: int
    events: Sequence[Event]
    faults: Sequence[str]
    seconds: float

    def __str__(self) -> str:
        what = ", ".join(event.action for event in self.events)
        verdict = f"{len(self.faults)} FAULTS" if self.faults else "ok"
        return f"{self.messages} messages, {what}: {verdict}, {self.seconds:.1f} s"


def schedule(rng: random.Random) -> list[Event]:
    return [
        Event(rng.randrange(1, 600), rng.random() < 0.5, rng.choice(sorted(ACTIONS)))
        for _ in range(rng.randrange(2, 5))
    ]


class Soak:
    def __init__(self, broker: EmbeddedKafka, appliance: Appliance, rng: random.Random) -> None:
        self.broker = broker
        self.appliance = appliance
        self.rng = rng
        self.fleet = Fleet(lambda: appliance.binary_address)
        self.loads: list[Load] = []
        for kinds in SENDERS:
            source = UUID(bytes=rng.randbytes(16))
            self.loads.append(Load(source, rng, kinds))
            self.fleet.add(RawSender(("", 0), source))

    def round(self) -> Round:
        started = time.monotonic()
        events = schedule(self.rng)
        for sender, load in zip(self.fleet.senders, self.loads, strict=True):
            sender.unsent.extend(load.make(MESSAGES))
        wrong: list[str] = []
        try:
            for event in events:
                self.fleet.advance(event.after, acked=event.at_an_ack)
                ACTIONS[event.action](self)
            self.fleet.drain(PATIENCE_S)
        except AssertionError as error:  # it stands still, or the appliance does not start
            wrong.append(f"stuck: {error}")
            self.broker.resume()
        try:
            wrong += self.judge(self.fleet.kept)
        except AssertionError as error:
            wrong.append(f"unreadable: {error}")
        seconds = time.monotonic() - started
        return Round(MESSAGES * len(SENDERS), events, wrong, seconds)

    def judge(self, kept: Sequence[Message]) -> list[str]:
        """Over all that was sent since the start, so that late duplicates are seen too."""
        wrong: list[str] = []
        for name in (PLAIN, ORDERS):
            records = read_topic(self.appliance.bootstrap, self.appliance.topic(name))
            for load in self.loads:
                unacked = [message for message in kept if message.source == load.source]
                wrong += faults(load.sent(name, unacked), found(records, load.source))
        return wrong

    def kill_appliance(self) -> None:
        self.appliance.restart(empty_data=True, kill=True)

    def kill_appliance_and_keep_its_data(self) -> None:
        self.appliance.restart(empty_data=False, kill=True)

    def kill_broker(self) -> None:
        self.broker.kill()
        self.fleet.watch(self.rng.uniform(0, 5))
        self.broker.start()

    def kill_both(self) -> None:
        self.broker.kill()
        self.appliance.kill()
        self.broker.start()
        self.appliance.start()

    def freeze_broker(self) -> None:
        self.broker.suspend()
        self.fleet.watch(self.rng.uniform(0, 10))
        self.broker.resume()

    def cut_sessions(self) -> None:
        for sender in self.fleet.senders:
            if sender.open and self.rng.random() < 0.5:
                sender.close()
                sender.open = False


ACTIONS: Mapping[str, Callable[[Soak], None]] = {
    "kill appliance": Soak.kill_appliance,
    "kill appliance (data kept)": Soak.kill_appliance_and_keep_its_data,
    "kill broker": Soak.kill_broker,
    "kill both": Soak.kill_both,
    "freeze broker": Soak.freeze_broker,
    "cut sessions": Soak.cut_sessions,
}


def run(minutes: float, seed: int, folder: Path) -> bool:
    """Rounds until the time is over or one is wrong; tells whether all were right."""
    end = time.monotonic() + minutes * 60
    rounds: list[Round] = []
    with EmbeddedKafka(folder / "kafka") as broker:
        place = folder / "appliance"
        place.mkdir()
        appliance = Appliance(place, broker.bootstrap_servers, "soak")
        create_topics(appliance.bootstrap, [appliance.topic(name) for name in QUEUES])
        appliance.start()
        soak = Soak(broker, appliance, random.Random(seed))
        try:
            while not rounds or (time.monotonic() < end and not rounds[-1].faults):
                rounds.append(soak.round())
                print(f"round {len(rounds)}: {rounds[-1]}", flush=True)
        finally:
            soak.fleet.close()
            appliance.kill()
    return _verdict(rounds, seed, appliance)


def _verdict(rounds: Sequence[Round], seed: int, appliance: Appliance) -> bool:
    wrong = rounds[-1].faults
    for fault in wrong[:SHOWN]:
        print(f"  {fault}")
    if wrong:
        print("\n".join(appliance.lines[-40:]), file=sys.stderr)
    total = sum(one.messages for one in rounds)
    told = f"{len(wrong)} faults" if wrong else "nothing lost, doubled, reordered or altered"
    print(
        f"soak: {'FAILED' if wrong else 'passed'}, {told}; "
        f"{total} messages in {len(rounds)} rounds, seed {seed}"
    )
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    print(f"soak: {options.minutes:g} minutes, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return 0 if run(options.minutes, options.seed, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
