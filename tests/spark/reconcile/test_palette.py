"""Colours that meet on the page can be told apart. WCAG 2.2: 1.4.3 text 4.5, 1.4.11 graphics 3"""

import re

import pytest

from tests.adapters.test_config_files import ROOT

CSS = (ROOT / "spark/msmq_jobs/reconcile/page/report.css").read_text(encoding="utf-8")
PALETTE = {
    name: {"light": light, "dark": dark}
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS
    )
}
WASHES = ("ok-wash", "bad-wash", "near-wash")
TEXT = [
    *(("ink", ground) for ground in ("paper", "card", "sunk", *WASHES)),
    *(("muted", ground) for ground in ("paper", "card", "sunk", *WASHES)),
    *(("link", ground) for ground in ("paper", "card", "sunk", "bad-wash")),
    *(("ok", ground) for ground in ("paper", "card", "ok-wash")),
    ("lawful", "card"),
    *(("bad", ground) for ground in ("card", "sunk", "bad-wash")),
    *(("near", ground) for ground in ("card", "near-wash", "bad-wash")),
]
GRAPHICS = [
    *((line, "card") for line in ("sent", "accepted", "landed", "edge")),
    *(("edge", ground) for ground in ("paper",)),
    *((kind, ground) for kind in ("ok", "lawful", "bad") for ground in WASHES),
    *(("card", tone) for tone in ("ok", "bad", "near")),  # the sign cut out of a shape
]


def luminance(colour: str) -> float:  # WCAG 2.2, relative luminance
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_itself() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_colour_is_in_the_palette() -> None:
    """A colour beside the palette would have no dark twin; white paper is for printers."""
    rules = re.sub(r"--[\w-]+: light-dark\(.*?\);", "", CSS)
    assert re.findall(r"#[0-9a-f]{3,8}\b(?=[;\s])", rules) == ["#fff"]
    assert {name for pair in (*TEXT, *GRAPHICS) for name in pair} == set(PALETTE) - {"line"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    poor = {
        pair: round(found, 2)
        for pair in TEXT
        if (found := contrast(PALETTE[pair[0]][theme], PALETTE[pair[1]][theme])) < 4.5
    }
    assert poor == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_shapes_can_be_seen(theme: str) -> None:
    poor = {
        pair: round(found, 2)
        for pair in GRAPHICS
        if (found := contrast(PALETTE[pair[0]][theme], PALETTE[pair[1]][theme])) < 3
    }
    assert poor == {}
