"""The web page in a real browser, on a real appliance with real senders. Every page that is opened
here fails its test if it logs an error or asks anybody but the appliance (`quiet_page`)."""

import json
import re
import socket
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import Message, Tx, sequence_id
from tests.outside.rawsender import RawSender
from tests.support.browser import PHONE, WIDE, chromium, needs_browser, quiet_page
from tests.support.page_checks import faint_texts, nameless

pytestmark = [pytest.mark.kafka, needs_browser]

TOKEN = "s3cret-of-the-page"  # noqa: S105 - of this test
VIEWS = {  # and what is there when it has been told
    "overview": ".findings li, .good",
    "queues": "tbody td.code",
    "sessions": "tbody td",
    "streams": "tbody td.code",
    "trace": "#trace-text",
    "verdicts": "tbody td .chip.bad",
    "mappings": ".card .good",
    "health": ".findings li .chip.ok",
    "wall": ".banner[data-kind=ok]",
}
LOCKED = dict.fromkeys(("sessions", "streams", "trace"), ".locked .notice")  # without the token
SOON_MS = 15_000


@pytest.fixture(scope="module")
def settings() -> Settings:
    """The port stays over a restart, as an operator's does."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    queues = {"kept": {"mode": "retain"}}
    return Settings(queues=queues, listen={"admin": port}, token=TOKEN)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=SOON_MS)
    with chromium() as made:
        yield made


def opened(page: Page, appliance: Appliance, view: str = "overview") -> None:
    page.goto(f"{appliance.admin_url}/#{view}")
    expect(page.locator("#state")).to_have_text("Ready")


def send(sender: RawSender, name: str, count: int, label: str = "", start: int = 1) -> None:
    """Transactional where the queue is; returns when all are acked."""
    sequence = sequence_id(1_700_000_000, 1)
    messages = [
        Message(
            source=sender.guid,
            message_id=number,
            destination=queue(name),
            body=b"body %d" % number,
            label=label,
            recoverable=True,
            tx=Tx(sequence_id=sequence, number=number, previous=number - 1)
            if name == "orders"
            else None,
        )
        for number in range(start, start + count)
    ]
    sender.send_all_windowed(messages)


def unlock(page: Page) -> None:
    page.click("#unlock")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#unlock")).to_have_text("Lock")


# -- what it shows ----------------------------------------------------------------------------


def test_it_follows_what_senders_do(
    appliance: Appliance, open_sender: OpenSender, browser: Browser
) -> None:
    with quiet_page(browser) as page:
        opened(page, appliance)
        messages = page.locator(".tile", has_text="messages / s").locator("small")
        expect(messages).to_have_text("0 in all")
        sender = open_sender()
        send(sender, "orders", 100)
        expect(messages).to_have_text("100 in all")
        send(sender, "orders", 20, start=101)
        expect(messages).to_have_text("120 in all")  # and nobody reloaded
        expect(page.locator(".tile", has_text="sessions").locator("strong")).to_have_text("1")
        expect(page.locator(".bars li").first).to_contain_text("Accepted120")
        expect(page.locator(".plot canvas")).to_have_count(3)
        unlock(page)  # what names senders is for whoever has the token
        page.click("nav >> text=Sessions")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.click(f"tbody >> text={sender.guid}")  # leads to its streams
        row = page.locator("tbody tr")
        expect(row).to_have_count(1)
        expect(row).to_contain_text(str(sender.guid))
        expect(row.locator("[data-title=Number]")).to_have_text("120")
        page.click("nav >> text=Queues")
        orders = page.locator("tbody tr").filter(
            has=page.get_by_text(appliance.topic("orders"), exact=True)
        )
        expect(orders.locator("[data-title=Records]")).to_have_text("120")


def test_a_refusal_in_words_and_its_story(
    appliance: Appliance, open_sender: OpenSender, browser: Browser
) -> None:  # design D6
    sender = open_sender()
    label = f"lost-{uuid4().hex[:6]}"
    send(sender, "nowhere", 1, label)
    send(sender, "plain", 1, label, start=2)
    with quiet_page(browser) as page:
        opened(page, appliance, "verdicts")
        counts = page.locator("section", has_text="Since the start")
        expect(counts.locator("tr", has_text="NACK_BAD_DST_Q")).to_contain_text(
            "there is no such queue"
        )
        latest = page.locator("section", has_text="Turned away lately")
        expect(latest.locator("button:text-is('Unlock')")).to_be_visible()
        unlock(page)
        expect(latest.locator("tr", has_text=label)).to_contain_text("unknown queue")
        page.fill("[aria-label='Filter verdicts']", "no-such-word")
        expect(latest).to_contain_text("No refusal fits.")
        page.fill("[aria-label='Filter verdicts']", label)
        with page.expect_response(lambda answer: "/api/trace" in answer.url):
            latest.get_by_text(f"{sender.guid}\\1", exact=True).click()
        retrace(page, "Rejected")
        steps = page.locator(".timeline li")
        expect(steps).to_have_count(2)
        expect(steps.nth(0)).to_have_text(re.compile(r"from 127\.\S+ by binary"))
        expect(steps.nth(1)).to_contain_text("there is no such queue")
        expect(steps.nth(1)).to_contain_text("NACK_BAD_DST_Q")
        page.select_option("#trace-kind", "label")
        page.fill("#trace-text", label)
        retrace(page, "In Kafka")
        expect(page.locator(".story h2")).to_have_text("2 verdicts on 2 messages")
        record = page.locator(".timeline li", has_text="In Kafka")
        expect(record).to_contain_text(
            re.compile(re.escape(appliance.topic("plain")) + r"-\d+@\d+")
        )
        page.fill("#trace-text", "nobody sent this")
        page.keyboard.press("Enter")
        expect(page.locator(".story")).to_contain_text("it never reached this appliance")


def retrace(page: Page, word: str) -> None:
    """The index follows the audit topic; ask until it has it."""
    for _ in range(100):
        with page.expect_response(lambda answer: "/api/trace" in answer.url) as told:
            page.click("button:text-is('Trace')")
        told.value.finished()
        expect(page.locator(".story")).not_to_contain_text("Looking")
        if word in (page.locator(".story").text_content() or ""):
            return
    raise AssertionError(page.locator(".story").text_content())


def test_filters_and_the_address_of_what_one_sees(appliance: Appliance, browser: Browser) -> None:
    with quiet_page(browser) as page:
        opened(page, appliance, "queues")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(len(appliance.queues) + 3)  # with those of the machine
        page.fill("[type=search]", "RETAIN kept")
        expect(rows).to_have_count(1)
        expect(page.locator(".found")).to_contain_text("1 found among")
        page.fill("[type=search]", "orders")
        expect(rows).to_have_count(2)
        page.click("th >> text=Queue")
        page.click("th >> text=Queue")
        expect(page.locator("th", has_text="Queue")).to_have_attribute("aria-sort", "descending")
        expect(rows.first).to_contain_text("orders2")
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("orders2")
        page.fill("[type=search]", "no such queue")
        expect(rows).to_have_count(1)
        expect(rows).to_have_text("Nothing fits the search.")


def test_without_the_token_senders_are_not_shown(
    appliance: Appliance, open_sender: OpenSender, browser: Browser
) -> None:
    """The other views work; these ask for the token, and show what they have once it is there."""
    sender = open_sender()
    send(sender, "orders", 1)
    with quiet_page(browser) as page:
        opened(page, appliance, "streams")
        expect(page.locator(".locked")).to_contain_text("they need the admin token")
        expect(page.locator("main")).not_to_contain_text(str(sender.guid))
        page.click(".locked button")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.fill("[type=search]", str(sender.guid))
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text(str(sender.guid))
        page.click("#unlock")  # locks
        expect(page.locator(".locked")).to_be_visible()
        expect(page.locator("main")).not_to_contain_text(str(sender.guid))


# -- what it changes --------------------------------------------------------------------------


def test_only_the_token_changes_anything(
    appliance: Appliance, open_sender: OpenSender, browser: Browser
) -> None:
    send(open_sender(), "kept", 3, "letter")
    with quiet_page(browser) as page:
        opened(page, appliance, "queues?search=kept")
        waiting = page.locator("tbody [data-title=Waiting]")
        expect(waiting).to_contain_text("3")
        expect(page.locator("button:has-text('Purge')")).to_have_count(0)
        page.click("#unlock")
        page.fill("#token", "a guess")
        page.keyboard.press("Enter")
        expect(page.locator("dialog [role=alert]")).to_have_text(
            "the admin token is missing or wrong"
        )
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        unlock(page)
        kept = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
        assert TOKEN not in kept
        page.click("tbody button:has-text('Purge')")
        page.click("dialog button:has-text('Cancel')")
        move_one(page)
        page.click("text=← all queues")
        page.click("tbody button:has-text('Purge')")
        expect(page.locator("dialog")).to_contain_text("2 messages will be removed for good")
        page.click("dialog button.danger")
        expect(page.locator("dialog")).to_contain_text("2 messages removed")
        page.click("dialog button:has-text('Close')")
        row = page.locator("tbody tr", has_text="private$\\kept")
        expect(row.locator("[data-title=Waiting]")).to_have_text("0")
        expect(row).to_contain_text(";held 1")
        page.reload()
        expect(page.locator("#unlock")).to_have_text("Unlock")  # it was in memory only


def move_one(page: Page) -> None:
    page.click("tbody >> text=private$\\kept")
    page.locator("summary").first.click()
    expect(page.locator("details[open] pre")).to_have_text(re.compile(r"body \d"))
    page.locator("details[open] >> text=Move").click()
    page.click("dialog button.danger")
    expect(page.locator("dialog")).to_contain_text("It is in private$\\kept;held now.")
    page.click("dialog button:has-text('Close')")
    expect(page.locator("summary")).to_have_count(2)


def test_the_plan_of_the_mappings(appliance: Appliance, browser: Browser) -> None:
    file = appliance.folder / "mappings.yaml"
    before = file.read_text()
    rules = json.loads(before)
    topic = appliance.topic("young")
    rules["queues"].append({"queue": "private$\\young", "topic": topic})
    file.write_text(json.dumps(rules))
    try:
        with quiet_page(browser) as page:
            opened(page, appliance, "mappings")
            plan = page.locator("section", has_text="Plan").first
            expect(plan).to_contain_text(f"create topic {topic}")
            expect(plan.locator("button:has-text('Apply')")).to_have_count(0)
            unlock(page)
            page.click("button:has-text('Apply')")
            expect(page.locator("dialog")).to_contain_text("private$\\young")
            page.click("dialog button.danger")
            expect(page.locator("dialog")).to_contain_text("the appliance switched private$\\young")
            page.click("dialog button:has-text('Close')")
            expect(plan).to_contain_text("Nothing to do")
            page.fill("[type=search]", "young")
            expect(page.locator("tbody tr")).to_have_count(1)
            expect(page.locator("tbody tr")).to_contain_text(topic)
    finally:
        file.write_text(before)
        assert appliance.post("/api/mappings/reload")[0] == 200  # for the tests that follow


# -- how it looks -----------------------------------------------------------------------------


@pytest.mark.parametrize("has_token", [False, True])
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", PHONE)])
def test_every_view_can_be_read(
    appliance: Appliance, browser: Browser, scheme: str, size: dict[str, int], has_token: bool
) -> None:
    """Contrast of 4.5 and more, a name on everything that can be used, no sideways scrolling.

    Without the token, too: the views that name senders say that they need it."""
    with quiet_page(browser, color_scheme=scheme, viewport=size, reduced_motion="reduce") as page:
        opened(page, appliance)
        if has_token:
            unlock(page)
        for view, told in (VIEWS if has_token else VIEWS | LOCKED).items():
            page.evaluate(f"location.hash = '{view}'")
            expect(page).to_have_title(re.compile(view.capitalize()))
            expect(page.locator(told).first).to_be_visible()
            assert faint_texts(page) == [], view
            assert nameless(page) == [], view
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), view


def test_by_keyboard(appliance: Appliance, browser: Browser) -> None:
    with quiet_page(browser) as page:
        opened(page, appliance)
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to the content")
        page.locator("nav >> text=Health").focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Health")
        page.locator(".choice button").first.focus()
        page.keyboard.press("Tab")  # what has the focus is seen
        width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert width == "3px"
        page.evaluate("location.hash = 'wall'")
        expect(page.locator(".banner strong")).to_have_text("Ready")
        expect(page.locator(".top")).to_be_hidden()
        page.keyboard.press("Escape")
        expect(page.locator("h1")).to_have_text("Overview")


def test_it_survives_a_restart(appliance: Appliance, browser: Browser) -> None:
    """The last one: it stops the appliance. The browser logs what it cannot reach."""
    page = browser.new_page()
    try:
        opened(page, appliance, "health")
        appliance.terminate()
        state = page.locator("#state")
        expect(state).to_have_text(re.compile(r"Not reachable since \d\d:\d\d:\d\d"))
        expect(page.locator("h1")).to_have_text("Health")  # what was known stays
        appliance.start()
        expect(state).to_have_text("Ready")
    finally:
        page.close()
