"""The sender's side of receipts: takes them on port 8081, and tells at GET /?count=N what came.

GET answers when there are so many.
"""

import re
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PORT = 8081
RECEIPT = re.compile(r"<(delivery|commitment|stream)Receipt>(.*?)</\1Receipt>", re.DOTALL)
FIELD = re.compile(r"<(\w+)>([^<]*)</\1>")

came: list[str] = []
news = threading.Condition()


class Inbox(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with news:
            for kind, inner in RECEIPT.findall(text):
                fields = ", ".join(f"{name} {value}" for name, value in FIELD.findall(inner))
                came.append(f"{kind} receipt: {fields}")
            news.notify_all()
        self.answer(b"")

    def do_GET(self) -> None:
        count = int(parse_qs(urlsplit(self.path).query).get("count", ["1"])[0])
        with news:
            news.wait_for(lambda: len(came) >= count, timeout=30)
            self.answer("".join(f"{line}\n" for line in sorted(came)).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", PORT), Inbox) as server:
        print(f"waiting for receipts on port {PORT}", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
