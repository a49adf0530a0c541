"""Pictures of the report, for the eye: `python -m tests.spark.reconcile.screenshots --out DIR`.

Of the sample, or of a real run: `--report DIR/report.json`.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from msmq_jobs.reconcile.report import render
from tests.spark.reconcile.sample import week
from tests.support.browser import PHONE, WIDE, chromium, quiet_page

TALL = WIDE | {"height": 1340}  # down to the charts
LOOKS: dict[str, dict[str, Any]] = {
    "report-light": {"viewport": TALL, "color_scheme": "light"},
    "report-dark": {"viewport": TALL, "color_scheme": "dark"},
    "report-phone": {
        "viewport": PHONE | {"height": 2 * PHONE["height"]},
        "color_scheme": "light",
        "device_scale_factor": 2,
    },
}


def shoot(findings: dict[str, Any], out: Path, *, whole: bool) -> None:
    """`whole`: the page to its end, not only what a window shows."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        render(findings, Path(folder))
        for name, look in LOOKS.items():
            with quiet_page(browser, reduced_motion="reduce", **look) as page:
                page.goto((Path(folder) / "report.html").as_uri())
                page.wait_for_selector("#timeline canvas")
                page.screenshot(path=str(out / f"{name}.png"), full_page=whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("examples/migration-week"))
    parser.add_argument("--report", type=Path, help="a report.json; without it the sample")
    parser.add_argument("--whole", action="store_true", help="the page to its end")
    given = parser.parse_args()
    found = json.loads(given.report.read_bytes()) if given.report else week()
    shoot(found, given.out, whole=given.whole)


if __name__ == "__main__":
    main()
