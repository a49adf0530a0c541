"""The sender of the kit, against a receiver of forty lines that acks and hangs up by script."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID, uuid4

import pytest

from tests.outside.expected import expected_cp_response, expected_ec_response, order_queue
from tests.outside.rawmsmq import Message, SessionHeader, Tx, build, direct, session_ack
from tests.outside.rawparse import wire_length
from tests.outside.rawsender import HungUpError, RawSender, soon

SERVER = UUID("A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9")
SEQUENCE = 0x60000000_00000001


class Receiver:
    """Takes `lives[i]` user messages on the i-th connection, acks every `every`, then hangs up."""

    def __init__(self, lives: list[int], every: int, *, order_ack: bool) -> None:
        self.lives, self.every, self.order_ack = lives, every, order_ack
        self.taken: list[list[bytes]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for life in self.lives:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as stream:
                self._serve(connection, stream.read, life)
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                    stream.read()  # a reset would take our acks with it

    def _serve(self, connection: socket.socket, read: Callable[[int], bytes], life: int) -> None:
        request = read(572)
        client = UUID(bytes_le=request[20:36])
        connection.sendall(expected_ec_response(client=client, server=SERVER))
        read(32)
        connection.sendall(expected_cp_response())
        taken: list[bytes] = []
        self.taken.append(taken)
        sent, acked = 0, 0
        while len(taken) < life:
            if not (head := read(16)):
                return
            packet = head + read(wire_length(head) - 16)
            if packet[2] & 8:
                continue  # a session ack
            taken.append(packet)
            if len(taken) - acked < self.every:
                continue
            fresh = len(taken) - acked
            header = SessionHeader(
                ack=len(taken), recoverable_ack=acked + 1, flags=(1 << fresh) - 1, sent=sent
            )
            connection.sendall(session_ack(header))
            acked = len(taken)
            if self.order_ack:
                sent += 1
                connection.sendall(self._order_ack(number_of(packet), sent))

    def _order_ack(self, number: int, message_id: int) -> bytes:
        name, _ = order_queue("127.0.0.1")
        body = struct.pack("<QII20x", SEQUENCE, number, number - 1)
        return build(
            Message(
                source=SERVER,
                message_id=message_id,
                destination=name,
                label="QM Ordering Ack",
                message_class=0xFF,
                priority=0,
                body=body,
            )
        )

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.listener.getsockname()[1])

    def close(self) -> None:
        self.thread.join(10)
        self.listener.close()


def number_of(packet: bytes) -> int:
    return int(struct.unpack_from("<I", packet, tx_at(packet) + 12)[0])


def previous_of(packet: bytes) -> int:
    return int(struct.unpack_from("<I", packet, tx_at(packet) + 16)[0])


def tx_at(packet: bytes) -> int:
    count = 2 + struct.unpack_from("<H", packet, 64)[0]
    return int(64 + count + -count % 4)


def transactional(source: UUID, count: int) -> Iterator[Message]:
    for n in range(1, count + 1):
        yield Message(
            source=source,
            message_id=n,
            destination=direct(r"OS:b\private$\q"),
            tx=Tx(sequence_id=SEQUENCE, number=n, previous=n - 1),
        )


def test_resume_sends_what_is_kept_in_order_with_bridged_previous() -> None:  # QB-53, QB-95
    receiver = Receiver([40, 1000], 20, order_ack=True)
    with RawSender(receiver.address) as sender:
        sender.connect().handshake()
        with pytest.raises(HungUpError):
            sender.send_all_windowed(transactional(sender.guid, 100), soon(10))
        kept = [entry.message.message_id for entry in sender.table]
        sender.resume()
        sender.send_all_windowed(deadline=soon(10))
        assert not sender.table
    receiver.close()
    first, second = receiver.taken
    assert [number_of(p) for p in first] == list(range(1, 41))
    assert kept[0] == 41
    assert [number_of(p) for p in second] == list(range(41, 101))
    assert previous_of(second[0]) == 0  # none before it is in the table
    assert [previous_of(p) for p in second[1:]] == list(range(41, 100))


def test_transactional_messages_wait_for_the_order_ack() -> None:  # QB-48
    receiver = Receiver([10], 10, order_ack=False)
    with RawSender(receiver.address) as sender:
        sender.connect().handshake()
        with pytest.raises(HungUpError):
            sender.send_all_windowed(transactional(sender.guid, 10), soon(10))
        assert [entry.durable for entry in sender.table] == [True] * 10
    receiver.close()


def test_the_window_is_never_passed() -> None:  # QB-50
    receiver = Receiver([1000], 1000, order_ack=False)
    messages = [
        Message(source=uuid4(), message_id=n, destination=direct(r"OS:b\private$\q"))
        for n in range(100)
    ]
    with RawSender(receiver.address) as sender:
        sender.connect().handshake()
        with pytest.raises(TimeoutError):
            sender.send_all_windowed(messages, soon(0.3))
        assert (sender.sent, len(sender.unsent)) == (64, 36)
    receiver.close()
    assert len(receiver.taken[0]) == 64
