"""Packets from what is kept of a message, and of its place."""

from msgspec.structs import replace

from bridge.core.remote_read.replies import old_packet_of, packet_of
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.replied import read_reply
from tests.core.retained.world import ORDERS, PLAIN, RETRY, row
from tests.wire.binary.test_reply import sent


def test_the_place_is_told() -> None:
    """MS-MQRR 2.2.5.3"""
    here = row(queue=RETRY, aborts=1, moves=2, moved_at=3)
    chain = read_reply(b"".join(packet_of(sent(), here).all)).extension
    assert chain is not None
    assert (chain.subqueue.name, chain.subqueue.aborts) == ("retry", 1)
    assert (chain.subqueue.moves, chain.subqueue.moved_at) == (2, 3)


def test_a_queue_is_no_subqueue_nor_is_a_journal() -> None:
    for queue in (PLAIN, f"{ORDERS};journal", "system$;deadletter"):
        chain = read_reply(b"".join(packet_of(sent(), row(queue=queue)).all)).extension
        assert chain is not None
        assert chain.subqueue.name == ""


def test_soap_of_a_message_that_came_by_http() -> None:
    soap = (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/">'
        "<se:Header><a/></se:Header><se:Body></se:Body></se:Envelope>"
    )
    message = replace(sent(), wire=b"", soap=soap, transport="http")
    found = UserMessage.unpack(b"".join(old_packet_of(message).all))
    assert found.soap is not None
    assert found.soap.header == "<se:Header><a/></se:Header>"
    assert found.soap.body == "<se:Body></se:Body>"
    broken = replace(message, soap="<no xml")
    assert UserMessage.unpack(b"".join(old_packet_of(broken).all)).soap is None
