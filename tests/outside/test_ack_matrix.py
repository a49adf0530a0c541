"""Which acknowledgments a message gets: every request x every outcome x every kind of delivery.

data-model 2.4 and 2.12; MS-MQQB 3.1.7.15, 3.1.7.2, 2.2.5. All messages go over one session and a
last one closes the wait; what came is told apart by CorrelationID, final acks by their body.
"""

import struct
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, product
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.expected import (
    expected_administration_ack,
    expected_final_ack,
    expected_order_ack,
)
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_PA,
    ACK_PR,
    USER_JN,
    USER_JP,
    Message,
    Name,
    Tx,
    private,
)
from tests.outside.rawparse import Received
from tests.outside.rawpeer import Recorder
from tests.outside.rawsender import soon
from tests.outside.reader import Reader

pytestmark = pytest.mark.kafka
SEQUENCE = 0x65000000_00000300
ADMIN = 0x55
STRANGER = "99999999-9999-9999-9999-999999999999"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where to send for it, and the class it gives; `insecure` ones are starred in table 2.4."""

    plain: str
    ordered: str
    plain_class: int = 0
    ordered_class: int = 0
    insecure: bool = False
    size: int = 40
    late: bool = False


OUTCOMES = {
    "accepted": Outcome(plain="plain", ordered="orders"),
    "over quota": Outcome(
        plain="full", ordered="fulltx", plain_class=0x8003, ordered_class=0x8003, size=2048
    ),
    "unknown queue": Outcome(
        plain="nowhere", ordered="nowhere", plain_class=0x8000, ordered_class=0x8000, insecure=True
    ),
    "wrong kind": Outcome(
        plain="orders2", ordered="plain2", plain_class=0x800A, ordered_class=0x8009
    ),
    "expired": Outcome(
        plain="bulk", ordered="many", plain_class=0x8002, ordered_class=0x8002, late=True
    ),
    "denied": Outcome(
        plain="shut", ordered="shuttx", plain_class=0x8004, ordered_class=0x8004, insecure=True
    ),
}
# Recoverable, transactional, journaling of the source, final ack wanted.
DELIVERIES = {
    "express": (False, False, 0, False),
    "recoverable": (True, False, 0, False),
    "transactional": (True, True, 0, False),
    "transactional FA": (True, True, 0, True),
    "transactional JN": (True, True, USER_JN, False),
    "transactional JP": (True, True, USER_JP, False),
}
QUEUES: dict[str, dict[str, object]] = {
    "full": {"quota_kb": 1},
    "fulltx": {"quota_kb": 1, "transactional": True},
    "shut": {"allow": [STRANGER]},
    "shuttx": {"allow": [STRANGER], "transactional": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    outcome: str
    delivery: str
    message: Message

    @property
    def refusal(self) -> int:
        """The class of table 2.4, 0 when it is accepted."""
        outcome = OUTCOMES[self.outcome]
        return outcome.ordered_class if self.message.tx else outcome.plain_class

    def administration(self, *, insecure_nacks: bool) -> list[int]:
        asked = self.message.acks
        if self.refusal:
            hidden = OUTCOMES[self.outcome].insecure and not insecure_nacks  # QB-111
            return [self.refusal] if asked & ACK_NA and not hidden else []
        wanted = {ACK_PA: 0x0002, ACK_PR: 0x4000}  # forward: accepted = received
        return [message_class for bit, message_class in wanted.items() if asked & bit]

    @property
    def final(self) -> list[int]:
        """QB-90: always for a refusal; QB-91: for JN, JP or FA otherwise."""
        if self.message.tx is None:
            return []
        if self.refusal:
            return [self.refusal]
        return [0x4000] if self.message.tx.final_ack or self.message.journal else []


def make_cases(source: UUID) -> list[Case]:
    ids, numbers = count(1), defaultdict[Name, Iterator[int]](lambda: count(1))
    return [
        _make_case(source, next(ids), outcome, delivery, acks, numbers)
        for outcome, delivery, acks in product(OUTCOMES, DELIVERIES, range(16))
    ]


def _make_case(
    source: UUID,
    message_id: int,
    name: str,
    delivery: str,
    acks: int,
    numbers: dict[Name, Iterator[int]],
) -> Case:
    outcome = OUTCOMES[name]
    recoverable, transactional, journal, final_ack = DELIVERIES[delivery]
    destination = queue(outcome.ordered if transactional else outcome.plain)
    tx = None
    if transactional:
        number = next(numbers[destination])
        tx = Tx(
            sequence_id=SEQUENCE + list(OUTCOMES).index(name),  # one stream, one sequence
            number=number,
            previous=number - 1,
            final_ack=final_ack,
        )
    message = Message(
        source=source,
        message_id=message_id,
        destination=destination,
        admin=private(ADMIN, code=2),
        body=b"%d " % message_id + b"b" * outcome.size,
        body_type=8,
        label=f"{name}, {delivery}, {acks}",
        recoverable=recoverable,
        tx=tx,
        journal=journal,
        acks=acks,
        app=7,
        priority=message_id % 8,
        correlation=bytes(range(20)),
    )
    if outcome.late:
        message = replace(message, sent_time=int(time.time()) - 1000, ttrq=10)
    return Case(outcome=name, delivery=delivery, message=message)


@pytest.fixture(scope="module", params=[False, True], ids=["secure", "insecure nacks"])
def insecure_nacks(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def settings(insecure_nacks: bool) -> Settings:
    return Settings(queues=QUEUES, manager={"insecure_nacks": insecure_nacks})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One session with all cases, over."""

    cases: list[Case]
    kept: list[Received]
    local_ip: str

    @property
    def source(self) -> UUID:
        return self.cases[0].message.source

    def case_of(self, packet: Received) -> Case:
        """By CorrelationID, or by the end of a final ack's body: the same 20 bytes."""
        identity = packet.body[16:] if packet.is_final_ack else packet.correlation
        source, message_id = identity[:16], int.from_bytes(identity[16:], "little")
        assert source == self.source.bytes_le, packet
        return self.cases[message_id - 1]

    @property
    def administration(self) -> list[Received]:
        return [one for one in self.kept if not (one.is_order_ack or one.is_final_ack)]

    @property
    def finals(self) -> list[Received]:
        return [one for one in self.kept if one.is_final_ack]

    def classes(self, packets: list[Received]) -> dict[int, list[int]]:
        """What each case got, in the order it came; by message id."""
        found: dict[int, list[int]] = {case.message.message_id: [] for case in self.cases}
        for packet in packets:
            found[self.case_of(packet).message.message_id].append(packet.message_class)
        return found


@pytest.fixture(scope="module")
def run(appliance: Appliance) -> Run:
    source = uuid4()
    cases = make_cases(source)
    last = len(cases) + 1
    sentinel = replace(
        cases[0].message, message_id=last, acks=ACK_PA, label="sentinel", recoverable=True
    )
    with Recorder(appliance.binary_address, source) as sender:
        sender.connect().handshake()
        sender.send_all_windowed([case.message for case in cases], soon(90))
        sender.send_all_windowed([sentinel])
        end = source.bytes_le + struct.pack("<I", last)
        sender.until(lambda: any(one.correlation == end for one in sender.administration))
        sender.expect_nothing(0.7)
        kept = [one for one in sender.kept if one.correlation != end]
        assert len(sender.kept) == len(kept) + 1, "the sentinel is acked once"
        return Run(cases=cases, kept=kept, local_ip=sender.local_ip)


def wrong(run: Run, found: dict[int, list[int]], wanted: dict[int, list[int]]) -> list[str]:
    return [
        f"{case.message.label}: got {_hex(found[number])}, not {_hex(wanted[number])}"
        for number, case in enumerate(run.cases, 1)
        if found[number] != wanted[number]
    ]


def _hex(classes: list[int]) -> str:
    return " ".join(f"{one:04X}" for one in classes) or "nothing"


def test_administration_acks_are_those_asked_for(run: Run, insecure_nacks: bool) -> None:
    """QB-110, QB-111, QB-62 to QB-66, QB-101; arrival before receipt."""
    print("\n" + table(run, insecure_nacks=insecure_nacks))
    wanted = {
        case.message.message_id: case.administration(insecure_nacks=insecure_nacks)
        for case in run.cases
    }
    assert not wrong(run, run.classes(run.administration), wanted)


def test_final_acks_are_those_demanded(run: Run) -> None:  # QB-90, QB-91
    wanted = {case.message.message_id: case.final for case in run.cases}
    assert not wrong(run, run.classes(run.finals), wanted)


def test_administration_acks_byte_for_byte(appliance: Appliance, run: Run) -> None:  # QB-113
    assert run.administration
    for packet in run.administration:
        assert packet.raw == expected_administration_ack(
            packet,
            server=appliance.guid,
            acked=run.case_of(packet).message,
            message_class=packet.message_class,
            destination=private(ADMIN),  # QB-112: on the source
            queue_manager=run.source,
        ), run.case_of(packet).message.label
        assert abs(packet.sent_time - time.time()) < 300


def test_final_acks_byte_for_byte(appliance: Appliance, run: Run) -> None:  # 2.18
    assert run.finals
    for packet in run.finals:
        acked = run.case_of(packet).message
        assert acked.tx is not None, acked.label
        assert packet.raw == expected_final_ack(
            packet,
            server=appliance.guid,
            peer=run.local_ip,
            tx=acked.tx,
            source=run.source,
            message_id=acked.message_id,
            message_class=packet.message_class,
        ), acked.label


def test_order_acks_byte_for_byte(appliance: Appliance, run: Run) -> None:  # 2.17, QB-87
    for packet in (one for one in run.kept if one.is_order_ack):
        assert packet.raw == expected_order_ack(
            packet,
            server=appliance.guid,
            peer=run.local_ip,
            sequence_id=packet.sequence[0],
            number=packet.sequence[1],
        )
    last = {packet.sequence[0]: packet.sequence[1] for packet in run.kept if packet.is_order_ack}
    assert last == {SEQUENCE + number: 64 for number in range(len(OUTCOMES))}


def test_ids_are_new_and_acks_come_in_their_order(run: Run) -> None:  # DM-1, QB-53
    ids = [packet.message_id for packet in run.kept]
    assert len(set(ids)) == len(ids)
    acks = [packet.message_id for packet in run.administration]
    assert acks == sorted(acks)
    finals = [packet.message_id for packet in run.finals]
    assert finals == sorted(finals)
    cases = [run.case_of(packet).message.message_id for packet in run.administration]
    assert cases == sorted(cases), "in the order of the messages they answer"


def test_only_the_accepted_ones_are_records(appliance: Appliance, run: Run) -> None:  # DM-34
    topics = [appliance.topic(name) for name in appliance.queues]
    with Reader(appliance.bootstrap, topics) as reader:
        records = reader.of(run.source)
    labels = [record.header["msmq.label"].decode() for record in records]
    accepted = [case.message.label for case in run.cases if not case.refusal]
    assert sorted(labels) == sorted([*accepted, "sentinel"])


def table(run: Run, *, insecure_nacks: bool) -> str:
    """Rows outcome x delivery, columns the flags; a final ack's class stands after F."""
    acks, finals = run.classes(run.administration), run.classes(run.finals)
    rows: dict[str, list[str]] = defaultdict(list)
    for number, case in enumerate(run.cases, 1):
        parts = [f"{one:04X}" for one in acks[number]] + [f"F{one:04X}" for one in finals[number]]
        rows[f"{case.outcome}, {case.delivery}"].append(" ".join(parts) or "-")
    head = ["".join(_letters(flags)) or "none" for flags in range(16)]
    lines = [_line(f"insecure nacks {'on' if insecure_nacks else 'off'}", head)]
    return "\n".join([*lines, *(_line(name, cells) for name, cells in rows.items())])


def _letters(flags: int) -> list[str]:
    return [name for bit, name in enumerate(("PA", "PR", "NA", "NR")) if flags >> bit & 1]


def _line(name: str, cells: list[str]) -> str:
    return f"{name:33}" + " ".join(f"{cell:15}" for cell in cells)
