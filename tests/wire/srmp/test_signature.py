from __future__ import annotations

import hashlib
from base64 import b64encode
from hashlib import md5, sha1

import pytest

from bridge.wire.srmp.reader import read_envelope
from bridge.wire.srmp.signature import DS, Signature, check_digests
from tests.wire.srmp.build import good

BODY = b"the body"
EXTENSION = b"more"


def digest(content: bytes) -> str:
    return b64encode(sha1(content).digest()).decode()  # noqa: S324


def reference(kind: str = "body", value: str | None = None, method: str = "sha1") -> str:
    value = digest(BODY if kind == "body" else EXTENSION) if value is None else value
    return (
        f'<Reference URI="cid:{kind}@f6a3323c-7c7b-4a5f-b0ed-b3f63a200893">'
        f'<DigestMethod Algorithm="{DS}{method}"></DigestMethod>'
        f"<DigestValue>{value}</DigestValue></Reference>"
    )


METHOD = f'<SignatureMethod Algorithm="{DS}dsa"></SignatureMethod>'
VALUE = f"<SignatureValue>{b64encode(bytes(64)).decode()}</SignatureValue>"


def signed_info(*references: str, method: str = METHOD) -> str:
    return f"<SignedInfo>{method}{''.join(references)}</SignedInfo>"


def read(inner: str) -> Signature:
    signature = read_envelope(good(f'<Signature xmlns="{DS}">{inner}</Signature>')).signature
    assert signature is not None
    return signature


def check(inner: str, **attachments: bytes) -> str:
    return check_digests(read(inner), attachments or {"body": BODY, "extension": EXTENSION})


def test_good_digests() -> None:  # MC-MQSRM 2.2.7.1.2.2: over the raw attachment
    assert check(signed_info(reference()) + VALUE) == ""
    assert check(signed_info(reference(), reference("extension")) + VALUE) == ""
    other = b64encode(md5(BODY).digest()).decode()  # noqa: S324
    assert check(signed_info(reference("BODY", other, "md5")) + VALUE) == ""


@pytest.mark.parametrize(
    ("uri", "algorithm"),
    [
        (f"{DS}sha1", "sha1"),
        (f"{DS}md5", "md5"),
        ("http://www.w3.org/2000/09/xmldsig#sha1", "sha1"),
        ("http://www.w3.org/2001/04/xmldsig-more#md5", "md5"),
        ("http://www.w3.org/2001/04/xmlenc#sha256", "sha256"),
        ("http://www.w3.org/2001/04/xmldsig-more#sha384", "sha384"),
        ("http://www.w3.org/2001/04/xmlenc#sha512", "sha512"),
        (f"{DS}sha256", "sha256"),
        (f"{DS}sha384", "sha384"),
        (f"{DS}sha512", "sha512"),
    ],
)
def test_algorithms_of_digests(uri: str, algorithm: str) -> None:
    """MC-MQSRM 2.2.7.1.2.1: "the hashing algorithm specified in the hashing algorithm property",
    which newer versions of MSMQ set to SHA-256 and SHA-512."""
    for content, flaw in ((BODY, ""), (b"other", "DigestValue is wrong")):
        value = b64encode(hashlib.new(algorithm, content).digest()).decode()
        made = reference(value=value).replace(f"{DS}sha1", uri)
        assert check(signed_info(made) + VALUE) == flaw


@pytest.mark.parametrize(
    "inner",
    [
        signed_info(reference(method="sha3-256")) + VALUE,
        signed_info(reference(method="")) + VALUE,
        signed_info(reference(), reference("extension", method="x")) + VALUE,
        signed_info(reference(), method=METHOD.replace("#dsa", "#rsa-sha1")) + VALUE,
        signed_info(reference(), method=METHOD.replace(f"{DS}dsa", "urn:x")) + VALUE,
    ],
)
def test_what_cannot_be_checked_is_not_a_flaw(inner: str) -> None:
    assert check(inner) == ""


def test_signed_info_is_kept_as_sent() -> None:  # digest 2: its bytes as sent
    inner = signed_info(reference()).replace("<Reference", "\n <Reference")
    signature = read(inner + VALUE)
    assert signature.signed_info == inner.encode()
    assert signature.value == bytes(64)


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        ("", "SignedInfo missing"),
        (VALUE, "SignedInfo missing"),
        (signed_info(reference()), "SignatureValue missing"),
        (signed_info(reference()) * 2 + VALUE, "SignedInfo twice"),
        (signed_info(reference(), method="") + VALUE, "SignatureMethod missing"),
        (signed_info() + VALUE, "0 references"),
        (signed_info(*[reference()] * 3) + VALUE, "3 references"),
        (signed_info(*[reference()] * 2) + VALUE, "two references to body"),
        (signed_info(reference("other", "")) + VALUE, "no attachment"),
        (signed_info(reference(method="sha256")) + VALUE, "DigestValue is wrong"),
        (
            signed_info(reference("extension", method="x"), reference(value=digest(b"x"))) + VALUE,
            "DigestValue is wrong",  # the other one cannot be checked
        ),
        (signed_info(*[reference(method="x")] * 2) + VALUE, "two references to body"),
        (signed_info(reference(value=digest(b"x"))) + VALUE, "DigestValue is wrong"),
        (signed_info(reference(value="")) + VALUE, "DigestValue is wrong"),
        (signed_info(reference(value="*")) + VALUE, "not base64"),
        (signed_info('<Reference URI="cid:body@x"/>') + VALUE, "DigestMethod missing"),
    ],
)
def test_what_drops_a_message(inner: str, why: str) -> None:  # SR-40: 200, so never a WireError
    assert why in check(inner)


def test_a_reference_needs_its_attachment() -> None:  # SR-40
    assert "no attachment" in check(signed_info(reference("extension")) + VALUE, body=BODY)
