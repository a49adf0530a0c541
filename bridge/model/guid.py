"""A GUID as it lies on the wire; its text is made only when somebody looks."""

from __future__ import annotations

import re
import uuid
from typing import Final

_FORM: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MAX_TEXTS: Final = 65_536
texts: dict[Guid, str] = {}  # the hot path looks here before it calls str()


class Guid(bytes):
    """16 bytes in wire order (`bytes_le`); `str()` gives the usual text. MS-DTYP 2.3.4"""

    __slots__ = ()

    def __str__(self) -> str:
        text = texts.get(self)
        if text is None:
            if len(texts) >= _MAX_TEXTS:  # GUIDs come from outside: bounded
                texts.clear()
            text = texts[self] = str(uuid.UUID(bytes_le=bytes(self)))
        return text

    def __repr__(self) -> str:
        return f"Guid({self})"

    @classmethod
    def parse(cls, text: str) -> Guid:
        """From 8-4-4-4-12 text without braces; ValueError if it is anything else."""
        if not _FORM.fullmatch(text):
            raise ValueError(f"not a GUID: {text!r}")
        raw = bytes.fromhex(text.replace("-", ""))  # uuid.UUID takes four times as long
        return cls(raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:])

    @classmethod
    def random(cls) -> Guid:
        return cls(uuid.uuid4().bytes_le)


NULL_GUID: Final = Guid(16)
