"""Random envelopes and messages that have exactly one encoding."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import ACK_ARRIVAL, INFINITE, Message, Transaction
from bridge.wire.srmp.envelope import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    MsmqBlock,
    Provider,
    Services,
    Stream,
    StreamReceipt,
)
from bridge.wire.srmp.signature import DSA, MD5, SHA1, Reference, Signature, signed_info_xml
from bridge.wire.srmp.values import NEVER, make_stream_id

SOME: Final = settings(deadline=None, max_examples=60)

u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)
dates = st.integers(0, 253_402_300_799)  # to the end of 9999
moments = st.integers(0, NEVER - 1)
guids = st.binary(min_size=16, max_size=16).map(Guid)
_letters = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zs", "Zl", "Zp"])
_inside = st.one_of(_letters, st.sampled_from(" \t\r\n<>&\"']]>"))
texts = st.text(_inside, max_size=60).map(lambda text: text.strip(" \t\r\n"))
words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)
urls = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}/MSMQ/{path}",
    st.sampled_from(["http", "https", "HTTP"]),
    words,
    words.map(lambda name: f"private$/{name}?a=<b>&c"),
)
names = st.one_of(urls, words.map(lambda word: f"MSMQ:DIRECT=OS:{word}\\q"))
multicasts = st.just("MSMQ:MULTICAST=234.1.1.1:8001")
name_lists = st.lists(names, max_size=3).map(tuple)
stream_ids = st.builds(make_stream_id, guids, u64)


@st.composite
def _services(draw: st.DrawFn) -> Services:
    commitment = draw(st.none() | urls)
    flags = st.booleans() if commitment else st.just(False)
    return Services(
        durable=draw(st.booleans()),
        delivery_to=draw(st.none() | urls),
        commitment_to=commitment,
        positive=draw(flags),
        negative=draw(flags),
    )


@st.composite
def _streams(draw: st.DrawFn) -> Stream:
    current = draw(st.integers(0, 3) | u32)
    return Stream(
        id=draw(stream_ids),
        current=current,
        previous=draw(st.none() | u32),
        receipts_to=draw(st.none() | urls) if current == 1 else None,
    )


_signatures = st.builds(
    Signature,
    method=st.just(DSA) | texts,
    references=st.lists(
        st.builds(
            Reference,
            uri=st.sampled_from(["cid:body@x", "cid:extension@x"]),
            method=st.sampled_from([SHA1, MD5]),
            digest=st.binary(max_size=20),
        ),
        max_size=3,
    ).map(tuple),
    value=st.binary(max_size=64),
).map(lambda one: replace(one, signed_info=signed_info_xml(one).encode()))

blocks = st.builds(
    MsmqBlock,
    source=guids,
    time_to_reach_queue=dates,
    message_class=u64,
    priority=st.integers(0, 7),
    body_type=u32,
    journal=st.booleans(),
    dead_letter=st.booleans(),
    trace=st.booleans(),
    correlation=st.binary(min_size=20, max_size=20),
    connector_type=st.none() | guids,
    app=u32,
    hash_algorithm=u32,
    first=st.booleans(),
    last=st.booleans(),
    connector_qm=st.none() | guids,
    provider=st.none() | st.builds(Provider, type=u32, name=texts),
    destination_mqf=name_lists,
    admin_mqf=name_lists,
    response_mqf=name_lists,
)


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    block = draw(st.none() | blocks)
    identifier = st.builds(lambda n, guid: f"uuid:{n}@{guid}", u32, guids)
    return Envelope(
        action=draw(texts | texts.map(lambda text: f"MSMQ:{text}")),
        to=draw(urls | multicasts),
        id=draw(identifier if block else identifier | texts),
        via=draw(st.just("") | names),
        expires_at=draw(dates),
        sent_at=draw(st.none() | dates),
        services=draw(st.none() | _services()),
        stream=draw(st.none() | _streams()) if block else None,
        delivery_receipt=draw(
            st.none() | st.builds(DeliveryReceipt, received_at=dates, id=texts),
        ),
        stream_receipt=draw(
            st.none() | st.builds(StreamReceipt, stream_id=stream_ids, last_ordinal=u32)
        ),
        commitment_receipt=draw(
            st.none()
            | st.builds(CommitmentReceipt, decided_at=dates, positive=st.booleans(), id=texts)
        ),
        msmq=block,
        signature=draw(st.none() | _signatures),
    )


def _comma_list(draw: st.DrawFn) -> str:
    return ",".join(f"DIRECT={one}" for one in draw(st.lists(urls, max_size=3)))


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """What SRMP can carry, and nothing that it cannot."""
    number = draw(st.none() | st.integers(1, 3) | st.integers(1, 0xFFFFFFFF))
    ack = draw(st.sampled_from([0, 1, 2, 3, 8, 9, 10, 11]))
    lasts = draw(st.just(INFINITE) | st.integers(0, 400_000))
    fields: dict[str, Any] = {}
    if number is not None:
        fields["transaction"] = Transaction(
            sequence_id=draw(u64),
            number=number,
            previous=draw(st.integers(0, number - 1)) if number > 1 else 0,
            first=draw(st.booleans()),
            last=draw(st.booleans()),
            final_ack=bool(ack & ~ACK_ARRIVAL),
            connector_qm=draw(st.none() | guids),
        )
        if number == 1:
            fields["status_queue"] = f"DIRECT={draw(urls)}"
    if ack:
        fields["admin_queue"] = f"DIRECT={draw(urls)}"
    return Message(
        source=draw(guids),
        ordinal=draw(u32),
        destination=draw(urls.map(lambda url: f"DIRECT={url}") | st.just("MULTICAST=234.1.1.1:80")),
        sent_time=draw(st.integers(0, NEVER - 400_001)),
        label=draw(texts),
        body=draw(st.binary(max_size=100)),
        extension=draw(st.binary(max_size=30)),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        delivery=1 if number else draw(st.integers(0, 1)),
        priority=draw(st.integers(0, 7)),
        time_to_reach_queue=lasts,
        body_type=draw(u32),
        app_specific=draw(u32),
        ack=ack,
        journal=draw(st.integers(0, 3)),
        hash_algorithm=draw(u32),
        response_queue=draw(st.sampled_from(["", "DIRECT=OS:a\\q", "DIRECT=http://a/msmq/q"])),
        destination_multi=_comma_list(draw),
        admin_multi=_comma_list(draw),
        response_multi=_comma_list(draw),
        provider=draw(st.sampled_from(["", "1:Base", "24:"])),
        trace_queue=draw(st.none() | st.just(NULL_GUID)),
        connector=draw(st.none() | guids),
        transport="http",
        **fields,
    )
