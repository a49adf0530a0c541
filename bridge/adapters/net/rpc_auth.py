"""Who we are to an RPC server: pyspnego behind the port `Authenticator`.

NTLM needs nothing else; Negotiate takes Kerberos when pyspnego has its optional parts and there
is a ticket, else NTLM inside SPNEGO.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import spnego
from spnego.iov import BufferType

from bridge.model.errors import BindRefused
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.seal import BadSeal, Piece
from bridge.protocol.rpc.security import AuthType

Package = Literal["ntlm", "negotiate", "kerberos"]
_TYPES: Final[dict[Package, AuthType]] = {
    "ntlm": AuthType.NTLM,
    "negotiate": AuthType.NEGOTIATE,
    "kerberos": AuthType.KERBEROS,
}
_WANTED: Final = (
    spnego.ContextReq.mutual_auth
    | spnego.ContextReq.replay_detect
    | spnego.ContextReq.sequence_detect
    | spnego.ContextReq.integrity
    | spnego.ContextReq.confidentiality
    | spnego.ContextReq.dce_style
)


class Credentials(msgspec.Struct, frozen=True):
    """`user` may be `DOMAIN\\name`. The password never shows in a log."""

    user: str
    password: str
    package: Package = "ntlm"
    level: AuthLevel = AuthLevel.PRIVACY
    service: str = "host"  # of the principal that Kerberos asks for

    def __repr__(self) -> str:
        return f"Credentials({self.user!r}, {self.package}, {self.level.name})"


class SpnegoAuthenticator:
    def __init__(self, credentials: Credentials, host: str) -> None:
        self.type = int(_TYPES[credentials.package])
        try:
            self._context = spnego.client(
                credentials.user,
                credentials.password,
                hostname=host,
                service=credentials.service,
                protocol=credentials.package,
                context_req=_WANTED,
            )
        except Exception as error:  # no library, no ticket, …: each has errors of its own
            raise BindRefused(f"{credentials.package} is not available here ({error})") from error

    @property
    def complete(self) -> bool:
        return self._context.complete

    @property
    def seal(self) -> SpnegoSeal:
        return SpnegoSeal(self._context)

    def step(self, token: bytes | None) -> bytes:
        if token == b"":  # to pyspnego it would be the beginning
            raise BindRefused("authentication failed (an empty token)")
        try:
            return self._context.step(token) or b""
        except Exception as error:  # pyspnego lets struct.error, KeyError, … out on bad tokens
            raise BindRefused(f"authentication failed ({error})") from error


class SpnegoSeal:
    """The port `Seal`; its streams live in the context."""

    def __init__(self, context: spnego.ContextProxy) -> None:
        self._context = context
        self._header = context.query_message_sizes().header
        # Kerberos (RFC 4121, DCE style): a MIC has no confounder, no second header, no filler.
        self._mic = self._header - (48 if context.negotiated_protocol == "kerberos" else 0)

    def size(self, *, encrypt: bool) -> int:
        return self._header if encrypt else self._mic

    def protect(
        self, head: bytes, body: Piece, tail: bytes, *, encrypt: bool
    ) -> tuple[Piece, bytes]:
        if not encrypt:
            return body, self._context.sign(b"".join((head, body, tail)))
        _, sealed, _, signature = self._context.wrap_iov(
            [
                (BufferType.sign_only, head),
                (BufferType.data, bytes(body)),
                (BufferType.sign_only, tail),
                BufferType.header,
            ]
        ).buffers
        return sealed.data or b"", signature.data or b""

    def unprotect(
        self, head: bytes, body: Piece, tail: bytes, signature: bytes, *, encrypt: bool
    ) -> bytes:
        try:
            if not encrypt:
                self._context.verify(b"".join((head, body, tail)), signature)
                return bytes(body)
            plain = self._context.unwrap_iov(
                [
                    (BufferType.sign_only, head),
                    (BufferType.data, bytes(body)),
                    (BufferType.sign_only, tail),
                    (BufferType.header, signature),
                ]
            ).buffers[1]
        except Exception as error:  # as in `step`
            raise BadSeal(str(error)) from error
        return plain.data or b""


def authenticator(credentials: Credentials | None, host: str) -> SpnegoAuthenticator | None:
    """None for who stays anonymous."""
    if credentials is None or credentials.level is AuthLevel.NONE:
        return None
    return SpnegoAuthenticator(credentials, host)


def level_of(credentials: Credentials | None) -> AuthLevel:
    return AuthLevel.NONE if credentials is None else credentials.level
