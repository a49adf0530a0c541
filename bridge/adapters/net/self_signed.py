"""A certificate of our own, for a listener that was given none."""

from __future__ import annotations

import ipaddress
import logging
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bridge.adapters.net.tls import load_chain
from bridge.adapters.private_files import make_private_folder
from bridge.model.errors import ConfigError

_log = logging.getLogger(__name__)

LIFE: Final = timedelta(days=3652)  # ten years
_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    key_encipherment=True,
    content_commitment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def self_signed(names: Sequence[str], folder: Path) -> tuple[Path, Path]:
    """Certificate and key for these names or addresses, made once and kept in `folder`."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    wanted = _alternatives(names)
    if not _fits(certificate, key, wanted):
        try:
            _make(certificate, key, wanted)
        except OSError as error:
            raise ConfigError(
                f"no certificate can be written there ({error.strerror})",
                where=str(folder),
                mend="choose a folder of this user's",
            ) from error
        _log.info("%s is new, signed by itself", certificate)
    return certificate, key


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    found: dict[x509.GeneralName, None] = {}
    for name in names:
        try:
            found[x509.IPAddress(ipaddress.ip_address(name))] = None
        except ValueError:
            if name.isascii():  # DNS has no others
                found[x509.DNSName(name.lower())] = None
    return list(found) or [x509.DNSName("localhost")]


def _fits(certificate: Path, key: Path, wanted: list[x509.GeneralName]) -> bool:
    try:
        load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    return found.not_valid_after_utc > datetime.now(UTC) and set(wanted) <= set(names)


def _make(certificate: Path, key: Path, names: list[x509.GeneralName]) -> None:
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)  # XP takes no curves
    pem = secret.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    made = _sign(secret, names, datetime.now(UTC))
    _write(key, pem, 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _sign(
    secret: rsa.RSAPrivateKey, names: list[x509.GeneralName], now: datetime
) -> x509.Certificate:
    public = secret.public_key()
    common = str(names[0].value)[:64]  # as long as it may be
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_USAGE, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        # Who trusts two of them by one name, the old and the new, tells them apart by these.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .sign(secret, hashes.SHA256())
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """In one step. A certificate whose key is another's does not fit, and is made anew."""
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
