"""`map plan` and `map apply` against a real broker whose topics differ in every way there is."""

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from confluent_kafka import Producer
from ruamel.yaml import YAML

from bridge.adapters.admin_token import make_token
from bridge.adapters.config_files import load_config
from bridge.adapters.kafka.cluster import Cluster
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.adapters.runtime import write_runtime
from bridge.cli import app as program
from bridge.cli.map_plan import OrderBreaks, Reloaded, register, reload
from bridge.model.errors import ConfigError, Unavailable
from tests.support.config import write_config
from tests.support.kafka import create_topic, unique

LARGE = {"max_message_bytes": str(8 << 20)}


class Plans:
    """A configuration of its own, and the commands run on it."""

    def __init__(self, folder: Path, bootstrap: str, out: Callable[[], tuple[str, str]]) -> None:
        self.prefix, self.bootstrap, self._out = unique("plan"), bootstrap, out
        self.config = write_config(folder, bootstrap, topic_prefix=f"{self.prefix}_own")
        self.own = OwnTopics(f"{self.prefix}_own")

    def map(self, *queues: dict[str, Any], **defaults: Any) -> None:
        """`P` in a topic is the prefix."""
        text = json.dumps({"queues": queues, "defaults": defaults}).replace("P-", f"{self.prefix}-")
        (self.config.parent / "mappings.yaml").write_text(text)

    def topic(self, name: str, partitions: int = 4, **config: str) -> str:
        return create_topic(self.bootstrap, f"{self.prefix}-{name}", partitions, **config)

    def start_once(self) -> None:
        """Our own topics, as a start makes them."""
        ensure_topics({"bootstrap.servers": self.bootstrap}, self.own, 1, [])

    def run(self, command: str, *options: str) -> tuple[int, str, str]:
        code = program.main(["map", command, "--config", str(self.config), *options])
        out, err = self._out()
        return code, out.replace(self.prefix, "P"), err.replace(self.prefix, "P")


@pytest.fixture(autouse=True)
def with_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group `map` with these two commands only."""

    def build(_: object = ()) -> typer.Typer:
        whole, group = typer.Typer(pretty_exceptions_enable=False), typer.Typer()
        whole.callback()(lambda: None)
        register(group)
        whole.add_typer(group, name="map")
        return whole

    monkeypatch.setattr(program, "build", build)


@pytest.fixture
def plans(kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Plans:
    def out() -> tuple[str, str]:
        printed = capsys.readouterr()
        return printed.out, printed.err

    return Plans(tmp_path, kafka.bootstrap_servers, out)


def queue(name: str, **options: Any) -> dict[str, Any]:
    return {"queue": f"private$\\{name}", "topic": f"P-{name}", **options}


def everything_wrong(plans: Plans) -> None:
    plans.map(
        queue("bytes"),
        queue("chunks", oversize="chunk"),
        queue("compact"),
        queue("fine"),
        queue("insync"),
        queue("missing", journal="P-missing.journal"),
        queue("narrow"),
        queue("retention"),
        queue("room"),
        queue("fan", topic="P-fan.{label}"),
    )
    small = {"max_message_bytes": "1048588"}  # what Kafka takes by default
    plans.topic("bytes", 4, **small)
    plans.topic("chunks", 4, **small)
    plans.topic("compact", cleanup_policy="compact")
    plans.topic("fine")
    plans.topic("insync", min_insync_replicas="2")
    plans.topic("narrow", 1)
    plans.topic("retention", retention_ms="3600000")
    plans.topic("room", retention_bytes="1073741824")
    make, own = create_topic, plans.own
    make(plans.bootstrap, own.state, 1, cleanup_policy="delete", **LARGE)
    small_seen = {"retention_ms": "9", "retention_bytes": "536870912", **LARGE}
    make(plans.bootstrap, own.seen, 1, cleanup_policy="compact,delete", **small_seen)
    make(plans.bootstrap, own.rejects, 1, **small)
    make(plans.bootstrap, own.deadletter, 2, retention_ms="-1", **LARGE)


DIFF = """\
~ P-bytes max.message.bytes 1048588 -> 5242880: a 4 MiB message and its headers do not fit
! P-compact cleanup.policy compact: compaction drops all but the last message of a key; \
set delete, or map another topic
~ P-insync min.insync.replicas 2 -> 1: nothing can be written with 1 replica
+ create topic P-missing (4 partitions, 1 replica, cleanup.policy delete, \
max.message.bytes 5242880, retention.ms 604800000) for queue private$\\missing
+ create topic P-missing.journal (4 partitions, 1 replica, cleanup.policy delete, \
max.message.bytes 5242880, retention.ms 604800000) for the journal of queue private$\\missing
~ P-retention retention.ms 3600000 -> 345600000: \
shorter than the four days a sender keeps a message
! P-room retention.bytes 1073741824: a full topic drops records whatever their age; \
set -1 if there is room on the disks
~ P_own.state cleanup.policy delete -> compact: the appliance relies on it
~ P_own.seen retention.ms 9 -> -1: shorter than the 3600 s that the appliance relies on
+ create topic P_own.audit (1 partition, 1 replica, cleanup.policy delete, \
max.message.bytes 8388608, retention.ms 2592000000, retention.bytes 34359738368) \
for the appliance itself
~ P_own.rejects max.message.bytes 1048588 -> 8388608: a 4 MiB message and its headers do not fit
! P_own.rejects retention.bytes -1: peers decide how large it becomes; \
set a bound that fits the disks
! P_own.deadletter partitions 2: a shard has one partition in each of our topics, here 1; \
choose another topic_prefix
"""
NOTES = """\
  topic P-fan.{label} of queue private$\\fan is made when the first message comes
"""


@pytest.mark.kafka
def test_a_diff_for_people(plans: Plans) -> None:
    everything_wrong(plans)
    narrow = "  topic P-narrow has 1 partition; a new topic would get 4 (--partitions)\n"
    total = "Plan: 3 to create, 6 to alter, 4 warnings.\n"
    assert plans.run("plan") == (2, DIFF + NOTES + narrow + total, "")


@pytest.mark.kafka
def test_the_same_for_programs(plans: Plans) -> None:
    everything_wrong(plans)
    code, out, err = plans.run("plan", "-o", "json")
    assert (code, err) == (2, "")
    told = json.loads(out)
    assert list(told) == ["changes", "notes", "summary"]
    assert told["summary"] == {"create": 3, "alter": 6, "warn": 4}
    assert told["notes"] == [
        "topic P-fan.{label} of queue private$\\fan is made when the first message comes",
        "topic P-narrow has 1 partition; a new topic would get 4 (--partitions)",
    ]
    data = {
        "partitions": 4,
        "replication": 1,
        "config": {
            "cleanup.policy": "delete",
            "max.message.bytes": "5242880",
            "retention.ms": "604800000",
        },
    }
    audit = {
        "partitions": 1,
        "replication": 1,
        "config": {
            "cleanup.policy": "delete",
            "max.message.bytes": "8388608",
            "retention.ms": "2592000000",
            "retention.bytes": "34359738368",
        },
    }
    rows = [
        ("alter", "P-bytes", "max.message.bytes", 1048588, 5242880),
        ("warn", "P-compact", "cleanup.policy", "compact", "delete"),
        ("alter", "P-insync", "min.insync.replicas", 2, 1),
        ("create", "P-missing", None, None, data),
        ("create", "P-missing.journal", None, None, data),
        ("alter", "P-retention", "retention.ms", 3600000, 345600000),
        ("warn", "P-room", "retention.bytes", 1073741824, -1),
        ("alter", "P_own.state", "cleanup.policy", "delete", "compact"),
        ("alter", "P_own.seen", "retention.ms", 9, -1),
        ("create", "P_own.audit", None, None, audit),
        ("alter", "P_own.rejects", "max.message.bytes", 1048588, 8388608),
        ("warn", "P_own.rejects", "retention.bytes", -1, 4294967296),
        ("warn", "P_own.deadletter", "partitions", 2, 1),
    ]
    keys = ("action", "topic", "setting", "from", "to")
    reasons = [change.pop("reason") for change in told["changes"]]
    assert told["changes"] == [dict(zip(keys, row, strict=True)) for row in rows]
    shown = iter(DIFF.splitlines())
    assert all(reason in next(shown) for reason in reasons)

    code, out, err = plans.run("plan", "-o", "yaml")
    again = YAML(typ="safe", pure=True).load(out)
    for change, reason in zip(told["changes"], reasons, strict=True):
        change["reason"] = reason
    assert (code, again, err) == (2, told, "")


@pytest.mark.kafka
def test_what_the_operator_asks_for(plans: Plans) -> None:
    plans.start_once()
    plans.map(queue("empty"), queue("full"), queue("new"))
    plans.topic("empty", 2)
    full = plans.topic("full", 2)
    producer = Producer({"bootstrap.servers": plans.bootstrap})
    producer.produce(full, b"x")
    assert producer.flush(30) == 0
    code, out, _ = plans.run("plan", "--partitions", "6", "--replication", "2")
    lines = out.splitlines()
    wanted = "replication 1: 2 are wanted; move it with kafka-reassign-partitions"
    assert code == 2
    assert lines[:5] == [
        "~ P-empty partitions 2 -> 6: it is empty",
        f"! P-empty {wanted}",
        "! P-full partitions 2: 6 are wanted, but streams would move to other partitions "
        "and lose their order; --force adds them",
        f"! P-full {wanted}",
        "+ create topic P-new (6 partitions, 2 replicas, cleanup.policy delete, "
        "max.message.bytes 5242880, retention.ms 604800000) for queue private$\\new",
    ]
    code, out, _ = plans.run("plan", "--partitions", "6", "--force")
    assert (code, out.splitlines()[1]) == (
        2,
        "~ P-full partitions 2 -> 6: streams move to other partitions",
    )


@pytest.mark.kafka
def test_shards_are_fixed_when_the_state_topic_is_made(plans: Plans) -> None:
    plans.map()
    create_topic(plans.bootstrap, plans.own.state, 3, cleanup_policy="compact", **LARGE)
    code, out, _ = plans.run("plan")
    assert code == 2
    assert "+ create topic P_own.seen (3 partitions, " in out
    assert "  'shards' is 1, but P_own.state was made for 3\n" in out


@pytest.mark.kafka
def test_apply_does_it_and_a_second_time_there_is_nothing_to_do(plans: Plans) -> None:
    everything_wrong(plans)
    none = "Appliance: none is running; the mappings count from its next start.\n"
    code, out, err = plans.run("apply")  # nobody can be asked: stdin is no terminal
    assert (code, err) == (0, "")
    assert out.startswith(DIFF)
    assert out.endswith(none)
    assert out.count("\ndone: ") == 9

    again = plans.run("apply", "--yes")
    assert again[0] == 0
    assert "\ndone: " not in again[1]
    assert "Plan: 0 to create, 0 to alter, 4 warnings.\n" + none in again[1]

    plans.map(queue("bytes"), queue("missing", journal="P-missing.journal"))
    code, out, _ = plans.run("plan")
    assert (code, out.splitlines()[-1]) == (2, "Plan: 0 to create, 0 to alter, 2 warnings.")


@pytest.mark.kafka
def test_on_a_new_cluster_one_apply_is_enough(plans: Plans) -> None:
    plans.map(queue("orders", journal="P-journal"))
    code, out, _ = plans.run("apply", "-o", "json")
    told = json.loads(out)
    assert code == 0
    assert told["summary"] == {"create": 7, "alter": 0, "warn": 0, "done": 7, "failed": 0}
    assert all(change["done"] and change["error"] is None for change in told["changes"])
    assert told["appliance"] == {"state": "not running"}
    nothing = "Nothing to do: the cluster is as the mappings want it.\n"
    assert plans.run("plan") == (0, nothing, "")
    code, out, _ = plans.run("apply", "-o", "json")
    assert (code, json.loads(out)["summary"]["done"]) == (0, 0)


@pytest.mark.kafka
def test_half_a_success_is_told_as_such(plans: Plans) -> None:
    plans.start_once()
    plans.map(queue("short"), queue("wide"))
    plans.topic("short", retention_ms="1000")
    code, out, err = plans.run("apply", "--replication", "3")
    assert code == 1
    assert "failed: create P-wide: Unable to replicate the partition 3 time(s)" in out
    assert "done: alter P-short retention.ms\n" in out
    assert out.endswith("Appliance: not told: the cluster is not ready for it.\n")
    assert err.startswith("msmq-bridge: error: 1 of 2 changes failed, first P-wide: Unable to")
    assert len(err.splitlines()) == 1

    code, out, err = plans.run("apply", "--replication", "3", "-o", "json")
    told = json.loads(out)
    assert (code, len(err.splitlines())) == (1, 1)
    assert (told["summary"]["done"], told["summary"]["failed"]) == (0, 1)
    assert told["appliance"]["state"] == "not told"
    (failed,) = [change for change in told["changes"] if change["error"]]
    assert (failed["topic"], failed["done"]) == ("P-wide", False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.kafka
def test_on_a_terminal_it_asks(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    plans.start_once()
    plans.map(queue("orders"))
    cluster = Cluster({"bootstrap.servers": plans.bootstrap})
    orders = f"{plans.prefix}-orders"

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, out, err = plans.run("apply")
    assert (code, out.splitlines()[-1]) == (1, "Plan: 1 to create, 0 to alter, 0 warnings.")
    assert err.endswith("msmq-bridge: error: stopped before it was done\n")
    assert not cluster.read([orders]).topics

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    code, out, err = plans.run("apply", "-o", "json")
    assert (code, json.loads(out)["summary"]["done"]) == (0, 1)
    assert "+ create topic P-orders (" in err
    assert "Make these changes? [y/N]: " in err
    assert orders in cluster.read([orders]).topics

    monkeypatch.setattr(sys, "stdin", Terminal())  # nothing to do: nothing to ask
    assert plans.run("apply")[0] == 0


@pytest.mark.kafka
def test_other_mappings_than_the_appliances(plans: Plans, tmp_path: Path) -> None:
    plans.start_once()
    plans.map()
    other = tmp_path / "other.yaml"
    other.write_text(json.dumps({"queues": [{"queue": "a", "topic": f"{plans.prefix}-other"}]}))
    code, out, _ = plans.run("plan", "--mappings", str(other))
    assert code == 2
    assert out.startswith("+ create topic P-other (")
    code, out, _ = plans.run("apply", "--mappings", str(other))
    assert code == 0
    assert out.endswith(f"Appliance: not told: it reads {tmp_path / 'mappings.yaml'}.\n")


@pytest.mark.kafka
def test_a_topic_of_our_own_is_not_for_queues(plans: Plans) -> None:
    plans.map({"queue": "a", "topic": plans.own.state})
    code, out, err = plans.run("plan")
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert "topic 'P_own.state' is a topic of the bridge itself" in err


def test_no_cluster_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path, "127.0.0.1:1")
    for command in ("plan", "apply"):
        assert program.main(["map", command, "--config", str(path)]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        (line,) = printed.err.splitlines()
        assert line == (
            "msmq-bridge: error: Kafka at 127.0.0.1:1 cannot be reached: 127.0.0.1:1/bootstrap: "
            "Connect to ipv4#127.0.0.1:1 failed: Connection refused; check kafka.bootstrap.servers"
        )


def test_bad_mappings_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path, "127.0.0.1:1")
    (tmp_path / "mappings.yaml").write_text("queues:\n  - queue: a\n    topics: b\n")
    assert program.main(["map", "plan", "-c", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "mappings.yaml:3:5" in line


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["map", command, "--help"]) == 0
    assert f"Example: msmq-bridge map {command} " in capsys.readouterr().out


# -- the running appliance --------------------------------------------------------------------


class Answer(BaseHTTPRequestHandler):
    """One canned answer; what was asked is kept."""

    status, body = 200, b"{}"
    asked: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def appliance(config: Path, status: int, answer: object) -> Iterator[list[tuple[str, str | None]]]:
    asked: list[tuple[str, str | None]] = []
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    handler = type("Canned", (Answer,), {"status": status, "body": body, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        write_runtime(config.parent / "data", f"http://127.0.0.1:{server.server_port}", 1)
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()


def test_reload_asks_the_appliance(tmp_path: Path) -> None:
    path = write_config(tmp_path, None)
    with appliance(path, 200, {"applied": ["private$\\orders"], "unchanged": 3}) as asked:
        assert reload(load_config(path), False) == Reloaded(("private$\\orders",), 3)
        assert reload(load_config(path), True) == Reloaded(("private$\\orders",), 3)
    assert asked == [
        ("/api/mappings/reload?force=0", None),
        ("/api/mappings/reload?force=1", None),
    ]


def test_with_the_token(tmp_path: Path) -> None:  # design 3.2, admin
    path = write_config(tmp_path, None, admin={"token_file": "admin.token"})
    (tmp_path / "admin.token").write_text("s3cret\n")
    with appliance(path, 200, {"applied": [], "unchanged": 0}) as asked:
        assert reload(load_config(path), False) == Reloaded()
    assert asked == [("/api/mappings/reload?force=0", "Bearer s3cret")]


def test_with_the_generated_token(tmp_path: Path) -> None:
    path = write_config(tmp_path, None)
    make_token(tmp_path / "data" / "admin.token")
    token = (tmp_path / "data" / "admin.token").read_text().strip()
    with appliance(path, 200, {"applied": [], "unchanged": 0}) as asked:
        assert reload(load_config(path), False) == Reloaded()
    assert asked == [("/api/mappings/reload?force=0", f"Bearer {token}")]
    with (
        appliance(path, 401, {"error": "Unauthorized"}),
        pytest.raises(ConfigError, match="does not let us write; give it the appliance's token"),
    ):
        reload(load_config(path), False)


@pytest.mark.parametrize("text", [None, "", "two\nlines", "\u00e9"])
def test_a_token_that_cannot_be_used(tmp_path: Path, text: str | None) -> None:
    path = write_config(tmp_path, None, admin={"token_file": "admin.token"})
    if text is not None:
        (tmp_path / "admin.token").write_text(text, encoding="utf-8")
    with appliance(path, 200, {}) as asked, pytest.raises(ConfigError, match=r"admin\.token_file"):
        reload(load_config(path), False)
    assert asked == []


def test_nobody_there(tmp_path: Path) -> None:
    path = write_config(tmp_path, None)
    assert reload(load_config(path), False) is None
    with appliance(path, 200, {}):
        pass
    assert reload(load_config(path), False) is None  # a file that was left behind


@pytest.mark.parametrize(
    ("status", "answer", "error", "told"),
    [
        (403, {"error": "Forbidden"}, ConfigError, "does not let us write: there is no token"),
        (401, {"error": "Unauthorized"}, ConfigError, "does not let us write: there is no token"),
        (503, {"error": "not yet: starting"}, Unavailable, "keeps its mappings: not yet: starting"),
        (409, {"error": "busy"}, Unavailable, "keeps its mappings: busy"),
        (500, {}, Unavailable, "keeps its mappings: it answers 500"),
        (404, b"<html>", Unavailable, "is not an msmq-bridge"),
        (200, [1], Unavailable, "is not an msmq-bridge"),
    ],
)
def test_answers_that_are_no_success(
    tmp_path: Path, status: int, answer: object, error: type[Exception], told: str
) -> None:
    path = write_config(tmp_path, None)
    with appliance(path, status, answer), pytest.raises(error) as caught:
        reload(load_config(path), False)
    assert told in str(caught.value)


def test_order_would_break(tmp_path: Path) -> None:
    path = write_config(tmp_path, None)
    live = [{"queue": "private$\\orders", "reason": "2 live streams"}]
    with appliance(path, 409, {"breaks_order": live}), pytest.raises(OrderBreaks) as caught:
        reload(load_config(path), False)
    assert caught.value.queues == live
    assert str(caught.value) == (
        "the appliance keeps its mappings, live streams would lose their order: "
        "private$\\orders (2 live streams); add --force to switch anyway"
    )


@pytest.mark.kafka
def test_apply_tells_the_appliance(plans: Plans) -> None:
    plans.start_once()
    plans.map(queue("orders"))
    with appliance(plans.config, 200, {"applied": ["private$\\orders"], "unchanged": 1}) as asked:
        code, out, err = plans.run("apply")
        assert (code, err) == (0, "")
        assert out.endswith("Appliance: switched private$\\orders; 1 queue unchanged.\n")
        told = json.loads(plans.run("apply", "--force", "-o", "json")[1])
    answer = {"state": "reloaded", "applied": ["private$\\orders"], "unchanged": 1}
    assert told["appliance"] == answer
    assert [path[-1] for path, _ in asked] == ["0", "1"]

    live = [{"queue": "private$\\orders", "reason": "live"}]
    with appliance(plans.config, 409, {"breaks_order": live}):
        code, out, err = plans.run("apply", "-o", "json")
    refused = {"state": "refused", "breaks_order": live}
    assert (code, json.loads(out)["appliance"]) == (1, refused)
    (line,) = err.splitlines()
    assert "private$\\orders (live); add --force" in line

    with appliance(plans.config, 403, {}):
        code, out, err = plans.run("apply")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "Appliance: failed: admin.token_file: " in out


@pytest.mark.kafka
def test_without_an_admin_port_it_must_be_restarted(kafka: EmbeddedKafka, plans: Plans) -> None:
    write_config(
        plans.config.parent,
        kafka.bootstrap_servers,
        topic_prefix=plans.own.prefix,
        listen={"admin": None},
    )
    plans.start_once()
    plans.map()
    code, out, _ = plans.run("apply")
    assert (code, out.splitlines()[-1]) == (
        0,
        "Appliance: not told: listen.admin is off; restart it.",
    )
