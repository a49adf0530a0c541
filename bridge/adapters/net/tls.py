"""TLS of the HTTP listener and client: contexts, and certificates that are renewed."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from bridge.model.errors import ConfigError

_log = logging.getLogger(__name__)

Profile: TypeAlias = Literal["modern", "legacy"]

CHECK_S: Final = 5.0
_ALTERNATIVES: Final = ("DNS", "IP Address", "URI", "email")
_MOST_NAMES: Final = 100
_LONGEST_NAME: Final = 260
_LEGACY_SERVER: Final = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT; named by Python 3.12
_LEGACY: Final = "HIGH:MEDIUM:!aNULL:!eNULL:!PSK:!SRP:@SECLEVEL=0"


def server_context(certificate: Path, key: Path, profile: Profile = "modern") -> ssl.SSLContext:
    """`modern`: TLS 1.2 and newer; `legacy`: from 1.0 on, for old Windows (srmp.md 1.5)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply(context, profile)
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        load_chain(context, certificate, key)
    except OSError as error:
        _refuse(error, certificate, key)
    return context


def trust_clients(context: ssl.SSLContext, ca_file: Path) -> None:
    """A client may show a certificate, then these must have signed it."""
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise _no_certificates(error, ca_file) from error
    context.verify_mode = ssl.CERT_OPTIONAL


def require_clients(context: ssl.SSLContext, ca_file: Path) -> None:
    """A client must show a certificate that these have signed, in each connection: none is taken
    up again by a ticket."""
    trust_clients(context, ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0


def names_of(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """`cn:…` and `san:…` of a certificate as `ssl.SSLObject.getpeercert` gives it, small letters;
    those that are longer than a name in `allow` may be are left out."""
    found = [
        f"cn:{value}"
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    found += [
        f"san:{value}"
        for kind, value in certificate.get("subjectAltName", ())
        if kind in _ALTERNATIVES and isinstance(value, str)
    ]
    return tuple(name.lower() for name in found[:_MOST_NAMES] if len(name) <= _LONGEST_NAME)


def pinned_context(certificate: Path) -> ssl.SSLContext:
    """Trusts this very certificate, or who signed it if that is in the file; by any name."""
    context = client_context(certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def client_context(ca_file: Path | None = None, profile: Profile = "modern") -> ssl.SSLContext:
    """Trusts `ca_file`, or what the system trusts. `legacy` also talks to servers that speak TLS
    1.0 and do not know secure renegotiation (RFC 5746), as old Windows."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise _no_certificates(error, ca_file) from error
    _apply(context, profile)
    if profile == "legacy":
        context.options |= _LEGACY_SERVER
    return context


def _no_certificates(error: OSError, ca_file: Path | None) -> ConfigError:
    return ConfigError(
        f"these certificates cannot be read ({_why(error)})",
        where=str(ca_file),
        mend="give a readable file of PEM certificates",
    )


def _apply(context: ssl.SSLContext, profile: Profile) -> None:
    if profile == "legacy":
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED  # never SSL 3, see its options
        context.set_ciphers(_LEGACY)
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_2


def load_chain(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """OSError (ssl.SSLError is one) if the files are not there, or not a pair."""
    context.load_cert_chain(certificate, key, password="")  # or it asks on the terminal


def _refuse(error: OSError, certificate: Path, key: Path) -> NoReturn:
    unreadable = next((path for path in (certificate, key) if not os.access(path, os.R_OK)), None)
    if unreadable is not None:
        what = f"it cannot be read ({_why(error)})"
        mend = "give a file that this user may read"
    else:
        what = f"with {key} it makes no certificate ({_why(error)})"
        mend = "give PEM files: the certificate with its chain, and its key without a password"
    raise ConfigError(what, where=str(unreadable or certificate), mend=mend) from error


def _why(error: OSError) -> str:
    reason = getattr(error, "reason", None)  # of ssl.SSLError
    return str(reason or error.strerror or error)


class CertificateReload:
    """Loads a renewed certificate into the same context: who connects from then on sees it.

    A pair that does not fit (often one file is written before the other) leaves the old one.
    """

    def __init__(
        self, context: ssl.SSLContext, certificate: Path, key: Path, every_s: float = CHECK_S
    ) -> None:
        self._context = context
        self._certificate, self._key = certificate, key
        self._every_s = every_s
        self._seen = self._stamps()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            self.check()

    def check(self) -> bool:
        """Whether there is a new one."""
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        try:
            # A pair that does not fit would take the old key away, too.
            load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._certificate, self._key)
            load_chain(self._context, self._certificate, self._key)
        except OSError as error:
            _log.error(
                "%s has changed and cannot be used (%s); the old one stays",
                self._certificate,
                _why(error),
            )
            return False
        _log.info("%s has changed and is in use", self._certificate)
        return True

    def _stamps(self) -> list[tuple[int, ...]]:
        return [_stamp(path) for path in (self._certificate, self._key)]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)
