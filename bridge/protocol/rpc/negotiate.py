"""SPNEGO around NTLM, the side that lets in. RFC 4178, MS-SPNG 3.3.5

A client that would rather use something else (Kerberos, NEGOEX) is told that it is NTLM, and then
both lists of mechanisms must be signed: else who stands between could have shortened them.
"""

from __future__ import annotations

from bridge.model.errors import WireError
from bridge.protocol.events import Instant
from bridge.protocol.rpc.ntlm import Acceptor, AuthFailed, NtlmAcceptor
from bridge.protocol.rpc.seal import BadSeal, NtlmSeal, Seal
from bridge.wire.rpc.spnego import (
    KERBEROS_OID,
    MS_KERBEROS_OID,
    NTLM_OID,
    NegState,
    NegTokenResp,
    unpack_init,
)


class NegotiateAcceptor:
    def __init__(self, ntlm: NtlmAcceptor) -> None:
        self._ntlm = ntlm
        self._mech_types = b""
        self._needs_mic = False
        self.seal: NtlmSeal | None = None

    @property
    def user(self) -> str:
        return self._ntlm.user

    def step(self, token: bytes, now: Instant) -> bytes:
        try:
            if not self._mech_types:
                return self._on_init(token, now).pack()
            return self._on_response(NegTokenResp.unpack(token), now).pack()
        except WireError as error:
            raise AuthFailed(error.detail) from error

    def _on_init(self, data: bytes, now: Instant) -> NegTokenResp:
        init = unpack_init(data)
        if NTLM_OID not in init.mechanisms:
            raise AuthFailed("no mechanism in common: only NTLM is served")
        self._mech_types = init.mech_types
        if init.mechanisms[0] != NTLM_OID:
            self._needs_mic = True  # RFC 4178 4.2.2: its first choice was not taken
            return NegTokenResp(NegState.REQUEST_MIC, NTLM_OID)
        answer = self._ntlm.step(init.token, now) if init.token else b""
        return NegTokenResp(NegState.ACCEPT_INCOMPLETE, NTLM_OID, answer)

    def _on_response(self, said: NegTokenResp, now: Instant) -> NegTokenResp:
        if said.state == NegState.REJECT:
            raise AuthFailed("the client rejects")
        answer = self._ntlm.step(said.token, now)
        seal = self._ntlm.seal
        if seal is None:
            return NegTokenResp(NegState.ACCEPT_INCOMPLETE, token=answer)
        if not said.mic:
            if self._needs_mic:
                raise AuthFailed("mechListMIC is missing")
            self.seal = seal
            return NegTokenResp(NegState.ACCEPT_COMPLETED)
        mic = self._exchange_mics(seal, said.mic)
        self.seal = seal
        return NegTokenResp(NegState.ACCEPT_COMPLETED, mic=mic)

    def _exchange_mics(self, seal: NtlmSeal, mic: bytes) -> bytes:
        try:
            seal.verify(self._mech_types, mic)
        except BadSeal as error:
            raise AuthFailed("mechListMIC is wrong") from error
        ours = seal.sign(self._mech_types)
        seal.rekey()
        return ours


class NegotiateChooser:
    """Kerberos, if the client would rather and we can; else what is left."""

    def __init__(self, kerberos: Acceptor, otherwise: Acceptor | None) -> None:
        self._kerberos, self._otherwise = kerberos, otherwise
        self._chosen: Acceptor | None = None

    @property
    def user(self) -> str:
        return "" if self._chosen is None else self._chosen.user

    @property
    def seal(self) -> Seal | None:
        return None if self._chosen is None else self._chosen.seal

    def step(self, token: bytes, now: Instant) -> bytes:
        if self._chosen is None:
            self._chosen = self._choose(token)
        return self._chosen.step(token, now)

    def _choose(self, token: bytes) -> Acceptor:
        try:
            mechanisms = unpack_init(token).mechanisms
        except WireError as error:
            raise AuthFailed(error.detail) from error
        if mechanisms[:1] in ((KERBEROS_OID,), (MS_KERBEROS_OID,)):
            return self._kerberos
        if self._otherwise is None:
            raise AuthFailed("no mechanism in common: only Kerberos is served")
        return self._otherwise
