"""SRMP requests as bytes, made from the digest alone: srmp.md 1.2, 1.3, V5 in section 6.

Requests of one sender differ in their numbers only, and those have a fixed width: so there is one
request in memory, and the next numbers are written over the last ones.
"""

from __future__ import annotations

import re
import time
from uuid import UUID

KINDS = ("srmp-durable", "srmp-stream")
HOST = "127.0.0.1"
WIDTH = 10  # digits; leading zeros are legal in xs:unsignedLong
_FOUR_DAYS = 345_600
_BOUNDARY = "MSMQ - SOAP boundary, 26500"
_MUST = 'se:mustUnderstand="1"'
_NUMBER, _BEFORE = "#" * WIDTH, "~" * WIDTH  # of this message, of the one before


class Template:
    """One request; `at` fills the numbers in."""

    def __init__(self, text: bytes) -> None:
        self._numbers = _places(text, _NUMBER)
        self._befores = _places(text, _BEFORE)
        self._data = bytearray(text)

    def at(self, number: int) -> memoryview:
        """Good until it is asked for the next one."""
        for place in self._numbers:
            self._data[place : place + WIDTH] = b"%0*d" % (WIDTH, number)
        for place in self._befores:
            self._data[place : place + WIDTH] = b"%0*d" % (WIDTH, number - 1)
        return memoryview(self._data)


def _places(text: bytes, mark: str) -> list[int]:
    return [found.start() for found in re.finditer(mark.encode(), text)]


class Posts:
    """What one sender posts to `queue`, a path name such as private$\\orders."""

    def __init__(
        self, queue: str, kind: str, body_size: int, source: UUID, now_s: int, receipts: str = ""
    ) -> None:
        self.stream_id = f"uid:{source}\\{now_s << 32 | 1}" if kind == "srmp-stream" else ""
        target = f"/msmq/{queue.replace(chr(92), '/')}"
        steps = ["", ""]
        if self.stream_id:
            step = f"<streamId>{self.stream_id}</streamId><current>{_NUMBER}</current>"
            start = f"<start><sendReceiptsTo>{receipts}</sendReceiptsTo></start>"
            steps = [
                f"<Stream {_MUST}>{step}{more}</Stream>"
                for more in (start, f"<previous>{_BEFORE}</previous>")
            ]
        self._first, self._later = (
            Template(_request(target, _envelope(target, source, step, now_s), source, body_size))
            for step in steps
        )

    def request(self, number: int) -> memoryview:
        """Message `number`, from 1; good until it is asked for the next one."""
        return (self._first if number == 1 else self._later).at(number)


def _envelope(target: str, source: UUID, step: str, now_s: int) -> bytes:
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        f'<path xmlns="http://schemas.xmlsoap.org/rp/" {_MUST}><action>MSMQ:load</action>'
        f"<to>http://{HOST}{target}</to><id>uuid:{_NUMBER}@{source}</id></path>"
        f"<properties {_MUST}><expiresAt>20380119T031407</expiresAt>"
        f"<sentAt>{_date(now_s)}</sentAt></properties>"
        f"<services {_MUST}><durable/></services>{step}"
        f'<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>{0 if step else 3}</Priority>'
        f"<Correlation>{'A' * 27}=</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{source}</SourceQmGuid>"
        f"<TTrq>{_date(now_s + _FOUR_DAYS)}</TTrq></Msmq>"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()


def _request(target: str, envelope: bytes, source: UUID, body_size: int) -> bytes:
    delimiter = f"--{_BOUNDARY}".encode()
    content = (
        delimiter
        + b"\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n" % len(envelope)
        + envelope
        + delimiter
        + b"\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n" % body_size
        + f"Content-Id: body@{source}\r\n\r\n".encode()
        + bytes(body_size)
        + delimiter
        + b"--\r\n"
    )
    head = (
        f"POST {target} HTTP/1.1\r\nHost: {HOST}\r\n"
        f'Content-Type: multipart/related; boundary="{_BOUNDARY}"; type=text/xml\r\n'
        f'Content-Length: {len(content)}\r\nSOAPAction: "MSMQMessage"\r\n'
        "Proxy-Accept: NonInteractiveClient\r\n\r\n"
    )
    return head.encode() + content


def _date(unix: int) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(unix))
