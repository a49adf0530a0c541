"""What every layout needs: bounds, padding, UTF-16 text and GUIDs.

Nothing here slices before it has checked, because lengths come from a stranger.
"""

from __future__ import annotations

from codecs import utf_16_le_decode, utf_16_le_encode
from typing import Final

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid

_MAX_GUIDS: Final = 4096
known_guids: dict[bytes, Guid] = {}  # the hot path looks here before it calls guid()


def align4(size: int) -> int:
    return (size + 3) & ~3


def pad4(raw: bytes) -> bytes:
    """`raw` up to the next 4-byte boundary. We send zeros; a peer may send anything."""
    return raw + bytes(-len(raw) & 3)


def require(field: str, size: int, offset: int, end: int, rule: str) -> None:
    """`size` bytes must lie between `offset` and `end`."""
    if size > end - offset:
        raise WireError(field, size, f"{rule}: only {max(end - offset, 0)} bytes left")


def take(field: str, data: bytes, size: int, offset: int, end: int, rule: str) -> bytes:
    require(field, size, offset, end, rule)
    return data[offset : offset + size]


# The codec functions are called directly: bytes.decode() looks the codec up by name each time,
# which costs four times as much.
def decode_utf16(raw: bytes) -> str:
    """The text of WCHARs; `raw` has an even length.

    A WCHAR can be half of a surrogate pair without its other half, which UTF-8 and so Kafka, JSON
    and the resolver cannot hold. Each such half is U+FFFD in the text, so that every text that
    leaves the wire layer can be encoded. The packet as it came still has the WCHARs.
    """
    return utf_16_le_decode(raw, "replace", True)[0]


def encode_utf16(text: str) -> bytes:
    """Never fails: texts that an earlier version has stored may still have halves of a pair."""
    return utf_16_le_encode(text, "surrogatepass")[0]


def well_formed(text: str) -> str:
    """As `decode_utf16` would have read it, for texts that an earlier version has stored."""
    return decode_utf16(encode_utf16(text))


def encode_utf16z(text: str) -> bytes:
    return encode_utf16(text) + b"\0\0"


def strip_nul(text: str) -> str:
    """Without its terminator, if it has one."""
    return text[:-1] if text.endswith("\0") else text


def guid(raw: bytes) -> Guid:
    """The same few queue managers appear in every message: make each Guid once."""
    found = known_guids.get(raw)
    return _remember(raw) if found is None else found


def _remember(raw: bytes) -> Guid:
    if len(known_guids) >= _MAX_GUIDS:
        known_guids.clear()
    made = known_guids[bytes(raw)] = NULL_GUID if raw == NULL_GUID else Guid(raw)
    return made
