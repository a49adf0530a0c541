from __future__ import annotations

import pytest
from msgspec.structs import replace

from bridge.adapters.net.rpc_auth import Package
from bridge.adapters.reader.place import Place
from tests.adapters.reader.served import ANN


@pytest.mark.parametrize(
    ("package", "workgroup"), [("ntlm", True), ("negotiate", True), ("kerberos", False)]
)
def test_honest(package: Package, workgroup: bool) -> None:  # RR-45: fWorkgroup
    place = Place(host="h", credentials=replace(ANN, package=package))
    assert place.client.workgroup is workgroup


def test_anonymous() -> None:
    assert Place(host="h").client.workgroup


def test_the_password_does_not_show() -> None:
    assert "secret" not in repr(Place(host="h", credentials=ANN))
