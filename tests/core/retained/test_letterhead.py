from bridge.core.posted import Past, Posted
from bridge.core.retained.letterhead import Letterhead, read_letterhead
from bridge.model.guid import Guid
from bridge.model.message import Srmp
from tests.core.messages import LOCAL, NOW, SENDER, plain, step

LATER_MS = NOW * 1000 + 60_000


def test_what_an_ack_repeats() -> None:
    """QB-92: keep SeqID/SeqNo/Prev/SourceGUID/MessageID with the stored message."""
    message = step(3, 2, body=b"x" * 5000, wire=b"y" * 500, ack=0xE, journal=1, label="a\ud800b")
    data = Letterhead(message, LOCAL).encode()
    assert len(data) < 600
    back = read_letterhead(data, LATER_MS)
    assert back.via == LOCAL
    for field in ("source", "ordinal", "destination", "label", "delivery", "ack", "journal"):
        assert getattr(back.message, field) == getattr(message, field)
    assert back.message.admin_queue == message.admin_queue
    assert back.message.transaction == message.transaction
    assert back.message.peer == message.peer
    assert (back.message.body, back.message.wire) == (b"", b"")


def test_it_is_made_when_the_message_leaves() -> None:
    back = read_letterhead(Letterhead(plain(1)).encode(), LATER_MS)
    assert back.message.arrived_ms == LATER_MS


def test_what_a_receipt_over_http_repeats() -> None:
    """SR-48: label, Identifier, original <to>, urls, flags, streamId, current."""
    srmp = Srmp(
        to="http://bridge/msmq/private$/orders",
        stream_id="uuid:1@x",
        commitment_to="http://sender/msmq/private$/order_queue$",
        positive=True,
        connector_qm=Guid(SENDER),
    )
    past = Past(1, "old", 9, "http://elsewhere/", "10.0.0.1")
    stream = Posted(id=5, text="uuid:1@x", number=2, receipts_to="http://sender/", past=(past,))
    back = read_letterhead(Letterhead(step(2, 1, srmp=srmp), LOCAL, stream).encode(), LATER_MS)
    assert back.message.srmp == srmp
    assert back.stream == Posted(id=5, text="uuid:1@x", number=2, receipts_to="http://sender/")
