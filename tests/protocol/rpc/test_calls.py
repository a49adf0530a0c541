"""The contract between runtime and interfaces."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault, Interface

CALL = Call(7, b"stub", AuthLevel.PRIVACY, "DOM\\ann", 5, 1, "127.0.0.1", ("127.0.0.1", 2103))


class Echo:
    uuid = Guid.random()
    version = (1, 0)

    async def call(self, call: Call) -> bytes | Sequence[bytes]:
        return call.stub

    def rundown(self, group: int) -> None: ...


def test_a_class_with_plain_attributes_is_an_interface() -> None:
    served: Sequence[Interface] = [Echo()]
    assert served[0].version == (1, 0)


def test_levels_have_the_numbers_of_the_wire() -> None:  # MS-RPCE 2.2.1.1.8
    assert [level.value for level in AuthLevel] == [1, 2, 3, 4, 5, 6]


def test_a_fault_carries_its_status() -> None:
    fault = Fault(0xC00E0003, did_not_execute=True)
    assert (fault.status, fault.did_not_execute, str(fault)) == (0xC00E0003, True, "fault C00E0003")
    assert not Fault(5).did_not_execute


def test_a_call_cannot_be_changed_by_an_interface() -> None:
    with pytest.raises(AttributeError):
        CALL.user = ""  # type: ignore[misc]
    assert msgspec.structs.replace(CALL, user="").user == ""
