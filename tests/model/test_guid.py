from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model import guid as guid_module
from bridge.model.guid import NULL_GUID, Guid

# The client of MS-MQQB 4.1: its bytes, and how they read (digest section 6, inconsistency 1).
RAW = bytes.fromhex("D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6")
TEXT = "557358d1-9150-9595-4997-b6e611ea26c6"


def test_wire_order_and_text() -> None:  # MS-DTYP 2.3.4
    guid = Guid(RAW)
    assert str(guid) == f"{guid}" == TEXT
    assert repr(guid) == f"Guid({TEXT})"
    assert Guid.parse(TEXT) == Guid.parse(TEXT.upper()) == RAW


def test_it_is_its_bytes() -> None:
    assert Guid(RAW) == RAW
    assert {RAW: 1}[Guid(RAW)] == 1
    assert b"".join((Guid(RAW), b"!")) == RAW + b"!"


def test_the_null_guid_is_16_zeros_and_still_true() -> None:
    assert bytes(16) == NULL_GUID
    assert str(NULL_GUID) == "00000000-0000-0000-0000-000000000000"
    assert NULL_GUID  # a null GUID is a value; only None is none


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[:-1],
        TEXT + "0",
        f"{{{TEXT}}}",
        TEXT.replace("-", ""),
        f"urn:uuid:{TEXT}",
        TEXT.replace("5", "g"),
        TEXT + "\n",
        TEXT.replace("5", "\u0665"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a GUID"):
        Guid.parse(text)


def test_random_ones_differ() -> None:
    assert len({Guid.random() for _ in range(100)}) == 100


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=16))
def test_text_and_back(raw: bytes) -> None:
    assert str(Guid(raw)) == str(uuid.UUID(bytes_le=raw))
    assert Guid.parse(str(Guid(raw))) == raw


def test_texts_are_remembered_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guid_module, "_MAX_TEXTS", 3)
    monkeypatch.setattr(guid_module, "texts", {})
    raws = [bytes((n,)) * 16 for n in range(10)]
    for raw in raws * 2:
        assert str(Guid(raw)) == str(uuid.UUID(bytes_le=raw))
        assert len(guid_module.texts) <= 3
