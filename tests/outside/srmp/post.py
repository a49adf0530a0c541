"""A raw HTTP client: every byte of a request is the test's, every byte of an answer is seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tests.outside.rawconnection import HungUpError, RawConnection, soon
from tests.outside.srmp.wire import Mail, request

__all__ = ["Answer", "HungUpError", "Poster", "chunked", "soon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Sequence[tuple[str, str]]  # names in lower case
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


class Poster(RawConnection):
    def connect(self) -> Self:
        self.open_socket()
        return self

    def read_answer(self, deadline: float | None = None) -> Answer:
        """The next one, as it must be: digest 1.4, an empty body and nothing else but a status."""
        answer = self._read(deadline or soon(30))
        if answer.status != 100:
            assert answer.status in (200, 400, 500, 503), answer
            assert answer.all("content-length") == ["0"], answer
            assert not answer.all("transfer-encoding"), answer
        return answer

    def _read(self, deadline: float) -> Answer:
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            assert len(self.buffer) < 10_000, bytes(self.buffer)
            self._fill(len(self.buffer) + 1, deadline)
        first, *lines = bytes(self.buffer[:end]).decode("ascii").split("\r\n")
        del self.buffer[: end + 4]
        version, status, *_ = first.split(" ", 2)
        assert version == "HTTP/1.1", first
        pairs = [line.partition(":") for line in lines]
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        return Answer(status=int(status), headers=headers, body=b"")

    def post(self, data: bytes | Mail) -> int:
        self.send(request(data) if isinstance(data, Mail) else data)
        return self.read_answer().status

    def post_all(self, data: Sequence[bytes | Mail]) -> list[int]:
        """All in one write; the answers come in the order of the requests. 1.2"""
        self.send(b"".join(request(one) if isinstance(one, Mail) else one for one in data))
        return [self.read_answer().status for _ in data]

    def try_post(self, data: bytes | Mail) -> int:
        """0 if the bridge hangs up without an answer."""
        try:
            return self.post(data)
        except HungUpError:
            return 0

    def expect_refused(self, deadline: float | None = None) -> None:
        """400 or the end of the connection, and never a good answer."""
        try:
            assert self.read_answer(deadline).status == 400
        except HungUpError:
            return


def chunked(data: bytes, sizes: Sequence[int], extension: bytes = b"") -> bytes:
    """Cut into chunks of these sizes, again and again."""
    coded, start, turn = b"", 0, 0
    while start < len(data):
        piece = data[start : start + sizes[turn % len(sizes)]]
        coded += b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
        start, turn = start + len(piece), turn + 1
    return coded + b"0\r\n\r\n"
