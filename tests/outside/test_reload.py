"""`map apply` on a running appliance: it switches and drops nobody. Design 3.1, 3.2

The mapping file is the operator's: every test leaves one that the appliance has taken.
"""

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import ROOT, Appliance, Settings, command, number_of, queue
from tests.outside.conftest import Broker, OpenSender
from tests.outside.rawmsmq import Message, Name, Tx, private
from tests.outside.rawsender import soon
from tests.outside.records import Record, create_topics, of_source, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
SEQUENCE = 0x65000000_00000400
TOKEN = uuid4().hex


class Operator:
    """Edits the files and runs the program."""

    def __init__(self, appliance: Appliance) -> None:
        self.appliance = appliance
        self.file = appliance.folder / "mappings.yaml"
        self.queues: dict[str, dict[str, Any]] = {
            "orders": {"transactional": True},
            "plain": {},
            "w-*": {"transactional": True, "topic": self.topic("{queue}")},
        }
        self.defaults: dict[str, Any] = {}

    def topic(self, name: str) -> str:
        return self.appliance.topic(name)

    def write(self) -> None:
        queues = [
            {"queue": f"private$\\{name}", "topic": self.topic(name), **entry}
            for name, entry in self.queues.items()
        ]
        content = {"queues": queues, "defaults": self.defaults}
        self.file.write_text(json.dumps(content, indent=1))

    def apply(self, *options: str, config: Path | None = None) -> tuple[int, str, str]:
        where = str(config or self.appliance.config)
        done = subprocess.run(
            [*command(), "map", "apply", "--config", where, "--yes", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def switch(self, *, force: bool = False) -> dict[str, Any]:
        """Without the program, which takes a second; what the appliance did."""
        self.write()
        status, told = self.post(force=force)
        assert status == 200, told
        return told

    def post(self, token: str = TOKEN, *, force: bool = False) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(*self.appliance.listeners["admin"], timeout=30)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request("POST", f"/api/mappings/reload?force={force:d}", headers=headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def other_config(self, name: str, admin: dict[str, str]) -> Path:
        """As an operator has it who does not know the token."""
        settings = json.loads(self.appliance.config.read_text())
        path = self.appliance.folder / name
        path.write_text(json.dumps({**settings, "admin": admin}))
        return path


@pytest.fixture(scope="module")
def operator(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    prefix = f"reload-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    known = Settings(token=TOKEN)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=known)
    settings = json.loads(appliance.config.read_text())
    settings["admin"] = {"token_file": "admin.token"}
    appliance.config.write_text(json.dumps(settings))
    (appliance.folder / "admin.token").write_text(f"{TOKEN}\n")
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in ("orders", "plain")])
    operator = Operator(appliance)
    operator.write()
    appliance.start()
    yield operator
    appliance.terminate()


@pytest.fixture(scope="module")
def appliance(operator: Operator) -> Appliance:
    return operator.appliance


def plain(source: UUID, number: int, name: str = "plain", body: bytes = b"") -> Message:
    return Message(
        source=source,
        message_id=number,
        destination=queue(name),
        body=body or b"%d" % number,
        recoverable=True,
    )


def step(source: UUID, number: int, destination: Name, **more: Any) -> Message:
    return Message(
        source=source,
        message_id=number,
        destination=destination,
        body=b"%d" % number,
        tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1),
        **more,
    )


def records(operator: Operator, name: str, source: UUID) -> list[Record]:
    return of_source(read_topic(operator.appliance.bootstrap, operator.topic(name)), source)


def values(operator: Operator, name: str, source: UUID) -> list[bytes]:
    return [record.value for record in records(operator, name, source)]


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


ORDERS = queue("orders")


def test_a_session_goes_on_over_new_mappings(operator: Operator, open_sender: OpenSender) -> None:
    """The same TCP session, its counters (QB-49 is asserted on every packet) and its stream."""
    pid = operator.appliance.pid
    sender = open_sender()
    source = sender.guid
    port = sender.sock.getsockname()
    sender.transmit([plain(source, 1001, "new")])  # refused: nobody knows it yet
    sender.unsent.extend(step(source, number, ORDERS) for number in range(1, 201))
    sender.send_all_windowed(deadline=soon(30), until_acked=60)
    assert sender.in_flight  # it happens in the middle
    operator.queues |= {"new": {}, "plain": {"value": "json"}}
    operator.write()
    code, out, error = operator.apply("-o", "json")
    assert (code, error) == (0, "")
    told = json.loads(out)["appliance"]
    assert (told["state"], told["unchanged"]) == ("reloaded", 2)
    assert sorted(told["applied"]) == ["private$\\new", "private$\\plain"]
    sender.send_all_windowed(deadline=soon(30))
    sender.send_all_windowed([plain(source, 1002, "new"), plain(source, 1003)], soon(30))
    assert sender.acked == sender.sent == 203
    assert sender.sock.getsockname() == port
    assert operator.appliance.pid == pid
    assert operator.appliance.process.poll() is None
    assert values(operator, "orders", source) == numbers(1, 200)  # nothing lost or doubled
    assert values(operator, "new", source) == [b"1002"]
    assert values(operator, "plain", source) == [b'"1003"']
    assert operator.switch() == {"applied": [], "unchanged": 4}  # again is no change


def test_what_would_break_order_needs_force(operator: Operator, open_sender: OpenSender) -> None:
    sender = open_sender()
    source = sender.guid
    sender.send_all_windowed([step(source, number, ORDERS) for number in (1, 2)])
    before = dict(operator.queues)
    operator.queues["orders"] = {"transactional": True, "topic": operator.topic("moved")}
    operator.write()
    code, out, error = operator.apply("-o", "json")
    assert code == 1
    [line] = error.splitlines()
    assert "private$\\orders" in line
    assert f"its topic changes from {operator.topic('orders')} to" in line
    assert "--force" in line
    told = json.loads(out)["appliance"]
    assert (told["state"], [b["queue"] for b in told["breaks_order"]]) == (
        "refused",
        ["private$\\orders"],
    )
    sender.send_all_windowed([step(source, 3, ORDERS)])
    assert values(operator, "orders", source) == numbers(1, 3)  # the old mapping counts

    code, out, error = operator.apply("--force")
    assert (code, error) == (0, "")
    assert "switched private$\\orders; 3 queues unchanged" in out
    sender.send_all_windowed([step(source, number, ORDERS) for number in (4, 5)])
    sender.transmit([step(source, 2, ORDERS)], keep=False)  # a late copy
    sender.send_all_windowed([step(source, 6, ORDERS)])
    assert values(operator, "orders", source) == numbers(1, 3)
    assert values(operator, "moved", source) == numbers(4, 6)

    operator.queues = before
    operator.switch(force=True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (None, "it is no longer mapped"),
        ({"transactional": False}, "it would refuse transactional messages"),
        ({"transactional": True, "order": "key", "key": "label"}, "picked by key (label)"),
    ],
)
def test_other_ways_to_break_order(
    operator: Operator, open_sender: OpenSender, change: dict[str, Any] | None, why: str
) -> None:
    sender = open_sender()
    sender.send_all_windowed([step(sender.guid, 1, ORDERS)])
    before = dict(operator.queues)
    if change is None:
        del operator.queues["orders"]
    else:
        operator.queues["orders"] = change
    operator.write()
    status, answer = operator.post()
    assert status == 409
    [told] = answer["breaks_order"]
    assert told["queue"] == "private$\\orders"
    assert why in told["reason"]
    sender.send_all_windowed([step(sender.guid, 2, ORDERS)])
    assert values(operator, "orders", sender.guid) == numbers(1, 2)
    operator.queues = before
    operator.switch()


def test_streams_to_a_pattern_are_no_obstacle(operator: Operator, open_sender: OpenSender) -> None:
    """Nor is one that addresses its queue by number (T-25), which only a known name gives."""
    sender, name = open_sender(), f"w-{uuid4().hex[:6]}"
    source, other = sender.guid, uuid4()
    numbering = open_sender(other)
    number = private(number_of(name))
    local = operator.appliance.guid

    def by_number(index: int) -> Message:
        return step(other, index, number, queue_manager=local)

    sender.send_all_windowed([step(source, 1, queue(name))], soon(30))
    numbering.send_all_windowed([by_number(1)], soon(30))
    operator.queues["plain"] = {"key": "label"}
    assert operator.switch()["applied"] == ["private$\\plain"]
    numbering.send_all_windowed([by_number(2)], soon(30))
    sender.send_all_windowed([step(source, 2, queue(name))], soon(30))
    assert values(operator, name, source) == numbers(1, 2)
    assert values(operator, name, other) == numbers(1, 2)


def test_unknown_queues_by_new_defaults(operator: Operator, open_sender: OpenSender) -> None:
    sender, name = open_sender(), operator.topic("nobody")
    sender.send_all_windowed([plain(sender.guid, 1, name)])
    operator.defaults = {"unknown": "auto-create"}
    operator.switch()
    sender.send_all_windowed([plain(sender.guid, 2, name)], soon(30))
    assert values(operator, "nobody", sender.guid) == [b"2"]
    operator.defaults = {}
    operator.switch()
    sender.send_all_windowed([plain(sender.guid, 3, name)])
    assert values(operator, "nobody", sender.guid) == [b"2"]


def test_a_broken_file_changes_nothing(operator: Operator, open_sender: OpenSender) -> None:
    operator.write()
    good = operator.file.read_text()
    operator.file.write_text(good.replace('"topic"', '"topik"', 1))
    line = next(n for n, text in enumerate(good.splitlines(), 1) if '"topic"' in text)
    code, out, error = operator.apply("--force")
    assert (code, out) == (1, "")
    [told] = error.splitlines()
    assert f"mappings.yaml:{line}:" in told
    assert "topik" in told
    # The appliance reads for itself, and says the same.
    status, answer = operator.post()
    assert status == 400
    assert f"mappings.yaml:{line}:" in answer["error"]
    sender = open_sender()
    sender.send_all_windowed([step(sender.guid, 1, ORDERS), plain(sender.guid, 1001)])
    assert values(operator, "orders", sender.guid) == [b"1"]
    assert values(operator, "plain", sender.guid) == [b"1001"]
    assert operator.appliance.is_ready()
    operator.file.unlink()
    assert operator.post()[0] == 400  # no file is broken too
    operator.file.write_text(good)
    assert operator.post()[0] == 200


def test_a_token_is_needed(operator: Operator) -> None:  # design 3.2, admin
    operator.write()
    before = operator.queues["plain"]
    operator.queues["plain"] = {"key": "source"}
    operator.write()
    assert operator.post("")[0] == operator.post("wrong")[0] == 401
    (operator.appliance.folder / "wrong.token").write_text("wrong")
    for config in (
        operator.other_config("without.yaml", {}),
        operator.other_config("wrong.yaml", {"token_file": "wrong.token"}),
    ):
        code, _, error = operator.apply(config=config)
        assert code == 1
        [line] = error.splitlines()
        assert "admin.token_file" in line
        assert TOKEN not in line
    operator.queues["plain"] = before
    operator.write()
    assert operator.post() == (
        200,
        {"applied": [], "unchanged": len(operator.queues)},  # nobody had switched it
    )
