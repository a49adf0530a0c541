"""Whoever reads and looks after queues: /api/queues of the admin port, over plain HTTP."""

import base64
import http.client
import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from tests.outside.rawconnection import Address
from tests.support.waiting import eventually

# How a call ends whose appliance dies.
CUT_OFF = (OSError, http.client.HTTPException, json.JSONDecodeError)
DEADLETTER, DEADXACT, MACHINE_JOURNAL = "system$;deadletter", "system$;deadxact", "system$;journal"


def path(name: str) -> str:
    return f"private$\\{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message as a reader sees it. design 3.6"""

    id: str
    queue: str
    lookup_id: int
    priority: int
    label: str
    body: bytes
    kind: int  # class
    locked: bool
    headers: dict[str, str] = field(hash=False)

    @property
    def number(self) -> int:
        """The ordinal of its message id."""
        return int(self.id.rpartition("\\")[2])


class RefusedError(Exception):
    """The appliance said no: `code` is an MSMQ status, if it has one."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"{status}: {answer}")
        self.status, self.code = status, answer.get("code", "")


class Served(Protocol):
    """Ports may change between two calls: an appliance is started again now and then."""

    @property
    def listeners(self) -> dict[str, Address]: ...

    @property
    def bearer(self) -> dict[str, str]: ...


class Clerk:
    def __init__(self, appliance: Served) -> None:
        self._appliance = appliance

    # -- looking ----------------------------------------------------------------------------

    def info(self, queue: str) -> dict[str, Any]:
        found = self._ask("GET", "/api/queues")["queues"]
        (info,) = [one for one in found if one["name"] == queue]
        return dict(info)

    def count(self, queue: str) -> int:
        return int(self.info(queue)["messages"])

    def peek(self, queue: str, limit: int = 1000, after: int | None = None) -> list[Seen]:
        """All of them, however many answers that takes."""
        found: list[Seen] = []
        while True:
            behind = "" if after is None else f"&after={after}"
            where = f"/api/queues/messages?queue={quote(queue)}&limit={limit}{behind}"
            answer = self._ask("GET", where)
            found += [seen(one) for one in answer["messages"]]
            if not answer["more"]:
                return found
            after = found[-1].lookup_id

    def peek_at(self, queue: str, lookup_id: int) -> Seen:
        where = f"/api/queues/messages?queue={quote(queue)}&lookup_id={lookup_id}"
        (found,) = self._ask("GET", where)["messages"]
        return seen(found)

    def wait(self, queue: str, count: int, seconds: float = 30) -> list[Seen]:
        """Until so many are in it: a follower of Kafka brings them, and tells nobody."""
        eventually(lambda: self.holds(queue) == count, seconds)
        return self.peek(queue)

    def holds(self, queue: str) -> int:
        """How many there are; journals and subqueues are told with their queue."""
        if queue.startswith("system$"):
            return self.count(queue)
        name, _, part = queue.partition(";")
        info = self.info(name)
        if not part:
            return int(info["messages"])
        return int(
            info["journal_messages"] if part == "journal" else info["subqueues"].get(part, 0)
        )

    # -- changing ---------------------------------------------------------------------------

    def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> Seen | None:
        order: dict[str, object] = {"queue": queue}
        if lookup_id is not None:
            order["lookup_id"] = lookup_id
        if wait_s:
            order["wait_s"] = wait_s
        found = self._order("receive", order)["message"]
        return None if found is None else seen(found)

    def ask_to_receive(self, queue: str, wait_s: float) -> socket.socket:
        """Whoever asks may hang up before the answer comes."""
        body = json.dumps({"queue": queue, "wait_s": wait_s}).encode()
        head = "POST /api/queues/receive HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: {self._appliance.bearer['Authorization']}\r\n"
        head += f"Content-Length: {len(body)}\r\n"
        asking = socket.create_connection(self._appliance.listeners["admin"], timeout=90)
        asking.sendall(head.encode() + b"\r\n" + body)
        return asking

    def receive_all(self, queue: str) -> list[Seen]:
        found: list[Seen] = []
        while (one := self.receive(queue)) is not None:
            found.append(one)
        return found

    def purge(self, queue: str) -> int:
        return int(self._order("purge", {"queue": queue})["purged"])

    def move(self, queue: str, lookup_id: int, to: str) -> int:
        order = {"queue": queue, "lookup_id": lookup_id, "to": to}
        return int(self._order("move", order)["lookup_id"])

    def create(self, queue: str, **options: object) -> None:
        self._order("create", {"queue": queue, **options})

    def delete(self, queue: str) -> int:
        return int(self._order("delete", {"queue": queue})["messages"])

    def _order(self, name: str, order: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", f"/api/queues/{name}", json.dumps(order).encode())

    def _ask(self, method: str, where: str, body: bytes | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection(*self._appliance.listeners["admin"], timeout=90)
        try:
            connection.request(method, where, body, self._appliance.bearer)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise RefusedError(response.status, answer)
        return answer


def seen(data: dict[str, Any]) -> Seen:
    return Seen(
        id=data["message_id"],
        queue=data["queue"],
        lookup_id=data["lookup_id"],
        priority=data["priority"],
        label=data["label"],
        body=base64.b64decode(data["body"]),
        kind=data["class"],
        locked=data["locked"],
        headers=data["headers"],
    )


class Waiting:
    """A receive in a thread of its own; `result` waits for its end."""

    def __init__(self, clerk: Clerk, queue: str, wait_s: float = 30) -> None:
        self._clerk, self._queue, self._wait_s = clerk, queue, wait_s
        self._found: Seen | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._clerk.receive(self._queue, wait_s=self._wait_s)
        except (OSError, http.client.HTTPException, RefusedError) as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self, seconds: float = 60) -> Seen | None:
        self._thread.join(seconds)
        assert self.is_over, "the receive has not ended"
        if self.error is not None:
            raise self.error
        return self._found
