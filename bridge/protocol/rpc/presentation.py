"""Presentation contexts: which interface a request means by its context id. MS-RPCE 3.3.1.5.6"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from bridge.wire.rpc.bind import NDR, Proposal, Reason, Result, ResultCode, Syntax

MOST: Final = 64  # contexts of a connection
# SECURITY_CONTEXT_MULTIPLEXING and KEEP_CONNECTION_ON_ORPHAN: we do both. MS-RPCE 3.3.1.5.3
FEATURES: Final = 0x3


class Context(msgspec.Struct, frozen=True, gc=False):
    index: int  # of the interface among those we serve
    proposed: Syntax


class Presentation:
    """The contexts of one connection; NDR 2.0 is the only encoding."""

    def __init__(self, served: Sequence[Syntax]) -> None:
        self._served = served
        self._contexts: dict[int, Context] = {}

    def answer(self, proposal: Proposal) -> Result:
        """RR-3"""
        for syntax in proposal.transfers:
            if (wanted := syntax.features) is not None:
                return Result(ResultCode.NEGOTIATE_ACK, wanted & FEATURES)
        index = self._find(proposal.interface)
        if index is None:
            return Result(ResultCode.PROVIDER_REJECTION, Reason.ABSTRACT_SYNTAX)
        if NDR not in proposal.transfers:  # NDR64 alone
            return Result(ResultCode.PROVIDER_REJECTION, Reason.TRANSFER_SYNTAXES)
        return self._add(proposal.id, Context(index, proposal.interface))

    def get(self, number: int) -> Context | None:
        return self._contexts.get(number)

    def _add(self, number: int, context: Context) -> Result:
        if self._contexts.get(number, context) != context:
            return Result(ResultCode.PROVIDER_REJECTION, Reason.NOT_SPECIFIED)
        if number not in self._contexts and len(self._contexts) >= MOST:
            return Result(ResultCode.PROVIDER_REJECTION, Reason.LOCAL_LIMIT)
        self._contexts[number] = context
        return Result(ResultCode.ACCEPTANCE, transfer=NDR)

    def _find(self, wanted: Syntax) -> int | None:
        """Same major version, and no newer minor one. C706 6.1.2"""
        for index, ours in enumerate(self._served):
            if (ours.uuid, ours.major) == (wanted.uuid, wanted.major):
                return index if wanted.minor <= ours.minor else None
        return None
