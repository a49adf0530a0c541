"""Kerberos for RPC servers: MIT's GSS-API in DCE style, by the optional `gssapi` package.

    pip install 'msmq-bridge[kerberos]'    (needs libkrb5-dev and a compiler)

A principal `ann@EXAMPLE.COM` is the user `EXAMPLE.COM\\ann`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bridge.model.errors import ConfigError
from bridge.protocol.events import Instant
from bridge.protocol.rpc.ntlm import AuthFailed
from bridge.protocol.rpc.seal import BadSeal, Piece

_SPNEGO: Final = "1.3.6.1.5.5.2"
_KERBEROS: Final = "1.2.840.113554.1.2.2"


class Kerberos:
    """The keys of this host; ConfigError if they or the library are not there."""

    def __init__(self, keytab: Path) -> None:
        try:
            self._gssapi: Any = import_module("gssapi")
        except ImportError as error:
            what = f"Kerberos needs a package that is not installed ({error})"
            mend = "pip install 'msmq-bridge[kerberos]', or leave rpc.keytab out"
            raise ConfigError(what, where="rpc.keytab", mend=mend) from error
        self._keytab = keytab
        try:
            if not keytab.read_bytes().startswith(b"\5"):
                raise ConfigError(f"{str(keytab)!r} is no keytab", where="rpc.keytab")
        except OSError as error:
            what = f"{str(keytab)!r} cannot be read ({error.strerror})"
            raise ConfigError(what, where="rpc.keytab", mend="check its rights") from error

    def acceptor(self, *, spnego: bool) -> KerberosAcceptor:
        """For Kerberos as it is, or inside SPNEGO."""
        return KerberosAcceptor(self._gssapi, self._keytab, _SPNEGO if spnego else _KERBEROS)


class KerberosAcceptor:
    """The port `Acceptor`."""

    def __init__(self, gssapi: Any, keytab: Path, mechanism: str) -> None:
        self._gssapi, self._keytab, self._mechanism = gssapi, keytab, mechanism
        self._context: Any = None
        self.seal: GssSeal | None = None
        self.user = ""

    def step(self, token: bytes, now: Instant) -> bytes:  # noqa: ARG002 - Kerberos has a clock
        if self.seal is not None or not token:
            raise AuthFailed("no token, or one after the last")
        try:
            answer: bytes = self._begun().step(token) or b""
            if self._context.complete:
                self.user = _user(str(self._context.initiator_name))
                self.seal = GssSeal(self._gssapi, self._context)
        except self._gssapi.exceptions.GSSError as error:
            raise AuthFailed(f"Kerberos: {error}") from error
        return answer

    def _begun(self) -> Any:
        if self._context is None:
            gssapi = self._gssapi
            mechanism = gssapi.OID.from_int_seq(self._mechanism)
            store = {"keytab": str(self._keytab)}
            keys = gssapi.Credentials(usage="accept", store=store, mechs=[mechanism])
            self._context = gssapi.SecurityContext(creds=keys, usage="accept")
        return self._context


def _user(principal: str) -> str:
    name, _, realm = principal.rpartition("@")
    if not name or "\\" in principal:
        raise AuthFailed(f"a principal without realm: {principal}")
    return f"{realm}\\{name}"


class GssSeal:
    """The port `Seal`: GSS_WrapEx for privacy, GSS_GetMICEx below. MS-KILE 3.4.5.4"""

    def __init__(self, gssapi: Any, context: Any) -> None:
        self._raw, self._error = gssapi.raw, gssapi.exceptions.GSSError
        self._context = context
        if not context.actual_flags & gssapi.RequirementFlag.dce_style:
            raise AuthFailed("Kerberos without DCE style")
        self._sizes = {encrypt: self._measure(encrypt) for encrypt in (True, False)}

    def _measure(self, encrypt: bool) -> int:
        kinds = self._raw.IOVBufferType
        if encrypt:
            vector = self._vector(b"", bytes(16), b"", kinds.header)
            self._raw.wrap_iov_length(self._context, vector, confidential=True)
        else:
            vector = self._raw.IOV(
                (kinds.data, False, bytes(16)), kinds.mic_token, std_layout=False
            )
            self._raw.get_mic_iov_length(self._context, vector)
        return len(vector[-1].value)

    def size(self, *, encrypt: bool) -> int:
        return self._sizes[encrypt]

    def protect(
        self, head: bytes, body: Piece, tail: bytes, *, encrypt: bool
    ) -> tuple[Piece, bytes]:
        if not encrypt:
            mic: bytes = self._context.get_signature(b"".join((head, body, tail)))
            return body, mic
        vector = self._vector(head, bytes(body), tail, self._raw.IOVBufferType.header)
        self._raw.wrap_iov(self._context, vector, confidential=True)
        return vector[1].value, vector[3].value

    def unprotect(
        self, head: bytes, body: Piece, tail: bytes, signature: bytes, *, encrypt: bool
    ) -> bytes:
        try:
            if not encrypt:
                self._context.verify_signature(b"".join((head, body, tail)), signature)
                return bytes(body)
            last = (self._raw.IOVBufferType.header, False, signature)
            vector = self._vector(head, bytes(body), tail, last)
            is_sealed = self._raw.unwrap_iov(self._context, vector).encrypted
        except (self._error, ValueError) as error:  # a replay, too
            raise BadSeal(str(error)) from error
        if not is_sealed:
            raise BadSeal("signed, but not sealed")
        plain: bytes = vector[1].value
        return plain

    def _vector(self, head: bytes, body: bytes, tail: bytes, last: Any) -> Any:
        kinds = self._raw.IOVBufferType
        return self._raw.IOV(
            (kinds.sign_only, False, head),
            (kinds.data, False, body),
            (kinds.sign_only, False, tail),
            last,
            std_layout=False,
        )
