"""report.html, report.json and junit.xml of one run. The page needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from msmq_jobs.reconcile import remedies, rules, words
from msmq_jobs.reconcile.junit import junit
from msmq_jobs.reconcile.report_data import Findings, checked, report_json

_OWN: Final = files("msmq_jobs.reconcile") / "page"
_VENDOR: Final = files("bridge.adapters") / "page" / "vendor"
_SCRIPTS: Final = ("format.js", "table.js", "columns.js", "charts.js", "main.js")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(?:\.\d+)?(?:Z|\+00:00)", re.ASCII)
# What would hide itself, turn its neighbours round or steer a terminal; format.js has the same.
_UNSEEN: Final = "\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_HIDDEN: Final = re.compile(f"[{_UNSEEN}]")
# A `<` could end the script block, or begin a comment in it.
_UNSAFE: Final = re.compile(f"[<>&{_UNSEEN}]")


def render(findings: dict[str, Any], out: Path) -> None:
    """Raises msgspec.ValidationError when the findings are not what the schema says."""
    made = rendered(findings)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (out / name).write_bytes(content)


def rendered(findings: dict[str, Any]) -> dict[str, bytes]:
    """The files by name, for folders that only Spark can reach. Raises as `render` does."""
    found = checked(findings)
    return {
        "report.json": report_json(found),
        "report.html": html(found).encode(),
        "junit.xml": junit(msgspec.to_builtins(found)),
    }


def html(findings: Findings) -> str:
    plain = msgspec.to_builtins(findings)
    seen = visible(plain)
    style = _vendored("uPlot.min.css") + _own("report.css")
    script = "\n".join([_chart_library(), *(_own(name) for name in _SCRIPTS)])
    early = _own("early.js")
    page = _environment().from_string(_own("report.html.j2"))
    return page.render(
        policy=content_policy(style, early, script),
        style=Markup(style),  # noqa: S704 - our own files
        early=Markup(early),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=Markup(embedded(plain)),  # noqa: S704 - no < is left in it
        found=seen,
        words=words,
        remedies=remedies,
        shares=shares(seen["verdicts"]),
        ledger=_ledger(seen),
    )


def content_policy(style: str, *scripts: str) -> str:
    """Nothing but these very texts: no network, no other script, whatever a label says."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed};"
        " base-uri 'none'; form-action 'none'"
    )


def embedded(data: Any) -> str:
    """JSON that may stand in a script element."""
    text = msgspec.json.encode(data, order="sorted").decode()
    return _UNSAFE.sub(_by_number, text)


def visible(value: Any) -> Any:
    """Names, ids and reasons come from senders: what cannot be seen is shown by its number."""
    if isinstance(value, str):
        return _HIDDEN.sub(_by_number, value)
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in value.items()}
    return [visible(item) for item in value] if isinstance(value, list) else value


def _by_number(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _ledger(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Verdicts in the page's three groups, each with all that is said about it."""
    groups = {"breaks": rules.BREAKING, "once": (rules.DELIVERED,), "lawful": rules.LAWFUL}
    return {group: [_tile(found, verdict) for verdict in of] for group, of in groups.items()}


def _tile(found: dict[str, Any], verdict: str) -> dict[str, Any]:
    meaning, what_to_do = words.explain(verdict)
    return {
        "verdict": verdict,
        "name": words.name(verdict),
        "kind": words.kind(verdict),
        "count": found["verdicts"][verdict],
        "threshold": found["thresholds"].get(verdict),
        "allowed": words.allowed(found, verdict),
        "meaning": meaning,
        "what_to_do": what_to_do,
        "offenders": len(found["offenders"].get(verdict, ())),
    }


def shares(verdicts: dict[str, int]) -> list[dict[str, Any]]:
    """The bar under the answer, 1000 wide. What is there at all can be seen."""
    parts = {
        "check": verdicts[rules.DELIVERED],
        "ring": words.total(verdicts, rules.LAWFUL),
        "stop": words.total(verdicts, rules.BREAKING),
    }
    wide = {kind: max(8.0, 1000 * n / sum(parts.values())) for kind, n in parts.items() if n}
    scale, x, bar = 1000 / sum(wide.values()) if wide else 0, 0.0, []
    for kind, width in wide.items():
        bar.append({"kind": kind, "x": round(x, 2), "width": round(width * scale, 2)})
        x += width * scale
    return bar


def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = lambda number: f"{number:,}"
    made.filters["moment"] = _moment
    made.filters["plain"] = _plain
    return made


def _moment(time: str) -> str:
    """`2026-11-17T08:30:00.000Z` as people write it; what is no time stays as it is."""
    found = _TIME.fullmatch(time)
    if not found:
        return time
    day, minute, second = found.groups()
    clock = minute if second in (None, ":00") else minute + second
    return Markup("<time>{} {} UTC</time>").format(day, clock)  # does not break over lines


def _plain(detail: Any) -> str:
    if detail is None or isinstance(detail, str):
        return detail or ""
    return json.dumps(detail, sort_keys=True, ensure_ascii=False)


def _own(name: str) -> str:
    return (_OWN / name).read_text(encoding="utf-8")


def _vendored(name: str) -> str:
    return (_VENDOR / name).read_text(encoding="utf-8")


def _chart_library() -> str:
    """Its licence goes wherever it goes."""
    return f"/*\n{_vendored('uPlot.LICENSE')}*/\n{_vendored('uPlot.iife.min.js')}"
