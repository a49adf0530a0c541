"""The three files of a report, and a page that nothing can be smuggled into."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_jobs.reconcile.report import content_policy, embedded, html, render, shares, visible
from msmq_jobs.reconcile.report_data import checked
from msmq_jobs.reconcile.rules import VERDICTS
from msmq_jobs.reconcile.words import sentence
from tests.spark.reconcile.sample import HOSTILE, Findings, clean, hostile, week


class Reading(HTMLParser):
    """What a browser would make of it: elements with their attributes, and what they hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []  # element, text
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.inside.append((self.elements[-1][0] if self.elements else "", data))

    def texts(self, tag: str) -> list[str]:
        return [text for element, text in self.inside if element == tag]


def page_of(found: Findings) -> str:
    return html(checked(found))


@pytest.fixture(scope="module")
def evil() -> str:
    return page_of(hostile())


def test_three_files_and_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        render(week(), tmp_path / "deep" / name)
    one, two = tmp_path / "deep/one", tmp_path / "deep/two"
    names = ["junit.xml", "report.html", "report.json"]
    assert sorted(path.name for path in one.iterdir()) == names
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)
    assert json.loads((one / "report.json").read_bytes())["messages"] == week()["messages"]
    assert ET.parse(one / "junit.xml").getroot().tag == "testsuites"  # noqa: S314 - our own


def test_nothing_is_written_of_what_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"verdicts"):
        render(week() | {"verdicts": {}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("make", [week, clean, hostile])
def test_the_data_in_the_page_is_the_report(make: object) -> None:
    found = make()  # type: ignore[operator]
    text = page_of(found)
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block
    assert checked(json.loads(block[1])) == checked(found)


def test_the_answer_comes_first() -> None:
    found = week()
    body = page_of(found).partition("<main>")[2]
    first = re.search(r"<h1>(.*?)</h1>", body, re.DOTALL)
    assert first
    assert re.sub("<.*?>", "", first[1]) == sentence(found)
    for verdict in VERDICTS:
        assert f'id="tile-{verdict}"' in body


def test_the_policy_allows_these_texts_and_no_others(evil: str) -> None:
    read = Reading(evil)
    policy = next(a["content"] for _, a in read.elements if "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    style = re.findall(r"<style>(.*?)</style>", evil, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", evil, re.DOTALL)
    assert (len(style), len(scripts)) == (1, 2)

    def hashed(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert f"style-src {hashed(style[0])};" in policy
    assert f"script-src {hashed(scripts[0])} {hashed(scripts[1])};" in policy
    assert content_policy("a", "b") != content_policy("a", "c")


def test_hostile_names_stay_text(evil: str) -> None:
    read, tame = Reading(evil), Reading(page_of(week()))
    tags = [[tag for tag, _ in one.elements if tag != "time"] for one in (read, tame)]
    assert tags[0] == tags[1]  # what is no time is not marked as one
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
    assert "{{7*7}}" in evil  # told as it came, not computed
    assert not re.search("[\u2028\u202e\x00\x1b]", evil)


def test_json_in_a_script_element() -> None:  # HTML 4.12.1.3: no <!--, <script or </script
    told = embedded({"a": "</script><!--<script>&\u2028\u2029", "b": HOSTILE})
    assert not re.search("[<>&\u2028\u2029\x00]", told)
    assert json.loads(told) == {"a": "</script><!--<script>&\u2028\u2029", "b": HOSTILE}


@given(st.text())
def test_any_text_can_be_embedded(text: str) -> None:
    told = embedded([text])
    assert not re.search("[<>&\u2028\u2029\x00-\x1f]", told)
    assert json.loads(told) == [text]


def test_what_hides_is_shown_by_its_number() -> None:
    seen = "a\\u202eb\\u001b[0m\\u2066\\ufeff\\u000ac"
    assert visible({"x": ["a\u202eb\x1b[0m\u2066\ufeff\nc", 5]}) == {"x": [seen, 5]}


def test_the_page_asks_nobody(evil: str) -> None:
    for tag, attributes in Reading(evil).elements:
        assert "src" not in attributes, tag
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form"), tag
    style = "".join(re.findall(r"<style>(.*?)</style>", evil, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_everything_that_is_pointed_at_is_there() -> None:
    read = Reading(page_of(week()))
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    hrefs = [a["href"] or "" for tag, a in read.elements if tag in ("a", "use") and "href" in a]
    files = {"skip.jsonl", "report.json", "junit.xml"}
    assert {href for href in hrefs if not href.startswith("#")} == files
    assert {href[1:] for href in hrefs if href.startswith("#")} <= set(ids)
    labels = {a["aria-labelledby"] for _, a in read.elements if "aria-labelledby" in a}
    assert labels <= set(ids)


def test_empty_states() -> None:
    text = page_of(clean())
    assert "Nothing is missing, duplicated, out of order, altered, unexpected" in text
    assert "do-missing" not in text
    assert "No message is unexpected." in page_of(week())
    without = clean()
    without["inputs"] |= {"audit": None, "sources": [], "topics": []}
    assert "what was sent is known by the audit alone" in page_of(without)


def test_thresholds_are_told() -> None:
    found = week(faults={"missing": 3, "altered": 2})
    found |= {"parity": True, "thresholds": {"missing": "5", "altered": "0.1%"}}
    text = page_of(found)
    assert "within the threshold, 5" in text
    assert "altered ≤ 0.1%, missing ≤ 5" in text
    assert 'class="answer near"' in text


def test_the_chart_library_brings_its_licence() -> None:
    assert "Permission is hereby granted, free of charge" in page_of(clean())


def test_small_shares_can_be_seen() -> None:
    counts = dict.fromkeys(VERDICTS, 0) | {"delivered_once": 10_000_000, "missing": 1}
    bar = shares(counts)
    assert [part["kind"] for part in bar] == ["check", "stop"]
    assert bar[1]["width"] >= 7
    assert sum(part["width"] for part in bar) == pytest.approx(1000, abs=0.1)
    assert shares(dict.fromkeys(VERDICTS, 0)) == []


def test_times_that_are_none() -> None:
    found = clean()
    found["inputs"]["window"] |= {"from": None, "to": None, "watermark": None}
    text = page_of(found)
    assert "the inputs end at" not in text
    assert "the beginning to the end" in text
