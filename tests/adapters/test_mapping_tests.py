"""`*.test.yaml`: what is compared, what is found in a folder, and faults with their places."""

from pathlib import Path

import pytest

from bridge.adapters.mapping_files import load_mappings
from bridge.adapters.mapping_tests import Difference, as_lines, read_suite, suites_beside
from bridge.adapters.yaml_structs import Faults
from bridge.core.trial import Trial
from bridge.model.errors import ConfigError

MAPPINGS = """
queues:
  - {queue: private$\\plain, topic: plain, key: label, journal: kept}
  - {queue: private$\\json, topic: json, key: none, value: json}
  - {queue: private$\\big, topic: big, oversize: chunk}
  - {queue: private$\\tx, topic: tx, transactional: true}
"""


def differences(folder: Path, message: str, expect: str, assume: str = "{}") -> list[Difference]:
    (folder / "m.yaml").write_text(MAPPINGS)
    file = folder / "m.test.yaml"
    file.write_text(
        f"assume: {assume}\ntests:\n- name: it\n  message: {message}\n  expect: {expect}\n"
    )
    suite = read_suite(file)
    [case] = suite.cases
    assert (case.name, case.where.line) == ("it", 3)
    trial = Trial(load_mappings(folder / "m.yaml"), assumed=suite.assumed)
    return case.differences(trial.run(case.message))


PLAIN = "{queue: private$\\plain, label: L, body: hello, sent_time: 2026-01-31T12:00:00Z}"
JSON = '{queue: private$\\json, body: \'{"b": 1, "a": [2]}\'}'


@pytest.mark.parametrize(
    ("message", "expect"),
    [
        (PLAIN, "{topic: plain}"),
        (PLAIN, "{topic: plain, key: L, value: hello, value_size: 5, records: 1, journal: kept}"),
        (PLAIN, "{timestamp: 2026-01-31T12:00:00Z}"),
        (PLAIN, "{headers: {msmq.label: L, msmq.sent: 1769860800, msmq.tx.seq: null}}"),
        (JSON, '{key: null, value_json: \'{"a":[2],"b":1}\'}'),
        ("{queue: private$\\plain, body_base64: AAE=}", "{value: '0x0001'}"),
        ("{queue: private$\\none}", "{refused: NACK_BAD_DST_Q}"),
        ("{queue: private$\\none}", "{refused: NACK_BAD_DST_Q, reason: unknown-queue}"),
        ("{queue: private$\\none}", "{reason: unknown-queue}"),
    ],
)
def test_what_is_as_expected(message: str, expect: str, tmp_path: Path) -> None:
    assert differences(tmp_path, message, expect) == []


@pytest.mark.parametrize(
    ("message", "expect", "found"),
    [
        (PLAIN, "{topic: other}", ("topic", "other", "plain")),
        (PLAIN, "{partition: 99}", ("partition", "99", "0")),
        (PLAIN, "{key: null}", ("key", "(none)", "L")),
        (JSON, "{key: L}", ("key", "L", "(none)")),
        (PLAIN, "{value: bye}", ("value", "bye", "hello")),
        (PLAIN, "{value_size: 4}", ("value_size", "4", "5")),
        (PLAIN, "{records: 2}", ("records", "2", "1")),
        (JSON, "{journal: kept}", ("journal", "kept", "(none)")),
        (PLAIN, "{timestamp: 2026-01-31T12:00:01Z}", ("timestamp", "1769860801000", "176986080")),
        (PLAIN, "{headers: {msmq.label: null}}", ("headers.msmq.label", "(none)", "L")),
        (PLAIN, "{headers: {x: y}}", ("headers.x", "y", "(none)")),
        (PLAIN, "{refused: NACK_BAD_DST_Q}", ("refused", "NACK_BAD_DST_Q", "")),
        ("{queue: private$\\tx}", "{topic: tx}", ("refused", "(none)", "NACK_NOT_TRANSACTIONAL")),
        ("{queue: private$\\tx}", "{refused: NACK_BAD_DST_Q}", ("refused", "NACK_BAD_DST_Q", "N")),
    ],
)
def test_what_differs(
    message: str, expect: str, found: tuple[str, str, str], tmp_path: Path
) -> None:
    [difference] = differences(tmp_path, message, expect, "{partitions: 1}")
    assert (difference.what, difference.expected) == found[:2]
    assert difference.found.startswith(found[2])


def test_values_that_are_no_json(tmp_path: Path) -> None:
    [difference] = differences(tmp_path, PLAIN, "{value_json: '[1]'}")
    assert (difference.expected, difference.found) == ("[\n  1\n]", "hello")


def test_what_is_assumed_of_topics(tmp_path: Path) -> None:
    big = "{queue: private$\\big, body_size: 5000}"
    assert differences(tmp_path, big, "{records: 1}") == []
    assert differences(tmp_path, big, "{records: 2}", "{max_bytes: 4000}") == []
    assert differences(tmp_path, big, "{partition: 0}", "{partitions: 1}") == []


def test_a_diff_shows_equal_lines_of_a_text_once() -> None:
    lines = as_lines([Difference("topic", "a", "b"), Difference("value", "1\n2\n3", "1\nx\n3")])
    assert lines == [
        "- topic: a",
        "+ topic: b",
        "  value:",
        "    1",
        "-   2",
        "+   x",
        "    3",
    ]


def test_tests_beside_the_mappings(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml", "a.test.yaml", "b.test.yml", "c.test.yaml", "d.yaml"):
        (tmp_path / name).touch()
    names = [file.name for file in suites_beside(tmp_path)]
    assert names == ["a.test.yaml", "b.test.yml", "c.test.yaml"]
    assert [file.name for file in suites_beside(tmp_path / "b.yaml")] == ["b.test.yml"]
    assert suites_beside(tmp_path / "d.yaml") == []


GOOD = "tests:\n- {name: a, message: {queue: q}, expect: {topic: t}}\n"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "1:1", "has no tests"),
        ("test: []", "1:1", "unknown key 'test'"),
        ("tests: {}", "1:8", "'tests' must be a list"),
        ("tests: [a]", "1:9", "'tests[0]' must have keys"),
        (
            "tests:\n- {message: {queue: q}, expect: {topic: t}}",
            "2:3",
            "'tests[0].name' is missing",
        ),
        ("tests:\n- {name: a, expect: {topic: t}}", "2:3", "'tests[0].message' is missing"),
        ("tests:\n- {name: a, message: {queue: q}}", "2:3", "'tests[0].expect' is missing"),
        (GOOD.replace("name: a", "name: 5"), "2:10", "'tests[0].name' must be text"),
        (GOOD + "\n- {name: a, message: {queue: q}, expect: {topic: t}}", "4:10", "a test in line"),
        (GOOD.replace("queue", "queu"), "2:23", "unknown key 'queu' in 'tests[0].message'"),
        (GOOD.replace("queue: q", "queue: q, body: 1"), "2:39", "'tests[0].message.body' must be"),
        (GOOD.replace("topic", "topc"), "2:43", "unknown key 'topc' in 'tests[0].expect'"),
        (GOOD.replace("topic: t", ""), "2:42", "expects nothing"),
        (GOOD.replace("topic: t", "refused: NO"), "2:52", "'tests[0].expect.refused' is no class"),
        (
            GOOD.replace("topic: t", "refused: NACK_BAD_DST_Q, key: null"),
            "2:73",
            "a message that is refused has no key",
        ),
        (GOOD.replace("topic: t", "value_json: '{'"), "2:55", "value_json is no JSON"),
        ("assume: {partitions: 0}\n" + GOOD, "1:22", "'assume.partitions' must be a number from 1"),
        ("assume: {}\nassumed: {}\n" + GOOD, "2:1", "unknown key 'assumed'"),
        ("tests: [", "1:9", "not YAML"),
    ],
)
def test_faults_name_their_place(text: str, where: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "m.test.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_suite(file)
    assert str(caught.value).startswith(f"{file}:{where}: {what}")
    assert caught.value.mend


def test_all_faults_are_found(tmp_path: Path) -> None:
    file = tmp_path / "m.test.yaml"
    file.write_text("assume: {x: 1}\ntests:\n- {name: a, message: {q: q}, expect: {t: t}}\n- {}\n")
    with pytest.raises(Faults) as caught:
        read_suite(file)
    assert [int(fault.where.split(":")[1]) for fault in caught.value.faults] == [1, 3, 3, 4]
