"""Security contexts of a connection: who speaks, and how his fragments are protected. RR-4, RR-8

A context is made by bind or alter_context and finished by the token that proves the name. That
proof may come in an auth3, which has no answer, so that its failure shows at the next request only.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from bridge.model.errors import ProtocolError
from bridge.protocol.events import Instant
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.fragments import Protection
from bridge.protocol.rpc.ntlm import Acceptor, AuthFailed
from bridge.wire.rpc.pdu import Fragment, Verifier

MOST: Final = 16  # contexts of a connection


class AuthType(IntEnum):
    """MS-RPCE 2.2.1.1.7"""

    NEGOTIATE = 0x09
    NTLM = 0x0A
    KERBEROS = 0x10


class Denied(Exception):
    """The request is answered with fault 5; `fatal` if the streams no longer agree."""

    def __init__(self, why: str, *, fatal: bool = False) -> None:
        self.why, self.fatal = why, fatal
        super().__init__(why)


class UnknownAuthType(ProtocolError):
    def __init__(self, auth_type: int) -> None:
        super().__init__("rpc-auth-type", str(auth_type))


class SecurityContext:
    """One name and level; `protection` is there once the name is proved."""

    def __init__(self, acceptor: Acceptor, verifier: Verifier) -> None:
        self._acceptor = acceptor
        self.type, self.level = verifier.type, AuthLevel(verifier.level)
        self._id = verifier.context
        self.protection: Protection | None = None
        self.failed = False
        self.signs = self.level >= AuthLevel.INTEGRITY  # below it, if the client does

    @property
    def user(self) -> str:
        return self._acceptor.user

    @property
    def pending(self) -> bool:
        return self.protection is None and not self.failed

    def step(self, token: bytes, now: Instant) -> Verifier | None:
        """The verifier of the answer, if there is one; raises AuthFailed."""
        if not self.pending:
            self.failed = True
            raise AuthFailed("a token for a context that is complete")
        try:
            answer = self._acceptor.step(token, now)
        except AuthFailed:
            self.failed = True
            raise
        if (seal := self._acceptor.seal) is not None:
            self.protection = Protection(seal, self.type, self.level, self._id)
        return Verifier(self.type, self.level, self._id, answer) if answer else None

    def open(self, fragment: Fragment, start: int) -> bytes:
        """The plain stub from `start`; raises BadSeal. Connect protects the connection only."""
        assert self.protection is not None
        if fragment.verifier is None or self.level == AuthLevel.CONNECT:
            return fragment.data[start : fragment.body_end]
        self.signs = True
        return self.protection.open(fragment, start)


class SecurityTable:
    """The contexts of one connection by their auth_context_id."""

    def __init__(self, make: Callable[[int, AuthLevel], Acceptor | None]) -> None:
        self._make = make
        self._contexts: dict[int, SecurityContext] = {}
        self._latest: SecurityContext | None = None

    @property
    def is_proved(self) -> bool:
        """Some context has shown its name."""
        return any(context.protection is not None for context in self._contexts.values())

    @property
    def pending(self) -> bool:
        return any(context.pending for context in self._contexts.values())

    def step(self, verifier: Verifier, now: Instant) -> Verifier | None:
        """bind or alter_context: go on with this context, or begin it."""
        context = self._contexts.get(verifier.context)
        return (context or self._begin(verifier)).step(verifier.value, now)

    def finish(self, verifier: Verifier | None, now: Instant) -> None:
        """auth3: the last token. MS-RPCE 2.2.2.6"""
        context = self._contexts.get(verifier.context) if verifier is not None else None
        if verifier is None or context is None or not context.pending:
            raise ProtocolError("rpc-unexpected-pdu", "auth3 without authentication")
        context.step(verifier.value, now)
        if context.pending:
            context.failed = True
            raise AuthFailed("auth3 was not the last token")

    def _begin(self, verifier: Verifier) -> SecurityContext:
        if not AuthLevel.CONNECT <= verifier.level <= AuthLevel.PRIVACY:
            raise ProtocolError("rpc-auth-level", str(verifier.level))
        acceptor = self._make(verifier.type, AuthLevel(verifier.level))
        if acceptor is None:
            raise UnknownAuthType(verifier.type)
        if len(self._contexts) >= MOST:
            raise ProtocolError("rpc-auth-contexts", f"more than {MOST}")
        context = SecurityContext(acceptor, verifier)
        self._contexts[verifier.context] = self._latest = context
        return context

    def of(self, fragment: Fragment) -> SecurityContext | None:
        """Whose request it is: None for the anonymous; raises Denied. RR-9

        Below integrity clients leave the verifier out: then it is the newest context's.
        """
        verifier = fragment.verifier
        context = self._latest if verifier is None else self._contexts.get(verifier.context)
        if context is None:
            if verifier is not None:
                raise Denied("unknown security context")
            return None
        if context.protection is None:
            raise Denied("not authenticated")
        if verifier is None and context.signs:
            raise Denied("no verifier", fatal=True)
        if verifier is not None and (verifier.type, verifier.level) != (
            context.type,
            context.level,
        ):
            raise Denied("another level than agreed on", fatal=True)
        return context
