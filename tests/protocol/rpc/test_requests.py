"""Reassembly and its limits. RR-7, RR-10"""

from __future__ import annotations

import struct

import pytest

from bridge.model.errors import ProtocolError
from bridge.model.guid import Guid
from bridge.protocol.rpc.dialogue import Limits
from bridge.protocol.rpc.presentation import Presentation
from bridge.protocol.rpc.requests import Complete, NotTaken, Requests
from bridge.wire.rpc.bind import NDR, Proposal, Syntax
from bridge.wire.rpc.pdu import Fragment, Request
from tests.wire.rpc import raw

ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)


def requests(**limits: int) -> Requests:
    presentation = Presentation([ECHO])
    presentation.answer(Proposal(0, ECHO, (NDR,)))
    presentation.answer(Proposal(1, ECHO, (NDR,)))
    return Requests(Limits(**limits), presentation)  # type: ignore[arg-type]


def add(to: Requests, data: bytes) -> Complete | None:
    fragment = Fragment.unpack(data)
    request = Request.unpack(fragment)
    try:
        return to.add(fragment, request, None, data[request.stub_at : fragment.body_end])
    except NotTaken:
        to.skip(fragment)
        raise


def part(stub: bytes, flags: int, call_id: int = 2, context: int = 0) -> bytes:
    return raw.request(stub, flags=flags, call_id=call_id, context=context)


def refused(to: Requests, data: bytes) -> int:
    with pytest.raises(NotTaken) as caught:
        add(to, data)
    return caught.value.status


def test_one_fragment_and_three() -> None:
    some = requests()
    whole = add(some, raw.request(b"all", opnum=7))
    assert whole is not None
    assert (whole.opnum, whole.stub, whole.context.index) == (7, b"all", 0)
    assert add(some, part(b"a", raw.FIRST, 3)) is None
    assert add(some, part(b"b", 0, 3)) is None
    whole = add(some, part(b"c", raw.LAST, 3))
    assert whole is not None
    assert whole.stub == b"abc"
    assert (some.held, some.pending) == (6, [2, 3])
    some.answered(2)
    assert (some.held, some.pending, some.answered(2)) == (3, [3], None)


def test_fragments_of_two_requests_may_interleave() -> None:
    some = requests()
    add(some, part(b"a", raw.FIRST, 2))
    add(some, part(b"x", raw.FIRST, 3))
    one, two = add(some, part(b"b", raw.LAST, 2)), add(some, part(b"y", raw.LAST, 3))
    assert one is not None
    assert two is not None
    assert (one.stub, two.stub) == (b"ab", b"xy")


def test_a_middle_fragment_without_first() -> None:  # RR-7: fault 1C01000B
    assert refused(requests(), part(b"x", 0)) == 0x1C01000B
    assert refused(requests(), part(b"x", raw.LAST)) == 0x1C01000B


def test_the_rest_of_a_refused_request_is_passed_over() -> None:
    some = requests()
    assert refused(some, part(b"x", raw.FIRST, context=9)) == 0x1C00001C  # RR-11
    assert add(some, part(b"x", 0, context=9)) is None
    assert add(some, part(b"x", raw.LAST, context=9)) is None
    assert add(some, part(b"x", raw.WHOLE, call_id=3)) is not None


def test_call_ids_grow_and_may_wrap() -> None:  # RR-7
    some = requests()
    for call_id in (5, 0x80000000, 0xFFFFFFFF, 1):
        assert add(some, raw.request(call_id=call_id)) is not None
        some.answered(call_id)
    assert refused(some, raw.request(call_id=1)) == 0x1C01000B
    assert refused(some, raw.request(call_id=0xFFFFFFFE)) == 0x1C01000B
    assert add(some, raw.request(call_id=1, context=1)) is not None  # a context counts by itself


@pytest.mark.parametrize("flags", [raw.WHOLE, raw.FIRST])
def test_a_call_id_that_is_under_way(flags: int) -> None:
    some = requests()
    add(some, part(b"x", flags))
    with pytest.raises(ProtocolError, match="under way"):
        add(some, part(b"x", raw.FIRST, context=1))


def test_a_request_over_the_limit() -> None:  # RR-7: fault 5
    some = requests(stub=10)
    add(some, part(b"12345678", raw.FIRST))
    assert refused(some, part(b"xxx", 0)) == 5
    assert (some.held, some.unfinished) == (0, False)
    assert add(some, raw.request(b"1234567890", call_id=3)) is not None


def test_all_requests_together() -> None:
    some = requests(held=10)
    add(some, part(b"123456", raw.WHOLE, 2))
    add(some, part(b"1234", raw.FIRST, 3))
    assert refused(some, part(b"5", raw.LAST, 3)) == 0x1C010014  # too busy
    some.answered(2)
    assert add(some, raw.request(b"1234567890", call_id=4)) is not None


def test_too_many_calls() -> None:
    some = requests(calls=2)
    add(some, part(b"", raw.FIRST, 2))
    add(some, part(b"", raw.WHOLE, 3))
    assert refused(some, raw.request(call_id=4)) == 0x1C010014
    some.answered(3)
    assert add(some, raw.request(call_id=5)) is not None


def test_fragments_without_bytes_cost_nothing() -> None:
    some = requests()
    add(some, part(b"", raw.FIRST))
    for _ in range(1000):
        add(some, part(b"", 0))
    assert some.held == 0
    assert add(some, part(b"", raw.LAST)) is not None


def test_a_pending_cancel_in_any_fragment() -> None:  # C706 12.6.3.1, RR-13
    some = requests()
    add(some, part(b"x", raw.FIRST | 4))
    assert refused(some, part(b"y", raw.LAST)) == 0x1C00000D
    assert (some.held, some.pending) == (0, [])


def test_maybe_means_nobody_waits() -> None:
    some = requests()
    add(some, part(b"x", raw.WHOLE | 0x40))
    call = some.answered(2)
    assert call is not None
    assert call.silent


def test_a_verification_trailer_that_disagrees() -> None:  # RR-10: fault 5
    magic = bytes.fromhex("8ae3137102f43671")
    good = magic + struct.pack("<HHBBHIIHH", 0xC003, 16, 0, 0, 0, 0x10, 2, 0, 1)
    bad = magic + struct.pack("<HHBBHIIHH", 0xC003, 16, 0, 0, 0, 0x10, 2, 0, 9)
    whole = add(requests(), raw.request(b"1234" + good))
    assert whole is not None
    assert whole.stub == b"1234" + good  # interfaces ignore what follows their parameters
    assert refused(requests(), raw.request(b"1234" + bad)) == 5
    assert refused(requests(), raw.request(b"1234" + magic)) == 5
    assert refused(requests(), raw.request(magic + struct.pack("<HH", 0xC007, 0))) == 5


def test_cancel_drops_what_is_half_here() -> None:
    some = requests()
    add(some, part(b"abc", raw.FIRST, context=1))
    assert some.cancel(2) == 1
    assert some.held == 0
    assert add(some, part(b"d", raw.LAST, context=1)) is None
    assert some.cancel(2) is None
