"""`make screenshots`: the web page as an operator sees it, with senders at work.

An appliance on an embedded Kafka, two dozen senders that come and go like a day's business, then
pictures into examples/page: light, dark, phone, wall, trace.
"""

import argparse
import json
import math
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from playwright.sync_api import Browser, Page, expect

from tests.outside.appliance import command
from tests.outside.rawmsmq import Message, Tx, direct, sequence_id
from tests.outside.rawsender import RawSender
from tests.support.browser import PHONE, WIDE, chromium, quiet_page

OUT = Path(__file__).parents[2] / "examples" / "page"
WALL = {"width": 1920, "height": 1080}
SENDERS = 24
TOKEN = "not shown"  # noqa: S105
BINARY, ADMIN = 18_611, 18_612
QUEUES: list[dict[str, Any]] = [
    {"queue": "private$\\orders", "topic": "orders", "transactional": True},
    {"queue": "private$\\invoices", "topic": "invoices", "transactional": True},
    {"queue": "private$\\stock-events", "topic": "stock.events", "key": "label"},
    {
        "queue": "private$\\letters",
        "topic": "letters",
        "mode": "retain",
        "journal": "letters.journal",
    },
    {"queue": "private$\\shop-*", "topic": "shop.{label}"},
]
BUSY = ("orders", "orders", "invoices", "stock-events")


class Appliance:
    """`serve` on ports of its own; `with` waits until it is ready and ends it."""

    def __init__(self, folder: Path) -> None:
        off = dict.fromkeys(("ping", "srmp", "rpc", "rpc_qp", "endpoint_mapper"))
        (folder / "admin.token").write_text(f"{TOKEN}\n")
        (folder / "admin.token").chmod(0o600)
        config = {
            "queue_manager": {"names": ["BRIDGE01", "127.0.0.1"]},
            "listen": {"host": "127.0.0.1", "binary": BINARY, "admin": ADMIN, **off},
            "admin": {"token_file": "admin.token"},
            "data": "data",
            "mappings": "mappings.yaml",
        }
        (folder / "bridge.yaml").write_text(json.dumps(config))
        (folder / "mappings.yaml").write_text(json.dumps({"queues": QUEUES}))
        self._command = [*command(), "serve", "--config"]
        self._command.append(str(folder / "bridge.yaml"))

    def __enter__(self) -> str:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("ready:"):
                return f"http://127.0.0.1:{ADMIN}"
        raise SystemExit("the appliance did not start")

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)


class Sender(threading.Thread):
    """Sends every second as many as the hour asks for; its session stays open."""

    def __init__(self, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._random, self._stop_it = random.Random(number), stop
        self._queue = BUSY[number % len(BUSY)]
        self._sender = RawSender(("127.0.0.1", BINARY), UUID(int=self._random.getrandbits(128)))
        self._number = self._placed = 0  # messages, and those in its stream

    def run(self) -> None:
        self._sender.connect()
        self._sender.handshake()
        start = time.monotonic()
        while not self._stop_it.wait(self._random.uniform(0.8, 1.2)):
            wave = 1.2 + math.sin((time.monotonic() - start) / 25) + self._random.uniform(-0.2, 0.4)
            self.send(self._queue, max(1, int(9 * wave)))
            if self._random.random() < 0.004:
                self.send("odrers", 1, "reminder")  # somebody mistypes now and then
            if self._random.random() < 0.01:
                self.send("letters", 1, f"letter {self._number}")
        self._sender.close()

    def send(self, queue: str, count: int, label: str = "") -> None:
        messages = [self._message(queue, label) for _ in range(count)]
        self._sender.send_all_windowed(messages)

    def _message(self, queue: str, label: str) -> Message:
        self._number += 1
        return Message(
            source=self._sender.guid,
            message_id=self._number,
            destination=direct(f"OS:BRIDGE01\\private$\\{queue}"),
            body=b"%d" % self._number,
            label=label or f"{queue} {self._number % 9}",
            recoverable=True,
            tx=self._place() if queue in ("orders", "invoices") else None,
        )

    def _place(self) -> Tx:
        self._placed += 1
        sequence = sequence_id(1_700_000_000, 1)
        return Tx(sequence_id=sequence, number=self._placed, previous=self._placed - 1)


def ready(page: Page, url: str, view: str = "overview") -> None:
    page.goto(f"{url}/#{view}")
    expect(page.locator("#state .word")).to_have_text("Ready")
    page.wait_for_timeout(4000)  # two looks of every card


def see_the_doctor(browser: Browser, url: str) -> None:
    with quiet_page(browser) as page:
        ready(page, url)
        expect(page.locator("section", has_text="Doctor")).not_to_contain_text("looking")


def shoot(browser: Browser, url: str, out: Path) -> None:
    shots: dict[str, tuple[str, dict[str, Any]]] = {
        "light": ("overview", {}),
        "dark": ("overview", {"color_scheme": "dark"}),
        "phone": ("overview", {"viewport": PHONE, "device_scale_factor": 2}),
        "wall": ("wall", {"viewport": WALL, "color_scheme": "dark"}),
        "queues": ("queues", {"color_scheme": "dark"}),
    }
    for name, (view, look) in shots.items():
        with quiet_page(browser, **{"viewport": WIDE, **look}) as page:
            ready(page, url, view)
            page.screenshot(path=out / f"{name}.png")
    with quiet_page(browser) as page:
        ready(page, url, "verdicts")
        page.click("#unlock")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.locator("section", has_text="Turned away lately").locator("tbody a").first.click()
        expect(page.locator(".timeline")).to_be_visible()
        page.screenshot(path=out / "trace.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=300, help="how long senders work before")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as folder, Appliance(Path(folder)) as url:
        senders = [Sender(number, stop) for number in range(1, SENDERS + 1)]
        for sender in senders:
            sender.start()
        time.sleep(asked.seconds)
        expect.set_options(timeout=60_000)
        with chromium() as browser:
            see_the_doctor(browser, url)
            shoot(browser, url, asked.out)
        stop.set()
        for sender in senders:
            sender.join(30)
    for path in sorted(asked.out.glob("*.png")):
        print(f"{path} {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
