"""What is owed stays within bounds, and an address that floods loses only its own."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.outbox import FRAME, Outbox
from bridge.core.ports import OutboxEntry, Snapshot
from bridge.core.receipts import bare, expires_of
from bridge.core.shard import EXPIRE_S, Shard
from bridge.model.message import ACK_ARRIVAL, FOUR_DAYS, INFINITE, NACK_ARRIVAL
from tests.core.messages import NOW, plain, receipts, shard
from tests.core.units import restarted

STRANGER, VICTIM = "192.0.2.66", "10.1.2.3"


def entry(ordinal: int, address: str = STRANGER, size: int = 1000, **more: Any) -> OutboxEntry:
    known = {"host": "h", "cause": address, "packet": bytes(size - FRAME - 4)}
    return OutboxEntry(ordinal=ordinal, **{**known, **more})


def ordinals(entries: list[OutboxEntry]) -> list[int]:
    return [e.ordinal for e in entries]


def test_at_the_bound_of_an_address_a_destination_with_its_share_gets_no_more() -> None:
    """So a flood to a host that never answers is dropped before anything is written for it."""
    box = Outbox(most_bytes=20_000)  # 10,000 by address
    assert [box.add(entry(n)) for n in range(10)] == [[]] * 10
    assert ordinals(box.add(entry(10))) == [10]
    assert ordinals(box.add(entry(11, size=3000))) == [11]
    assert (box.size, list(box)) == (10_000, list(range(10)))
    box.pop(3)
    assert box.add(entry(12)) == []


def test_at_the_bound_of_an_address_a_destination_that_takes_its_acks_is_served() -> None:
    """In place of the oldest acks to the destination that holds most."""
    box = Outbox(most_bytes=20_000)
    for n in range(8):
        box.add(entry(n, host="n"))
    for n in (8, 9):
        box.add(entry(n, host="x"))
    assert ordinals(box.add(entry(10, host="l"))) == [0]
    assert ordinals(box.add(entry(11, host="l"))) == [1]
    for n in range(12, 200):  # it takes them
        box.pop(n - 1)
        assert box.add(entry(n, host="l")) == []
    assert {8, 9, 199} < set(box)
    assert box.size <= 10_000


def test_a_flood_to_many_hosts_comes_to_rest() -> None:
    """Whatever the order of hosts and sizes: else every message would change the state topic."""
    box = Outbox(most_bytes=400_000)
    numbers = count(1)

    def flood() -> int:
        changes = 0
        for turn in range(5_000):
            one = entry(next(numbers), host=f"host{turn * turn % 97}", size=600 + turn % 7 * 500)
            gone = box.add(one)
            changes += sum(1 for g in gone if g is not one)
        return changes

    flood()
    assert flood() < 100
    assert flood() < 20


def test_an_address_at_the_bound_of_the_shard_serves_its_live_hosts() -> None:
    """Its own dead ones give way, whatever other addresses hold."""
    box = Outbox(most_bytes=20_000)
    for n in range(10):
        box.add(entry(n, "a"))
        box.add(entry(100 + n, "b"))
    assert ordinals(box.add(entry(200, "a"))) == [200]
    assert ordinals(box.add(entry(201, "a", host="l"))) == [0]
    assert 201 in box


def test_a_flood_takes_nothing_from_others() -> None:
    box = Outbox(most_bytes=20_000)
    for n in range(4):  # less than an equal share
        assert box.add(entry(n, VICTIM)) == []
    gone = [g for n in range(1000) for g in box.add(entry(100 + n, f"192.0.2.{n % 3}"))]
    assert {g.address for g in gone}.isdisjoint({VICTIM})
    assert [n for n in box if n < 5] == [0, 1, 2, 3]
    assert box.size <= 20_000


def test_many_addresses_have_equal_shares() -> None:
    box = Outbox(most_bytes=16_000)
    for n in range(8):
        box.add(entry(n, "a"))
    for n in range(8, 15):
        box.add(entry(n, "b"))
    box.add(entry(15, "c"))
    assert ordinals(box.add(entry(16, VICTIM))) == [0]
    assert ordinals(box.add(entry(17, VICTIM))) == [1]  # it still holds more than the average
    assert ordinals(box.add(entry(18, "b"))) == [18]  # more than its share
    for n in range(19, 40):
        box.add(entry(n, VICTIM))
    addresses = [e.address for e in box.values()]
    assert addresses.count(VICTIM) == 4  # a quarter
    assert addresses.count("c") == 1
    assert box.size == 16_000


def test_destinations_of_an_address_are_bounded() -> None:
    box = Outbox(by_address=3)
    for n in range(3):
        assert box.add(entry(n, host=f"host{n}")) == []
    assert ordinals(box.add(entry(3, host="host3"))) == [3]  # the newest is not kept
    assert box.add(entry(4, host="HOST2")) == []
    assert box.add(entry(5, VICTIM, host="host9")) == []
    box.pop(0)
    assert box.add(entry(6, host="host3")) == []


def test_destinations_in_all_are_bounded() -> None:
    box = Outbox(most_destinations=16, by_address=100)
    assert box.add(entry(0, VICTIM, host="its")) == []
    gone = [g for n in range(1, 100) for g in box.add(entry(n, host=f"host{n}"))]
    assert box.destinations <= 16
    assert 0 in box
    assert ordinals(gone) == list(range(16, 100))  # more than its share: the new ones
    gone = [g for n in range(200, 203) for g in box.add(entry(n, VICTIM, host=f"its{n}"))]
    assert ordinals(gone) == [1, 2, 3]  # the oldest of the address that has most
    assert box.destinations == 16


def test_over_half_of_a_bound_is_strain() -> None:
    box = Outbox(most_bytes=20_000)
    for n in range(5):
        box.add(entry(n))
    assert not box.is_strained(STRANGER)
    box.add(entry(5))
    assert box.is_strained(STRANGER)
    assert not box.is_strained(VICTIM)
    for n in range(6, 10):
        box.add(entry(n, VICTIM))
    box.add(entry(11, "other"))
    assert box.is_strained("anybody")  # half of all


def test_the_same_ack_again_is_counted_once() -> None:
    box = Outbox()
    box.add(entry(1))
    box.add(entry(1, size=2000))
    assert (len(box), box.size, box.destinations) == (1, 2000, 1)
    box.replace(entry(1, size=700))
    assert box.size == 700
    box.replace(entry(2))
    assert (list(box), box[1].packet) == ([1], entry(1, size=700).packet)
    assert box.pop(1) is not None
    assert box.pop(1) is None
    assert (len(box), box.size, box.destinations) == (0, 0, 0)


def test_what_is_late_leaves() -> None:
    box = Outbox()
    for n in range(3):
        box.add(entry(n, expires=NOW + n))
    assert ordinals(box.expired(NOW + 1)) == [0]  # strictly later
    assert list(box) == [1, 2]


OPERATIONS = st.lists(
    st.tuples(
        st.integers(0, 30), st.sampled_from("abcd"), st.integers(520, 4000), st.sampled_from("xyz")
    ),
    max_size=80,
)


@given(OPERATIONS)
def test_whatever_comes_the_bounds_hold(operations: list[tuple[int, str, int, str]]) -> None:
    box = Outbox(most_bytes=12_000, most_destinations=6, by_address=2)
    kept: dict[int, OutboxEntry] = {}
    for ordinal, address, size, host in operations:
        if size % 5 == 0:
            box.pop(ordinal)
            kept.pop(ordinal, None)
            continue
        kept[ordinal] = entry(ordinal, address, size, host=host)
        for gone in box.add(kept[ordinal]):
            kept.pop(gone.ordinal, None)
        assert box.size <= 12_000
        assert box.destinations <= 6
        assert {e.ordinal for e in box.values()} == set(kept)
        assert box.size == sum(len(e.packet) + FRAME + 4 for e in kept.values())
    for ordinal in list(box):
        box.pop(ordinal)
    assert (box.size, box.destinations, box._owed, box._sizes) == (0, 0, {}, {})


# -- the time that an ack has ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("reach", "receive", "lasts"),
    [
        (INFINITE, INFINITE, FOUR_DAYS),
        (FOUR_DAYS, 60, FOUR_DAYS),
        (3600, 60, 3600),
        (60, 7200, 7200),
        (60, INFINITE, FOUR_DAYS),
        (1, 1, 600),  # shorter than a peer may take to come back
    ],
)
def test_an_ack_has_the_time_of_its_message(reach: int, receive: int, lasts: int) -> None:
    message = plain(1, time_to_reach_queue=reach, time_to_be_received=receive)
    assert expires_of(message) == message.arrived_ms // 1000 + lasts


# -- in a shard -----------------------------------------------------------------------------

ADMIN = {"admin_queue": "DIRECT=TCP:192.0.2.7\\private$\\admin", "peer": STRANGER}


def refused(ordinal: int, **more: Any) -> Any:
    known = {"destination": "DIRECT=OS:bridge01\\private$\\orders", "ack": NACK_ARRIVAL}
    return plain(ordinal, **{**known, **ADMIN, **more})


def made(**policy: Any) -> Shard:
    return shard(acks=receipts(), **policy)


def small() -> Shard:
    return made(outbox_bytes=100_000)


def test_a_shard_drops_what_is_over_with_tombstones() -> None:
    one = small()
    one.admit([refused(n) for n in range(60)])
    one.admit([refused(n, peer=VICTIM) for n in range(100, 160)])
    written = {key for key in one.take_unit(NOW)[1].state if key.startswith("outbox/")}
    one.admit([refused(n, peer="10.1.2.9") for n in range(200, 230)])
    unit = one.take_unit(NOW)[1]
    assert one.outbox.size <= 100_000
    gone = [e.key for e in unit.dropped]
    assert gone
    assert written.issuperset(gone)
    assert all(unit.state[key] is None for key in gone)
    assert len(unit.rejects) == 30  # the verdicts do not depend on it


def test_an_ack_that_is_dropped_in_its_own_unit_is_not_written_at_all() -> None:
    """Else a flood at a bound fills the state topic with records and their removals."""
    one = small()
    one.admit([refused(n, body=bytes(10_000)) for n in range(200)])
    unit = one.take_unit(NOW)[1]
    kept = {entry.key for entry in one.outbox.values()}
    assert unit.dropped
    assert {entry.key for entry in unit.acks} == kept
    assert {key for key in unit.state if key.startswith("outbox/")} == kept
    assert len(unit.dropped) + len(kept) == 200  # all are counted


def test_an_ack_to_one_destination_too_many_is_not_written_at_all() -> None:
    one = made()
    one.admit([refused(n, admin_queue=f"DIRECT=OS:host{n}\\q") for n in range(2_001)])
    unit = one.take_unit(NOW)[1]
    (gone,) = unit.dropped
    assert gone.key not in unit.state
    assert gone not in unit.acks


def test_above_half_acks_come_without_a_body() -> None:
    one = small()
    one.admit([refused(n, body=bytes(10_000), label="l") for n in range(6)])
    sizes = [len(e.packet) for e in one.outbox.values()]
    assert sizes[:3] == [sizes[0]] * 3
    assert sizes[0] > 10_000
    assert all(size < 1000 for size in sizes[3:])


def test_a_restart_loads_no_more_than_the_bounds() -> None:
    one = made()
    one.admit([refused(n, body=bytes(10_000)) for n in range(100)])
    state = {k: v for k, v in one.take_unit(NOW)[1].state.items() if v is not None}
    fresh = small()
    fresh.restore(Snapshot(state, []), NOW)
    assert fresh.outbox.size <= 50_000
    tombstones = [k for k, v in fresh.take_unit(NOW)[1].state.items() if v is None]
    assert len(tombstones) + len(fresh.outbox) == 100


def test_acks_of_an_older_version_end_too() -> None:
    one = made()
    one.admit([refused(1)])
    (ack,) = one.take_unit(NOW)[1].acks
    old = OutboxEntry(ordinal=ack.ordinal, host=ack.host, packet=ack.packet)
    fresh = made()
    fresh.restore(Snapshot({old.key: old.encode()}, []), NOW)
    unit = fresh.take_unit(NOW)[1]
    (entry,) = fresh.outbox.values()
    assert entry.expires == NOW + FOUR_DAYS
    assert unit.state[old.key] == entry.encode()  # another restart does not begin again


def test_an_ack_whose_time_is_over_leaves_the_state() -> None:
    one = made()
    one.admit([refused(1, time_to_be_received=3600, time_to_reach_queue=3600)])
    (ack,) = one.take_unit(NOW)[1].acks
    assert one.take_unit(ack.expires)[1].dropped == []
    unit = one.take_unit(ack.expires + EXPIRE_S)[1]
    assert unit.dropped == [ack]
    assert unit.state[ack.key] is None
    assert len(one.outbox) == 0


def test_lightened_acks_are_kept_so() -> None:
    one = made()
    one.admit([refused(1, body=bytes(10_000), label="what it was")])
    units = [one.take_unit(NOW)[1]]
    (whole,) = units[0].acks
    light = bare(whole)
    assert (light.ordinal, light.expires, light.cause) == (whole.ordinal, whole.expires, STRANGER)
    assert bare(light) is light
    one.lighten([light, entry(77)])  # one that left meanwhile stays away
    units.append(one.take_unit(NOW)[1])
    assert list(one.outbox.values()) == [light]
    assert list(restarted(one, units).outbox.values()) == [light]


def test_a_positive_ack_and_a_receipt_have_no_body_to_lose() -> None:
    one = made()
    one.admit([plain(1, ack=ACK_ARRIVAL, **ADMIN)])
    (ack,) = one.take_unit(NOW)[1].acks
    assert bare(ack) is ack
    receipt = entry(1, url="http://10.1.2.3/msmq")
    assert bare(receipt) is receipt


def test_an_ack_to_a_host_that_cannot_have_a_name_is_not_owed() -> None:
    one = made()
    one.admit([refused(1, admin_queue=f"DIRECT=OS:{'a' * 256}\\q")])
    assert one.take_unit(NOW)[1].acks == []
