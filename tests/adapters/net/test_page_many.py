"""Ten thousand streams and a thousand sessions: the server pages, the browser shows a page."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from bridge.model.verdict import Cursor
from tests.adapters.fake_pumps import connection, guid
from tests.adapters.net.fake_appliance import TOKEN, FakeAppliance, admin_server
from tests.support.browser import chromium, needs_browser, quiet_page
from tests.support.page_checks import faint_texts, nameless

pytestmark = needs_browser

STREAMS = 10_000
SESSIONS = 1_000
PER_PAGE = 50
MOST_BYTES = 16_000  # of one answer


def crowded() -> FakeAppliance:
    appliance = FakeAppliance()
    for number in range(STREAMS):
        key = guid(number), f"DIRECT=OS:bridge01\\private$\\queue{number % 7}"
        appliance.watch.pump.shard.streams.advance(key, Cursor(1, number))
    appliance.watch.connections = [connection(number) for number in range(SESSIONS)]
    return appliance


@contextmanager
def served(appliance: FakeAppliance) -> Iterator[str]:
    """In a thread with a loop of its own: Playwright has the main one."""
    ready, url = threading.Event(), [""]
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with admin_server(appliance) as url[0]:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


def test_what_measures_the_page_can_fail(browser: Browser) -> None:
    """Of grey on white, an input and a link without a name."""
    with quiet_page(browser) as page:
        page.set_content("<p style='color:#888'>faint</p><input><a href='#'></a><button>b</button>")
        assert faint_texts(page) == ["3.54: faint"]
        assert nameless(page) == ["<input>", '<a href="#"></a>']


def test_the_page_stays_small(browser: Browser) -> None:
    with served(crowded()) as url, quiet_page(browser) as page:
        sizes: dict[str, int] = {}
        page.on("response", lambda answer: _weigh(answer, sizes))
        page.goto(f"{url}/#streams")
        unlock(page)
        _look_through_streams(page)
        page.evaluate("location.hash = 'sessions'")  # the page keeps the token in its memory
        expect(page.locator(".found")).to_have_text("1\u201350 of 1,000")
        page.fill("[type=search]", str(guid(777)))
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text("10.0.3.9:2000")
        assert sizes
        assert max(sizes.values()) < MOST_BYTES, sizes


def test_one_that_stands_by_is_not_ill(browser: Browser) -> None:
    appliance = FakeAppliance()
    state: list[tuple[str, list[str], str, str]] = [
        ("standby", ["standby"], "Standby", ""),
        ("standby", ["standby", "Kafka is away"], "Standby: Kafka is away", "warn"),
        ("leader", [], "Ready, leading", "ok"),
        ("alone", ["Kafka is away", "starting"], "Not ready: Kafka is away; starting", "bad"),
    ]
    with served(appliance) as url, quiet_page(browser) as page:
        appliance.watch.role, appliance.watch.reasons = state[0][:2]
        page.goto(url)
        for role, reasons, word, kind in state:
            appliance.watch.role, appliance.watch.reasons = role, reasons
            expect(page.locator("#state")).to_have_text(word)
            expect(page.locator("#state")).to_have_attribute("data-kind", kind)


def test_host_names_that_messages_were_refused_for(browser: Browser) -> None:
    """They come from strangers: text, never markup."""
    appliance = FakeAppliance()
    row = {"host": "<b>old</b>-name", "messages": 1234, "last": "2026-01-02T03:04:05Z"}
    with served(appliance) as url, quiet_page(browser) as page:
        page.goto(f"{url}/#health")
        card = page.locator("section", has_text="This appliance")
        expect(card).to_contain_text("Refused host names")
        appliance.watch.rejected_hosts = [row]
        expect(card).to_contain_text("<b>old</b>-name: 1,234")


def unlock(page: Page) -> None:
    page.click("#unlock")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#unlock")).to_have_text("Lock")


def _weigh(answer: Response, sizes: dict[str, int]) -> None:
    if "/api/" in answer.url:
        sizes[answer.url] = int(answer.headers.get("content-length", "0"))


def _look_through_streams(page: Page) -> None:
    rows, found = page.locator("tbody tr"), page.locator(".found")
    expect(found).to_have_text("1\u201350 of 10,000")
    expect(rows).to_have_count(PER_PAGE)
    page.click("button:text-is('Last')")
    expect(found).to_have_text("9,951\u201310,000 of 10,000")
    expect(rows).to_have_count(PER_PAGE)
    page.click("th >> text=Number")
    page.click("th >> text=Number")
    expect(rows.first.locator("[data-title=Number]")).to_have_text("9,999")
    page.fill("[type=search]", "queue3 000000000")
    expect(found).to_have_text("1\u201350 of 143 found among 10,000")
    page.fill("[type=search]", str(guid(4242)))
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("4,242")
