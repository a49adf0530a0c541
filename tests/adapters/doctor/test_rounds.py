"""The doctor's visits from inside: told at once, looked at in the background."""

import asyncio
import threading
from collections.abc import Iterator

from bridge.adapters.doctor.finding import Finding, fail, ok
from bridge.adapters.doctor.rounds import Rounds
from bridge.adapters.doctor.visit import Check, Visit
from bridge.config import Config
from tests.support.waiting import until

READY = {"ready": True, "reasons": []}


def test_nobody_waits_for_the_doctor() -> None:
    let_go, visits = threading.Event(), []

    def slow(visit: Visit) -> Iterator[Finding]:
        visits.append(visit.config.topic_prefix)
        assert let_go.wait(30)
        yield fail("it is ill", "a", mend="mend it")

    async def run() -> None:
        checks = [Check(id="config", run=lambda _: [ok("not asked")]), Check(id="slow", run=slow)]
        rounds = Rounds(Config(topic_prefix="mine"), lambda: READY, checks)
        first = rounds.report()
        assert (first["at"], first["looking"], first["findings"]) == (None, True, [])
        rounds.report()  # no second visit beside the first
        let_go.set()
        await until(lambda: rounds.report()["at"])
        told = rounds.report()
        assert (told["ok"], told["looking"]) == (False, False)
        assert told["counts"] == {"ok": 1, "warn": 0, "fail": 1, "skip": 0}
        assert [one["id"] for one in told["findings"]] == ["appliance", "slow"]
        assert told["findings"][1]["mend"] == "mend it"
        rounds.stop()

    asyncio.run(run())
    assert visits == ["mine"]


def test_old_findings_are_looked_at_again() -> None:
    status = {"ready": False, "reasons": ["Kafka is away"]}

    async def run() -> None:
        rounds = Rounds(Config(), lambda: status, [], fresh_s=0)
        rounds.report()
        await until(lambda: rounds.report()["findings"])
        (found,) = rounds.report()["findings"]
        assert (found["result"], "Kafka is away" in found["found"]) == ("warn", True)
        status.update(READY)
        await until(lambda: rounds.report()["ok"] and rounds.report()["counts"]["ok"] == 1)
        rounds.stop()

    asyncio.run(run())
