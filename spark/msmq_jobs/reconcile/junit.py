"""The findings as JUnit XML: a suite per queue, a case per verdict, and the answer in front."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from xml.etree import ElementTree as ET

from msmq_jobs.reconcile import rules, words

FIRST_IDS: Final = 10
# XML 1.0 2.2: what no document may hold, however it is written.
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(findings: words.Findings) -> bytes:
    answer = _suite("parity", [_answer(findings)])
    queues = [_queue(findings, queue) for queue in findings["queues"]]
    root = ET.Element("testsuites", name="msmq-bridge reconcile")
    root.extend([answer, *queues])
    for total in ("tests", "failures"):
        root.set(total, str(sum(int(suite.attrib[total]) for suite in root)))
    root.attrib |= {"errors": "0", "time": "0"}
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(name: str, cases: list[ET.Element]) -> ET.Element:
    failures = sum(case.find("failure") is not None for case in cases)
    told = {"name": _text(name), "tests": str(len(cases)), "failures": str(failures)}
    suite = ET.Element("testsuite", told | {"errors": "0", "skipped": "0", "time": "0"})
    suite.extend(cases)
    return suite


def _answer(findings: words.Findings) -> ET.Element:
    """Fails when and only when the exit code is not 0."""
    case = _case("parity", "parity")
    told = "\n".join([words.sentence(findings), *words.totals(findings)])
    if findings["parity"]:
        _out(case, told)
    else:
        _fail(case, "parity", words.sentence(findings), told)
    return case


def _queue(findings: words.Findings, queue: Mapping[str, Any]) -> ET.Element:
    cases = [_verdict(findings, queue, verdict) for verdict in rules.VERDICTS]
    return _suite(queue["queue"], cases)


def _verdict(findings: words.Findings, queue: Mapping[str, Any], verdict: str) -> ET.Element:
    case = _case(queue["queue"], words.name(verdict))
    count = queue["verdicts"].get(verdict, 0)
    if not count:
        return case
    headline = f"{count:,} of {queue['messages']:,} {words.name(verdict)}"
    ids = [o["message_id"] for o in findings["offenders"].get(verdict, ()) if _of(o, queue)]
    told = [headline, *words.explain(verdict), *_first(ids, count, findings["details"])]
    if words.allowed(findings, verdict):
        _out(case, "\n".join(told))
    else:
        _fail(case, verdict, headline, "\n".join(told))
    return case


def _of(offender: Mapping[str, Any], queue: Mapping[str, Any]) -> bool:
    return bool(offender["queue"] == queue["queue"])


def _first(ids: list[str], count: int, details: str) -> list[str]:
    """So many as a person looks at; the folder has them all."""
    shown = ids[:FIRST_IDS]
    return [*shown, f"all of them: {details}"] if len(shown) < count else shown


def _case(suite: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=_text(suite), name=name, time="0")


def _fail(case: ET.Element, kind: str, message: str, told: str) -> None:
    failure = ET.SubElement(case, "failure", type=kind, message=_text(message))
    failure.text = _text(told)


def _out(case: ET.Element, told: str) -> None:
    ET.SubElement(case, "system-out").text = _text(told)


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
