"""A real browser for the pages: Debian's Chromium, driven by Playwright.

A page that logs an error or asks anybody but its own host fails its test.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium (apt-get install chromium)"
)

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def quiet_page(browser: Browser, **context: Any) -> Iterator[Page]:
    """A page of its own; what it complained of or asked of strangers is a failure on leaving."""
    complaints: list[str] = []
    asked: set[str] = set()
    context.setdefault("viewport", WIDE)
    owner = browser.new_context(**context)
    page = owner.new_page()
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.add(_host(request.url)))
    try:
        yield page
    finally:
        owner.close()
    assert complaints == []
    assert asked <= {"", "127.0.0.1", "localhost"}, asked


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
