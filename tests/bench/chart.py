"""The benchmark's figures as an SVG that reads well in a README, on light and on dark pages.

python -m tests.bench.chart FIGURES.json CHART.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from tests.bench.neighbours import CALM
from tests.bench.report import amount, share
from tests.bench.scenarios import FLOODS, KIB, SMALL, called

WIDTH = 860
_LEFT = 250  # where bars begin
_LONGEST = 440
_ROW = 26
_MARGIN = 20
_STYLE = """
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.small { font-size: 12px; fill: #59636e }
.raw { fill: #8c959f } .bridge { fill: #0969da } .yes { fill: #1a7f37 } .no { fill: #bc4c00 }
.end { text-anchor: end }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .raw { fill: #6e7681 } .bridge { fill: #4493f8 } .yes { fill: #3fb950 } .no { fill: #f0883e }
}
"""


class Bar(NamedTuple):
    label: str
    kind: str  # class of its colour
    value: float
    note: str


def bars(results: Mapping[str, Mapping[str, Any]]) -> Iterator[Bar]:
    """Of the small messages: raw first, then the bridge."""
    shown = set[str]()
    for flood in FLOODS:
        row, raw = results.get(flood.name), results.get(flood.raw.name)
        if flood.size != SMALL or row is None or raw is None:
            continue
        if flood.raw.name not in shown:
            shown.add(flood.raw.name)
            yield Bar(f"raw producer, {called(flood.kind)}", "raw", raw["per_second"], "")
        yield Bar(flood.who, "bridge", row["per_second"], f" · {share(row['of_raw'])} of raw")


def draw(told: Mapping[str, Any]) -> str:
    """A whole SVG document from the benchmark's JSON."""
    rows = list(bars(told["results"]))
    body = [_text(_MARGIN, 32, f"Messages a second, {SMALL // KIB} KiB", "title")]
    top = 48
    most = max((bar.value for bar in rows), default=1.0)
    for bar in rows:
        if bar.kind == "raw" and top > 48:
            top += 8
        body += _bar(bar, top, most)
        top += _ROW
    if told["targets"]:
        top += 34
        body.append(_text(_MARGIN, top, "Targets", "title"))
        top += 8
        for target in told["targets"]:
            top += _ROW - 4
            body += _target(target, top)
    top += 32
    body.append(_text(_MARGIN, top, _footer(told), "small"))
    height = top + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(_summary(rows))}>'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *body, "</svg>\n"])


def _bar(bar: Bar, top: int, most: float) -> Iterator[str]:
    length = max(1, round(_LONGEST * bar.value / most))
    yield _text(_LEFT - 10, top + 15, bar.label, "end")
    yield (
        f'<rect class="{bar.kind}" x="{_LEFT}" y="{top}" width="{length}" height="20" rx="3">'
        f"<title>{escape(bar.label)}: {bar.value:,.0f}</title></rect>"
    )
    yield _text(_LEFT + length + 8, top + 15, f"{bar.value:,.0f}{bar.note}", "small")


def _target(target: Mapping[str, Any], top: int) -> Iterator[str]:
    kind, word = ("yes", "reached") if target["reached"] else ("no", "not reached")
    yield f'<circle class="{kind}" cx="{_MARGIN + 6}" cy="{top - 4}" r="5"/>'
    yield _text(_MARGIN + 20, top, target["what"])
    yield _text(460, top, amount(target), "end")
    yield _text(480, top, f"wanted {target['wanted']}, {word}", "small")


def _footer(told: Mapping[str, Any]) -> str:
    machine, versions = told["machine"], told["versions"]
    parts = [
        f"{machine['cores']} cores for broker, bridge and senders together",
        f"Python {versions['python']}",
        f"librdkafka {versions['librdkafka']}",
        "one broker, one run",
    ]
    if (others := machine["cores_taken_by_others"]) > CALM:
        parts.append(f"other work took {others:.1f} cores")
    return " · ".join(parts)


def _summary(rows: list[Bar]) -> str:
    return "; ".join(f"{bar.label}: {bar.value:,.0f} messages a second" for bar in rows)


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{style}>{escape(text)}</text>'


def main() -> None:
    figures, chart = map(Path, sys.argv[1:])
    told = json.loads(figures.read_text(encoding="utf-8"))
    chart.write_text(draw(told), encoding="utf-8")


if __name__ == "__main__":
    main()
