"""NTLM2-session responses by the example of MS-NLMP 4.2.3, "NTLM v1 with Client Challenge"."""

from __future__ import annotations

from bridge.protocol.rpc.md4 import nt_hash
from bridge.protocol.rpc.ntlm_session import session_key, session_response
from bridge.protocol.rpc.seal import NtlmSeal
from bridge.wire.rpc.ntlm import Authenticate

# 4.2.1: Password, ServerChallenge, ClientChallenge
NT_HASH = nt_hash("Password")
SERVER, CLIENT = bytes.fromhex("0123456789abcdef"), b"\xaa" * 8
RESPONSE = bytes.fromhex("7537f803ae367128ca458204bde7caf81e97ed2683267232")  # 4.2.3.2.2
KEY = bytes.fromhex("eb93429a8bd952f8b89c55b87f475edc")  # 4.2.3.1.3
# 4.2.3.3: the AUTHENTICATE_MESSAGE of User in Domain at COMPUTER
MESSAGE = bytes.fromhex(
    "4e544c4d5353500003000000180018006c00000018001800840000000c000c00"
    "48000000080008005400000010001000"
    "5c000000000000009c00000035820882"
    "0501280a0000000f44006f006d00610069006e00550073006500720043004f00"
    "4d0050005500540045005200aaaaaaaaaaaaaaaa000000000000000000000000"
    "000000007537f803ae367128ca458204bde7caf81e97ed2683267232"
)


def test_the_response() -> None:
    assert NT_HASH.hex() == "a4f49c406510bdcab6824ee7c30fd852"  # 4.2.2.1.2
    assert session_response(NT_HASH, SERVER, CLIENT) == RESPONSE


def test_the_key() -> None:
    assert session_key(NT_HASH, SERVER, CLIENT) == KEY


def test_the_message() -> None:
    message = Authenticate.unpack(MESSAGE)
    assert (message.domain, message.user, message.flags) == ("Domain", "User", 0x82088235)
    assert message.is_ntlmv1
    assert message.client_challenge == CLIENT
    assert message.nt_response == RESPONSE


def test_what_the_key_protects() -> None:
    """4.2.3.4, GSS_WrapEx: "Plaintext" in UTF-16, sealed and signed by the client."""
    seal = NtlmSeal(KEY, 0x82088235)
    sealed = bytes.fromhex("a02372f6530273f3aa1eb90190ce5200c99d")
    signature = bytes.fromhex("01000000ff2aeb52f681793a00000000")
    plain = seal.unprotect(b"", sealed, b"", signature, encrypt=True)
    assert plain.decode("utf-16-le") == "Plaintext"
