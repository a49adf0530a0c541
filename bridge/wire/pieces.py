"""A message packet for a reader, in pieces, so that nobody copies the large one."""

from __future__ import annotations

import msgspec


class Pieces(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """`part` is what a reader may take less of: the body, or the CompoundMessageHeader of a
    message that came by HTTP. MS-MQRR 2.2.6"""

    head: bytes  # all headers before the part
    part: bytes
    pad: bytes = b""
    tail: bytes = b""  # all headers behind it
    is_srmp: bool = False

    @property
    def all(self) -> tuple[bytes, ...]:
        return self.head, self.part, self.pad, self.tail

    def __len__(self) -> int:
        return sum(map(len, self.all))
