"""Who may read. RR-16; design 3.2, 3.3"""

import pytest

from bridge.core.remote_read.access import ReadAccess
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault


def call(level: AuthLevel, user: str = "") -> Call:
    return Call(
        opnum=2,
        stub=b"",
        level=level,
        user=user,
        group=1,
        connection=1,
        peer="10.0.0.2",
        local=("10.0.0.1", 2103),
    )


@pytest.mark.parametrize("minimum", AuthLevel)
def test_the_level_counts(minimum: AuthLevel) -> None:
    access = ReadAccess(minimum, has_users=True)
    for level in AuthLevel:
        if level >= minimum:
            access.demand_level(call(level))
        else:
            with pytest.raises(Fault) as caught:
                access.demand_level(call(level))
            assert caught.value.status == 5
            assert caught.value.did_not_execute


def test_a_handle_keeps_its_level() -> None:
    """RR-16: evaluated at open and on every later call."""
    access = ReadAccess(AuthLevel.NONE, has_users=True)
    access.demand_level(call(AuthLevel.PRIVACY), AuthLevel.PRIVACY)
    with pytest.raises(Fault):
        access.demand_level(call(AuthLevel.INTEGRITY), AuthLevel.PRIVACY)


@pytest.mark.parametrize(
    ("user", "allowed", "may"),
    [
        ("SHOP\\ann", ("ann",), True),
        ("SHOP\\Ann", ("ANN", "bob"), True),
        ("SHOP\\ann", ("shop\\ANN",), True),
        ("OTHER\\ann", ("shop\\ann",), False),
        ("ann", ("ann",), True),
        ("ann", ("shop\\ann",), False),
        ("SHOP\\ann", ("*",), True),
        ("", ("*",), False),  # everybody who has proven who he is
        ("", ("",), False),
        ("SHOP\\ann", ("annie", "an"), False),
        ("SHOP\\ann", ("shop",), False),
        ("SHOP\\ann", (), False),
        ("SHOP\\ann", None, False),  # no list is nobody
        ("", None, False),
    ],
)
def test_users(user: str, allowed: tuple[str, ...] | None, may: bool) -> None:
    assert ReadAccess(AuthLevel.NONE, has_users=True).permits(user, allowed) is may


def test_without_users_there_is_nobody_to_name() -> None:
    access = ReadAccess(AuthLevel.NONE, has_users=False)
    assert access.permits("", None)
    assert not access.permits("", ("ann",))  # a list is kept to, also if nobody can be on it
