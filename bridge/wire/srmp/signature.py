"""The XML signature of a message, and as much of it as can be checked. MC-MQSRM 2.2.7

It is not XMLDSIG: an early namespace, no canonical form, no key. The specification does not say
where the certificate travels, nor which algorithm makes 64 bytes (srmp.md 8.2), so the digests of
the attachments can be proven and the signature over them cannot. A flaw drops the message with
200 (SR-40, SR-8), hence reading never fails: it notes what is missing.

An algorithm that we do not know is not a flaw: what it made cannot be checked, and the message
counts as not authenticated. A digest of an algorithm that we know must be right.
"""

from __future__ import annotations

import re
from hashlib import md5, sha1, sha256, sha384, sha512
from typing import Final

import msgspec

from bridge.model.errors import WireError
from bridge.wire.srmp.tree import Element, source_of
from bridge.wire.srmp.values import base64_text, escape, parse_base64, trim
from bridge.wire.xml_names import Name

DS: Final = "http://www.w3.org/2000/02/xmldsig#"  # the draft's, not 2000/09
DSA: Final = DS + "dsa"
SHA1: Final = DS + "sha1"
MD5: Final = DS + "md5"

BODY: Final = "body"
EXTENSION: Final = "extension"

_CID: Final = re.compile(r"cid:(body|extension)@.*", re.I | re.S)
# The specification has sha1 and md5. The others are spelled as in XML Signature (RFC 6931 2.1, XML
# Encryption 5.7) and, because senders may do so, with the prefix of the specification.
_ALGORITHMS: Final = {
    SHA1: sha1,
    MD5: md5,
    "http://www.w3.org/2000/09/xmldsig#sha1": sha1,
    "http://www.w3.org/2001/04/xmldsig-more#md5": md5,
    "http://www.w3.org/2001/04/xmlenc#sha256": sha256,
    "http://www.w3.org/2001/04/xmldsig-more#sha384": sha384,
    "http://www.w3.org/2001/04/xmlenc#sha512": sha512,
    DS + "sha256": sha256,
    DS + "sha384": sha384,
    DS + "sha512": sha512,
}
_MAX_REFERENCES: Final = 2
_IN_ATTRIBUTE: Final = str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


class Reference(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """MC-MQSRM 2.2.7.1.2"""

    uri: str
    method: str
    digest: bytes


class Signature(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`signed_info` is the element as sent, `flaw` why it cannot be trusted at all."""

    method: str = DSA
    references: tuple[Reference, ...] = ()
    value: bytes = b""
    signed_info: bytes = b""
    flaw: str = ""


class _Flawed(Exception):
    """Why; becomes Signature.flaw."""


def read_signature(element: Element, data: bytes) -> Signature:
    try:
        signed = _only(element, "SignedInfo")
        method = _algorithm(_only(signed, "SignatureMethod"))
        references = tuple(_reference(child) for child in signed.named(_tag("Reference")))
        value = _base64(_only(element, "SignatureValue"))
    except _Flawed as flaw:
        return Signature(flaw=str(flaw))
    return Signature(
        method=method,
        references=references,
        value=value,
        signed_info=source_of(signed, data),
    )


def check_digests(signature: Signature, attachments: dict[str, bytes]) -> str:
    """Why a signed message is to be dropped, or an empty text. MC-MQSRM 3.1.5.1.6.1

    `attachments` has BODY and EXTENSION, as far as the message carries them.
    """
    if signature.flaw:
        return signature.flaw
    if not 0 < len(signature.references) <= _MAX_REFERENCES:
        return f"{len(signature.references)} references"
    seen: set[str] = set()
    for reference in signature.references:
        match = _CID.fullmatch(reference.uri)
        kind = match[1].lower() if match else ""
        if kind not in attachments:
            return "Reference to no attachment"
        if kind in seen:
            return f"two references to {kind}"
        seen.add(kind)
        if flaw := _check(reference, attachments[kind]):
            return flaw
    return ""


def _check(reference: Reference, attachment: bytes) -> str:
    algorithm = _ALGORITHMS.get(reference.method)
    if algorithm is None:
        return ""  # not to be checked
    found = algorithm(attachment, usedforsecurity=False).digest()
    return "" if found == reference.digest else "DigestValue is wrong"


def signature_xml(signature: Signature) -> str:
    """As Windows writes it. MC-MQSRM 3.1.7.2.4"""
    signed, value = signed_info_xml(signature), base64_text(signature.value)
    return f'<Signature xmlns="{DS}">{signed}<SignatureValue>{value}</SignatureValue></Signature>'


def signed_info_xml(signature: Signature) -> str:
    references = "".join(_reference_xml(reference) for reference in signature.references)
    method = f'<SignatureMethod Algorithm="{_attribute(signature.method)}"></SignatureMethod>'
    return f"<SignedInfo>{method}{references}</SignedInfo>"


def _reference_xml(reference: Reference) -> str:
    return (
        f'<Reference URI="{_attribute(reference.uri)}">'
        f'<DigestMethod Algorithm="{_attribute(reference.method)}"></DigestMethod>'
        f"<DigestValue>{base64_text(reference.digest)}</DigestValue></Reference>"
    )


def _attribute(text: str) -> str:
    return escape("Signature", text).translate(_IN_ATTRIBUTE)


def _tag(local: str) -> Name:
    return DS, local


def _only(parent: Element, local: str) -> Element:
    found = list(parent.named(_tag(local)))
    if len(found) != 1:
        raise _Flawed(f"{local} {'twice' if found else 'missing'}")
    return found[0]


def _algorithm(element: Element) -> str:
    return trim(element.attributes.get(("", "Algorithm"), ""))


def _base64(element: Element) -> bytes:
    try:
        return parse_base64("Signature", element.text)
    except WireError:
        raise _Flawed(f"{element.tag[1]} is not base64") from None


def _reference(element: Element) -> Reference:
    return Reference(
        uri=trim(element.attributes.get(("", "URI"), "")),
        method=_algorithm(_only(element, "DigestMethod")),
        digest=_base64(_only(element, "DigestValue")),
    )
