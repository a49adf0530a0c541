"""Where receipts arrive: what is taken, what is lost, and that the port stays the same."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from tests.chaos.desk import HOST, ORDER_QUEUE, Desk, Mood
from tests.outside.srmp.wire import NEVER, ZERO, Receipt

RECEIPT = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:QM Ordering Ack</action><to>http://sender/order</to>"
    "<rev><via>http://bridge/q</via></rev><id>uuid:5@{guid}</id></path>"
    f'<properties se:mustUnderstand="1"><expiresAt>{NEVER}</expiresAt>'
    "<sentAt>20261116T000000</sentAt></properties>"
    "<streamReceipt><streamId>uid:x\\1</streamId><lastOrdinal>3</lastOrdinal></streamReceipt>"
    '<Msmq xmlns="msmq.namespace.xml"><Class>255</Class><Priority>0</Priority>'
    f"<Correlation>{ZERO}</Correlation><App>0</App><BodyType>0</BodyType>"
    "<HashAlgorithm>0</HashAlgorithm><SourceQmGuid>{guid}</SourceQmGuid>"
    "<TTrq>20261120T000000</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
).format(guid=UUID(int=9))


class Case:
    def __init__(self) -> None:
        self.taken: list[Receipt] = []
        self.complaints: list[str] = []
        self.desk = Desk(self.taken.append, random.Random(1), Counter())
        self.desk.complaint = self.complaints.append

    async def post(self, body: str = RECEIPT) -> bytes:
        """The first line of the answer; nothing if there is none."""
        reader, writer = await asyncio.open_connection(HOST, self.desk.port)
        head = f"POST {ORDER_QUEUE} HTTP/1.1\r\nContent-Type: text/xml\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        try:
            return await reader.readline()
        except ConnectionResetError:
            return b""
        finally:
            writer.transport.abort()


def play(body: Callable[[Case], Awaitable[None]]) -> None:
    async def main() -> None:
        case = Case()
        await case.desk.up()
        try:
            async with asyncio.timeout(30):
                await body(case)
        finally:
            case.desk.stop()

    asyncio.run(main())


def test_a_receipt_is_taken() -> None:
    async def body(case: Case) -> None:
        assert await case.post() == b"HTTP/1.1 200 -\r\n"
        [receipt] = case.taken
        assert (receipt.type, receipt.last) == ("stream", 3)

    play(body)


@pytest.mark.parametrize(
    ("mood", "answer", "taken"),
    [
        (Mood.FORGET, b"HTTP/1.1 200 -\r\n", 0),
        (Mood.CLOSE, b"", 0),
        (Mood.TAKE_AND_CLOSE, b"", 1),
        (Mood.REFUSE, b"HTTP/1.1 503 -\r\n", 0),
    ],
)
def test_moods(mood: Mood, answer: bytes, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.Random, "choice", lambda self, moods: mood)

    async def body(case: Case) -> None:
        case.desk.is_moody = True
        assert await case.post() == answer
        assert len(case.taken) == taken

    play(body)


def test_a_dead_host_comes_back_on_its_port() -> None:
    async def body(case: Case) -> None:
        port = case.desk.port
        case.desk.down()
        with pytest.raises(ConnectionRefusedError):
            await case.post()
        await case.desk.up()
        assert case.desk.port == port
        assert await case.post()

    play(body)


def test_what_is_no_receipt_is_told() -> None:
    async def body(case: Case) -> None:
        assert await case.post("<other/>") == b""
        assert case.complaints
        assert not case.taken

    play(body)
