"""Packets of the binary protocol, byte for byte.

F1 to F8 are the worked example of MS-MQQB section 4 with the corrections listed in section 6 of
the digest `binary.md`. V1 to V5 were made by hand from its section 2.
"""

from __future__ import annotations

from typing import NamedTuple


class Vector(NamedTuple):
    source: str
    data: bytes


def _hex(text: str) -> bytes:
    return bytes.fromhex(text)


PADDING_5A = b"\x5a" * 512

_F3_HEAD = _hex("""
    10 C0 0B 00 4C 49 4F 52 3C 02 00 00 FF FF FF FF 00 00 02 00
    D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6
    07 89 CD 43 4C 39 11 8F 44 45 90 78 90 9E A0 FC
    4E CA DE 1D 10 03 00 00""")
_F4_GUIDS = _hex("""
    05 23 74 1F 5E BE 77 41 BC 77 C4 DD 77 19 E4 74
    EB 6A 3A 3C 67 F5 43 41 87 D3 85 CF 4D 68 CE B4""")
_CP = _hex("""
    10 C0 0B 00 4C 49 4F 52 20 00 00 00 FF FF FF FF 00 00 03 00
    D8 05 00 00 C0 D4 01 00 00 00 40 00""")
_F7_HEAD = _hex("""
    10 00 03 00 4C 49 4F 52 B0 08 00 00 00 46 05 00 D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 FF FF FF FF 4C 49 4F 52 EE 08 00 00 00 1C 28 00
    1A 00 4F 00 53 00 3A 00 61 00 30 00 34 00 62 00 6D 00 30 00 32 00 5C 00 71 00 00 00 01 00 1C 00
    00 00 00 00 00 00 00 00 00 00 00 00 01 05 00 00 00 00 00 05 15 00 00 00 AD 4A 9E BD 36 D9 FA 3D
    63 A6 56 DA E8 03 00 00 0F 0F 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    08 00 00 00 00 00 00 00 D0 07 00 00 D0 07 00 00 00 00 00 00 04 80 00 00 01 68 00 00 00 00 00 00
    6D 00 71 00 73 00 65 00 6E 00 64 00 65 00 72 00 20 00 6C 00 61 00 62 00 65 00 6C 00 00 00""")
F7_BODY = _hex("61 00") * 1000
_F7 = _F7_HEAD + F7_BODY + bytes(2)

_V1 = _hex("""
    10 00 00 00 4C 49 4F 52 C4 00 00 00 00 46 05 00 11 11 11 11 22 22 33 33 44 44 55 55 55 55 55 55
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 FF FF FF FF 10 00 00 60 2A 00 00 00 20 1C 30 00
    28 00 4F 00 53 00 3A 00 61 00 70 00 70 00 6C 00 5C 00 70 00 72 00 69 00 76 00 61 00 74 00 65 00
    24 00 5C 00 71 00 31 00 00 00 00 00 1E 00 00 00 01 00 00 00 00 00 00 60 01 00 00 00 00 00 00 00
    00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 11 10 00 00 00 00 00 00
    05 00 00 00 05 00 00 00 00 00 00 00 04 80 00 00 01 68 00 00 00 00 00 00 74 00 31 00 00 00 68 65
    6C 6C 6F 00""")
_V2 = _hex("""
    10 00 00 00 4C 49 4F 52 08 01 00 00 FF FF FF FF D3 C2 B1 A0 F5 E4 71 60 82 93 A4 B5 C6 D7 E8 F9
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 FF FF FF FF 11 00 00 60 01 00 00 00 00 1C 20 00
    4A 00 54 00 43 00 50 00 3A 00 31 00 39 00 32 00 2E 00 30 00 2E 00 32 00 2E 00 31 00 30 00 5C 00
    50 00 52 00 49 00 56 00 41 00 54 00 45 00 24 00 5C 00 6F 00 72 00 64 00 65 00 72 00 5F 00 71 00
    75 00 65 00 75 00 65 00 24 00 00 00 00 10 FF 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 24 00 00 00 24 00 00 00 00 00 00 00 04 80 00 00 01 68 00 00
    00 00 00 00 51 00 4D 00 20 00 4F 00 72 00 64 00 65 00 72 00 69 00 6E 00 67 00 20 00 41 00 63 00
    6B 00 00 00 01 00 00 00 00 00 00 60 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00""")
_V3 = _hex("""
    10 00 00 00 4C 49 4F 52 C0 00 00 00 FF FF FF FF D3 C2 B1 A0 F5 E4 71 60 82 93 A4 B5 C6 D7 E8 F9
    11 11 11 11 22 22 33 33 44 44 55 55 55 55 55 55 FF FF FF FF 12 00 00 60 02 00 00 00 20 0C 20 00
    04 00 00 00 00 10 00 40 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00 24 00 00 00 24 00 00 00 00 00 00 00 04 80 00 00 01 68 00 00
    00 00 00 00 51 00 4D 00 20 00 4F 00 72 00 64 00 65 00 72 00 69 00 6E 00 67 00 20 00 41 00 63 00
    6B 00 00 00 01 00 00 00 00 00 00 60 01 00 00 00 00 00 00 00
    11 11 11 11 22 22 33 33 44 44 55 55 55 55 55 55 2A 00 00 00""")
_V5_MESSAGE = _hex("""
    10 00 13 00 4C 49 4F 52 A8 00 00 00 00 46 05 00 11 11 11 11 22 22 33 33 44 44 55 55 55 55 55 55
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 FF FF FF FF 10 00 00 60 2B 00 00 00 00 1C 20 00
    28 00 4F 00 53 00 3A 00 61 00 70 00 70 00 6C 00 5C 00 70 00 72 00 69 00 76 00 61 00 74 00 65 00
    24 00 5C 00 71 00 31 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 11 10 00 00 00 00 00 00
    04 00 00 00 04 00 00 00 00 00 00 00 04 80 00 00 01 68 00 00 00 00 00 00 70 69 6E 67""")
V5_SESSION = _hex("01 00 00 00 00 00 00 00 01 00 00 00 40 00 00 00")

PINGS = {
    "F1": Vector(
        "MS-MQQB 4.1.1 ping request",
        _hex("01 7D 48 55 04 00 00 00 D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6"),
    ),
    "F2": Vector(
        "MS-MQQB 4.1.2 ping response",
        _hex("95 B2 48 55 04 00 00 00 07 89 CD 43 4C 39 11 8F 44 45 90 78 90 9E A0 FC"),
    ),
}

PACKETS = {
    "F3": Vector("MS-MQQB 4.1.3 EstablishConnection request", _F3_HEAD + PADDING_5A),
    "F4": Vector(
        "MS-MQQB 4.1.4 EstablishConnection response; its GUIDs are not those of F3",
        b"\x10\x5a" + _F3_HEAD[2:20] + _F4_GUIDS + _F3_HEAD[52:] + PADDING_5A,
    ),
    "F5": Vector("MS-MQQB 4.1.5 ConnectionParameters request", _CP),
    "F6": Vector("MS-MQQB 4.1.6 ConnectionParameters response; the hex says window 64", _CP),
    "F7": Vector("MS-MQQB 4.1.7 user message; SentTime is the magic, as printed", _F7),
    "F7 mended": Vector(
        "MS-MQQB 4.1.7 user message; SentTime as in its listing",
        _F7[:52] + _hex("E6 05 11 44") + _F7[56:],
    ),
    "F8": Vector(
        "MS-MQQB 4.1.8 SessionAck",
        _hex("""10 CD 1B 00 4C 49 4F 52 24 00 00 00 FF FF FF FF 00 00 01 00
                01 00 00 00 00 00 00 00 00 00 00 00 40 00 00 00"""),
    ),
    "V1": Vector("digest section 6: a transactional message", _V1),
    "V2": Vector("digest section 6: OrderAck for V1, direct form", _V2),
    "V3": Vector("digest section 6: FinalAck for V1, DQ=3 form", _V3),
    "V4": Vector(
        "digest section 6: SessionAck",
        _hex("""10 00 1B 00 4C 49 4F 52 24 00 00 00 FF FF FF FF 00 00 01 00
                03 00 01 00 03 00 00 00 02 00 01 00 40 00 00 00"""),
    ),
    "V5": Vector(
        "digest section 6: a SessionHeader rides on an express message, outside PacketSize",
        _V5_MESSAGE + V5_SESSION,
    ),
    "V5 counted": Vector(
        "V5 from a peer that counts the SessionHeader in PacketSize (CONFLICT-1)",
        _V5_MESSAGE[:8] + _hex("B8 00 00 00") + _V5_MESSAGE[12:] + V5_SESSION,
    ),
    "V4 uncounted": Vector(
        "V4 from a peer that does not count the SessionHeader in PacketSize (CONFLICT-1)",
        _hex("""10 00 1B 00 4C 49 4F 52 14 00 00 00 FF FF FF FF 00 00 01 00
                03 00 01 00 03 00 00 00 02 00 01 00 40 00 00 00"""),
    ),
}
