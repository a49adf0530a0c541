"""The order of a queue and its lookup identifiers. DM-1, DM-20, DM-31; data-model.md 2.5, 2.6"""

import pytest

from tests.outside.appliance import Appliance
from tests.outside.rawmsmq import build
from tests.outside.rawpeer import Recorder
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import Clerk, RefusedError, Seen, path

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
LOW = (1 << 56) - 1
PRIORITIES = [3, 0, 7, 3, 5, 7, 0, 1, 2, 6, 4, 3]


def ascending(messages: list[Seen]) -> bool:
    places = [one.lookup_id for one in messages]
    return places == sorted(set(places))


def test_by_priority_then_arrival(clerk: Clerk, sender: Recorder) -> None:
    """DM-20: priority 7 first, then arrival; lookup ids strictly ascend along it."""
    letters = Letters(sender.guid, "order")
    sent = [letters.make(priority=priority) for priority in PRIORITIES]
    sender.send_all_windowed(sent)
    held = clerk.wait(path("order"), len(sent))
    wanted = sorted(sent, key=lambda one: (-one.priority, one.message_id))
    assert [one.id for one in held] == ids(wanted)
    assert [one.body for one in held] == [one.body for one in wanted]
    assert ascending(held)
    tops = [one.lookup_id >> 56 for one in held]
    assert tops == [7 - one.priority for one in wanted]  # T-1
    arrived = sorted(held, key=lambda one: one.number)
    assert [one.lookup_id & LOW for one in arrived] == sorted(one.lookup_id & LOW for one in held)
    taken = clerk.receive_all(path("order"))
    assert taken == held


def test_transactional_messages_are_in_order_of_arrival(clerk: Clerk, sender: Recorder) -> None:
    """2.6: they have priority 0 and it is ignored."""
    sent = Letters(sender.guid, "heldtx", transactional=True).several(70)
    sender.send_all_windowed(sent)
    held = clerk.wait(path("heldtx"), len(sent))
    assert [one.id for one in held] == ids(sent)
    assert ascending(held)
    assert {one.lookup_id >> 56 for one in held} == {7}
    assert clerk.purge(path("heldtx")) == len(sent)


def test_one_message_by_the_low_bits_of_its_id(clerk: Clerk, sender: Recorder) -> None:
    """2.6: readers get the low 56 bits only; 2.7: nobody waits for one that is not there."""
    sender.send_all_windowed(Letters(sender.guid, "order").several(3, priority=5))
    held = clerk.wait(path("order"), 3)
    assert clerk.peek_at(path("order"), held[1].lookup_id & LOW) == held[1]
    assert clerk.receive(path("order"), lookup_id=held[1].lookup_id & LOW) == held[1]
    for asked in (held[1].lookup_id, LOW):
        with pytest.raises(RefusedError) as refused:
            clerk.receive(path("order"), lookup_id=asked)
        assert refused.value.code == "0xC00E0088"
    assert clerk.receive_all(path("order")) == [held[0], held[2]]


@pytest.mark.parametrize("empty_data", [False, True])
@pytest.mark.parametrize("kill", [False, True])
def test_ids_survive_restarts_and_are_never_given_again(
    appliance: Appliance, clerk: Clerk, *, empty_data: bool, kill: bool
) -> None:  # DM-1, DM-2
    seen: list[Seen] = []
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        letters = Letters(sender.guid, "held")
        sender.send_all_windowed(letters.several(5))
    held = clerk.wait(path("held"), 5)
    seen.append(clerk.receive(path("held"), lookup_id=held[4].lookup_id) or held[0])
    appliance.restart(empty_data=empty_data, kill=kill)
    assert clerk.peek(path("held")) == held[:4]  # the same places, ids and contents
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        sender.send_all_windowed(Letters(sender.guid, "held").several(2))
    both = clerk.wait(path("held"), 6)
    assert both[:4] == held[:4]
    assert min(one.lookup_id for one in both[4:]) > seen[0].lookup_id
    assert clerk.purge(path("held")) == 6


def test_bytes_and_counts_change_once_each_way(clerk: Clerk, sender: Recorder) -> None:
    """DM-31: with entry and exit, and by the size on the wire."""
    sent = Letters(sender.guid, "held").several(4, body=b"x" * 1000)
    before = clerk.info(path("held"))
    assert (before["messages"], before["bytes"]) == (0, 0)
    sender.send_all_windowed(sent)
    clerk.wait(path("held"), 4)
    assert clerk.info(path("held"))["bytes"] == sum(len(build(one)) for one in sent)
    clerk.receive(path("held"))
    assert clerk.info(path("held"))["bytes"] == sum(len(build(one)) for one in sent[1:])
    assert clerk.purge(path("held")) == 3
    after = clerk.info(path("held"))
    assert (after["messages"], after["bytes"]) == (0, 0)


def test_an_express_message_is_held_too(clerk: Clerk, sender: Recorder) -> None:
    """design D5: its storage is the topic, whatever its delivery is."""
    (letter,) = Letters(sender.guid, "held").several(1, recoverable=False)
    sender.transmit([letter], keep=False)
    (held,) = clerk.wait(path("held"), 1)
    assert held.body == letter.body
    assert clerk.receive(path("held")) == held
