"""Transactions that nobody ends, and the brokers' clock: both are seen in the offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bridge.adapters.doctor.cluster import Place, TopicState
from bridge.adapters.doctor.finding import Finding, fail, ok, skip, warn
from bridge.adapters.doctor.topics import all_names, own_names, places
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.intake import HEARTBEAT_S
from bridge.adapters.kafka.reader import STUCK_AFTER_S

LOOK_AGAIN_S: Final = 2.0  # far longer than a commit takes
SKEW_S: Final = 2.0
MOST_LISTED: Final = 10
STALE_S: Final = 6 * HEARTBEAT_S


def hanging(visit: Visit) -> Iterator[Finding]:
    """Where the committed end stays behind the end, a transaction is open."""
    states = visit.kafka.topics(all_names(visit))
    every = places(states)
    silent, first = _open(visit, every)
    stuck: dict[Place, int] = {}
    if first:
        time.sleep(LOOK_AGAIN_S)
        _, second = _open(visit, list(first))
        stuck = {place: offset for place, offset in second.items() if first[place] == offset}
    since = int((time.time() - STUCK_AFTER_S) * 1000)
    young = visit.kafka.first_since(stuck, since) if stuck else {}
    for place, offset in sorted(stuck.items()):
        yield _stuck(visit, place, offset, is_young=0 <= young.get(place, -1) <= offset)
    yield from _not_looked_at(states, silent)
    looked = len(every) - len(silent)
    if looked and not stuck:
        yield ok(f"none in {looked} partitions")


def _not_looked_at(states: Mapping[str, TopicState], silent: list[Place]) -> Iterator[Finding]:
    """No finding about these is not a good one."""
    leaderless = [
        (name, part.number)
        for name, state in states.items()
        for part in state.partitions
        if not part.has_leader
    ]
    if leaderless:
        yield warn(
            f"not looked at, no leader: {_listed(leaderless)}",
            mend="bring the missing brokers back, then look again",
        )
    if silent:
        mend = "see whether it has a leader, then look again"
        yield warn(f"no answer from {_listed(silent)}", mend=mend)
    closed = sorted(name for name, state in states.items() if state.error and not state.is_missing)
    if closed:
        yield warn(
            f"not looked at, {states[closed[0]].error}: {', '.join(closed[:MOST_LISTED])}",
            mend="give the user Describe on them, or see whether the brokers answer",
        )
    elif not any(state.partitions for state in states.values()):
        yield skip("there are no topics to look at yet")


def _listed(found: Sequence[Place]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in found[:MOST_LISTED]]
    more = len(found) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _open(visit: Visit, where: list[Place]) -> tuple[list[Place], dict[Place, int]]:
    """Partitions that do not answer; those with an open transaction -> its first offset."""
    committed = visit.kafka.ends(where, committed=True)  # first: it can only move on meanwhile
    ends = visit.kafka.ends(where, committed=False)
    silent = [place for place in where if place not in committed or place not in ends]
    both = committed.keys() & ends.keys()
    return silent, {place: committed[place] for place in both if committed[place] < ends[place]}


def _stuck(visit: Visit, place: Place, offset: int, *, is_young: bool) -> Finding:
    topic, partition = place
    about = f"{topic}-{partition}"
    tool = f"kafka-transactions.sh --bootstrap-server {visit.kafka.bootstrap}"
    where = f"--topic {topic} --partition {partition}"
    look = f"{tool} describe-producers {where}"
    if is_young:
        return warn(
            f"a transaction is open since offset {offset} and does not move",
            about,
            mend=f"look again in {STUCK_AFTER_S:.0f} s; the command tells whose it is",
            commands=[look],
        )
    return fail(
        f"a transaction hangs since offset {offset}: nobody sees what comes after it",
        about,
        mend="the first command tells the producer id; if the second one says CompleteCommit for "
        "it, do not abort: what it holds was acknowledged, see 'Hanging transactions' in the "
        "README; else the third one ends it",
        commands=[
            look,
            f"{tool} {_whose(visit, topic, partition)}",
            f"{tool} abort {where} --start-offset {offset}",
        ],
    )


def _whose(visit: Visit, topic: str, partition: int) -> str:
    """In a topic of ours the partition is the shard; any shard may write to a mapped one."""
    if topic in own_names(visit):
        return f"describe --transactional-id {visit.config.topic_prefix}.shard-{partition}"
    return "list"


def clock(visit: Visit) -> Iterator[Finding]:
    """An idle shard commits too; the marker of a commit carries the broker's time."""
    if visit.status is None:
        yield skip("only the commits of a running appliance show the brokers' time")
        return
    name = f"{visit.config.topic_prefix}.state"
    newest = visit.kafka.newest_ms(places(visit.kafka.topics([name])))
    if newest < 0:
        yield skip(f"nothing in {name} yet")
        return
    ahead = newest / 1000 - time.time()
    mend = "let NTP set the clocks of this machine and of the brokers"
    if ahead > SKEW_S:
        yield warn(f"the brokers' clock is {ahead:.1f} s ahead of this machine's", mend=mend)
    elif ahead < -STALE_S:
        yield warn(
            f"the last commit is {-ahead:.0f} s old, although an idle shard commits every "
            f"{HEARTBEAT_S:.0f} s",
            mend=f"see whether the appliance is stuck, else {mend}",
        )
    else:
        yield ok(f"the last commit is {max(-ahead, 0):.1f} s old")
