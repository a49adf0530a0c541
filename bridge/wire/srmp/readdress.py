"""The same request for another URL: the text of `<to>` changes and nothing else. SR-15

The envelope is not written anew: what its sender added, signed or spelled in his own way goes on
byte for byte. In a multipart body the length of the first part follows; the others stay.
"""

from __future__ import annotations

import re
from typing import Final

from bridge.model.message import Onward
from bridge.wire.srmp.head import hops_in, parse_content_type
from bridge.wire.srmp.mime import read_parts
from bridge.wire.srmp.reader import place_of_to
from bridge.wire.srmp.values import escape

# Its value may stand on a line of its own: headers may be folded.
_LENGTH: Final = re.compile(rb"^(content-length[ \t]*:(?:[ \t]|\r?\n[ \t])*)[0-9]+", re.I | re.M)


def readdress(content_type: str, data: bytes, url: str, head: bytes = b"") -> Onward:
    """A request that `read_request` takes, as it is POSTed to `url`; `head` is the one it had."""
    kind = parse_content_type(content_type)
    text = escape("to", url).encode()
    if kind.multipart:
        packet, was = _in_parts(data, kind.boundary, text)
    else:
        packet, was = _replaced(data, text)
    return Onward(url=url, content_type=str(kind), packet=packet, was=was, via=hops_in(head))


def envelope_before(onward: Onward) -> bytes:
    """The envelope as it came."""
    kind = parse_content_type(onward.content_type)
    data = onward.packet
    soap = read_parts(data, kind.boundary)[0].content if kind.multipart else data
    return _replaced(soap, onward.was)[0]


def _in_parts(data: bytes, boundary: str, text: bytes) -> tuple[bytes, bytes]:
    first = read_parts(data, boundary)[0]
    soap, was = _replaced(first.content, text)
    head, rest = data[: first.offset], data[first.offset + len(first.content) :]
    return _LENGTH.sub(rb"\g<1>%d" % len(soap), head) + soap + rest, was


def _replaced(soap: bytes, text: bytes) -> tuple[bytes, bytes]:
    place = place_of_to(soap)
    return soap[: place.start] + text + soap[place.stop :], soap[place]
