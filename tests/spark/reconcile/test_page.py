"""The report in a real browser. `quiet_page` fails on console errors and foreign requests."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from msmq_jobs.reconcile.report import render
from msmq_jobs.reconcile.rules import BREAKING
from tests.spark.reconcile.sample import clean, hostile, week
from tests.support.browser import PHONE, chromium, needs_browser
from tests.support.browser import quiet_page as moving_page

pytestmark = needs_browser
MANY: dict[str, Any] = {
    "queues": 60,
    "senders": 50,
    "faults": dict.fromkeys((*BREAKING, "expired"), 20),
}


quiet_page = partial(moving_page, reduced_motion="reduce")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)  # a busy machine is no fault of the page
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages' addresses."""
    root = tmp_path_factory.mktemp("reports")
    made = {"week": week(), "large": week(**MANY), "hostile": hostile()}
    made["empty"] = clean() | {
        "queues": [], "queues_total": 0, "senders": [], "senders_total": 0,
        "offenders": {}, "messages": 0, "verdicts": dict.fromkeys(clean()["verdicts"], 0),
        "timeline": {"bucket_s": 60, "points": []}, "foreign": 0, "latency": {"buckets": []},
    }  # fmt: skip
    for name, found in made.items():
        render(found, root / name)
    return {name: (root / name / "report.html").as_uri() for name in made}


def column(table: Locator, name: str) -> list[str]:
    return table.locator(f'td[data-label="{name}"]').all_inner_texts()


def numbers(texts: list[str]) -> list[int]:
    return [int(text.split()[0].replace(",", "")) for text in texts]


def fits(page: Page) -> bool:
    return bool(
        page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    )


def test_sorts_by_mouse_and_by_keyboard(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.goto(reports["week"])
        table = page.locator("#queues-table")
        broken = numbers(column(table, "Breaks parity"))
        assert broken == sorted(broken, reverse=True)  # worst first
        assert broken[0] > 0
        head = table.get_by_role("columnheader", name="Messages")
        expect(head).to_have_attribute("aria-sort", "none")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "descending")
        told = numbers(column(table, "Messages"))
        assert told == sorted((q["messages"] for q in week()["queues"]), reverse=True)[:10]
        head.get_by_role("button").press("Enter")
        expect(head).to_have_attribute("aria-sort", "ascending")
        assert (
            numbers(column(table, "Messages"))
            == sorted(q["messages"] for q in week()["queues"])[:10]
        )
        table.get_by_role("columnheader", name="Queue").get_by_role("button").press("Space")
        assert column(table, "Queue") == sorted(q["queue"] for q in week()["queues"])[:10]
        expect(table.locator("th[aria-sort=ascending]")).to_have_count(1)


def test_filters_pages_and_details(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.goto(reports["week"])
        table = page.locator("#queues-table")
        status = table.get_by_role("status")
        expect(status).to_have_text("1 to 10 of 14")
        table.get_by_role("button", name="Next page of queues").press("Enter")
        expect(status).to_have_text("11 to 14 of 14")
        expect(table.get_by_role("button", name="Next page of queues")).to_be_disabled()
        table.get_by_label("Filter queues").fill("ORDERS express")
        expect(status).to_have_text("1 to 1 of 1, from 14")
        assert column(table, "Queue") == ["private$\\orders.express"]
        table.get_by_role("button", name="Details of private$\\orders.express").click()
        expect(table.locator("tr.details")).to_contain_text("orders.express")
        table.get_by_label("Filter queues").fill("no such queue")
        expect(table).to_contain_text("Nothing matches the filter.")
        table.get_by_label("Filter queues").fill("")
        table.get_by_label("Only what breaks parity").check()
        table.get_by_label("Rows of queues on a page").select_option("Infinity")
        assert all(n > 0 for n in numbers(column(table, "Breaks parity")))
        broken = [q for q in week()["queues"] if set(q["verdicts"]) & set(BREAKING)]
        expect(table.locator("tbody tr")).to_have_count(len(broken))


def test_offenders_are_found_and_copied(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(reports["week"])
        page.locator("#do-duplicated").get_by_text("See all 12").click()
        table = page.locator("#offenders-table")
        expect(table.get_by_role("status")).to_have_text("1 to 10 of 12, from 565")
        first = week()["offenders"]["duplicated"][0]
        assert len(column(table, "Records")[0].split()) == len(first["copies"]) == 2
        table.get_by_role("button", name="Copy the message id").first.click()
        expect(page.locator("#said")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == first["message_id"]
        table.get_by_role("button", name="Copy these ids").click()
        expect(table.get_by_text("Copied")).to_be_visible()
        ids = page.evaluate("navigator.clipboard.readText()").split("\n")
        assert ids == [row["message_id"] for row in week()["offenders"]["duplicated"]]
        page.locator("#do-missing").get_by_role("button", name="Copy").first.press("Enter")
        expect(page.locator("#do-missing .copy").first).to_have_text("Copied")
        assert "backfill" in page.evaluate("navigator.clipboard.readText()")


def test_themes(browser: Browser, reports: dict[str, str]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with quiet_page(browser, color_scheme="dark") as page:
        page.goto(reports["week"])
        dark = page.evaluate(ground)
        ink = page.evaluate("colour('landed')")
        page.get_by_role("radio", name="Auto").focus()
        page.keyboard.press("ArrowRight")  # Light
        assert page.evaluate(ground) != dark
        assert page.evaluate("charts[0].chart.series[2].stroke()") != ink  # drawn anew
        assert page.evaluate("localStorage.getItem('msmq-bridge.theme')") == "light"
        # Chromium may write it to disk later than we reload: the next visit begins with it.
        page.add_init_script("localStorage.setItem('msmq-bridge.theme', 'light')")
        page.reload()
        expect(page.get_by_role("radio", name="Light", exact=True)).to_be_checked()  # remembered
        assert page.evaluate(ground) != dark
        page.get_by_role("radio", name="Dark").press("Space")
        assert page.evaluate(ground) == dark


def test_charts_switch_and_tell_their_numbers(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.goto(reports["week"])
        assert page.locator("canvas").count() == 2
        page.locator("#timeline").get_by_text("Running total").click()
        points = week()["timeline"]["points"]
        last = page.evaluate("charts[0].chart.data.map(values => values.at(-1))")
        assert last[1:] == [sum(p[key] for p in points) for key in ("sent", "landed", "accepted")]
        page.locator("#latency").get_by_text("Logarithmic").click()
        page.locator("#latency summary").click()
        rows = page.locator("#latency tbody tr:has(td)")
        buckets = week()["latency"]["buckets"]
        expect(rows.last).to_have_text(f"more{buckets[-1]['count']:,}")
        painted = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)"
        assert all(page.evaluate(painted, c.element_handle()) for c in page.locator("canvas").all())


def test_phone_has_no_sideways_scroll(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser, viewport=PHONE) as page:
        page.goto(reports["hostile"])  # the week, with names that are a mile wide
        assert fits(page)
        table = page.locator("#senders-table")
        table.get_by_label("Sort senders").select_option(label="Messages")
        told = numbers(column(table, "Messages"))
        assert told == sorted(told, reverse=True)
        table.get_by_role("button", name="Details of").first.click()
        assert fits(page)


def test_hostile_names_do_nothing(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.goto(reports["hostile"])
        for table in ("queues", "senders", "offenders"):
            page.get_by_label(f"Filter {'messages' if table == 'offenders' else table}").fill(
                "<img"
            )
            button = page.locator(f"#{table}-table").get_by_role("button", name="Details of").first
            button.click()
        assert page.locator("img").count() == 0
        assert fits(page)


def test_large_reports_page_and_print_whole(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser, color_scheme="dark") as page:
        page.goto(reports["large"])
        rows = page.locator("#queues-table tbody tr")
        expect(rows).to_have_count(10)  # not all of them
        expect(page.locator("#offenders-table").get_by_role("status")).to_have_text(
            "1 to 10 of 120"
        )
        page.get_by_label("Filter queues").fill("orders")
        ground = "getComputedStyle(document.body).backgroundColor"
        page.emulate_media(media="print")
        expect(rows).to_have_count(60)  # without pages, without the filter
        expect(page.locator("#senders-table tbody tr")).to_have_count(50)
        expect(page.locator("#offenders-table tbody tr")).to_have_count(120)
        assert page.evaluate(ground) == "rgb(255, 255, 255)"  # light, whatever the theme
        for controls in (".controls", ".pager", ".theme", "nav", ".copy", ".segments"):
            assert not page.locator(controls).first.is_visible(), controls
        assert page.locator("details.ranges").get_attribute("open") is not None
        page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins
        assert fits(page)
        page.emulate_media(media="screen")
        expect(rows).to_have_count(10)
        assert page.locator("details.ranges").get_attribute("open") is None


def test_nothing_to_complain_of(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.goto(reports["empty"])
        expect(page.locator("h1")).to_have_text("Nothing to compare: these inputs have no message.")
        expect(page.locator("#what-to-do")).to_contain_text("there is nothing to repair")
        expect(page.locator("#offenders-table")).to_contain_text("nobody to name")
        expect(page.locator("#queues-table")).to_contain_text("No queue has a message.")
        expect(page.locator("#timeline")).to_contain_text("nothing to draw")
        assert page.locator("canvas").count() == 0


UNNAMED = """() => [...document.querySelectorAll('button, input, select, a, summary')].filter(
    e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)
).map(e => e.outerHTML)"""
HEADINGS = "[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))"


def test_ears_and_keys_get_along(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser) as page:
        page.goto(reports["week"])
        assert page.evaluate(UNNAMED) == []
        levels: list[Any] = page.evaluate(HEADINGS)
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        page.keyboard.press("Tab")  # the skip link comes first
        expect(page.locator("a.skip")).to_be_focused()
        expect(page.locator("a.skip")).to_be_in_viewport()
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        for target in ("nav a >> nth=0", "#queues-table th button >> nth=0", "#queues-table input"):
            page.locator(target).first.focus()
            assert page.evaluate(outline) == "solid", target


def test_without_scripts_the_answer_is_there(browser: Browser, reports: dict[str, str]) -> None:
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto(reports["week"])
        expect(page.locator("h1")).to_contain_text("No parity")
        expect(page.locator("noscript table tbody tr")).to_have_count(14)
        expect(page.locator("#queues")).to_be_hidden()
        expect(page.locator("#inputs")).to_be_visible()
