"""A certificate of our own: what is in it, and when it is made anew."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from bridge.adapters.net import self_signed as module
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import server_context
from bridge.model.errors import ConfigError

NAMES: tuple[str, ...] = ("BRIDGE01", "bridge01.example.com", "10.0.0.7", "fd00::7")


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def alternatives(path: Path) -> x509.SubjectAlternativeName:
    return read(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def test_what_is_in_it(tmp_path: Path) -> None:
    certificate, key = self_signed(NAMES, tmp_path / "data" / "tls")
    made = read(certificate)
    names = alternatives(certificate)
    assert names.get_values_for_type(x509.DNSName) == ["bridge01", "bridge01.example.com"]
    addresses = [ip_address("10.0.0.7"), ip_address("fd00::7")]
    assert names.get_values_for_type(x509.IPAddress) == addresses
    public = made.public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    assert public.key_size == 2048
    now = datetime.now(UTC)
    assert made.not_valid_before_utc < now
    assert made.not_valid_after_utc > now + timedelta(days=3650)
    made.verify_directly_issued_by(made)
    server_context(certificate, key)


def test_the_key_is_for_nobody_else(tmp_path: Path) -> None:
    certificate, key = self_signed(NAMES, tmp_path)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sorted(tmp_path.iterdir()) == sorted((certificate, key))


def test_it_is_made_once(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in self_signed(NAMES, tmp_path)]
    again = [path.read_bytes() for path in self_signed(NAMES[1:3], tmp_path)]
    assert again == first


@pytest.mark.parametrize("change", ["names", "key gone", "certificate gone", "rubbish", "pair"])
def test_it_is_made_anew(tmp_path: Path, change: str) -> None:
    certificate, key = self_signed(NAMES, tmp_path)
    before = certificate.read_bytes()
    names = NAMES
    match change:
        case "names":
            names = (*NAMES, "another")
        case "key gone":
            key.unlink()
        case "certificate gone":
            certificate.unlink()
        case "rubbish":
            certificate.write_bytes(b"rubbish")
        case "pair":  # as if it had ended between the two files
            _, other = self_signed(NAMES, tmp_path / "other")
            key.write_bytes(other.read_bytes())
    server_context(*self_signed(names, tmp_path))
    assert certificate.read_bytes() != before
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_one_that_is_too_old_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIFE", timedelta(seconds=-1))
    certificate, _ = self_signed(NAMES, tmp_path)
    monkeypatch.undo()
    self_signed(NAMES, tmp_path)
    assert read(certificate).not_valid_after_utc > datetime.now(UTC)


@pytest.mark.parametrize("names", [(), ("bücher",)])
def test_without_a_name_it_is_this_machine(tmp_path: Path, names: tuple[str, ...]) -> None:
    certificate, _ = self_signed(names, tmp_path)
    assert alternatives(certificate).get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_long_name(tmp_path: Path) -> None:
    name = ".".join(["a" * 60] * 4)
    certificate, _ = self_signed([name], tmp_path)
    assert alternatives(certificate).get_values_for_type(x509.DNSName) == [name]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        self_signed(NAMES, tmp_path / "file")
    assert caught.value.where == str(tmp_path / "file")
    assert caught.value.mend
