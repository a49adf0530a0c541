"""SPNEGO tokens by hand. RFC 4178 4.2, X.690"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.rpc.spnego import KERBEROS_OID, NTLM_OID, NegState, NegTokenResp, unpack_init

NTLM = bytes.fromhex("060a2b06010401823702020a")  # 1.3.6.1.4.1.311.2.2.10
KERBEROS = bytes.fromhex("06092a864886f712010202")  # 1.2.840.113554.1.2.2
SPNEGO = bytes.fromhex("06062b0601050502")


def der(tag: int, *parts: bytes) -> bytes:
    value = b"".join(parts)
    if len(value) < 128:
        return bytes((tag, len(value))) + value
    if len(value) < 256:
        return bytes((tag, 0x81, len(value))) + value
    return bytes((tag, 0x82)) + len(value).to_bytes(2, "big") + value


def init(mech_types: bytes, token: bytes = b"", mic: bytes = b"") -> bytes:
    fields = der(0xA0, mech_types)
    fields += der(0xA2, der(0x04, token)) if token else b""
    fields += der(0xA3, der(0x04, mic)) if mic else b""
    return der(0x60, SPNEGO, der(0xA0, der(0x30, fields)))


def test_the_first_token() -> None:
    mech_types = der(0x30, KERBEROS, NTLM)
    found = unpack_init(init(mech_types, b"t" * 300, b"m" * 16))
    assert found.mechanisms == (KERBEROS_OID, NTLM_OID)
    assert found.mech_types == mech_types
    assert (found.token, found.mic) == (b"t" * 300, b"m" * 16)
    assert unpack_init(init(mech_types)).token == b""


def test_request_flags_are_passed_over() -> None:  # reqFlags [1], RFC 4178 4.2.1
    fields = der(0xA0, der(0x30, NTLM)) + der(0xA1, bytes.fromhex("03020640"))
    token = der(0x60, SPNEGO, der(0xA0, der(0x30, fields, der(0xA2, der(0x04, b"t")))))
    assert unpack_init(token).token == b"t"


def test_the_bytes_of_an_answer() -> None:  # RFC 4178 4.2.2
    answer = NegTokenResp(NegState.ACCEPT_INCOMPLETE, NTLM_OID, b"t" * 200, b"m" * 16)
    fields = der(0xA0, b"\x0a\1\1") + der(0xA1, NTLM)
    fields += b"\xa2\x81\xcb\x04\x81\xc8" + b"t" * 200 + b"\xa3\x12\x04\x10" + b"m" * 16
    expected = der(0xA1, der(0x30, fields))
    assert answer.pack() == expected
    assert NegTokenResp.unpack(expected) == answer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x60",
        b"\x60\x80",  # indefinite length
        b"\x60\x85\0\0\0\0\1a",
        b"\x60\x84\xff\xff\xff\xff",
        b"\x61\0",
        der(0x60, KERBEROS),
        der(0x60, SPNEGO),
        der(0x60, SPNEGO, der(0xA0, der(0x30))),  # no mechanisms
        der(0x60, SPNEGO, der(0xA0, der(0x30, der(0xA0, der(0x30, b"\4\1x"))))),
        der(0x60, SPNEGO, der(0xA0, der(0x30, der(0xA2, b"\4\1x"), der(0xA0, der(0x30, NTLM))))),
        der(0x60, SPNEGO, der(0xA0, der(0x30, der(0xA0, der(0x30, NTLM)), b"\x30\0"))),
        b"NTLMSSP\0" + bytes(24),
    ],
)
def test_what_is_no_first_token(data: bytes) -> None:
    with pytest.raises(WireError):
        unpack_init(data)


def test_a_state_of_two_bytes() -> None:
    with pytest.raises(WireError):
        NegTokenResp.unpack(der(0xA1, der(0x30, der(0xA0, b"\x0a\2\0\1"))))


def test_many_mechanisms_are_not_all_kept() -> None:
    assert len(unpack_init(init(der(0x30, *[NTLM] * 500))).mechanisms) == 32


@given(
    st.builds(
        NegTokenResp,
        st.none() | st.sampled_from(NegState),
        st.sampled_from([b"", NTLM_OID]),
        st.binary(max_size=70_000),
        st.binary(max_size=40),
    )
)
def test_round_trip(answer: NegTokenResp) -> None:
    assert NegTokenResp.unpack(answer.pack()) == answer


@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    for raw in (data, der(0x60, SPNEGO, data), der(0xA1, der(0x30, data))):
        for read in (unpack_init, NegTokenResp.unpack):
            with suppress(WireError):
                read(raw)
