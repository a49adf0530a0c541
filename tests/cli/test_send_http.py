"""`msmq-bridge send --to http://…` against a receiver that is built from the digest alone."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import server_context
from bridge.cli import send as send_module
from bridge.cli import send_http as module
from bridge.cli.app import main
from bridge.cli.send_http import HttpOptions, url_of, way_of
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.protocol.srmp.sender import Sender, Timing
from tests.adapters.net.srmp_receiver import (
    Got,
    Receiver,
    acknowledge_each,
    listening,
)
from tests.cli.program import serve
from tests.support.config import topic, write_config
from tests.support.kafka import read_topic, unique
from tests.support.waiting import eventually

SOURCE = "11111111-2222-3333-4444-555555555555"
QUEUE = "http://machine2/msmq/private$/q"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sender, in a hurry."""
    timing = Timing(retransmit_s=0.05, receipt_wait_s=(0.3,))

    def make(**fields: Any) -> Sender:
        return Sender(timing=timing, **fields)

    monkeypatch.setattr(module, "Sender", make)


Send = Callable[..., dict[str, Any]]


@pytest.fixture
def send(capsys: pytest.CaptureFixture[str]) -> Send:
    """What it says, as JSON."""

    def make(url: str, *options: str) -> dict[str, Any]:
        assert main(["send", "--to", url, "-o", "json", *options]) == 0, capsys.readouterr().err
        printed = capsys.readouterr()
        assert printed.err == ""
        told: dict[str, Any] = json.loads(printed.out)
        return told

    return make


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """stdout, and the one line on stderr."""
    assert main(["send", *arguments]) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("msmq-bridge: error: ")
    return printed.out, line


def bodies(count: int) -> list[bytes]:
    return [b"message %d" % n for n in range(1, count + 1)]


# -- what arrives -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivery", "options"),
    [("express", []), ("recoverable", ["--recoverable"]), ("transactional", ["--transactional"])],
)
def test_all_arrive_in_order(send: Send, delivery: str, options: list[str]) -> None:  # 1.3.5
    with listening(Receiver(acknowledge_each)) as receiver:
        told = send(receiver.url(), "--count", "20", *options)
        assert receiver.taken == bodies(20)
        assert list(told) == ["sent", "to", "source", "delivery", "seconds", "per_second"]
        assert (told["sent"], told["delivery"]) == (20, delivery)
        assert told["to"] == f"DIRECT={receiver.url()}"
        assert {got.find("SourceQmGuid") for got in receiver.requests} == {told["source"]}
        assert {got.target for got in receiver.requests} == {"/msmq/private$/tsimpleq"}
        assert all(got.has("durable") == (delivery != "express") for got in receiver.requests)
        assert bool(receiver.stream) == (delivery == "transactional")


def test_every_property_arrives(send: Send) -> None:
    with listening(Receiver()) as receiver:
        send(
            *(receiver.url(), "--source", SOURCE, "--recoverable", "--label", "order {n} €"),
            *("--body", "b{n}", "--priority", "7", "--app", "4711", "--body-type", "8"),
            *("--correlation", "00ff" * 10, "--ttrq", "60", "--ack", "full-receive"),
            *("--admin-queue", "http://me/msmq/private$/admin", "--dead-letter"),
            *("--response-queue", r"DIRECT=OS:me\answers"),
        )
        (got,) = receiver.requests
        assert got.body == b"b1"
        found = ("action", "to", "via", "id", "Priority", "App", "BodyType", "Correlation")
        assert [got.find(name) for name in found] == [
            "MSMQ:order 1 €",
            receiver.url(),
            r"MSMQ:DIRECT=OS:me\answers",
            f"uuid:1@{SOURCE}",
            "7",
            "4711",
            "8",
            "AP8A/wD/AP8A/wD/AP8A/wD/AP8=",
        ]
        assert got.has("DeadLetter")
        to_admin = "<sendTo>http://me/msmq/private$/admin</sendTo>"
        assert f"{to_admin}<positiveOnly/><negativeOnly/></commitmentReceiptRequest>" in (
            got.envelope
        )


def test_transactions_of_several_messages(send: Send) -> None:  # 2.2.6.11
    with listening(Receiver(acknowledge_each)) as receiver:
        send(receiver.url(), "--transactional", "--count", "3", "--per-transaction", "2")
        assert [(got.has("First"), got.has("Last")) for got in receiver.requests] == [
            (True, False),
            (False, True),
            (True, True),
        ]


def test_a_format_name_and_a_queue_without_private(send: Send) -> None:
    with listening(Receiver()) as receiver:
        url = receiver.url("/MSMQ/Public Queue")
        told = send(f"direct={url}")
        (got,) = receiver.requests
        assert (got.find("to"), got.target) == (url, "/msmq/public%20queue")
        assert told["to"] == f"DIRECT={url}"


def test_two_runs_of_one_source_are_two_streams(send: Send) -> None:  # SR-54
    with listening(Receiver(acknowledge_each)) as receiver:
        for _ in range(2):
            send(receiver.url(), "--transactional", "--source", SOURCE)
        ids = [int((got.find("streamId") or "").rpartition("\\")[2]) for got in receiver.requests]
        assert receiver.taken == [b"message 1"] * 2
        assert all(earlier < later for earlier, later in pairwise(ids))


# -- receipts ---------------------------------------------------------------------------------


def test_one_receipt_for_all_of_a_stream(send: Send) -> None:  # SR-36, SR-73
    def after(receiver: Receiver, got: Got) -> None:
        if got.find("current") == "5":
            receiver.stream_receipt()

    with listening(Receiver(after)) as receiver:
        assert send(receiver.url(), "--transactional", "--count", "5")["sent"] == 5
        form = r"http://127\.0\.0\.1:\d+/MSMQ/PRIVATE\$/order_queue\$"
        assert re.fullmatch(form, receiver.receipts_to)


@pytest.mark.usefixtures("quick")
def test_a_lost_receipt(send: Send) -> None:  # SR-76
    def after(receiver: Receiver, _got: Got) -> None:
        if len(receiver.requests) == 4:
            receiver.stream_receipt()

    with listening(Receiver(after)) as receiver:
        send(receiver.url(), "--transactional", "--count", "2")
        assert [got.find("current") for got in receiver.requests] == ["1", "2", "1", "2"]
        assert receiver.taken == bodies(2)


def test_final_receipts_are_waited_for(send: Send) -> None:  # SR-53
    def after(receiver: Receiver, got: Got) -> None:
        receiver.stream_receipt()
        receiver.final_receipt(got)

    for option in ("--wait-final", "--dead-letter"):
        with listening(Receiver(after)) as receiver:
            told = send(receiver.url(), "--transactional", "--count", "3", option)
            assert told["final_acks"] == {"ACK_RECEIVE": 3}
            assert all(got.has("DeadLetter") for got in receiver.requests)


def test_a_negative_final_receipt_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def after(receiver: Receiver, got: Got) -> None:  # SR-53
        receiver.final_receipt(got, 16384 if got.body == b"message 1" else 49154)

    with listening(Receiver(after)) as receiver:
        options = ["--transactional", "--wait-final", "--count", "2", "-o", "json"]
        out, line = fails(capsys, "--to", receiver.url(), *options)
    told = json.loads(out)
    assert (told["sent"], told["final_acks"]) == (1, {"ACK_RECEIVE": 1, "NACK_RECEIVE_TIMEOUT": 1})
    assert line.endswith(
        "1 of 2 messages were refused: NACK_RECEIVE_TIMEOUT (it was not received in time)"
    )


def test_receipts_for_messages_come_to_us(send: Send) -> None:  # SR-50
    def after(receiver: Receiver, got: Got) -> None:
        receiver.delivery_receipt(got)

    with listening(Receiver(after)) as receiver:
        told = send(receiver.url(), "--count", "3", "--ack", "reach")
        assert told["receipts"] == {"ACK_REACH_QUEUE": 3}
        assert "<deliveryReceiptRequest>" in receiver.requests[0].envelope
        eventually(lambda: receiver.answers == [200] * 3)


def test_receipts_for_others_are_not_waited_for(send: Send) -> None:
    with listening(Receiver()) as receiver:
        told = send(receiver.url(), "--ack", "reach", "--admin-queue", "http://a/msmq/q")
        assert "receipts" not in told


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def receipts_to(port: int) -> Callable[[Receiver, Got], None]:
    """As a gateway would bring them."""

    def after(receiver: Receiver, _got: Got) -> None:
        receiver.receipts_to = f"http://127.0.0.1:{port}/somewhere"
        receiver.stream_receipt()

    return after


def test_where_receipts_come_to(send: Send) -> None:
    port = free_port()
    with listening(Receiver(receipts_to(port))) as receiver:
        ours = ["--receipts-host", "localhost", "--receipts-port", str(port)]
        send(receiver.url(), "--transactional", *ours)
        told = receiver.requests[-1].find("sendReceiptsTo")
        assert told == f"http://localhost:{port}/MSMQ/PRIVATE$/order_queue$"
        theirs = "https://proxy/msmq/receipts?x=Y"
        send(receiver.url(), "--transactional", *ours, "--receipts-to", theirs)
        assert receiver.requests[-1].find("sendReceiptsTo") == theirs


# -- another way ------------------------------------------------------------------------------


def test_a_host_to_connect_to(send: Send) -> None:
    with listening(Receiver()) as receiver:
        send(QUEUE, "--host", f"localhost:{receiver.port}")
        (got,) = receiver.requests
        assert (got.find("to"), got.head.splitlines()[1]) == (QUEUE, "Host: machine2")


def test_redirections_of_a_configuration(send: Send, tmp_path: Path) -> None:  # SR-18, SR-73
    port = free_port()
    with listening(Receiver(receipts_to(port))) as receiver:
        config = tmp_path / "bridge.yaml"
        config.write_text(
            "srmp:\n"
            f"  redirect_out: [{{from: 'http://machine2/*', to: '{receiver.url('/far/away')}'}}]\n"
            "  receipt_redirect: [{from: 'http://machine2/*', to: 'http://gateway/r'}]\n"
        )
        send(QUEUE, "--transactional", "--config", str(config), "--receipts-port", str(port))
        (got,) = receiver.requests
        assert got.target == "/msmq/private$/q"
        assert got.head.splitlines()[1] == f"Host: 127.0.0.1:{receiver.port}"
        assert got.find("to") == QUEUE  # the message stays unchanged
        assert got.find("sendReceiptsTo") == "http://gateway/r"


def test_https(send: Send, tmp_path: Path) -> None:
    certificate, key = self_signed(["localhost"], tmp_path)
    with listening(Receiver(acknowledge_each), tls=server_context(certificate, key)) as receiver:
        url = f"https://localhost:{receiver.port}/msmq/private$/q"
        send(url, "--transactional", "--ca-file", str(certificate), "--host", "127.0.0.1")
        assert receiver.requests[0].find("to") == url
        config = tmp_path / "bridge.yaml"
        config.write_text("srmp: {ca_file: tls.crt}\n")
        send(url, "--config", str(config))
        assert len(receiver.taken) == 2


@pytest.mark.parametrize("tag", ["stream", "Stream"])
def test_the_spelling_of_a_stream(send: Send, tmp_path: Path, tag: str) -> None:
    """`srmp.stream_element`; MC-MQSRM 2.2.5.3 has `stream`, 4.4 `Stream`."""
    config = tmp_path / "bridge.yaml"
    config.write_text(f"srmp: {{stream_element: {tag}}}\n")
    with listening(Receiver(acknowledge_each)) as receiver:
        send(receiver.url(), "--transactional", "--config", str(config))
        send(receiver.url(), "--transactional")
        texts = [request.envelope for request in receiver.requests]
    assert [f"<{tag} se:" in texts[0], "<stream se:" in texts[1]] == [True, True]


@pytest.mark.skipif(not ssl.HAS_TLSv1, reason="this OpenSSL has it not")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_https_to_old_windows(send: Send, tmp_path: Path) -> None:
    """`srmp.tls: legacy`"""
    certificate, key = self_signed(["localhost"], tmp_path)
    server = server_context(certificate, key, "legacy")
    server.maximum_version = ssl.TLSVersion.TLSv1
    config = tmp_path / "bridge.yaml"
    config.write_text("srmp: {ca_file: tls.crt, tls: legacy}\n")
    with listening(Receiver(acknowledge_each), tls=server) as receiver:
        url = f"https://localhost:{receiver.port}/msmq/private$/q"
        send(url, "--config", str(config), "--host", "127.0.0.1")
        assert len(receiver.taken) == 1


# -- what goes wrong --------------------------------------------------------------------------


def test_400_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:  # 1.4
    with listening(Receiver(plan=[200, 400, 400])) as receiver:
        out, line = fails(capsys, "--to", receiver.url(), "--count", "3", "-o", "json")
    assert json.loads(out)["sent"] == 1
    assert "2 of 3 messages were refused: HTTP 400 (malformed, no such queue there" in line


@pytest.mark.usefixtures("quick")
def test_500_then_200(send: Send) -> None:  # 1.4, SR-75
    with listening(Receiver(plan=[500, 503])) as receiver:
        assert send(receiver.url())["sent"] == 1
        assert len(receiver.requests) == 3


def test_an_expired_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # SR-63
    class Clock:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def time() -> float:
            return time.time() - 100

    monkeypatch.setattr(send_module, "time", Clock)
    with listening(Receiver()) as receiver:
        _, line = fails(capsys, "--to", receiver.url(), "--ttrq", "60")
        assert receiver.requests == []
    assert "1 of 1 messages were refused: NACK_REACH_QUEUE_TIMEOUT" in line


@pytest.mark.usefixtures("quick")
def test_no_receipt(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(Receiver()) as receiver:
        options = ["--transactional", "--count", "2", "--timeout", "1.5"]
        out, line = fails(capsys, "--to", receiver.url(), *options)
    assert out == ""
    assert "2 messages are not acknowledged after 1.5 s (no stream receipt came to http:" in line


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/msmq/private$/q"
        out, line = fails(capsys, "--to", url, "--timeout", "0.5")
    assert out == ""
    assert f"{url}: 1 messages are not acknowledged after 0.5 s (Connection refused)" in line


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        options = ["--transactional", "--receipts-host", "127.0.0.1", "--receipts-port", port]
        _, line = fails(capsys, "--to", QUEUE, *options)
    assert f"--receipts-port: cannot listen on 127.0.0.1:{port}" in line


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--to", QUEUE, "--queue", "q"], "give either --queue or --to"),
        (["--to", "http://"], "--to: 'http://' is no URL; write http://host/msmq/private$/queue"),
        (["--to", "http://a..b/msmq/q"], "--to: 'http://a..b/msmq/q' is no URL"),
        (["--to", "http://h:99999/msmq/q"], "--to: 'http://h:99999/msmq/q' is no URL"),
        (["--to", "http://h\u00fc/msmq/q"], "is no URL"),
        (["--to", QUEUE, "--host", ""], "--host: "),
        (["--to", QUEUE, "--host", "h:99999"], "--host: 'h:99999': no such port"),
        (["--to", QUEUE, "--receipts-to", "there"], "--receipts-to: 'there' is no URL"),
        (["--to", QUEUE, "--ttbr", "60"], "--ttbr: messages over HTTP have no such time"),
        (["--to", QUEUE, "--admin-queue", "x"], "--admin-queue: 'x' is no format name"),
        (
            ["--to", QUEUE, "--ack", "reach", "--admin-queue", r"DIRECT=OS:me\q"],
            r"--admin-queue: DIRECT=OS:me\q is no URL",
        ),
        (["--to", QUEUE, "--wait-final"], "--wait-final: only a transactional message"),
        (["--to", QUEUE, "--label", "\x01"], "XML 1.0 2.2"),
        (["--to", QUEUE, "--config", "/no/such/file"], "/no/such/file"),
        (["--to", QUEUE.replace("p:", "ps:"), "--ca-file", "/no/such/file"], "/no/such/file"),
        (["--queue", "q", "--receipts-port", "1"], "--receipts-port: is for --to http://"),
        (["--queue", "q", "--receipts-to", QUEUE], "--receipts-to: is for --to http://"),
        (["--queue", "q", "--ca-file", "x"], "--ca-file: is for --to http://"),
        (["--queue", "q", "--config", "x"], "--config: is for --to http://"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, line = fails(capsys, *arguments)
    assert out == ""
    assert word in line


# -- the way ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "url"),
    [
        (QUEUE, QUEUE),
        (f"DIRECT={QUEUE}", QUEUE),
        ("direct=HTTPS://h/msmq/q", "HTTPS://h/msmq/q"),
        (r"DIRECT=OS:h\q", ""),
        ("", ""),
    ],
)
def test_what_is_a_url(to: str, url: str) -> None:
    assert url_of("", to) == url


@pytest.mark.parametrize(
    ("url", "host", "address", "authority"),
    [
        (QUEUE, None, ("machine2", 80), "machine2"),
        ("http://[fd00::7]:8080/msmq/q", None, ("fd00::7", 8080), "[fd00::7]:8080"),
        ("https://h/msmq/q", None, ("h", 443), "h"),
        (QUEUE, "10.0.0.7", ("10.0.0.7", 80), "machine2"),
        (QUEUE, "10.0.0.7:81", ("10.0.0.7", 81), "machine2"),
        ("https://h/msmq/q", "[fd00::7]", ("fd00::7", 443), "h"),
        ("https://h:444/msmq/q", "[fd00::7]:81", ("fd00::7", 81), "h:444"),
    ],
)
def test_where_it_connects_to(
    url: str, host: str | None, address: tuple[str, int], authority: str
) -> None:
    template = Message(source=Guid.random(), ordinal=0, destination=f"DIRECT={url}")
    way = way_of(url, template, HttpOptions(host=host))
    assert way is not None
    assert (way.route.address, way.route.authority) == (address, authority)
    assert (way.route.tls is not None) == url.startswith("https")
    assert way.receipts_to == ""


def test_a_redirection_to_nowhere(tmp_path: Path) -> None:
    config = tmp_path / "bridge.yaml"
    config.write_text("srmp: {redirect_out: [{from: 'http://machine2/*', to: 'http://a@b/'}]}\n")
    template = Message(source=Guid.random(), ordinal=0, destination=f"DIRECT={QUEUE}")
    with pytest.raises(ConfigError, match=r"^srmp\.redirect_out: 'http://a@b/' is no URL"):
        way_of(QUEUE, template, HttpOptions(config=config))


# -- to an appliance of our own ---------------------------------------------------------------


@pytest.mark.kafka
def test_it_arrives_in_kafka(kafka: EmbeddedKafka, send: Send, tmp_path: Path) -> None:
    prefix = unique("http")
    config = write_config(
        tmp_path, kafka.bootstrap_servers, topic_prefix=prefix, listen={"srmp": 0}
    )
    with serve(config) as program:
        place = f"http://{program.address('srmp')}/msmq/private$"
        program.wait_line("ready: ")
        told = send(f"{place}/orders", "--transactional", "--count", "50", "--wait-final")
        assert (told["sent"], told["final_acks"]) == (50, {"ACK_RECEIVE": 50})
        plain = send(f"{place}/plain", "--count", "20", "--ack", "full-receive")
        assert plain["receipts"] == {"ACK_RECEIVE": 20}
        found = read_topic(kafka.bootstrap_servers, topic(prefix, "orders"))
        assert [record.value() for record in found] == bodies(50)
        found = read_topic(kafka.bootstrap_servers, topic(prefix, "plain"))
        assert [record.value() for record in found] == bodies(20)
