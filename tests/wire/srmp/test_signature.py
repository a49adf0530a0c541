from __future__ import annotations

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
        (signed_info(reference(), method=METHOD.replace("#dsa", "#rsa")) + VALUE, "not DSA"),
        (signed_info() + VALUE, "0 references"),
        (signed_info(*[reference()] * 3) + VALUE, "3 references"),
        (signed_info(*[reference()] * 2) + VALUE, "two references to body"),
        (signed_info(reference("other", "")) + VALUE, "no attachment"),
        (signed_info(reference(method="sha256")) + VALUE, "neither sha1 nor md5"),
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
