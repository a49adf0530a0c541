"""What a socket calls an address, as it is known here."""

import pytest

from bridge.adapters.net.addresses import host_of, port_of


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (("10.1.2.3", 5), "10.1.2.3", 5),
        (("::1", 5, 0, 0), "::1", 5),
        (("::ffff:10.1.2.3", 5, 0, 0), "10.1.2.3", 5),
        (("fe80::1%eth0", 5, 0, 2), "fe80::1%eth0", 5),
        (None, "?", 0),  # the peer has gone already
        ("", "?", 0),
    ],
)
def test_addresses(address: object, host: str, port: int) -> None:
    assert (host_of(address), port_of(address)) == (host, port)
