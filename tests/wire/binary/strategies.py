"""Random headers that have exactly one encoding."""

from __future__ import annotations

from typing import Final

from hypothesis import settings
from hypothesis import strategies as st

from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary.base import TRACE, BaseHeader
from bridge.wire.binary.debug import DebugHeader
from bridge.wire.binary.internal import ConnectionParameters, EstablishConnection, SessionAck
from bridge.wire.binary.multiqueue import MqfElement, MultiQueueHeader
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.security import SecurityHeader
from bridge.wire.binary.session import SessionHeader
from bridge.wire.binary.soap import SoapHeader
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import QueueRef, UserHeader

SOME: Final = settings(deadline=None, max_examples=100)

u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)
guids = st.one_of(st.just(NULL_GUID), st.binary(min_size=16, max_size=16).map(Guid))


def texts(max_size: int, *, nul: bool = True) -> st.SearchStrategy[str]:
    """WCHARs of any value, as they come from a wire: halves of a surrogate pair are replaced."""
    units = st.lists(st.integers(0 if nul else 1, 0xFFFF), max_size=max_size)
    return st.one_of(
        st.text(st.characters(min_codepoint=1, max_codepoint=0x24F), max_size=max_size),
        units.map(
            lambda unit: b"".join(n.to_bytes(2, "little") for n in unit).decode(
                "utf-16-le", "replace"
            )
        ),
    )


def queue_refs(codes: tuple[int, ...]) -> st.SearchStrategy[QueueRef]:
    numbered = st.sampled_from([c for c in codes if c in (2, 3, 4)] or [0])
    options = [
        st.builds(QueueRef, code=st.sampled_from([c for c in codes if c in (0, 1)])),
        st.builds(QueueRef, code=numbered, number=u32).filter(lambda ref: ref.code != 0),
        st.builds(QueueRef, code=st.just(5), guid=guids),
        st.builds(QueueRef, code=st.just(7), text=texts(40)),
    ]
    if 6 in codes:
        options.append(st.builds(QueueRef, code=st.just(6), guid=guids, number=u32))
    return st.one_of(options)


bases = st.builds(
    BaseHeader,
    packet_size=st.integers(16, 0x400000),
    flags=st.sampled_from([0, 0x08, 0x10, 0x18, 0x20, 0x30, 0x120, 0x138]),
    priority=st.integers(0, 7),
    time_to_reach_queue=u32,
)
transactions = st.builds(
    TransactionHeader,
    sequence_id=u64,
    number=u32,
    previous_number=u32,
    first=st.booleans(),
    last=st.booleans(),
    final_ack=st.booleans(),
    index=st.integers(0, 0xFFFFF),
    connector_qm=st.none() | guids,
)
securities = st.builds(
    SecurityHeader,
    sender_type=st.integers(0, 15),
    authenticated=st.booleans(),
    encrypted=st.booleans(),
    default_provider=st.booleans(),
    security_data=st.booleans(),
    signature_type=st.integers(0, 15),
    sender_id=st.binary(max_size=40),
    encryption_key=st.binary(max_size=40),
    signature=st.binary(max_size=40),
    certificate=st.binary(max_size=80),
    provider_info=st.binary(max_size=40),
)


@st.composite
def properties_headers(draw: st.DrawFn) -> PropertiesHeader:
    body = draw(st.binary(max_size=200))
    return PropertiesHeader(
        ack_flags=draw(st.integers(0, 15)),
        label=draw(texts(120)),
        message_class=draw(u16),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        body_type=draw(u32),
        app_specific=draw(u32),
        allocation_size=draw(st.just(-1) | st.integers(len(body), len(body) + 40)),
        privacy_level=draw(u32),
        hash_algorithm=draw(u32),
        encryption_algorithm=draw(u32),
        extension=draw(st.binary(max_size=50)),
        body=body,
    )


properties = properties_headers()
debugs = st.builds(DebugHeader, queue=st.none() | guids)
soaps = st.builds(SoapHeader, header=texts(40), body=texts(40))
elements = st.one_of(
    st.builds(MqfElement, kind=st.sampled_from([1, 6]), guid=guids),
    st.builds(MqfElement, kind=st.just(2), guid=guids, number=u32),
    st.builds(MqfElement, kind=st.just(3), text=texts(20, nul=False)),
)
element_lists = st.lists(elements, max_size=4).map(tuple)
multis = st.builds(
    MultiQueueHeader,
    destination=element_lists,
    admin=element_lists,
    response=element_lists,
    signature=st.binary(max_size=30),
)
sessions = st.builds(
    SessionHeader,
    ack_sequence_number=u16,
    recoverable_ack_number=u16,
    recoverable_ack_flags=u32,
    user_sequence_number=u16,
    recoverable_sequence_number=u16,
    window_size=u16,
)


def users(delivery: st.SearchStrategy[int]) -> st.SearchStrategy[UserHeader]:
    return st.builds(
        UserHeader,
        source=guids,
        queue_manager=guids,
        time_to_be_received=u32,
        sent_time=u32,
        message_id=u32,
        hop_count=st.integers(0, 31),
        delivery=delivery,
        journal=st.integers(0, 3),
        destination=queue_refs((0, 3, 5, 7)),
        admin=queue_refs((0, 2, 3, 5, 6, 7)),
        response=queue_refs((0, 1, 2, 3, 4, 5, 6, 7)),
        connector_type=st.none() | guids,
    )


@st.composite
def user_messages(draw: st.DrawFn) -> UserMessage:
    transaction = draw(st.none() | transactions)
    debug = draw(st.none() | debugs)
    return UserMessage(
        base=BaseHeader(
            flags=draw(st.sampled_from([0, TRACE])) if debug is not None else 0,
            priority=draw(st.integers(0, 7)),
            time_to_reach_queue=draw(u32),
        ),
        user=draw(users(st.just(1) if transaction is not None else st.integers(0, 1))),
        properties=draw(properties),
        transaction=transaction,
        security=draw(st.none() | securities),
        debug=debug,
        soap=draw(st.none() | soaps),
        multi=draw(st.none() | multis),
        session=draw(st.none() | sessions),
    )


packets = st.one_of(
    user_messages(),
    st.builds(
        EstablishConnection,
        client=guids,
        server=guids,
        timestamp=u32,
        operating_system=u16,
        refused=st.booleans(),
    ),
    st.builds(
        ConnectionParameters,
        recoverable_ack_timeout=u32,
        ack_timeout=u32,
        window_size=u16,
        refused=st.booleans(),
    ),
    st.builds(SessionAck, session=sessions),
)
