"""Signatures as digest 2 and 3.6 describe them; the value itself nobody can check."""

import base64
from hashlib import md5, sha1
from uuid import UUID, uuid4

DSIG = "http://www.w3.org/2000/02/xmldsig#"
DSA = f'<SignatureMethod Algorithm="{DSIG}dsa"></SignatureMethod>'
VALUE = f"<SignatureValue>{base64.b64encode(bytes(64)).decode()}</SignatureValue>"


def digest(data: bytes, method: str = "sha1") -> str:
    made = sha1(data) if method == "sha1" else md5(data)  # noqa: S324
    return base64.b64encode(made.digest()).decode()


def method_of(name: str) -> str:
    return f'<DigestMethod Algorithm="{DSIG}{name}"></DigestMethod>'


def reference(
    data: bytes,
    *,
    name: str = "body",
    owner: UUID | None = None,
    method: str = "sha1",
    inner: str | None = None,
) -> str:
    """`inner` in place of the right method and value."""
    if inner is None:
        value = f"<DigestValue>{digest(data, method)}</DigestValue>"
        inner = method_of(method) + value
    return f'<Reference URI="cid:{name}@{owner or uuid4()}">{inner}</Reference>'


def signature(references: str, *, method: str = DSA, value: str = VALUE) -> str:
    return (
        f'<Signature xmlns="{DSIG}"><SignedInfo>{method}{references}</SignedInfo>{value}'
        "</Signature>"
    )
