"""What can be measured of a page in the browser: contrast, and names for who cannot see it."""

from playwright.sync_api import Page

LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3

_FAINT = """least => {
  const parts = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const channel = (v) => linear(v / 255);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.matches(":disabled")) continue;
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = element.textContent.trim().slice(0, 60);
    if (ratio < least) faint.push(`${ratio.toFixed(2)}: ${text}`);
  }
  return faint;
}"""

_NAMELESS = """() => [...document.querySelectorAll("button, a[href], input, select, meter, figure")]
  .filter((e) => e.checkVisibility())
  .filter((e) => !e.textContent.trim() || e.matches("input, select, meter"))
  .filter((e) => !e.getAttribute("aria-label") && !(e.labels && e.labels.length))
  .map((e) => e.outerHTML.slice(0, 100))"""


def faint_texts(page: Page, least: float = LEAST_CONTRAST) -> list[str]:
    """Texts whose contrast to what is behind them is too low."""
    found: list[str] = page.evaluate(_FAINT, least)
    return found


def nameless(page: Page) -> list[str]:
    """Things to use that a screen reader has no name for."""
    found: list[str] = page.evaluate(_NAMELESS)
    return found
