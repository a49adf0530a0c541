"""Bytes that somebody copied as text: a hex dump of any usual tool, hex in any dress, or base64.

Dumps have lines of offset, bytes and characters: Wireshark, `hexdump -C`, `xxd`, `tcpdump -X`.
The offsets say where the bytes end, as far as possible: characters may look like hex too.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from bridge.model.errors import ConfigError

_DUMP_LINE: Final = re.compile(r"\s*(?:0x)?([0-9a-fA-F]{4,8})(?::\s*|\s{2,}|\t)(\S.*)")
_LAST_OFFSET: Final = re.compile(r"\s*[0-9a-fA-F]{7,8}\s*")  # hexdump ends with the size alone
_GROUP: Final = re.compile(r"([0-9a-fA-F]{2}(?:[0-9a-fA-F]{2}){0,7})([ \t]*)")
_DRESS: Final = re.compile(r"0x|\\x|[\s,;:{}\[\]()\"'-]", re.IGNORECASE)
_COMMENT: Final = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_PER_LINE: Final = 16


def bytes_of(text: str, where: str) -> bytes:
    """The bytes of a dump, of hex or of base64; ConfigError if it is none of them."""
    text = _COMMENT.sub("", text)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise ConfigError("is empty", where=where, mend="give it a packet in hex")
    found = _dump(lines)
    if found is not None:
        return found
    bare = _DRESS.sub("", text)
    if _HEX.fullmatch(bare):
        if len(bare) % 2:
            what = f"has an odd number of hex digits ({len(bare)})"
            raise ConfigError(what, where=where, mend="copy it again, whole")
        return bytes.fromhex(bare)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        mend = "use a .yaml sample, a packet in hex or base64, or a pcap or pcapng capture"
        raise ConfigError("is no sample that can be read", where=where, mend=mend) from error


def _dump(lines: list[str]) -> bytes | None:
    """None if these are not the lines of a dump."""
    if len(lines) > 1 and _LAST_OFFSET.fullmatch(lines[-1]):
        lines = lines[:-1]
    data = bytearray()
    start = 0  # of the current packet: a dump of several begins at 0 again
    matches = [_DUMP_LINE.fullmatch(line) for line in lines]
    offsets = [int(found[1], 16) if found else -1 for found in matches]
    for index, found in enumerate(matches):
        if found is None:
            return None
        if offsets[index] == 0:
            start = len(data)
        if offsets[index] != len(data) - start:
            return None
        following = offsets[index + 1] if index + 1 < len(offsets) else 0
        size = following - offsets[index] if following else _PER_LINE
        part = _line(found[2], min(max(size, 0), 64))
        if following and len(part) != size:
            return None
        data += part
    return bytes(data)


def _line(text: str, most: int) -> bytes:
    data = bytearray()
    at = 0
    while len(data) < most and (group := _GROUP.match(text, at)):
        data += bytes.fromhex(group[1])
        at = group.end()
        gap = len(group[2])
        if gap > 2 or gap == 0 or (gap == 2 and len(data) != 8):  # hexdump -C halves its lines
            break
    return bytes(data[:most])
