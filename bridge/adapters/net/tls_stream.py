"""The server's side of TLS without I/O.

asyncio's own needs 256 KiB of buffer for every connection, tells of one only after its handshake
(so a crowd of silent ones is not counted), and cannot close one direction.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

from bridge.adapters.net.tls import names_of

_READ: Final = 64 << 10


class TlsStream:
    """What came goes in, what is to be sent comes out."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._greeted = False
        self.peer_names: tuple[str, ...] = ()  # of the certificate that the client has shown
        self.ended = False  # the peer has said that it sends no more

    def feed(self, data: memoryview, plain: bytearray) -> None:
        """Append what is in `data` to `plain`; ssl.SSLError ends the connection."""
        self._incoming.write(data)
        with suppress(ssl.SSLWantReadError):
            if not self._greeted:
                self._tls.do_handshake()
                self._greeted = True
                self.peer_names = names_of(self._tls.getpeercert() or {})
            with suppress(ssl.SSLZeroReturnError):  # instead of nothing, if we have ended, too
                while chunk := self._tls.read(_READ):
                    plain += chunk
            self.ended = True

    def write(self, data: bytes) -> None:
        self._tls.write(data)

    def end(self) -> None:
        """We send no more."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()

    def take(self) -> bytes:
        """What is to be sent now: answers, and what TLS itself has to say."""
        return self._outgoing.read()
