"""junit.xml: a suite per queue, a case per verdict, and the answer in front."""

from copy import deepcopy
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_jobs.reconcile.junit import FIRST_IDS, junit
from msmq_jobs.reconcile.rules import BREAKING, VERDICTS
from msmq_jobs.reconcile.words import name, sentence
from tests.spark.reconcile.sample import clean, hostile, week

SMALL = week(queues=1, senders=1, faults={"missing": 1})


def parsed(findings: dict[str, Any]) -> ET.Element:
    return ET.fromstring(junit(findings))  # noqa: S314 - our own


def counts_are_true(root: ET.Element) -> bool:
    """Parsers believe the attributes; they must be what is there."""
    for node in (root, *root.iter("testsuite")):
        cases = list(node.iter("testcase"))
        assert int(node.attrib["tests"]) == len(cases)
        assert int(node.attrib["failures"]) == len(list(node.iter("failure")))
        assert node.attrib["errors"] == "0"
    return True


def test_a_suite_for_each_queue_and_a_case_for_each_verdict() -> None:
    found = week()
    root = parsed(found)
    assert counts_are_true(root)
    answer, *suites = root
    assert [suite.attrib["name"] for suite in suites] == [q["queue"] for q in found["queues"]]
    for suite, queue in zip(suites, found["queues"], strict=True):
        assert [case.attrib["name"] for case in suite] == [name(v) for v in VERDICTS]
        failed = [case.attrib["name"] for case in suite if case.find("failure") is not None]
        assert failed == [name(v) for v in BREAKING if v in queue["verdicts"]]
    failure = answer.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == sentence(found)


def test_a_failure_says_how_many_and_which() -> None:
    found = week(faults={"missing": 30, "expired": 2}, queues=1, senders=2)
    failure = parsed(found).find("testsuite[2]/testcase/failure")
    assert failure is not None
    assert failure.attrib["type"] == "missing"
    assert failure.attrib["message"] == f"30 of {found['messages']:,} missing"
    ids = [row["message_id"] for row in found["offenders"]["missing"]]
    told = (failure.text or "").splitlines()
    assert told[-FIRST_IDS - 1 :] == [*ids[:FIRST_IDS], "all of them: verdicts/"]


def test_lawful_ones_are_told_and_pass() -> None:
    root = parsed(clean())
    assert counts_are_true(root)
    assert root.attrib["failures"] == "0"
    assert any("expired" in (out.text or "") for out in root.iter("system-out"))


def test_what_a_threshold_lets_pass_passes() -> None:
    found = week(faults={"missing": 3})
    found |= {"parity": True, "thresholds": {"missing": "5"}}
    assert parsed(found).attrib["failures"] == "0"
    assert (
        parsed(found | {"parity": False, "thresholds": {"missing": "2"}}).attrib["failures"] != "0"
    )


def test_no_queue_still_has_an_answer() -> None:
    root = parsed(week(faults={}, queues=1) | {"queues": [], "queues_total": 0})
    assert [suite.attrib["name"] for suite in root] == ["parity"]


def test_any_name_is_xml() -> None:
    root = parsed(hostile())
    assert counts_are_true(root)
    names = [suite.attrib["name"] for suite in root]
    assert any("</script><img" in name for name in names)
    assert not any("\x00" in name or "\x1b" in name for name in names)


@settings(max_examples=30, deadline=None)
@given(st.text())
def test_any_text_at_all(text: str) -> None:
    found = deepcopy(SMALL)
    found["queues"][0]["queue"] = found["offenders"]["missing"][0]["message_id"] = text
    assert counts_are_true(parsed(found))


@pytest.mark.parametrize("char", ["\x00", "\x0b", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_cannot_say_is_replaced(char: str) -> None:  # XML 1.0, 2.2
    found = week(queues=1)
    found["queues"][0]["queue"] = f"a{char}b"
    assert parsed(found)[1].attrib["name"] == "a\ufffdb"
