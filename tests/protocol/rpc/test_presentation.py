"""Presentation contexts. RR-3, RR-4, MS-RPCE 3.3.1.5.6"""

from __future__ import annotations

from bridge.model.guid import Guid
from bridge.protocol.rpc.presentation import MOST, Presentation
from bridge.wire.rpc.bind import NDR, NDR64, NO_SYNTAX, Proposal, Result, Syntax, features
from tests.wire.rpc import raw

ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 2)
OTHER = Syntax(Guid.random(), 3, 0)


def presentation() -> Presentation:
    return Presentation([OTHER, ECHO])


def test_what_three_contexts_of_windows_get() -> None:  # RR-3
    known = presentation()
    assert known.answer(Proposal(0, ECHO, (NDR,))) == Result(0, 0, NDR)
    assert known.answer(Proposal(1, ECHO, (NDR64,))) == Result(2, 2, NO_SYNTAX)
    assert known.answer(Proposal(2, ECHO, (features(3),))) == Result(3, 3, NO_SYNTAX)
    found = known.get(0)
    assert found is not None
    assert (found.index, found.proposed) == (1, ECHO)
    assert known.get(1) is None
    assert known.get(2) is None


def test_ndr_may_stand_anywhere_among_the_transfer_syntaxes() -> None:
    assert presentation().answer(Proposal(0, ECHO, (NDR64, NDR))) == Result(0, 0, NDR)
    assert presentation().answer(Proposal(0, ECHO, ())) == Result(2, 2)


def test_only_features_that_we_have() -> None:  # MS-RPCE 3.3.1.5.3
    assert presentation().answer(Proposal(0, ECHO, (features(0xFFFF),))) == Result(3, 3)
    assert presentation().answer(Proposal(0, ECHO, (features(4),))) == Result(3, 0)


def test_versions() -> None:  # C706 6.1.2
    def code(major: int, minor: int) -> tuple[int, int]:
        result = presentation().answer(Proposal(0, Syntax(ECHO.uuid, major, minor), (NDR,)))
        return result.code, result.reason

    assert [code(1, 0), code(1, 2)] == [(0, 0), (0, 0)]
    assert [code(1, 3), code(2, 0), code(0, 2)] == [(2, 1)] * 3


def test_an_unknown_interface() -> None:
    assert presentation().answer(Proposal(0, NDR, (NDR,))) == Result(2, 1)


def test_a_context_can_be_proposed_again_but_not_changed() -> None:  # RR-4
    known = presentation()
    assert known.answer(Proposal(0, ECHO, (NDR,))).code == 0
    assert known.answer(Proposal(0, ECHO, (NDR,))).code == 0
    assert known.answer(Proposal(0, OTHER, (NDR,))) == Result(2, 0)
    found = known.get(0)
    assert found is not None
    assert found.proposed == ECHO


def test_there_is_an_end_to_them() -> None:
    known = presentation()
    for number in range(MOST):
        assert known.answer(Proposal(number, ECHO, (NDR,))).code == 0
    assert known.answer(Proposal(MOST, ECHO, (NDR,))) == Result(2, 3)  # local limit
    assert known.answer(Proposal(0, ECHO, (NDR,))).code == 0
