"""Texts of an SRMP envelope and what they mean. Digest srmp.md section 2; MC-MQSRM 2.2.1

Every text came from a stranger: it follows the form or it is a WireError.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Final

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import Guid

NEVER: Final = 0x7FFFFFFF  # 20380119T031407, written for "does not expire"
U32: Final = 0xFFFFFFFF
U64: Final = 0xFFFFFFFFFFFFFFFF
MAX_URL: Final = 2048
MAX_NAME: Final = 0x7FFF  # characters of any other name: what a binary packet has room for
MAX_BASE64: Final = 0xFFFF  # characters; a signature has 64 bytes

SPACE: Final = " \t\r\n"  # what XML calls white space; str.strip() takes more
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
# A control character in a name could end the line of a header when we answer to it.
_URL: Final = re.compile(r"https?://[^\x00-\x20\x7f-\x9f/\\?#][^\x00-\x1f\x7f-\x9f]*", re.I)
_ID: Final = re.compile(r"uuid:([0-9]{1,20})@([0-9A-Fa-f-]{36})")
_STREAM_ID: Final = re.compile(r"uid:([0-9A-Fa-f-]{36})\\([0-9]{1,20})")
_OBJECT_ID: Final = Struct("<16sI")
_LOSSY: Final = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ESCAPE: Final = str.maketrans(_ESCAPED)


class StreamId(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`text` is echoed byte for byte in receipts. MC-MQSRM 2.2.5.3.1"""

    text: str
    guid: Guid  # the sending queue manager
    number: int  # Unix time in the high half, an ordinal in the low half


def trim(text: str) -> str:
    return text.strip(SPACE)


def parse_number(field: str, text: str, most: int = U64) -> int:
    """xs:unsignedLong; `most` is what the attribute behind it can hold."""
    if _NUMBER.fullmatch(text) is None or (value := int(text)) > most:
        raise WireError(field, text[:40], f"SR-5: a number up to {most}")
    return value


def parse_guid(field: str, text: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError:
        raise WireError(field, text[:40], "SR-5: a GUID") from None


def parse_date(field: str, text: str) -> int:
    """Unix seconds. Nothing in MSMQ is older than 1970."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise WireError(field, text[:40], "SR-5: YYYYMMDDThhmmss")
    try:
        year, month, day, hour, minute, second = (int(group) for group in match.groups())
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise WireError(field, text, "SR-5: no such date") from None
    if moment < _EPOCH:
        raise WireError(field, text, "SR-5: before 1970")
    return int((moment - _EPOCH).total_seconds())


def date_text(seconds: int) -> str:
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.year:04}{moment:%m%dT%H%M%S}"


def parse_name(field: str, text: str) -> str:
    """A format name, or the name of a provider."""
    if len(text) > MAX_NAME:
        raise WireError(field, len(text), f"at most {MAX_NAME} characters")
    return text


def is_url(text: str) -> bool:
    return len(text) <= MAX_URL and _URL.fullmatch(text) is not None


def parse_url(field: str, text: str) -> str:
    if not is_url(text):
        raise WireError(field, text[:80], "SR-5: an http or https URL")
    return text


def parse_base64(field: str, text: str) -> bytes:
    if len(text) > MAX_BASE64:
        raise WireError(field, len(text), f"at most {MAX_BASE64} characters of base64")
    try:
        return b64decode("".join(text.split()), validate=True)
    except (Base64Error, ValueError):
        raise WireError(field, text[:40], "SR-5: base64") from None


def base64_text(raw: bytes) -> str:
    return b64encode(raw).decode("ascii")


def parse_id(field: str, text: str) -> tuple[Guid, int]:
    """`uuid:n@guid`. MC-MQSRM 2.2.4.3; OBJECTID.Uniquifier has 32 bits"""
    match = _ID.fullmatch(text)
    if match is None:
        raise WireError(field, text[:80], "SR-5: uuid:n@guid")
    return parse_guid(field, match[2]), parse_number(field, match[1], U32)


def id_text(guid: Guid, ordinal: int) -> str:
    return f"uuid:{ordinal}@{guid}"


def correlation_of(guid: Guid, ordinal: int) -> bytes:
    """An Identifier as the CorrelationIdentifier of its receipts. MS-MQMQ 2.2.8"""
    return _OBJECT_ID.pack(guid, ordinal)


def parse_stream_id(field: str, text: str) -> StreamId:
    match = _STREAM_ID.fullmatch(text)
    if match is None:
        raise WireError(field, text[:80], "SR-5: uid:guid\\n")
    guid, number = parse_guid(field, match[1]), parse_number(field, match[2])
    return StreamId(text=text, guid=guid, number=number)


def make_stream_id(guid: Guid, number: int) -> StreamId:
    return StreamId(text=f"uid:{guid}\\{number}", guid=guid, number=number)


def legible(text: str) -> str:
    """With U+FFFD where XML cannot say what it holds."""
    return _LOSSY.sub("\ufffd", text)


def escape(field: str, text: str) -> str:
    """As content of an element. MSMQ texts are WCHARs, and XML cannot hold all of them."""
    if lossy := _LOSSY.search(text.replace("\r", "")):
        raise WireError(field, lossy[0], "XML 1.0 2.2: not a character")
    return text.translate(_ESCAPE)
