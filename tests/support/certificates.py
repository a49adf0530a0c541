"""A certificate authority of a test's own, and what it signs."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Its certificate is in `file`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder, self._name = folder, x509.Name([_cn(name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        ca = x509.BasicConstraints(ca=True, path_length=None)
        made = _builder(self._name, self._name, self._key.public_key())
        whole = made.add_extension(ca, critical=True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(whole.public_bytes(serialization.Encoding.PEM))

    def sign(self, common_name: str, *alternatives: x509.GeneralName) -> Path:
        """A file with a certificate of this name, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(x509.Name([_cn(common_name)]), self._name, key.public_key())
        if alternatives:
            names = x509.SubjectAlternativeName(alternatives)
            made = made.add_extension(names, critical=False)
        path = self._folder / f"{len(list(self._folder.iterdir()))}-client.pem"
        path.write_bytes(
            made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return path


ALTERNATIVES = (
    x509.DNSName("Sender01.example.com"),
    x509.UniformResourceIdentifier("spiffe://example.com/Orders"),
    x509.RFC822Name("ann@example.com"),
    x509.IPAddress(ip_address("10.1.2.3")),
)


def _cn(text: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.COMMON_NAME, text)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
