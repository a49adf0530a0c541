import json
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.bench.chart import WIDTH, bars, draw
from tests.bench.sample import sample

SVG = "{http://www.w3.org/2000/svg}"


def test_chart_is_well_formed_and_whole() -> None:
    told = sample()
    told["targets"][0]["what"] = "a < b & 'c'"
    root = ET.fromstring(draw(told))  # noqa: S314 - our own
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f"{SVG}rect")) == len(list(bars(told["results"]))) == 5 + 15
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "a < b & 'c'" in texts
    assert {"raw producer, transactional", "raw producer, SRMP stream"} <= set(texts)
    assert "8 connections" in texts
    assert len(root.findall(f"{SVG}circle")) == len(told["targets"])


def test_nothing_reaches_over_the_edge() -> None:
    root = ET.fromstring(draw(sample()))  # noqa: S314 - our own
    height = int(root.attrib["height"])
    for rect in root.findall(f"{SVG}rect"):
        assert int(rect.attrib["x"]) + int(rect.attrib["width"]) < WIDTH
    assert all(int(text.attrib["y"]) < height for text in root.iter(f"{SVG}text"))


def test_light_and_dark() -> None:
    assert "prefers-color-scheme: dark" in draw(sample())


def test_chart_of_a_part() -> None:
    told = sample() | {"results": {}, "targets": []}
    ET.fromstring(draw(told))  # noqa: S314 - our own


def test_the_chart_of_the_readme_is_drawn_from_its_figures() -> None:
    here = Path(__file__).parent
    told = json.loads((here / "figures.json").read_text(encoding="utf-8"))
    assert draw(told) == (here / "chart.svg").read_text(encoding="utf-8")
