r"""RR-45, digest 3.1: what a user writes, as QUEUE_FORMAT."""

from __future__ import annotations

import pytest

from bridge.model.errors import IllegalName
from bridge.model.guid import Guid
from bridge.protocol.rpc.reader.names import target
from bridge.wire.rpc.queue_format import QueueFormat

GUID = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("text", "kind", "suffix", "wire", "name"),
    [
        (r"private$\orders", 3, 0x00, r"OS:host\PRIVATE$\orders", r"private$\orders"),
        ("private$/orders", 3, 0x00, r"OS:host\PRIVATE$\orders", r"private$\orders"),
        (r".\private$\Orders", 3, 0x00, r"OS:host\PRIVATE$\Orders", r"private$\orders"),
        ("orders", 3, 0x00, r"OS:host\orders", "orders"),
        (r"other\orders", 3, 0x00, r"OS:other\orders", "orders"),
        (r"other\private$\q", 3, 0x00, r"OS:other\PRIVATE$\q", r"private$\q"),
        (r"private$\q;journal", 3, 0x81, r"OS:host\PRIVATE$\q;JOURNAL", r"private$\q;journal"),
        (r"private$\q;retry", 8, 0x05, r"OS:host\PRIVATE$\q;retry", r"private$\q;retry"),
        (";deadletter", 3, 0x82, r"OS:host\SYSTEM$;DEADLETTER", "system$;deadletter"),
        ("SYSTEM$;DeadXact", 3, 0x83, r"OS:host\SYSTEM$;DEADXACT", "system$;deadxact"),
        (";journal", 3, 0x81, r"OS:host\SYSTEM$;JOURNAL", "system$;journal"),
        (
            r"DIRECT=OS:h2\private$\q;JOURNAL",
            *(3, 0x81, r"OS:h2\PRIVATE$\q;JOURNAL", r"private$\q;journal"),
        ),
        (r"direct=tcp:10.0.0.1\q", 3, 0x00, r"TCP:10.0.0.1\q", "q"),
    ],
)
def test_by_text(text: str, kind: int, suffix: int, wire: str, name: str) -> None:
    """Legal pairs 00, 81, 82, 83, 05; the suffix is in the text too ("Client: send both")."""
    found = target(text, "host")
    assert found.format == QueueFormat(kind=kind, suffix=suffix, text=wire)
    assert found.name == name


def test_a_host_that_is_an_address() -> None:
    assert target("q", "10.0.0.1").format.text == r"TCP:10.0.0.1\q"
    assert target("q", "::1").format.text == r"TCP:::1\q"


@pytest.mark.parametrize(
    ("text", "wanted", "name"),
    [
        (f"MACHINE={GUID};DEADLETTER", (4, 0x82, 0), "system$;deadletter"),
        (f"machine={GUID};deadxact", (4, 0x83, 0), "system$;deadxact"),
        (f"MACHINE={GUID};JOURNAL", (4, 0x81, 0), "system$;journal"),
        (f"PRIVATE={GUID}\\1f", (2, 0x00, 0x1F), f"private={GUID}\\0000001f"),
        (f"PRIVATE={GUID}\\1f;JOURNAL", (2, 0x81, 0x1F), f"private={GUID}\\0000001f;journal"),
        (f"PUBLIC={GUID}", (1, 0x00, 0), f"public={GUID}"),
        (f"PUBLIC={GUID};JOURNAL", (1, 0x81, 0), f"public={GUID};journal"),
    ],
)
def test_by_guid(text: str, wanted: tuple[int, int, int], name: str) -> None:
    found = target(text, "host")
    kind, suffix, number = wanted
    guid = Guid.parse(GUID)
    assert found.format == QueueFormat(kind=kind, suffix=suffix, guid=guid, number=number)
    assert found.name == name
    assert found.manager == (bytes(16) if kind == 1 else guid)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\\", ";", ";retry", "private$\\", "private$\\q;deadletter", "a\\b\\c", "x=y"),
        *(f"MACHINE={GUID}", f"CONNECTOR={GUID}", f"DL={GUID}", "MULTICAST=234.1.1.1:8001"),
        *("DIRECT=HTTP://host/msmq/q", "DIRECT=OS:host", "DIRECT=SPX:00000012:00a0234f7500\\q"),
    ],
)
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(IllegalName):
        target(text, "host")
