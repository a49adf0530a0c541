"""Many that mean harm: 400 or the end of the connection, bounded memory, a good sender goes on."""

import random
import socket
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.conftest import Broker
from tests.outside.rawconnection import HungUpError, soon
from tests.outside.rawmsmq import ec_request
from tests.outside.records import create_topics
from tests.outside.siege import allow_files, at_most
from tests.outside.srmp.bench import Topics, settle
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.post import Poster, chunked
from tests.outside.srmp.senders import Witness
from tests.outside.srmp.wire import (
    Mail,
    Part,
    body_part,
    head,
    multipart,
    request,
    text_request,
    url,
    whole,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
GOOD = b"witness"
MEBI = 1 << 20


@pytest.fixture(scope="module")
def appliance(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    """Of this module alone: its memory is measured, its topics hold the witness and no one else."""
    prefix = f"siege-{uuid4().hex[:8]}"
    targets = {"receipt_targets": ["sender", "loopback"]}
    settings = Settings(listen={"srmp": 0}, srmp=targets)
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues], 1)
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture(scope="module")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


@pytest.fixture
def witness(appliance: Appliance, topics: Topics) -> Iterator[Witness]:
    good = Witness(appliance, topics, GOOD + uuid4().hex[:8].encode())
    good.go_on(0)
    yield good
    good.stop()
    assert topics.anywhere(lambda one: not one.value.startswith(GOOD)) == []


def answers(appliance: Appliance, data: bytes, *, end: bool = True) -> list[int]:
    """What one connection gets for these bytes, until the bridge hangs up."""
    found: list[int] = []
    with Poster(appliance.srmp_address) as poster, suppress(HungUpError):
        poster.connect().send(data)
        if end:
            poster.half_close()
        while True:
            found.append(poster.read_answer(soon(30)).status)
            if not end:
                return found
    return found


def mail() -> Mail:
    return Mail(to=url("plain"), body=b"a message of the siege")


def changed(*changes: tuple[str, str]) -> bytes:
    text = mail().envelope
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text_request(text, b"siege")


# -- XML ------------------------------------------------------------------------------------


def bombs(catcher: Catcher) -> dict[str, bytes]:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    deep = 200_000
    here = f"http://127.0.0.1:{catcher.port}/entity"

    def doctype(text: str) -> tuple[str, str]:
        return "<se:Envelope", f"<!DOCTYPE a {text}><se:Envelope"

    def label(text: str) -> tuple[str, str]:
        return "MSMQ:", f"MSMQ:{text}"

    def header(text: str) -> tuple[str, str]:
        return "<se:Header>", text

    many = " ".join(f'a{n}="1"' for n in range(300_000))
    return {
        "a billion laughs": changed(doctype(f'[<!ENTITY l0 "lol">{laughs}]'), label("&l11;")),
        "quadratic": changed(doctype(f'[<!ENTITY q "{"q" * 100_000}">]'), label("&q;" * 10_000)),
        "a file": changed(doctype('[<!ENTITY f SYSTEM "file:///etc/hostname">]'), label("&f;")),
        "the network": changed(doctype(f'[<!ENTITY f SYSTEM "{here}">]'), label("&f;")),
        "a DTD of the network": changed(doctype(f'SYSTEM "{here}"')),
        "a parameter entity": changed(doctype(f'[<!ENTITY % p SYSTEM "{here}"> %p;]')),
        "very deep": changed(header("<se:Header>" + "<a>" * deep + "</a>" * deep)),
        "very deep and open": changed(header("<se:Header>" + "<a>" * deep)),
        "many attributes": changed(header(f"<se:Header {many}<")),
        "the same attribute": changed(header('<se:Header a="1" a="1">')),
        "an unknown entity": changed(label("&nbsp;")),
        "a control character": changed(label("\x01")),
        "a NUL": changed(label("\0")),
        "a reference to NUL": changed(label("&#0;")),
        "a surrogate": changed(label("&#xD800;")),
        "a number beyond all": changed(("<Class>0", f"<Class>{'9' * 100_000}")),
    }


def bad_text() -> dict[str, bytes]:
    """Not UTF-8."""

    def of(junk: bytes) -> bytes:
        text = mail().envelope.encode().replace(b"MSMQ:", b"MSMQ:" + junk)
        return whole(multipart(text, [body_part(b"siege")]))

    return {
        "a lone byte": of(b"\xff"),
        "cut short": of(b"\xe4\xb8"),
        "overlong": of(b"\xc0\xaf"),
        "a surrogate": of(b"\xed\xa0\x80"),
        "Latin-1": of("Größe".encode("latin-1")),
    }


def test_xml_bombs(appliance: Appliance, witness: Witness, catcher: Catcher) -> None:
    """Section 2: no DTD, no entities, no network, no huge tree."""
    with at_most(appliance, 64):
        found = {name: answers(appliance, data) for name, data in bombs(catcher).items()}
        found |= {name: answers(appliance, data) for name, data in bad_text().items()}
        witness.go_on()
    assert {name: 200 in got for name, got in found.items()} == dict.fromkeys(found, False)
    assert {name: got for name, got in found.items() if got not in ([], [400])} == {}
    assert not [one for one in catcher.everything if "entity" in one.target]
    witness.unharmed()


def amplified() -> dict[str, bytes]:
    """Documents that are small, unless each name is written with its namespace.

    Each has a class that no message has, so it is read to the end and then refused.
    """
    bad = ("<Class>0", "<Class>x")
    end = "</se:Header>"

    def inside(text: str, *more: tuple[str, str]) -> bytes:
        return changed(bad, (end, f"{text}{end}"), *more)

    def spread(uri: str, name: str) -> dict[str, bytes]:
        elements, attributes = "<n:a/>" * 15_000, '<n:a n:b=""/>' * 7_000
        distinct = "".join(f"<n:a{n}/>" for n in range(15_000))
        nested = "".join(f'<a xmlns:n="{uri[:-2]}{n:02}" n:b="">' for n in range(40)) + "</a>" * 40
        signed = f'<Signature xmlns="http://www.w3.org/2000/02/xmldsig#" xmlns:n="{uri}">'
        return {
            f"{name} on elements": inside(f'<x xmlns:n="{uri}">{elements}</x>'),
            f"{name} on distinct elements": inside(f'<x xmlns:n="{uri}">{distinct}</x>'),
            f"{name} on attributes": inside(f'<x xmlns:n="{uri}">{attributes}</x>'),
            f"{name} by default": inside(f'<x xmlns="{uri}">{"<a/>" * 15_000}</x>'),
            f"{name}, nested": inside(nested * max(1, 2 * MEBI // len(nested))),
            f"{name} in the signature": inside(f"{signed}{elements}</Signature>"),
            f"{name} in the body": changed(
                bad, ("</se:Body>", f'<x xmlns:n="{uri}">{elements}</x></se:Body>')
            ),
        }

    prefixes = " ".join(f'xmlns:n{n}="urn:{n}"' for n in range(9_000))
    redeclared = "".join(f'<a xmlns="urn:{n}"/>' for n in range(9_000))
    return {
        **spread("u" * 4_000, "a long namespace"),
        **spread("u" * 60_000, "a huge namespace"),
        "many prefixes": inside(f"<x {prefixes}>{'<n1:a/>' * 9_000}</x>"),
        "many prefixes and declarations": inside(f"<x {prefixes}>{redeclared}</x>"),
        "many declarations": inside(redeclared),
        "a huge attribute": inside(f'<x a="{"a" * 3 * MEBI}"/>'),
        "a huge tag": inside(f"<x{' ' * 3 * MEBI}/>"),
        "a huge text": inside(f"<x>{'&lt;' * (3 * MEBI // 4)}</x>"),
        "lines": inside("<x>" + "\n" * 3 * MEBI + "</x>"),
        "a million elements": inside("<a/>" * (3 * MEBI // 4)),
        "a list of a million names": inside(
            "", ("</TTrq>", f"</TTrq><AdminMqf>{'a ' * MEBI}</AdminMqf>")
        ),
        "base64": inside("", ("</TTrq>", f"</TTrq><Correlation>{'AA ' * MEBI}</Correlation>")),
    }


def test_names_are_not_amplified(appliance: Appliance, witness: Witness) -> None:
    """Gigabytes, and half a minute each, if names are expanded; a good sender goes on meanwhile."""
    documents = amplified()
    with at_most(appliance, 96), ThreadPoolExecutor(4) as pool:
        found = pool.map(partial(answers, appliance), documents.values())
        witness.go_on()
        statuses = dict(zip(documents, found, strict=True))
        witness.go_on()
    assert {name: got for name, got in statuses.items() if got != [400]} == {}
    witness.unharmed()


# -- sizes ----------------------------------------------------------------------------------


def pour(appliance: Appliance, first: bytes, piece: bytes, count: int) -> None:
    """As much as it takes; it must have refused before the end, or at it."""
    with Poster(appliance.srmp_address).connect() as poster:
        try:
            poster.send(first)
            for _ in range(count):
                poster.send(piece)
        except HungUpError:
            return
        poster.expect_refused(soon(60))


def test_a_hundred_megabytes(appliance: Appliance, witness: Witness) -> None:
    """1.1: over 4 MB is outside SRMP; announced, or in chunks that never end."""
    opening = multipart(mail().envelope.encode(), [Part("body@x", b"")])
    with at_most(appliance, 96):
        pour(appliance, head(100 * MEBI) + opening, bytes(MEBI), 99)
        coded = head(0, more="Transfer-Encoding: chunked\r\n").replace(
            b"Content-Length: 0\r\n", b""
        )
        piece = b"%x\r\n%s\r\n" % (MEBI, bytes(MEBI))
        pour(appliance, coded, piece, 100)
        small = b"1\r\nx\r\n" * 50_000
        pour(appliance, coded, small, 200)
        big = Mail(to=url("plain"), body=bytes(6 * MEBI))
        assert 200 not in answers(appliance, request(big))
        assert 200 not in answers(appliance, head(2**64) + b"x")
        witness.go_on()
    witness.unharmed()


def test_sizes_that_are_only_announced(appliance: Appliance, witness: Witness) -> None:
    """Memory follows what came; two hundred of them announce 4 MB each, and send little."""
    with at_most(appliance, 64):
        idle = [socket.create_connection(appliance.srmp_address, timeout=30) for _ in range(200)]
        for one in idle:
            one.sendall(head(4 * MEBI) + b"--MSMQ - SOAP boundary, 26500\r\n")
        witness.go_on()
        for one in idle:
            one.close()
    witness.unharmed()


def test_huge_heads(appliance: Appliance, witness: Witness) -> None:
    good = request(mail())
    line = b"X-Long: " + b"x" * (2 * MEBI) + b"\r\n"
    lines = b"".join(b"X-%d: y\r\n" % n for n in range(100_000))
    fold = b"X-Fold: y\r\n" + b" z\r\n" * 200_000
    part = b"Content-Id: body@x\r\n" + b"X-Part: y\r\n" * 100_000
    cases = {
        "one line": good.replace(b"Host:", line + b"Host:", 1),
        "many lines": good.replace(b"Host:", lines + b"Host:", 1),
        "many folds": good.replace(b"Host:", fold + b"Host:", 1),
        "the target": good.replace(b"/msmq", b"/msmq" + b"x" * 2 * MEBI, 1),
        "no end": b"POST / HTTP/1.1\r\n" + b"x" * 2 * MEBI,
        "no line end at all": b"P" * 4 * MEBI,
        "of a part": whole(
            multipart(mail().envelope.encode(), [body_part(b"siege")]).replace(
                b"Content-Id: ", part + b"X-Id: "
            )
        ),
    }
    with at_most(appliance, 64):
        found = {name: answers(appliance, data) for name, data in cases.items()}
        witness.go_on()
    assert {name: 200 in got for name, got in found.items()} == dict.fromkeys(found, False)
    witness.unharmed()


# -- lies -----------------------------------------------------------------------------------


def test_cut_anywhere(appliance: Appliance, witness: Witness) -> None:
    """A request that ends too early never counts, wherever it is cut. SR-3"""
    message = mail()
    content = multipart(message.envelope.encode(), [body_part(message.body)])
    coded = head(0, more="Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 0\r\n", b"")
    coded += chunked(content, [100])
    for data in (whole(content), coded):
        ends = sorted({*range(1, len(data) - 1, 41), *range(len(data) - 12, len(data) - 1)})
        for end in ends:
            assert 200 not in answers(appliance, data[:end]), data[:end]
    witness.unharmed()


def lies() -> dict[str, bytes]:
    """Heads whose lengths do not fit, or mean two things."""
    message = mail()
    content = multipart(message.envelope.encode(), [body_part(message.body)])
    size = b"Content-Length: %d\r\n" % len(content)
    good = whole(content)
    first, _, _ = good.partition(b"\r\n\r\n")
    bare = first.replace(size.rstrip(), b"Transfer-Encoding: chunked") + b"\r\n\r\n"

    def length(text: bytes) -> bytes:
        return good.replace(size, text, 1)

    return {
        "too short": length(b"Content-Length: %d\r\n" % (len(content) - 10)),
        "much too short": length(b"Content-Length: 10\r\n"),
        "nothing": length(b"Content-Length: 0\r\n"),
        "too long": length(b"Content-Length: %d\r\n" % (len(content) + 10)),
        "two lengths": length(size + b"Content-Length: 10\r\n"),
        "two lengths, the other way": length(b"Content-Length: 10\r\n" + size),
        "a list of lengths": length(b"Content-Length: %d, 10\r\n" % len(content)),
        "negative": length(b"Content-Length: -5\r\n"),
        "a sign": length(b"Content-Length: +%d\r\n" % len(content)),
        "hexadecimal": length(b"Content-Length: 0x%x\r\n" % len(content)),
        "with a blank in it": length(b"Content-Length: 1 2\r\n"),
        "none": length(b""),
        "gzip": length(b"Transfer-Encoding: gzip\r\n"),
        "an unknown coding": length(b"Transfer-Encoding: chunked, what\r\n"),
        "chunks without chunks": length(b"Transfer-Encoding: chunked\r\n"),
        "a chunk size that is no number": bare + b"xyz\r\n" + content,
        "a negative chunk": bare + b"-5\r\nhello\r\n0\r\n\r\n",
        "a chunk size beyond all": bare + b"f" * 40 + b"\r\n" + content,
        "an endless chunk size": bare + b"0" * 100_000,
        "a chunk that is too short": bare + b"%x\r\n%s\r\n0\r\n\r\n" % (len(content) - 3, content),
        "a chunk that is too long": bare + b"%x\r\n%s\r\n0\r\n\r\n" % (len(content) + 3, content),
        "a blank before the colon": good.replace(b"Content-Type:", b"Content-Type :", 1),
        "a NUL in a name": good.replace(b"Host:", b"Ho\0st:", 1),
        "a line without a colon": good.replace(b"Host:", b"nothing\r\nHost:", 1),
        "a folded first line": good.replace(b"Host:", b" folded\r\nHost:", 1),
    }


def test_lying_lengths(appliance: Appliance, witness: Witness) -> None:
    """RFC 9112 6.3: what cannot be trusted is 400 or the end, never half a message or two."""
    found = {name: answers(appliance, data) for name, data in lies().items()}
    assert {name: 200 in got for name, got in found.items()} == dict.fromkeys(found, False)
    witness.unharmed()


def test_a_length_and_chunks(appliance: Appliance, witness: Witness) -> None:
    """The way of request smuggling: a message hidden behind the length must not be seen."""
    hidden = request(mail())
    both = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n"
    coded = b"Transfer-Encoding: chunked\r\n"
    length = b"Content-Length: %d\r\n"
    for data in (
        both + coded + length % 5 + b"\r\n0\r\n\r\n" + hidden,
        both + length % (5 + len(hidden)) + coded + b"\r\n0\r\n\r\n" + hidden,
        both + length % 5 + coded + b"\r\n0\r\n\r\n" + hidden,
    ):
        assert 200 not in answers(appliance, data)
    witness.unharmed()


# -- crowds ---------------------------------------------------------------------------------


def test_half_requests(appliance: Appliance, witness: Witness) -> None:
    """Three hundred that begin and never end; nobody waits for them."""
    allow_files(2000)
    data = request(mail())
    cuts = (1, 20, data.index(b"\r\n\r\n") + 2, len(data) // 2, len(data) - 20)
    with at_most(appliance, 32):
        slow = [socket.create_connection(appliance.srmp_address, timeout=30) for _ in range(300)]
        for number, one in enumerate(slow):
            one.sendall(data[: cuts[number % len(cuts)]])
        witness.go_on()
        for one in slow:
            with suppress(ConnectionError):  # it may have been sent away
                one.sendall(b"\r")
        witness.go_on()
        with Poster(appliance.srmp_address).connect() as newcomer:
            assert newcomer.post(Mail(to=url("plain"), body=GOOD)) == 200
        for one in slow:
            one.close()
    witness.unharmed()


def garbage() -> Iterator[bytes]:
    """What else speaks on such a port, and what nobody speaks."""
    rng = random.Random(80)
    good = request(mail())
    tls = bytes.fromhex("16030100f8010000f40303") + rng.randbytes(240)
    yield from (b"\r\n" * 1000, b"\0" * 1000, tls, ec_request(uuid4()), b"GET\r\n\r\n")
    yield from (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
        b"GET /\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
    )
    yield from (b"SSH-2.0-x\r\n", b"EHLO x\r\n", struct.pack(">I", 2**31) + b"x" * 100)
    for number in range(1000):
        if number % 2:
            yield rng.randbytes(rng.randrange(1, 3000))
            continue
        broken = bytearray(good)
        for _ in range(40):  # enough to hit the head, the envelope and the delimiters
            broken[rng.randrange(len(broken) - 40)] = rng.choice(b"\0\r\n<>&\"' :;-\xff")
        yield bytes(broken)


def test_a_thousand_connections_of_garbage(appliance: Appliance, witness: Witness) -> None:
    with at_most(appliance, 32):
        for number, data in enumerate(garbage()):
            got = answers(appliance, data)
            assert 200 not in got, (number, data)
        witness.go_on()
    witness.unharmed()
    assert appliance.is_ready()


def test_answers_that_nobody_reads(appliance: Appliance, witness: Witness) -> None:
    """A sender that pipelines and never reads is its own problem: back-pressure, no memory."""
    bad = head(1, kind="text/xml") + b"x"
    with at_most(appliance, 48):
        rude = [socket.create_connection(appliance.srmp_address, timeout=30) for _ in range(8)]
        for one in rude:
            one.setblocking(False)
            with suppress(BlockingIOError, ConnectionError):
                for _ in range(40):
                    one.send(bad * 500)
        witness.go_on()
        for one in rude:
            one.close()
    witness.unharmed()


def asking(hosts: Sequence[str]) -> list[Mail]:
    """Receipts for each of these hosts and ports, two for a message."""
    return [
        Mail(
            to=url("plain"),
            body=GOOD,
            services="<deliveryReceiptRequest>"
            f"<sendTo>http://{one}/r</sendTo></deliveryReceiptRequest><commitmentReceiptRequest>"
            f"<sendTo>http://{two}/r</sendTo><positiveOnly/></commitmentReceiptRequest>",
        )
        for one, two in zip(hosts[::2], hosts[1::2], strict=True)
    ]


def settled(poster: Poster) -> None:
    """A receipt to a host that the appliance did not know before."""
    with Catcher() as fresh:
        settle(poster, fresh, GOOD.decode())


def test_receipts_to_hosts_that_never_answer(appliance: Appliance, witness: Witness) -> None:
    """A receipt in 0.5 to 10 s, also while many others of the same peer hang. (It may name 500
    URLs; the receipts to one more are given up.)"""
    with socket.create_server(("0.0.0.0", 0), backlog=1000) as tarpit:
        port = tarpit.getsockname()[1]
        mails = asking([f"127.{n // 200 + 1}.0.{n % 200 + 1}:{port}" for n in range(400)])
        with Poster(appliance.srmp_address).connect() as poster, at_most(appliance, 48):
            assert poster.post_all(mails) == [200] * len(mails)
            settled(poster)
    witness.unharmed()
