"""Messages for another host, made from requests as they come: SR-15."""

from collections.abc import Sequence

from bridge.core.admission import Policy
from bridge.core.forwards import make
from bridge.core.ports import Forward
from bridge.model.message import Message
from bridge.wire.srmp.convert import message_from_request
from bridge.wire.srmp.readdress import readdress
from bridge.wire.srmp.request import read_request
from tests.core.messages import LOCAL, NOW
from tests.core.posts import PEER
from tests.vectors.srmp import multipart
from tests.wire.srmp.build import MSMQ, MUST, PATH, PROPERTIES, QM, TO, soap

FAR = "http://far02/msmq/private$/orders"
TYPE = 'multipart/related; boundary="MSMQ - SOAP boundary, 26500"; type=text/xml'
NEVER = "20380119T031407"
SENT = "20231114T221320"  # NOW
_BLOCK = MSMQ.replace("20070612T023719", NEVER)
_TIMES = PROPERTIES.replace("20070608T023719", SENT)
STREAM = f"uid:{QM}\\77"


def step(number: int, previous: int | None = None) -> str:
    """The element of a stream."""
    more = "" if previous is None else f"<previous>{previous}</previous>"
    start = "<start><sendReceiptsTo>http://a/msmq/o</sendReceiptsTo></start>"
    return (
        f"<stream {MUST}><streamId>{STREAM}</streamId><current>{number}</current>{more}"
        f"{start if number == 1 else ''}</stream>"
    )


def envelope(
    number: int = 7,
    *entries: str,
    to: str = TO,
    label: str = "a",
    reach: str = NEVER,
    expires: str = NEVER,
    flags: str = "",
) -> bytes:
    path = (
        PATH.replace(TO, to)
        .replace("uuid:7@", f"uuid:{number}@")
        .replace("MSMQ:a", f"MSMQ:{label}")
    )
    block = _BLOCK.replace(NEVER, reach).replace(
        "<Priority>3</Priority>", f"<Priority>3</Priority>{flags}"
    )
    return soap(path + _TIMES.replace(NEVER, expires) + "".join(entries) + block)


def request(soap_text: bytes, body: bytes = b"body") -> bytes:
    return multipart(26500, soap_text, body, QM)


def letter(
    soap_text: bytes = b"",
    body: bytes = b"body",
    *,
    url: str = FAR,
    via: Sequence[str] = (),
    arrived_ms: int = NOW * 1000,
) -> Message:
    """As the server hands it to a shard."""
    data = request(soap_text or envelope(), body)
    head = "".join(f"Via: {hop}\r\n" for hop in via).encode()
    return message_from_request(
        read_request(TYPE, data),
        peer=PEER,
        arrived_ms=arrived_ms,
        destination=url,
        is_here=False,
        onward=readdress(TYPE, data, url, head),
    )


def waiting(
    message: Message | None = None, ordinal: int = 7001, policy: Policy | None = None
) -> Forward:
    """Its row in the state topic."""
    message = message or letter()
    assert message.srmp is not None
    assert message.srmp.onward is not None
    return make(message, message.srmp.onward, policy or Policy(), LOCAL, ordinal)
