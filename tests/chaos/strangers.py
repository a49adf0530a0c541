"""What a stranger puts on the wire: other senders' names, invented names, odd texts.

Only bytes are made here, and put on a socket. A stranger keeps the framing of the protocol, so that
what it sends gets as far as it can. Its bodies begin with EVIL, by which they are told apart.
"""

import asyncio
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from uuid import UUID

from tests.outside.appliance import HOST, queue
from tests.outside.rawconnection import Address
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_NR,
    ACK_PA,
    ACK_PR,
    Message,
    Name,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    pad4,
    private_on,
)
from tests.outside.rawparse import Received, SessionAck, parse, wire_length
from tests.outside.srmp.wire import Flow, Mail, request, url

EVIL: Final = b"evil"
NEXT_DOOR: Final = "127.0.0.1"  # where the honest senders seem to be
ABROAD: Final = "127.0.0.66"  # not on any list
ANSWER_S: Final = 3.0
BURST: Final = 60  # messages of a session: within the smallest window
ALL_ONES: Final = 0xFFFF_FFFF_FFFF_FFFF
LAST: Final = 0xFFFF_FFFF
SURROGATE: Final = "\ud800"
ALL_ACKS: Final = ACK_PA | ACK_PR | ACK_NA | ACK_NR


def any_guid(rng: random.Random) -> UUID:
    return UUID(bytes=rng.randbytes(16), version=4)


def any_name(rng: random.Random) -> str:
    return f"invented-{rng.getrandbits(64):016x}"


def odd(text: str) -> Name:
    """A direct name that no program can encode: half a surrogate pair is in it."""
    raw = text.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return Name(7, pad4(struct.pack("<H", len(raw)) + raw))


# -- other senders' names ------------------------------------------------------------------------


def spoofed_streams(
    victim: UUID, name: str, sequence: int, number: int, rng: random.Random
) -> Iterator[Message]:
    """Messages of a transactional stream that would move its cursor past what the victim sends."""
    places = (
        Tx(sequence_id=ALL_ONES, number=LAST, previous=0),
        Tx(sequence_id=ALL_ONES, number=1, previous=0),
        Tx(sequence_id=sequence + 1, number=1, previous=0),
        Tx(sequence_id=sequence, number=number + 1, previous=number),
        Tx(sequence_id=sequence, number=LAST, previous=number),
        Tx(sequence_id=sequence, number=LAST, previous=0),
    )
    for destination in (queue(name), queue(name, "ELSEWHERE"), queue(any_name(rng))):
        for tx in places:
            yield Message(
                source=victim,
                message_id=rng.getrandbits(31),
                destination=destination,
                body=EVIL,
                tx=tx,
            )
    other = any_guid(rng)
    yield Message(
        source=victim,
        message_id=rng.getrandbits(31),
        destination=private_on(other, 7),
        queue_manager=other,
        body=EVIL,
        tx=places[0],
    )


def spoofed_ids(victim: UUID, name: str, ordinal: int, rng: random.Random) -> Iterator[Message]:
    """Plain messages with the ids that the victim's next messages will have."""
    elsewhere = queue(name, "ELSEWHERE"), queue(any_name(rng)), queue(name)
    for step in range(1, BURST + 1):
        yield Message(
            source=victim,
            message_id=ordinal + step,
            destination=elsewhere[step % len(elsewhere)],
            body=EVIL,
            recoverable=step % 2 == 0,
        )


def spoofed_mail(victim: UUID, name: str, stream: str, number: int, ordinal: int) -> Iterator[Mail]:
    """The same over HTTP: the victim's stream, its next ids, receipts to the stranger."""
    receipts = f"http://{ABROAD}:9/receipts"
    for step in range(1, 6):
        yield Mail(
            to=url(name), body=EVIL, source=victim, number=ordinal + step, services="<durable/>"
        )
    if stream:
        flow = Flow(to=url(name), receipts=receipts, stream=stream, source=victim)
        for current, previous, start in (
            (number + 1, number, False),
            (number + 1000, number, True),
            (LAST, None, True),
        ):
            yield flow.mail(
                current, previous, start=start, body=EVIL, number=ordinal + 10 + current % 7
            )


# -- invented names ------------------------------------------------------------------------------


def invented(own: UUID, rng: random.Random, body_bytes: int) -> Iterator[Message]:
    """Its own messages, each with names that were never heard before and never will be again."""
    for number in range(1, BURST + 1):
        body = EVIL + rng.randbytes(rng.randrange(body_bytes))
        host = f"127.{rng.randrange(1, 255)}.{rng.randrange(255)}.{rng.randrange(1, 255)}"
        admin = direct(f"TCP:{host}\\private$\\{any_name(rng)}")  # it refuses at once
        tx = Tx(sequence_id=rng.getrandbits(63), number=1, previous=0)
        kinds = (
            {"destination": queue(any_name(rng), any_name(rng)), "tx": tx},
            {"destination": queue(any_name(rng), any_name(rng))},
            {"destination": queue(f"{any_name(rng)}/.."), "tx": tx},
            {"destination": queue("poison"), "label": any_name(rng)},
            {"destination": direct(f"HTTP://{HOST}/msmq/private$/{any_name(rng)}")},
            {"destination": queue("orders"), "tx": tx},
            {"destination": queue("plain")},
        )
        chosen: dict[str, object] = {
            "source": own,
            "message_id": number,
            "body": body,
            "recoverable": True,
            "admin": admin,
            "acks": ALL_ACKS,
            "response": direct(f"OS:{any_name(rng)}\\private$\\r"),
            **kinds[number % len(kinds)],
        }
        yield Message(**chosen)  # type: ignore[arg-type]


def invented_mail(rng: random.Random) -> Iterator[Mail]:
    """The same over HTTP: sources, streams, queues and hosts for receipts."""
    for _ in range(5):
        guid = any_guid(rng)
        host = f"127.{rng.randrange(1, 255)}.{rng.randrange(255)}.{rng.randrange(1, 255)}"
        name = rng.choice(("poison", f"{any_name(rng)}/.."))
        flow = Flow(to=url(name), receipts=f"http://{host}:9/{any_name(rng)}", source=guid)
        yield flow.mail(1, body=EVIL)


# -- poison --------------------------------------------------------------------------------------


def poison(rng: random.Random, large: int) -> list[Message]:
    """Texts that cannot be encoded, records that Kafka refuses for good; each of its own source,
    so that every shard gets some."""
    own = UUID(int=0)
    here, compacted = queue("poison"), queue("compacted")
    admin = odd(f"OS:HOST{SURROGATE}\\private$\\a")
    made = [
        Message(source=own, message_id=1, destination=here, admin=admin, acks=ALL_ACKS),
        Message(source=own, message_id=2, destination=here, response=admin),
        Message(source=own, message_id=3, destination=odd(f"OS:{HOST}\\private$\\q{SURROGATE}")),
        Message(source=own, message_id=4, destination=odd(f"OS:{SURROGATE}\\private$\\poison")),
        Message(source=own, message_id=5, destination=here, body=EVIL + rng.randbytes(large)),
        Message(source=own, message_id=6, destination=compacted, body=EVIL),
    ]
    for number, sent in enumerate((0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF), 10):
        made.append(Message(source=own, message_id=number, destination=here, sent_time=sent))
    place = 100
    for destination in (here, odd(f"OS:{HOST}\\private$\\poison{SURROGATE}"), compacted):
        place += 1
        tx = Tx(sequence_id=place, number=1, previous=0)
        made.append(
            Message(source=own, message_id=place, destination=destination, admin=admin, tx=tx)
        )
    rng.shuffle(made)
    # Recoverable: the ack of an express message may take ten seconds.
    return [replace(message, source=any_guid(rng), recoverable=True) for message in made]


# -- on the wire ---------------------------------------------------------------------------------


async def bring(address: Address, local: str, guid: UUID, messages: Sequence[Message]) -> bool:
    """One session as `guid`: all of them at once. Whether the bridge let the session in.

    Ends when all are acked, when the bridge hangs up, or after a while.
    """
    writer: asyncio.StreamWriter | None = None
    let_in = False
    with suppress(OSError, EOFError, TimeoutError, AssertionError):
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_connection(*address, local_addr=(local, 0))
                writer.write(ec_request(guid))
                await _read(reader)
                writer.write(cp_request())
                await _read(reader)
                let_in = True
                writer.write(b"".join(map(build, messages)))
                while not await _acks(reader, len(messages)):
                    pass
        finally:
            if writer is not None:
                writer.transport.abort()
    return let_in


async def _acks(reader: asyncio.StreamReader, count: int) -> bool:
    found = parse(await _read(reader))
    session = found.session if isinstance(found, SessionAck | Received) else None
    return session is not None and session.ack == count


async def _read(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(16)
    return head + await reader.readexactly(wire_length(head) - 16)


async def post(address: Address, mails: Iterable[Mail]) -> None:
    """From abroad, one after the other; the answers are read and forgotten."""
    writer: asyncio.StreamWriter | None = None
    with suppress(OSError, EOFError, TimeoutError):
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_connection(*address, local_addr=(ABROAD, 0))
                for mail in mails:
                    writer.write(request(mail))
                    await reader.readuntil(b"\r\n\r\n")
        finally:
            if writer is not None:
                writer.transport.abort()
