"""NTLM, the side that lets in: a challenge goes out, a proof comes back. MS-NLMP 3.2

Only NTLMv2 with extended session security; where it is allowed, also the NTLMv1 response that XP
and 2003 send with it (`ntlm_session`). Plain NTLMv1, LM, guests and the anonymous are refused.
Where PDUs are signed or sealed the keys have 128 bits: 40 and 56 can be found by trying them all.
The proof is checked over the bytes as they came, because clients do not agree on how they end.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from bridge.model.errors import ProtocolError, WireError
from bridge.protocol.events import Instant
from bridge.protocol.rpc.guesses import Guesses
from bridge.protocol.rpc.ntlm_session import session_key, session_response
from bridge.protocol.rpc.seal import NtlmSeal, Seal, rc4
from bridge.wire.cursor import encode_utf16
from bridge.wire.rpc.ntlm import (
    AV_MIC_PRESENT,
    Authenticate,
    Av,
    Challenge,
    Negotiate,
    NtlmFlags,
    NtResponse,
    pack_av_pairs,
)

_NEEDED: Final = NtlmFlags.UNICODE | NtlmFlags.NTLM | NtlmFlags.EXTENDED_SESSIONSECURITY
_SUPPORTED: Final = (
    _NEEDED
    | NtlmFlags.REQUEST_TARGET
    | NtlmFlags.SIGN
    | NtlmFlags.SEAL
    | NtlmFlags.ALWAYS_SIGN
    | NtlmFlags.VERSION
    | NtlmFlags.KEY_128
    | NtlmFlags.KEY_EXCH
    | NtlmFlags.KEY_56
)
_OURS: Final = NtlmFlags.TARGET_TYPE_SERVER | NtlmFlags.TARGET_INFO
_KEYS: Final = NtlmFlags.EXTENDED_SESSIONSECURITY | NtlmFlags.KEY_128 | NtlmFlags.KEY_EXCH
_FILETIME_EPOCH_S: Final = 11_644_473_600
_NOBODY: Final = bytes(16)  # the key of a user that does not exist
WEAK_KEY: Final = "rpc-auth-weak-key"
GUESSING: Final = "rpc-auth-guessing"
OLD_NTLM: Final = "rpc-auth-old-ntlm"
OnOld = Callable[[str, str], None]


class AuthFailed(ProtocolError):
    """Who this is could not be shown. `detail` is for our log, the peer hears nothing of it."""

    def __init__(self, detail: str, reason: str = "rpc-auth-failed") -> None:
        super().__init__(reason, detail)


class Accounts(Protocol):
    """Who may log on with NTLM."""

    def nt_hash(self, user: str, domain: str) -> bytes | None:
        """The NT hash of the password, or None for a stranger."""


class HostNames(msgspec.Struct, frozen=True):
    """What a challenge says about us. MS-NLMP 2.2.2.1"""

    netbios: str
    dns: str

    @classmethod
    def of(cls, host: str) -> HostNames:
        """From a host name, short or fully qualified."""
        return cls(host.partition(".")[0].upper()[:15], host.lower())


class Acceptor(Protocol):
    """One authentication, token by token."""

    def step(self, token: bytes, now: Instant) -> bytes:
        """The answer, perhaps empty; raises AuthFailed."""

    @property
    def seal(self) -> Seal | None:
        """None until the client has shown who it is."""

    @property
    def user(self) -> str: ...


class NtlmAcceptor:
    """`nonce`: eight bytes that were never used before. `strong`: the keys protect PDUs. `on_old`:
    NTLM2-session responses are allowed, and it is told the peer and the user of each."""

    def __init__(
        self,
        accounts: Accounts,
        host: HostNames,
        nonce: bytes,
        *,
        guesses: Guesses | None = None,
        peer: str = "",
        strong: bool = False,
        on_old: OnOld | None = None,
    ) -> None:
        self._accounts, self._host, self._nonce = accounts, host, nonce
        self._on_old = on_old
        self._guesses = Guesses() if guesses is None else guesses
        self._peer = peer
        self._needed = _NEEDED | NtlmFlags.KEY_128 if strong else _NEEDED
        self._negotiate = b""
        self._challenge = b""
        self._flags = 0
        self.seal: NtlmSeal | None = None
        self.user = ""

    def step(self, token: bytes, now: Instant) -> bytes:
        try:
            if not self._challenge:
                return self._on_negotiate(token, now)
            if self.seal is None:
                self._on_authenticate(Authenticate.unpack(token), now)
                return b""
        except WireError as error:
            raise AuthFailed(error.detail) from error
        raise AuthFailed("a token after the last")

    def _on_negotiate(self, token: bytes, now: Instant) -> bytes:
        wanted = Negotiate.unpack(token).flags
        self._require(wanted)
        self._flags = wanted & _SUPPORTED | _OURS
        self._negotiate = token
        challenge = Challenge(self._flags, self._nonce, self._host.netbios, self._info(now))
        self._challenge = challenge.pack()
        return self._challenge

    def _require(self, flags: int) -> None:
        if flags & _NEEDED != _NEEDED:
            raise AuthFailed(f"NTLM flags {flags:08x}: NTLMv2 needs Unicode, extended security")
        if flags & self._needed != self._needed:
            raise AuthFailed(f"NTLM flags {flags:08x}: 128-bit keys required", WEAK_KEY)

    def _info(self, now: Instant) -> bytes:
        """The time makes clients prove that the messages came as they were sent. 3.1.5.1.2"""
        ticks = int((now.unix + _FILETIME_EPOCH_S) * 10_000_000)
        return pack_av_pairs(
            {
                Av.NB_DOMAIN_NAME: encode_utf16(self._host.netbios),
                Av.NB_COMPUTER_NAME: encode_utf16(self._host.netbios),
                Av.DNS_DOMAIN_NAME: encode_utf16(self._host.dns),
                Av.DNS_COMPUTER_NAME: encode_utf16(self._host.dns),
                Av.TIMESTAMP: ticks.to_bytes(8, "little"),
            }
        )

    def _on_authenticate(self, message: Authenticate, now: Instant) -> None:
        name = f"{message.domain}\\{message.user}" if message.domain else message.user
        self._check_shape(message)
        wait_s = self._guesses.wait_s(self._peer, message.user, now.mono)
        if wait_s:
            detail = f"too many wrong passwords, {wait_s:.0f} s to wait: {name}"
            raise AuthFailed(detail, GUESSING)
        response = None if message.is_ntlmv1 else NtResponse.unpack(message.nt_response)
        known = self._accounts.nt_hash(message.user, message.domain)
        base = self._proved(message, response, known or _NOBODY)
        if base is None or known is None:
            self._guesses.wrong(self._peer, message.user, now.mono)
            raise AuthFailed(f"wrong name or password: {name}")
        key = self._session_key(message, base)
        if response is not None and response.av_flags & AV_MIC_PRESENT:
            self._check_mic(message, key)
        self._guesses.right(self._peer, message.user)
        if message.is_ntlmv1 and self._on_old is not None:
            self._on_old(self._peer, name)
        self.seal = NtlmSeal(key, message.flags)
        self.user = name

    def _proved(
        self, message: Authenticate, response: NtResponse | None, nt_hash: bytes
    ) -> bytes | None:
        """KeyExchangeKey; None if the proof is wrong. MS-NLMP 3.3.1, 3.3.2"""
        if response is None:
            challenges = self._nonce, message.client_challenge
            proof = session_response(nt_hash, *challenges)
            is_right = hmac.compare_digest(proof, message.nt_response)
            return session_key(nt_hash, *challenges) if is_right else None
        owf = ntowf_v2(nt_hash, message.user, message.domain)
        proof = _hmac_md5(owf, self._nonce + response.blob)
        is_right = hmac.compare_digest(proof, response.proof)
        return _hmac_md5(owf, proof) if is_right else None

    def _check_shape(self, message: Authenticate) -> None:
        if not message.user or message.flags & NtlmFlags.ANONYMOUS:
            raise AuthFailed("anonymous")
        if "\\" in message.user or "\\" in message.domain:  # would read as another's name
            raise AuthFailed("a name with a backslash")
        self._require(message.flags)
        if message.flags & _KEYS & ~self._flags:
            raise AuthFailed(f"NTLM flags {message.flags:08x} were not agreed on")
        if message.is_ntlmv1:
            self._check_old(message)

    def _check_old(self, message: Authenticate) -> None:
        """NTLM2 session: extended session security, which `_require` demands, and 128-bit keys."""
        if not message.client_challenge:
            raise AuthFailed("NTLMv1 without a client challenge", OLD_NTLM)
        if self._on_old is None:
            detail = f"{message.user}: NTLM2-session response; rpc.old_ntlm: true would accept it"
            raise AuthFailed(detail, OLD_NTLM)
        if not message.flags & NtlmFlags.KEY_128:
            detail = f"NTLM flags {message.flags:08x}: 128-bit keys required"
            raise AuthFailed(detail, WEAK_KEY)

    def _session_key(self, message: Authenticate, base: bytes) -> bytes:
        """ExportedSessionKey. MS-NLMP 3.2.5.1.2"""
        if not message.flags & NtlmFlags.KEY_EXCH:
            return base
        if len(message.session_key) != len(base):
            raise AuthFailed("no session key")
        return rc4(base, message.session_key)

    def _check_mic(self, message: Authenticate, key: bytes) -> None:
        said = b"".join((self._negotiate, self._challenge, message.without_mic))
        if not hmac.compare_digest(_hmac_md5(key, said), message.mic):
            raise AuthFailed("MIC: the messages were changed on their way")


def ntowf_v2(nt_hash: bytes, user: str, domain: str) -> bytes:
    """MS-NLMP 3.3.2"""
    return _hmac_md5(nt_hash, encode_utf16(_upper(user) + domain))


def _upper(text: str) -> str:
    """One character for one, as Windows does it: not SS for a sharp s."""
    return "".join(upper if len(upper := char.upper()) == 1 else char for char in text)


def _hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "md5")
