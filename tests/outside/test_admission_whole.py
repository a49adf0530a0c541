"""The rows of table 2.4 that only settings, foreign addresses and rare headers reach."""

import json
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import ROOT, Appliance, Settings, command, number_of, queue
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_NR,
    ACK_PA,
    ACK_PR,
    USER_JN,
    Message,
    Name,
    Tx,
    pad4,
    private,
    public,
    security_header,
)
from tests.outside.rawparse import Received
from tests.outside.rawpeer import RawPeer, Recorder
from tests.outside.rawsender import HungUpError, soon
from tests.outside.reader import Reader
from tests.outside.records import Record, identity
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
_ids = count(1)
SEQUENCE = 0x65000000_00000500
FRIEND = UUID("77777777-0000-4000-8000-00000000000f")
FRIENDLY_IP, STRANGE_IP = "127.0.0.3", "127.0.0.2"
JOURNAL, JOURNAL_TX = (f"journal-{uuid4().hex[:8]}-{kind}" for kind in ("plain", "tx"))
SID = struct.pack("<BB6sIIIII", 1, 5, (5).to_bytes(6, "big"), 21, 1, 2, 3, 1000)
OTHER_SID = SID[:-4] + struct.pack("<I", 1001)
QUEUES: dict[str, dict[str, object]] = {
    "full": {"quota_kb": 1},
    "fulltx": {"quota_kb": 1, "transactional": True},
    "signed": {"authenticate": "required"},
    "signedtx": {"authenticate": "required", "transactional": True},
    "sealed": {"encrypt": "required"},
    "sealedtx": {"encrypt": "required", "transactional": True},
    "byguid": {"allow": [str(FRIEND)]},
    "bynet": {"allow": [f"{FRIENDLY_IP}/32"]},
    "bysid": {"allow": ["S-1-5-21-1-2-3-1000"]},
    "anonymous": {"allow": ["S-1-5-7"]},
    "bymany": {"allow": ["127.9.0.0/16", str(FRIEND), "S-1-5-21-1-2-3-1000"]},
    "kept": {"journal": JOURNAL},
    "keptx": {"journal": JOURNAL_TX, "transactional": True},
}


@pytest.fixture(scope="module")
def reporter() -> Iterator[RawPeer]:
    """Where report messages go. It has the GUID of the queue, so that it takes any call."""
    with RawPeer("127.0.0.40") as peer:
        yield peer


@pytest.fixture(scope="module")
def settings(reporter: RawPeer) -> Settings:
    return Settings(
        queues=QUEUES,
        manager={"insecure_nacks": True},
        peers={str(reporter.guid): reporter.address},
        listen={"ping": 0},
    )


def message(source: UUID, destination: Name, number: int | None = None) -> Message:
    """Transactional with a number, recoverable without; every class is told."""
    tx = Tx(sequence_id=SEQUENCE, number=number, previous=number - 1) if number else None
    return Message(
        source=source,
        message_id=next(_ids),
        destination=destination,
        admin=private(0x55, code=2),
        acks=ACK_PA | ACK_NA,
        body=b"judge me",
        label="judged",
        recoverable=True,
        tx=tx,
    )


@contextmanager
def sending(
    appliance: Appliance, guid: UUID | None = None, *, local: str = STRANGE_IP
) -> Iterator[Recorder]:
    with Recorder(appliance.binary_address, guid) as sender:
        sender.local = local
        sender.connect().handshake()
        yield sender


def key(one: Message) -> bytes:
    return one.source.bytes_le + struct.pack("<I", one.message_id)


def classes(one: Message, packets: list[Received]) -> list[int]:
    return [each.message_class for each in packets if each.correlation == key(one)]


def finals(one: Message, packets: list[Received]) -> list[int]:
    return [
        each.message_class for each in packets if each.is_final_ack and each.body[16:] == key(one)
    ]


def judge(sender: Recorder, *messages: Message, keep: bool = True) -> None:
    """Send them and a last one; when that is acked, all verdicts are in."""
    if keep:
        sender.send_all_windowed(messages, soon(30))
    else:
        sender.transmit(messages, keep=False)
    last = replace(message(sender.guid, queue("plain")), acks=ACK_PA)
    sender.send_all_windowed([last])
    sender.until(lambda: classes(last, sender.kept))


@pytest.fixture(scope="module")
def reader(appliance: Appliance) -> Iterator[Reader]:
    """Of everything that a message can become a record of."""
    owned = [f"{appliance.prefix}.deadletter", JOURNAL, JOURNAL_TX]
    topics = [*(appliance.topic(name) for name in appliance.queues), *owned]
    with Reader(appliance.bootstrap, topics) as reader:
        yield reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The appliance, and what its consumers see."""

    appliance: Appliance
    reader: Reader

    def records(self, source: UUID, names: Sequence[str] = ()) -> list[Record]:
        """In these queues' topics, or in any of them."""
        topics = [self.appliance.topic(name) for name in names or self.appliance.queues]
        return self.reader.of(source, topics)


@pytest.fixture
def bench(appliance: Appliance, reader: Reader) -> Bench:
    return Bench(appliance=appliance, reader=reader)


def ids_of(found: list[Record]) -> list[bytes]:
    return [record.header["msmq.id"] for record in found]


def name_of(one: Message) -> bytes:
    return identity(one.source, one.message_id)


def check(
    bench: Bench, sender: Recorder, accepted: list[Message], refused: dict[int, list[Message]]
) -> None:
    """Those are records and acked, these are neither and told their class; finals if TH."""
    for one in accepted:
        assert classes(one, sender.kept) == [0x0002], one
    for message_class, messages in refused.items():
        for one in messages:
            assert classes(one, sender.kept) == [message_class], one
            assert finals(one, sender.kept) == ([message_class] if one.tx else []), one
    found = set(ids_of(bench.records(sender.guid)))
    assert {name_of(one) for one in accepted} <= found
    assert not {name_of(one) for group in refused.values() for one in group} & found


FOREIGN = UUID("88888888-0000-4000-8000-000000000001")
ELSEWHERE = {
    "by number": private(number_of("plain")),
    "by queue guid": public(UUID(int=0x77)),
    "by name": queue("plain"),
}


@pytest.mark.parametrize("destination", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_message_for_another_queue_manager_is_never_delivered_here(
    appliance: Appliance, bench: Bench, destination: Name
) -> None:  # QB-61; 2.4 row 2
    with sending(appliance) as sender:
        foreign = [
            replace(message(sender.guid, destination), queue_manager=FOREIGN, hops=hops)
            for hops in (0, 0x1C)
        ]
        sender.transmit(foreign, keep=False)
        with suppress(HungUpError):
            sender.read_to_end(soon(10))
        assert sender.acked == 0  # MS-MQQB 3.1.5.8.2: not saved here, so its sender keeps it
        assert sender.kept == []
    found = ids_of(bench.records(sender.guid))
    assert not {name_of(one) for one in foreign} & set(found)
    assert verdicts(appliance, foreign[0]) == ["busy"]


def verdicts(appliance: Appliance, one: Message) -> list[str]:
    """What `trace` tells of a message, as soon as the appliance has read its own audit topic."""
    found = eventually(lambda: traced(appliance, name_of(one).decode()), 60)
    return [str(entry["verdict"]) for entry in found]


def traced(appliance: Appliance, identifier: str) -> list[dict[str, object]]:
    asked = subprocess.run(
        [*command(), "trace", identifier, "--config", str(appliance.config), "-o", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if asked.returncode == 1 and "no verdict on" in asked.stderr:
        return []
    assert asked.returncode == 0, asked.stderr
    found: list[dict[str, object]] = json.loads(asked.stdout)
    return found


def test_too_many_hops(appliance: Appliance, bench: Bench) -> None:  # QB-61: RC+1 > 0x1D
    with sending(appliance) as sender:
        plain = replace(
            message(sender.guid, private(7)), queue_manager=FOREIGN, hops=0x1D, label="far"
        )
        ordered = replace(
            message(sender.guid, private(7), 1), queue_manager=FOREIGN, hops=0x1D, label="far"
        )
        here = replace(message(sender.guid, queue("plain")), hops=0x1D)  # local: not judged
        judge(sender, plain, ordered, here, keep=False)
        check(bench, sender, [here], {0x8005: [plain, ordered]})


def ago(one: Message, seconds: int, **times: int) -> Message:
    return replace(one, sent_time=int(time.time()) - seconds, **times)  # type: ignore[arg-type]


def test_time_to_be_received(appliance: Appliance, bench: Bench) -> None:
    """MS-MQMQ 2.2.18.1.6: over before it reached its queue, 0x8002."""
    with sending(appliance) as sender:
        plain, ordered = queue("plain"), queue("orders")
        over = ago(message(sender.guid, plain), 1000, ttbr=10)
        over_tx = ago(message(sender.guid, ordered, 1), 1000, ttbr=10)
        in_time = ago(message(sender.guid, plain), 1000, ttbr=3600)
        in_time_tx = ago(message(sender.guid, ordered, 2), 1000, ttbr=3600)
        judge(sender, over, over_tx, in_time, in_time_tx)
        check(bench, sender, [in_time, in_time_tx], {0x8002: [over, over_tx]})


@pytest.mark.parametrize("age", [0, 60])
def test_no_time_to_be_received(appliance: Appliance, bench: Bench, age: int) -> None:
    """MS-MQDMPR 3.1.2.4: "If the TimeToBeReceived ADM attribute value is equal to 0x00000000, the
    timer expires immediately"; it starts once the message is in its queue (3.1.7.1.9), and the
    message leaves it with NackReceiveTimeout (3.1.7.2.7), 0xC002."""
    with sending(appliance) as sender:
        asked = {"ttbr": 0, "acks": ACK_PA | ACK_NA | ACK_NR | ACK_PR}
        plain = ago(message(sender.guid, queue("plain")), age, **asked)
        quiet = ago(message(sender.guid, queue("plain")), age, ttbr=0, acks=ACK_NA)
        ordered = ago(message(sender.guid, queue("orders"), 1), age, **asked)
        assert ordered.tx is not None
        wants = replace(ordered, tx=replace(ordered.tx, final_ack=True))
        after = message(sender.guid, queue("orders"), 2)  # the stream goes on
        judge(sender, plain, quiet, wants, after)
        for one in (plain, wants):
            assert classes(one, sender.kept) == [0x0002, 0xC002]
        assert classes(quiet, sender.kept) == []  # it did reach its queue: nothing for NA
        assert [finals(one, sender.kept) for one in (plain, wants)] == [[], [0xC002]]
        check(bench, sender, [after], {})
        found = set(ids_of(bench.records(sender.guid)))
        assert not {name_of(one) for one in (plain, quiet, wants)} & found
        assert [verdicts(appliance, one) for one in (plain, wants)] == [["expired"]] * 2


def encrypted() -> bytes:
    """A SecurityHeader with EB and a key that nobody has. 2.11"""
    blob = b"k" * 140
    head = struct.pack("<HHHHII", 0x0020 | 0x0040 | 1, len(SID), len(blob), 0, 0, 0)
    return head + pad4(SID) + blob


def test_an_encrypted_body(
    appliance: Appliance, bench: Bench
) -> None:  # QB-136; QB-113: no body in the nack
    with sending(appliance) as sender:
        plain, ordered = (
            replace(one, security=encrypted(), privacy=3, encryption=0x6602)
            for one in (
                message(sender.guid, queue("plain")),
                message(sender.guid, queue("orders"), 1),
            )
        )
        judge(sender, plain, ordered)
        check(bench, sender, [], {0x8007: [plain, ordered]})
        nacks = [one for one in sender.administration if one.message_class == 0x8007]
        assert [one.body for one in nacks] == [b"", b""]


DEMANDS = {
    "authenticate": ("signed", "signedtx", 0x8006),
    "encrypt": ("sealed", "sealedtx", 0x8007),
}


@pytest.mark.parametrize(
    ("plain", "ordered", "message_class"), DEMANDS.values(), ids=DEMANDS.keys()
)
def test_a_queue_that_demands_security(
    appliance: Appliance, bench: Bench, plain: str, ordered: str, message_class: int
) -> None:  # QB-141; 2.4 row 9
    with sending(appliance) as sender:
        refused = [
            message(sender.guid, queue(plain)),
            replace(message(sender.guid, queue(plain)), security=security_header(SID)),
            message(sender.guid, queue(ordered), 1),
        ]
        judge(sender, *refused)
        check(bench, sender, [], {message_class: refused})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    name: str
    allowed: bool
    guid: UUID | None = None
    local: str = STRANGE_IP
    security: bytes = b""


ACCESS = {
    "friend by GUID": Access(name="byguid", guid=FRIEND, allowed=True),
    "stranger by GUID": Access(name="byguid", allowed=False),
    "friend by network": Access(name="bynet", local=FRIENDLY_IP, allowed=True),
    "stranger by network": Access(name="bynet", allowed=False),
    "friend by SID": Access(name="bysid", security=security_header(SID), allowed=True),
    "another SID": Access(name="bysid", security=security_header(OTHER_SID), allowed=False),
    "no SID": Access(name="bysid", allowed=False),
    "a SID that is none": Access(
        name="bysid", security=security_header(SID, sender_type=2), allowed=False
    ),
    "a SID of no type": Access(
        name="bysid", security=security_header(SID, sender_type=0), allowed=False
    ),
    "anonymous": Access(name="anonymous", allowed=True),
    "not anonymous": Access(name="anonymous", security=security_header(SID), allowed=False),
    "any of several, GUID": Access(name="bymany", guid=FRIEND, allowed=True),
    "any of several, SID": Access(name="bymany", security=security_header(SID), allowed=True),
    "none of several": Access(name="bymany", allowed=False),
}


@pytest.mark.parametrize("access", ACCESS.values(), ids=ACCESS.keys())
def test_who_may_send(
    appliance: Appliance, bench: Bench, access: Access
) -> None:  # QB-140; 2.4 row 8
    with sending(appliance, access.guid, local=access.local) as sender:
        one = replace(message(sender.guid, queue(access.name)), security=access.security)
        judge(sender, one)
        refused = {} if access.allowed else {0x8004: [one]}
        check(bench, sender, [one] if access.allowed else [], refused)


def several(*names: str) -> bytes:
    """MultiQueueFormatHeader with direct names as destinations. 2.15"""
    elements = b"".join(
        struct.pack("<H", 3) + f"OS:BRIDGE01\\private$\\{name}\0".encode("utf-16-le")
        for name in names
    )
    parts = [(0x64, len(names), elements), (0xC8, 0, b""), (0x12C, 0, b"")]
    addresses = b"".join(
        pad4(struct.pack("<IHHI", 12 + len(data), code, 0, number) + data)
        for code, number, data in parts
    )
    return addresses + struct.pack("<HHI", 0x015E, 0, 0)


def test_one_message_to_two_queues(appliance: Appliance, bench: Bench) -> None:
    """QB-124, DM-34: a packet for each, both with one id; resent, each is a duplicate."""
    header = several("plain", "plain2")
    with sending(appliance) as sender:
        first = replace(message(sender.guid, queue("plain")), multi=header)
        second = replace(first, destination=queue("plain2"))
        for _ in range(2):
            judge(sender, first, second)
        sender.resume()
        judge(sender, second, first)
    wanted = name_of(first)
    for name in ("plain", "plain2"):
        assert ids_of(bench.records(sender.guid, [name])).count(wanted) == 1, name


def test_a_target_journal(appliance: Appliance, bench: Bench) -> None:  # 2.14, design D5
    with sending(appliance) as sender:
        plain = [message(sender.guid, queue("kept")) for _ in range(3)]
        ordered = [message(sender.guid, queue("keptx"), number) for number in (1, 2, 3)]
        wrong = message(sender.guid, queue("keptx"))
        late = ago(message(sender.guid, queue("kept")), 1000, ttrq=10)
        judge(sender, *plain, *ordered, wrong, late, plain[0])
    for name, topic, sent in (("kept", JOURNAL, plain), ("keptx", JOURNAL_TX, ordered)):
        data = bench.records(sender.guid, [name])
        copies = bench.reader.of(sender.guid, [topic])
        assert ids_of(data) == [name_of(one) for one in sent]
        assert sorted(ids_of(copies)) == sorted(ids_of(data))
        assert {copy.value for copy in copies} == {b"judge me"}
        assert {copy.header["msmq.label"] for copy in copies} == {b"judged"}


def test_the_journal_is_written_with_the_record(appliance: Appliance, bench: Bench) -> None:
    """Whatever a kill leaves behind, both topics have the same messages. design D1"""
    sender = Recorder(appliance.binary_address)
    sender.connect().handshake()
    stream = [
        replace(message(sender.guid, queue("keptx"), number), acks=0) for number in range(1, 601)
    ]
    sender.send_all_windowed(stream, soon(30), until_acked=200)
    appliance.kill()
    sender.close()
    appliance.start()
    kept = in_both(bench, sender.guid)
    assert 200 <= len(kept) < 600
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(deadline=soon(30))
    sender.close()
    assert sorted(in_both(bench, sender.guid)) == sorted(name_of(one) for one in stream)


def in_both(bench: Bench, source: UUID) -> list[bytes]:
    data = ids_of(bench.records(source, ["keptx"]))
    copies = ids_of(bench.reader.of(source, [JOURNAL_TX]))
    assert sorted(copies) == sorted(data)
    return data


def test_dead_letters(appliance: Appliance, bench: Bench) -> None:  # QB-66, DM-12, 2.14
    with sending(appliance) as sender:
        guid = sender.guid

        def wants(one: Message) -> Message:
            return replace(one, journal=USER_JN)

        big = b"b" * 2048
        dead = [
            wants(replace(message(guid, queue("full")), body=big)),
            wants(replace(message(guid, queue("full")), body=big, recoverable=False)),
            wants(ago(message(guid, queue("plain")), 1000, ttrq=10)),
            wants(ago(message(guid, queue("plain")), 1000, ttbr=10)),
        ]
        gone = [
            replace(message(guid, queue("full")), body=big),
            ago(message(guid, queue("plain")), 1000, ttrq=10),
            wants(replace(message(guid, queue("fulltx"), 1), body=big)),
            wants(ago(message(guid, queue("orders"), 1), 1000, ttrq=10)),
            wants(message(guid, queue("nowhere"))),
            wants(message(guid, queue("byguid"))),
            wants(message(guid, queue("plain"))),
        ]
        judge(sender, *dead, *gone, *dead)
    found = bench.reader.of(guid, [f"{appliance.prefix}.deadletter"])
    assert sorted(ids_of(found)) == sorted(name_of(one) for one in dead)
    bodies = {name_of(one): one.body for one in dead}
    assert {record.header["msmq.id"]: record.value for record in found} == bodies


REPORT_LABEL = re.compile(
    r"([0-9a-f]{4}):([0-9a-f]{8}):([0-9a-f]{2}) received by "
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}) at "
    r"\d\d:\d\d(:\d\d)? [AP]M (Mon|Tue|Wed|Thu|Fri|Sat|Sun),"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d\d \d\d",
    re.I,
)


def test_a_report_message(appliance: Appliance, reporter: RawPeer) -> None:
    """MS-MQQB 3.1.5.8.9, to the letter of its grammar."""
    reporter.listen()
    with sending(appliance) as sender:
        traced = replace(message(sender.guid, queue("plain")), trace=reporter.guid, hops=2, acks=0)
        refused = replace(message(sender.guid, queue("nowhere")), trace=reporter.guid, acks=0)
        judge(sender, refused, traced)
    session = reporter.accept()
    session.until(lambda: session.kept)
    [report] = session.kept
    assert report.message_class == 0x0001
    assert (report.destination, report.is_recoverable) == (public(reporter.guid), False)
    assert (report.source, report.acks) == (appliance.guid, 0)
    assert report.queue_manager == reporter.guid  # MS-MQMQ 2.2.19.2: of a public queue, its host's
    told = REPORT_LABEL.fullmatch(report.label)
    assert told, report.label
    assert told[1].lower() == str(sender.guid)[:4]
    assert (int(told[2], 16), int(told[3], 16)) == (traced.message_id, 2)
    body = report.body.decode("utf-16-le")
    wanted = (
        f"<MESSAGE ID>{traced.message_id:08x}</MESSAGE ID>\r\n"
        "<TARGET QUEUE>DIRECT=OS:BRIDGE01\\private$\\plain</TARGET QUEUE>\r\n"
    )
    assert body.lower() == wanted.lower()
    assert UUID(told[4]) == sender.guid  # UserHeader.SourceQueueManager, as the grammar says
    session.expect_nothing(0.7)


def test_a_report_to_an_unknown_queue_is_dropped(appliance: Appliance, bench: Bench) -> None:
    with sending(appliance) as sender:
        one = replace(message(sender.guid, queue("plain")), trace=uuid4())
        judge(sender, one)
        check(bench, sender, [one], {})
        assert len(sender.kept) == 2


def clones_counted(appliance: Appliance) -> float:
    """By a counter of its own, or by one that has a label for it."""
    lines = appliance.get("/metrics")[1].splitlines()
    counters = [line.rsplit(" ", 1) for line in lines if re.match(r"\w+_total\b", line)]
    return sum(float(value) for name, value in counters if "clone" in name)


def test_a_cloned_guid_is_named(appliance: Appliance) -> None:  # design D4
    before = clones_counted(appliance)
    guid = uuid4()
    with sending(appliance, guid) as one, sending(appliance, guid, local=FRIENDLY_IP) as two:
        for sender in (one, two):
            sender.send_all_windowed([replace(message(guid, queue("plain")), acks=0)])
        lines = [line for line in appliance.log.splitlines() if str(guid) in line.lower()]
        assert any("clone" in line.lower() for line in lines), lines
        assert any(STRANGE_IP in line and FRIENDLY_IP in line for line in lines), lines
        assert clones_counted(appliance) == before + 1
        told = {name: value for name, value in appliance.status().items() if "clone" in name}
        assert str(guid) in json.dumps(told), told
        assert STRANGE_IP in json.dumps(told)
        assert FRIENDLY_IP in json.dumps(told)


def test_a_sender_that_moves_is_no_clone(appliance: Appliance) -> None:
    before, guid = clones_counted(appliance), uuid4()
    for local in (STRANGE_IP, FRIENDLY_IP):
        with sending(appliance, guid, local=local) as sender:
            judge(sender, message(guid, queue("plain")))
        wait_until_closed(appliance, guid)
    assert clones_counted(appliance) == before


def wait_until_closed(appliance: Appliance, guid: UUID) -> None:
    deadline = soon(10)
    while str(guid) in json.dumps(appliance.status()["sessions"]):
        assert soon(0) < deadline, "the session is still there"


def test_a_transaction_longer_than_the_window(
    appliance: Appliance, bench: Bench
) -> None:  # D2: no deadlock
    with sending(appliance) as sender:
        stream = [replace(message(sender.guid, queue("orders"), n), acks=0) for n in range(1, 66)]
        whole = [
            replace(one, tx=replace(one.tx, first=n == 1, last=n == 65, index=9))
            for n, one in enumerate(stream, 1)
            if one.tx
        ]
        sender.send_all_windowed(whole, soon(20))
    assert len(bench.records(sender.guid, ["orders"])) == 65


PING = bytes.fromhex("017d485504000000d158735550919595 4997b6e611ea26c6")  # F1


@pytest.fixture
def udp(appliance: Appliance) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((STRANGE_IP, 0))
        sock.settimeout(5)
        sock.connect(appliance.listeners["ping"])
        yield sock


@pytest.mark.parametrize("flags", [0x7D01, 0x7D00, 0x0001, 0xFFFD], ids=hex)
def test_ping(appliance: Appliance, udp: socket.socket, flags: int) -> None:  # QB-30, F1, F2
    cookie = 0xC0FFEE00 | flags & 0xFF
    udp.send(struct.pack("<H", flags) + PING[2:4] + struct.pack("<I", cookie) + PING[8:])
    answer = udp.recv(100)
    assert len(answer) == 24
    told, signature, echoed = struct.unpack_from("<HHI", answer)
    assert (told & 3, signature, echoed) == (flags & 1, 0x5548, cookie)
    assert answer[8:] == appliance.guid.bytes_le


def test_garbage_is_not_answered(appliance: Appliance, udp: socket.socket) -> None:  # QB-30
    for garbage in (b"", b"\0", PING[:23], b"\0" * 24, PING[:2] + b"\x49\x55" + PING[4:]):
        udp.send(garbage)
    udp.send(PING)
    assert udp.recv(100)[4:8] == PING[4:8]
    udp.settimeout(0.5)
    with pytest.raises(TimeoutError):
        udp.recv(100)


def test_clock_skew_and_machine_quota(
    appliance: Appliance, bench: Bench, settings: Settings
) -> None:
    """QB-67, DM-11: no nack, the session closes, and what was not taken is sent again."""
    strict = replace(settings, manager={**settings.manager, "clock_skew_s": 3600, "quota_kb": 1})
    appliance.configure(strict)
    appliance.restart()
    sender = Recorder(appliance.binary_address)
    sender.connect().handshake()
    tolerated = [
        ago(message(sender.guid, queue("plain")), 1000, ttrq=10),
        ago(message(sender.guid, queue("plain")), 1000, ttbr=10),
        ago(message(sender.guid, queue("orders"), 1), 1000, ttrq=10),
    ]
    too_old = [
        ago(message(sender.guid, queue("plain")), 5000, ttrq=10),
        ago(message(sender.guid, queue("plain")), 5000, ttbr=10),
        ago(message(sender.guid, queue("orders"), 2), 5000, ttrq=10),
    ]
    for one in (*tolerated, *too_old):
        judge(sender, one)
    check(bench, sender, tolerated, {0x8002: too_old})

    before = len(sender.kept)
    big = replace(message(sender.guid, queue("plain")), body=b"b" * 2048)
    sender.transmit([big])
    with pytest.raises(HungUpError):
        sender.until(lambda: False)
    assert len(sender.kept) == before
    assert [entry.message for entry in sender.table] == [big]
    assert name_of(big) not in ids_of(bench.records(sender.guid))

    appliance.configure(settings)
    appliance.restart()
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(deadline=soon(20))
    sender.until(lambda: classes(big, sender.kept))
    sender.close()
    check(bench, sender, [big], {})
    assert ids_of(bench.records(sender.guid, ["plain"])).count(name_of(big)) == 1
