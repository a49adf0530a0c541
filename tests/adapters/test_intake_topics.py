"""Messages that need a topic nobody has looked at, and bodies that stay outside Kafka.

They wait, and all behind them in their shard waits too; verdicts come after the commit, and a
record never before the body that it points to. Design D1, D2, D3; DM-36
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters import intake as module
from bridge.adapters.intake import Intake, ShardPump
from bridge.core.admission import Policy
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits
from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath, Topic
from bridge.core.ports import Claim
from bridge.core.shard import Shard
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import Guid
from tests.adapters.test_intake import SOON, World, of_shard, until
from tests.core.messages import LOCAL, OTHER, plain, step
from tests.support.waiting import until as poll

LARGE = bytes(20_000)
MAPPINGS = Mappings(
    queues=(
        QueueMapping(
            queue=QueuePath("private$\\orders"), topic=Topic("o-{label}"), transactional=True
        ),
        QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("p"), oversize="claim-check"),
    )
)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", (0.0,))


class Topics(World):
    """Labels name topics; who looks at them, and the store for bodies, can be held or fail."""

    def __init__(self, plan: Sequence[str] = (), shards: int = 1) -> None:
        super().__init__(plan, shards)
        self.catalogue = self.new_catalogue()
        self.pumps = [
            ShardPump(
                Shard(self.catalogue, Policy()),
                sink,
                self.telemetry,
                prepare=self.prepare,
                store_claims=self.store,
            )
            for sink in self.sinks
        ]
        self.pump = self.pumps[0]
        self.intake = Intake(self.pumps, lambda _, jammed: self.jams.append(jammed))
        self.asked: list[set[str]] = []
        self.looking = asyncio.Event()
        self.answer = asyncio.Event()
        self.answer.set()
        self.away = 0  # so many questions fail
        self.refused: set[str] = set()
        self.at_bound: set[str] = set()  # peers
        self.stored: list[Claim] = []
        self.store_away = 0

    def new_catalogue(self) -> Catalogue:
        return Catalogue.of(LOCAL, MAPPINGS, {"p": TopicLimits(4, 10_000)}, "_own.")

    async def prepare(self, topics: set[str], peer: str) -> set[str]:
        self.asked.append(set(topics))
        self.looking.set()
        await asyncio.sleep(0)
        await self.answer.wait()
        if self.away:
            self.away -= 1
            raise SinkUnavailable("Kafka: preparing topics: away")
        denied = topics if peer in self.at_bound else set[str]()
        for topic in topics - denied:
            self.catalogue.learn(topic, TopicLimits(UNKNOWN if topic in self.refused else 4))
        return denied

    async def store(self, claims: Sequence[Claim]) -> None:
        await asyncio.sleep(0)
        if self.store_away:
            self.store_away -= 1
            raise SinkUnavailable("claim check: away")
        self.stored += claims

    async def hold(self) -> None:
        """From now on questions about topics get no answer."""
        self.answer.clear()
        self.looking.clear()


def play(
    scene: Callable[[Topics], Awaitable[None]], world: Callable[[], Topics] = Topics
) -> Topics:
    async def run() -> Topics:
        async with asyncio.timeout(30):
            made = world()
            await made.start()
            try:
                await scene(made)
            finally:
                await made.stop()
            return made

    return asyncio.run(run())


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- waiting --------------------------------------------------------------------------------


def test_an_unknown_topic_is_looked_at_first() -> None:
    async def scene(world: Topics) -> None:
        await world.hold()
        world.submit(step(1, label="a"))
        await until(world.looking)
        await turns()
        assert (world.answers, world.values, world.intake.pending) == ([], [], 1)
        world.answer.set()
        await world.drain()
        world.submit(step(2, label="a"))
        await world.drain()

    world = play(scene)
    assert world.asked == [{"o-a"}]  # once
    assert world.outcomes == [["accepted"], ["accepted"]]
    assert [r.topic for r in world.log.records] == ["o-a", "o-a"]


def test_all_behind_it_waits_and_stays_in_order() -> None:  # DM-36
    async def scene(world: Topics) -> None:
        await world.hold()
        world.submit(plain(1))  # before it: goes on
        world.submit(step(1, label="a"), plain(2))
        world.submit(step(2, label="b"))
        world.submit(plain(3))
        await until(world.looking)
        await turns()
        assert world.values == [b"plain 1"]
        assert world.outcomes == [["accepted"]]
        assert world.asked == [{"o-a"}]
        world.submit(plain(4))  # comes while somebody looks
        world.answer.set()
        await world.drain()

    world = play(scene)
    assert world.values == [b"plain 1", b"step 1", b"plain 2", b"step 2", b"plain 3", b"plain 4"]
    assert world.asked == [{"o-a"}, {"o-b"}]
    assert world.outcomes == [["accepted"], ["accepted"] * 2, *[["accepted"]] * 3]
    assert world.intake.pending == 0


def test_one_question_for_all_topics_of_a_submission() -> None:
    async def scene(world: Topics) -> None:
        world.submit(step(1, label="a"), step(2, label="b"), step(3, label="a"), step(4, label=""))
        await world.drain()

    world = play(scene)
    assert world.asked == [{"o-a", "o-b", "o-no-label"}]
    assert [r.topic for r in world.log.records] == ["o-a", "o-b", "o-a", "o-no-label"]


def test_other_shards_go_on() -> None:
    async def scene(world: Topics) -> None:
        first, second = of_shard(0, 2), of_shard(1, 2)
        await world.hold()
        world.submit(step(1, label="a", source=first))
        await until(world.looking)
        for ordinal in (1, 2, 3):
            world.submit(plain(ordinal, source=second))
        world.submit(plain(9, source=first))
        await asyncio.wait_for(world.pumps[1].drain(), SOON)
        assert world.outcomes == [["accepted"]] * 3
        assert world.logs[0].records == []
        world.answer.set()
        await world.drain()

    world = play(scene, lambda: Topics(shards=2))
    assert world.values == [b"step 1", b"plain 9", b"plain 1", b"plain 2", b"plain 3"]


def test_drain_waits_for_what_waits_for_a_topic() -> None:
    async def scene(world: Topics) -> None:
        await world.hold()
        world.sink.gate.clear()
        world.submit(plain(1))
        world.submit(step(1, label="a"))
        await until(world.looking)
        drained = asyncio.create_task(world.pump.drain())
        world.sink.gate.set()
        await turns()
        assert world.outcomes == [["accepted"]]  # the first one is done
        assert not drained.done()
        world.answer.set()
        await asyncio.wait_for(drained, SOON)
        assert world.outcomes == [["accepted"], ["accepted"]]

    play(scene)


def test_what_waits_jams_the_sessions_like_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 10)

    async def scene(world: Topics) -> None:
        await world.hold()
        for number in range(1, 12):
            world.submit(step(number, label="a"))
        assert world.intake.jammed
        world.answer.set()
        await world.drain()
        assert world.jams == [True, False]

    play(scene)


def test_a_peer_at_its_bound_is_refused_and_others_are_not() -> None:
    """The same topic: what one peer may not make, another may."""

    async def scene(world: Topics) -> None:
        world.at_bound = {"192.0.2.66"}
        world.submit(step(1, label="a", peer="192.0.2.66"))
        await world.drain()
        world.submit(step(1, label="a", source=OTHER, peer="10.1.2.3"))
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["rejected"], ["accepted"]]
    assert [r.topic for r in world.log.records] == ["o-a"]
    assert world.asked == [{"o-a"}, {"o-a"}]


def test_a_topic_that_cannot_be_made_is_a_verdict() -> None:
    async def scene(world: Topics) -> None:
        world.refused = {"o-b"}
        world.submit(step(1, label="a"), step(2, label="b"), step(3, label="a"))
        world.submit(step(4, label="b"))
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted", "rejected", "accepted"], ["rejected"]]
    assert world.asked == [{"o-a", "o-b"}]  # nobody asks for ever
    assert world.values == [b"step 1", b"step 3"]
    assert len(world.log.rejects) == 2


# -- failures -------------------------------------------------------------------------------


def test_kafka_away_while_somebody_looks_is_asked_again() -> None:  # design D3
    async def scene(world: Topics) -> None:
        world.away = 3
        world.submit(step(1, label="a"))
        world.submit(plain(1))
        await world.drain()

    world = play(scene)
    assert world.asked == [{"o-a"}] * 4
    assert world.outcomes == [["accepted"], ["accepted"]]
    assert world.values == [b"step 1", b"plain 1"]


def test_the_pump_fails_while_somebody_looks() -> None:
    """What was under way comes before what waited for its topic."""

    async def scene(world: Topics) -> None:
        await world.hold()
        world.sink.gate.clear()
        world.submit(plain(1))
        await until(world.sink.publishing)
        world.submit(plain(2))
        world.submit(step(1, label="a"))
        world.submit(plain(3))
        await until(world.looking)
        world.sink.gate.set()
        await poll(lambda: world.sink.opened >= 2)
        await turns()
        world.answer.set()
        await world.drain()

    world = play(scene, lambda: Topics(["before", "closed"]))
    assert world.values == [b"plain 1", b"plain 2", b"step 1", b"plain 3"]
    assert world.outcomes == [["accepted"]] * 4


def test_the_answer_comes_while_the_pump_is_closed() -> None:
    async def scene(world: Topics) -> None:
        await world.hold()
        world.submit(step(1, label="a"))
        await until(world.looking)
        world.log.up.clear()
        world.pump.put("identity", b"1")  # something that fails
        await poll(lambda: not world.pump.is_open)
        world.answer.set()
        await turns()
        assert world.answers == []  # nothing is decided without Kafka
        world.log.up.set()
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"]]
    assert world.values == [b"step 1"]


@pytest.mark.filterwarnings("error")
def test_closing_while_somebody_looks_ends_at_once() -> None:
    """Nothing happened: the sender has the message still."""

    async def run() -> Topics:
        world = Topics()
        await world.start()
        await world.hold()
        world.submit(step(1, label="a"))
        await until(world.looking)
        async with asyncio.timeout(SOON):
            await world.stop()
        world.answer.set()
        await turns()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return world

    world = asyncio.run(run())
    gc.collect()
    assert (world.answers, world.values) == ([], [])


def test_a_bug_while_looking_ends_the_pump_loudly() -> None:  # style 5: crash the task
    """Else its messages would wait for ever, and nobody would know."""

    async def run() -> None:
        world = Topics()
        await world.start()

        async def wrong(_topics: set[str], _peer: str) -> set[str]:
            raise RuntimeError("a bug")

        world.pump._prepare = wrong
        world.submit(step(1, label="a"))
        done, _ = await asyncio.wait(world._tasks, timeout=2)
        try:
            assert done, "the pump does not know"
            with pytest.raises(RuntimeError, match="a bug"):
                done.pop().result()
        finally:
            with suppress(RuntimeError):
                await world.stop()

    asyncio.run(run())


# -- new mappings ---------------------------------------------------------------------------


def test_new_mappings_while_somebody_looks() -> None:  # hot reload
    async def scene(world: Topics) -> None:
        await world.hold()
        world.submit(step(1, label="a"))
        await until(world.looking)
        world.catalogue = world.new_catalogue()
        world.pump.shard.use(world.catalogue)
        world.answer.set()  # learned by the new one
        await world.drain()
        world.catalogue = world.new_catalogue()
        world.pump.shard.use(world.catalogue)
        world.submit(step(2, label="a"))  # has to be looked at again
        await world.drain()

    world = play(scene)
    assert world.asked == [{"o-a"}] * 2
    assert world.values == [b"step 1", b"step 2"]


# -- bodies that stay outside ---------------------------------------------------------------


def test_a_body_is_stored_before_its_record_is_published() -> None:
    async def scene(world: Topics) -> None:
        world.sink.gate.clear()
        world.submit(plain(1, body=LARGE), plain(2))
        await until(world.sink.publishing)
        assert [claim.data for claim in world.stored] == [LARGE]
        assert (world.values, world.answers) == ([], [])
        world.sink.gate.set()
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted", "accepted"]]
    claim = world.stored[0]
    assert world.log.records[0].headers["msmq.claim.path"].decode() == claim.name
    assert world.values[1] == b"plain 2"


@pytest.mark.parametrize("times", [1, 4])
def test_a_store_that_is_away_holds_the_acks(times: int) -> None:  # design D1
    async def scene(world: Topics) -> None:
        world.store_away = times
        world.submit(plain(1))
        await world.drain()
        world.submit(plain(2, body=LARGE), plain(3))
        world.submit(plain(4))
        while world.store_away:
            assert world.values == [b"plain 1"]
            assert world.outcomes == [["accepted"]]
            await asyncio.sleep(0)
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"], ["accepted"] * 2, ["accepted"]]
    assert [v for v in world.values if not v.startswith(b"{")] == [
        b"plain 1",
        b"plain 3",
        b"plain 4",
    ]
    assert len(world.values) == 4
    assert len(world.stored) == 1  # decided again, stored again, told once


@pytest.mark.parametrize("failure", ["before", "after"])
def test_a_unit_with_a_body_that_fails_is_done_once(failure: str) -> None:  # DM-34
    async def scene(world: Topics) -> None:
        world.submit(plain(1, body=LARGE))
        await world.drain()

    world = play(scene, lambda: Topics([failure]))
    assert world.outcomes == [["accepted"]]
    assert len(world.values) == 1
    assert {claim.name for claim in world.stored} == {world.stored[0].name}


# -- any schedule ---------------------------------------------------------------------------

plans = st.lists(st.sampled_from(("", "before", "after", "closed")), max_size=8)
# Of each submission: labels of its messages, and how often the pump may run before the next one.
submissions = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd-"), min_size=1, max_size=4), st.integers(0, 8)),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(plans, submissions, st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_exactly_once_in_order_whatever_happens(
    plan: list[str],
    sizes: list[tuple[list[str], int]],
    away: int,
    store_away: int,
    two: bool,
) -> None:  # DM-34, DM-36; `-` is a plain message with a large body
    sources = [of_shard(n, 1 + two) for n in range(1 + two)]
    sent: dict[Guid, list[bytes]] = {source: [] for source in sources}
    steps: Counter[Guid] = Counter()

    async def scene(world: Topics) -> None:
        world.away, world.store_away = away, store_away
        for turn, (labels, pauses) in enumerate(sizes):
            source = sources[turn % len(sources)]
            several = []
            for label in labels:
                number = len(sent[source]) + 1
                sent[source].append(b"%d" % number)
                if label == "-":
                    several.append(plain(number, source=source, body=LARGE))
                else:
                    steps[source] += 1
                    several.append(step(steps[source], source=source, label=label, ordinal=number))
            world.submit(*several)
            await turns(pauses)
        await world.drain()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RETRY_S", (0.0,))
        world = play(scene, lambda: Topics(plan, 1 + two))
    assert all(outcome == "accepted" for told in world.outcomes for outcome in told)
    assert len(world.answers) == len(sizes)
    for source, log in zip(sources, world.logs, strict=True):
        ids = [record.headers["msmq.id"].rpartition(b"\\")[2] for record in log.records]
        assert ids == sent[source]
    assert world.intake.pending == 0
