"""A receiver of SRMP on loopback that does as it is told. From the digest srmp.md alone.

It answers as its plan says and then with 200, takes streams as 5.1 says, and sends a receipt when
its test says so. Each runs in threads of its own: the sender under test may have the event loop.
"""

from __future__ import annotations

import http.client
import re
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

QM = uuid4()
HANG_UP = 0
SOON_S = 20.0


@dataclass(frozen=True)
class Got:
    """One request. `body` is the attachment, or what there is without one."""

    head: str
    content: bytes

    @property
    def target(self) -> str:
        return self.head.split()[1]

    @property
    def envelope(self) -> str:
        return re.search(rb"<se:Envelope.*</se:Envelope>", self.content, re.S)[0].decode()  # type: ignore[index]

    @property
    def body(self) -> bytes:
        """1.3: the second part, by its own length."""
        length = re.search(
            rb"Content-Length: (\d+)\r\nContent-Id: body@[^\r]*\r\n\r\n", self.content
        )
        return self.content[length.end() :][: int(length[1])] if length else b""

    def find(self, element: str) -> str | None:
        found = re.search(f"<{element}>([^<]*)</{element}>", self.envelope)
        return None if found is None else found[1]

    def has(self, flag: str) -> bool:
        return f"<{flag}/>" in self.envelope


def receipt_text(to: str, via: str, number: int, inner: str, outcome: int, action: str) -> bytes:
    """3.7"""
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:{action}</action><to>{to}</to><rev><via>{via}</via></rev>"
        f'<id>uuid:{number}@{QM}</id></path><properties se:mustUnderstand="1">'
        "<expiresAt>20380119T031407</expiresAt><sentAt>20250608T023719</sentAt></properties>"
        f'{inner}<Msmq xmlns="msmq.namespace.xml"><Class>{outcome}</Class><Priority>0</Priority>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>0</HashAlgorithm><SourceQmGuid>{QM}</SourceQmGuid>"
        "<TTrq>20250612T023719</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()


@dataclass
class Receiver:
    """`after` is called when a request was answered, with the receiver and the request."""

    after: Callable[[Receiver, Got], None] = lambda _receiver, _got: None
    plan: list[int] = field(default_factory=list)
    requests: list[Got] = field(default_factory=list)
    taken: list[bytes] = field(default_factory=list)  # bodies
    answers: list[int] = field(default_factory=list)  # to our receipts
    stream: str | None = None
    receipts_to: str = ""
    last: int = 0
    port: int = 0
    _ids: int = 0
    _seen: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, path: str = "/msmq/private$/TSimpleQ", scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def take(self, got: Got) -> int:
        """The status, 0 for none."""
        with self._lock:
            self.requests.append(got)
            status = self.plan.pop(0) if self.plan else 200
            if 200 <= status < 300:
                self._insert(got)
            return status

    def _insert(self, got: Got) -> None:
        stream, identifier = got.find("streamId"), got.find("id")
        if stream is None:
            if identifier not in self._seen:  # SR-21
                self.taken.append(got.body)
            self._seen.add(identifier or "")
        elif self._accepts(got, stream):
            self.taken.append(got.body)

    def _accepts(self, got: Got, stream: str) -> bool:
        """SR-30"""
        current = int(got.find("current") or 0)
        previous = int(got.find("previous") or current - 1)
        if stream != self.stream:
            receipts_to = got.find("sendReceiptsTo")
            if current != 1 or receipts_to is None:
                return False
            self.stream, self.receipts_to = stream, receipts_to
        elif current <= self.last or previous > self.last:
            return False
        self.last = current
        return True

    # -- receipts ---------------------------------------------------------------------------

    def post(self, url: str, body: bytes, content_type: str = "text/xml") -> int:
        place = urlsplit(url)
        line = http.client.HTTPConnection(place.hostname or "", place.port, timeout=SOON_S)
        try:
            line.request("POST", place.path.lower(), body, {"Content-Type": content_type})
            answer = line.getresponse()
            assert answer.read() == b""
        finally:
            line.close()
        self.answers.append(answer.status)
        return answer.status

    def _receipt(self, to: str, got: Got, inner: str, outcome: int, action: str = "") -> int:
        self._ids += 1
        text = receipt_text(to, got.find("to") or "", self._ids, inner, outcome, action)
        return self.post(to, text)

    def stream_receipt(self, last: int | None = None, stream: str | None = None) -> int:
        """SR-36"""
        number = self.last if last is None else last
        inner = (
            f"<streamReceipt><streamId>{stream or self.stream}</streamId>"
            f"<lastOrdinal>{number}</lastOrdinal></streamReceipt>"
        )
        return self._receipt(self.receipts_to, self.requests[0], inner, 255, "QM Ordering Ack")

    def final_receipt(self, got: Got, outcome: int = 16384) -> int:
        """SR-45"""
        inner = (
            f"<streamReceipt><streamId>{got.find('streamId')}</streamId>"
            f"<lastOrdinal>{got.find('current')}</lastOrdinal></streamReceipt>"
        ) + _decision(got, outcome)
        return self._receipt(self.receipts_to, got, inner, outcome, "QM Ordering Ack")

    def delivery_receipt(self, got: Got) -> int:
        """SR-42"""
        inner = (
            "<deliveryReceipt><receivedAt>20250608T023719</receivedAt>"
            f"<id>{got.find('id')}</id></deliveryReceipt>"
        )
        return self._receipt(got.find("sendTo") or "", got, inner, 2)

    def commitment_receipt(self, got: Got, outcome: int = 16384) -> int:
        """SR-44"""
        return self._receipt(got.find("sendTo") or "", got, _decision(got, outcome), outcome)


def _decision(got: Got, outcome: int) -> str:
    word = "positive" if outcome == 16384 else "negative"
    return (
        "<commitmentReceipt><decidedAt>20250608T023719</decidedAt>"
        f"<decision>{word}</decision><id>{got.find('id')}</id></commitmentReceipt>"
    )


def acknowledge_each(receiver: Receiver, got: Got) -> None:
    if got.find("streamId"):
        receiver.stream_receipt()


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while got := self._read():
            status = self.server.receiver.take(got)
            if status == HANG_UP:
                return
            self.wfile.write(b"HTTP/1.1 %d -\r\nContent-Length: 0\r\n\r\n" % status)
            self.server.receiver.after(self.server.receiver, got)

    def _read(self) -> Got | None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return None
            head += line
        length = re.search(rb"\r\nContent-Length: (\d+)\r\n", head)
        assert length is not None
        return Got(head.decode("ascii"), self.rfile.read(int(length[1])))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    receiver: Receiver
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(ssl.SSLError, ConnectionError):  # the sender has hung up
            if self.tls is None:
                super().finish_request(request, client_address)
                return
            with self.tls.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)


@contextmanager
def listening(
    receiver: Receiver, port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    with _Server(("127.0.0.1", port), _Handler) as server:
        server.receiver, server.tls = receiver, tls
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join(SOON_S)
