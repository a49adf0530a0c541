"""What strangers send is what it should be, and what is judged afterwards can fail."""

import os
import random
from uuid import UUID

import pytest

from tests.chaos.checker import Kind
from tests.chaos.history import Mode, Op, make_body
from tests.chaos.hostile import MEMORY_MIB, Doomed, Memory, queues
from tests.chaos.reading import is_its_body
from tests.chaos.strangers import (
    ALL_ONES,
    BURST,
    EVIL,
    LAST,
    invented,
    invented_mail,
    poison,
    spoofed_ids,
    spoofed_mail,
    spoofed_streams,
)
from tests.outside.appliance import queue
from tests.outside.rawmsmq import build
from tests.outside.srmp.wire import request

VICTIM = UUID("3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77")


def rng() -> random.Random:
    return random.Random(1801)


def test_a_stream_is_spoofed_in_its_own_queue_and_in_others() -> None:
    made = list(spoofed_streams(VICTIM, "orders", 7 << 32 | 5, 40, rng()))
    assert {message.source for message in made} == {VICTIM}
    worst = made[0]
    assert worst.tx is not None
    assert (worst.destination, worst.tx.sequence_id) == (queue("orders"), ALL_ONES)
    places = {(m.tx.sequence_id, m.tx.number) for m in made if m.tx is not None}
    assert {(ALL_ONES, 1), (7 << 32 | 6, 1), (7 << 32 | 5, 41), (7 << 32 | 5, LAST)} < places
    assert len({message.destination for message in made}) == 4
    assert all(EVIL in build(message) for message in made)


def test_ids_are_those_that_the_victim_will_use() -> None:
    made = list(spoofed_ids(VICTIM, "plain", 100, rng()))
    assert [message.message_id for message in made] == list(range(101, 101 + BURST))
    assert {message.recoverable for message in made} == {True, False}


def test_mail_is_of_the_victims_stream() -> None:
    made = list(spoofed_mail(VICTIM, "orders", f"uid:{VICTIM}\\9", 3, 100))
    steps = [mail.step for mail in made if mail.step is not None]
    assert [(step.stream, step.current) for step in steps] == [
        *((f"uid:{VICTIM}\\9", number) for number in (4, 1003, LAST)),
    ]
    assert all(EVIL in request(mail) for mail in made)
    assert [mail.step for mail in spoofed_mail(VICTIM, "orders", "", 0, 1)] == [None] * 5


def test_no_two_messages_of_a_flood_have_a_name_in_common() -> None:
    one, two = (list(invented(VICTIM, random.Random(seed), 100)) for seed in (1, 2))
    names = [message.admin for message in (*one, *two)]
    assert len(set(names)) == 2 * BURST
    assert {message.source for message in one} == {VICTIM}  # another one would end the session
    assert len({mail.source for mail in invented_mail(rng())}) == 5


def test_poison_holds_half_a_pair() -> None:
    made = poison(rng(), 1000)
    half = "\ud800".encode("utf-16-le", "surrogatepass")
    assert sum(half in build(message) for message in made) >= 4
    assert len({message.source for message in made}) == len(made)
    assert max(len(message.body) for message in made) > 1000


def test_a_body_of_a_stranger_is_not_a_senders() -> None:
    body = make_body(VICTIM.bytes_le, 1, 7, b"filler")
    assert is_its_body(f"{VICTIM}\\7", body)
    assert not is_its_body(f"{VICTIM}\\7", EVIL)


def test_the_queues_of_honest_senders_stay_what_they_are() -> None:
    made = queues()
    assert made["orders"] == {"transactional": True, "allow": ["127.0.0.1/32"]}
    assert "transactional" not in made["plain"]


# -- judging -------------------------------------------------------------------------------------


def op(number: int, *, sent: float = 20.0, done: float | None = 21.0) -> Op:
    return Op(
        identity=f"{VICTIM}\\{number}",
        mode=Mode.RECOVERABLE,
        stream="s",
        topic="t",
        number=number,
        digest=b"",
        sent_at=sent,
        done_at=done,
    )


def doomed(*ops: Op) -> Doomed:
    made = Doomed("t", "p", rng(), lambda: None)
    made.born_at = 10.0
    made.history.ops += ops
    return made


@pytest.mark.parametrize(
    ("one", "landed", "refused", "wanted"),
    [
        (op(1), 1, 0, []),
        (op(1), 0, 1, []),
        (op(1), 0, 0, [Kind.LOST_ACKED]),
        (op(1), 2, 0, [Kind.DUPLICATE]),
        (op(1, sent=9.0), 0, 0, []),  # it went with the topic that was deleted
        (op(1, done=None), 1, 0, [Kind.NEVER_ACKED]),
    ],
)
def test_the_topic_that_was_made_again(
    one: Op, landed: int, refused: int, wanted: list[Kind]
) -> None:
    faults = doomed(one).check([one.identity] * landed, [one.identity] * refused)
    assert [fault.kind for fault in faults] == wanted


def test_memory_over_the_bound_is_told() -> None:
    memory = Memory(os.getpid)
    memory.look()
    assert memory.most_mib > 1
    assert memory.surprises == []
    memory.most_mib = MEMORY_MIB + 1.0
    assert memory.surprises == [
        f"memory of the bridge: at most {MEMORY_MIB + 1} MiB, bound {MEMORY_MIB} MiB"
    ]


def test_a_bridge_that_is_not_there_has_no_memory() -> None:
    memory = Memory(lambda: None)
    memory.look()
    assert memory.most_mib == 0
