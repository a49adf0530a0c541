"""The parser table of the digest `data-model.md`, section 3, row by row (DM-32)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.errors import IllegalName
from bridge.model.guid import Guid
from bridge.model.names import (
    Connector,
    Direct,
    DistributionList,
    FormatName,
    Machine,
    Multicast,
    PathName,
    Private,
    Public,
    parse_format_name,
    parse_format_names,
    parse_path_name,
)

G = "A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9"
GUID = Guid.parse(G)
LOW = G.lower()

ROWS = [
    # row, text, kind, suffix, sendable, canonical
    (1, r"DIRECT=OS:srv01\private$\orders", 3, 0, True, r"DIRECT=OS:srv01\PRIVATE$\orders"),
    (
        2,
        r"direct=os:SRV01.corp.example\Private$\Orders",
        *(3, 0, True, r"DIRECT=OS:SRV01.corp.example\PRIVATE$\Orders"),
    ),
    (3, r"DIRECT=OS:srv01\orders", 3, 0, True, r"DIRECT=OS:srv01\orders"),
    (3, r"DIRECT=OS:.\private$\q", 3, 0, True, r"DIRECT=OS:.\PRIVATE$\q"),
    (
        4,
        r"DIRECT=TCP:10.1.2.3\private$\orders",
        *(3, 0, True, r"DIRECT=TCP:10.1.2.3\PRIVATE$\orders"),
    ),
    (4, r"DIRECT=TCP:fe80::1\q", 3, 0, True, r"DIRECT=TCP:fe80::1\q"),
    (
        5,
        r"DIRECT=SPX:00000012:00a0234f7500\q",
        *(3, 0, True, r"DIRECT=SPX:00000012:00a0234f7500\q"),
    ),
    (
        5,
        r"DIRECT=ipx:00000012:00a0234f7500\q",
        *(3, 0, True, r"DIRECT=IPX:00000012:00a0234f7500\q"),
    ),
    (
        6,
        "DIRECT=HTTP://srv01/msmq/private$/orders",
        *(3, 0, True, "DIRECT=HTTP://srv01/MSMQ/PRIVATE$/orders"),
    ),
    (
        6,
        "DIRECT=HTTP://srv01/msmq\\private$\\orders",
        *(3, 0, True, "DIRECT=HTTP://srv01/MSMQ/PRIVATE$/orders"),
    ),
    (
        7,
        "DIRECT=HTTPS://srv01:8443/MSMQ/orders",
        *(3, 0, True, "DIRECT=HTTPS://srv01:8443/MSMQ/orders"),
    ),
    (7, "DIRECT=HTTPS://srv01:443/MSMQ/o", 3, 0, True, "DIRECT=HTTPS://srv01/MSMQ/o"),
    (7, "DIRECT=HTTPS://srv01:/MSMQ/o", 3, 0, True, "DIRECT=HTTPS://srv01/MSMQ/o"),
    (7, "DIRECT=HTTP://[::1]:81/MSMQ/o", 3, 0, True, "DIRECT=HTTP://[::1]:81/MSMQ/o"),
    (6, "DIRECT=HTTP://a/msmq/my%20queue", 3, 0, True, "DIRECT=HTTP://a/MSMQ/my queue"),
    (6, "DIRECT=HTTP://a/msmq/private%24/o", 3, 0, True, "DIRECT=HTTP://a/MSMQ/PRIVATE$/o"),
    (6, "DIRECT=HTTP://a/msmq/private$%5co", 3, 0, True, "DIRECT=HTTP://a/MSMQ/PRIVATE$/o"),
    (6, "DIRECT=HTTP://a/msmq/o%3Bjournal", 3, 1, False, "DIRECT=HTTP://a/MSMQ/o;JOURNAL"),
    # srmp.md 1.1: a query is possible, and is no part of the queue's name
    (6, "DIRECT=HTTP://a/msmq/o?SenderStream=X/Y", 3, 0, True, "DIRECT=HTTP://a/MSMQ/o"),
    (6, "DIRECT=HTTP://a/msmq/o?", 3, 0, True, "DIRECT=HTTP://a/MSMQ/o"),
    (
        8,
        r"DIRECT=OS:srv01\private$\orders;JOURNAL",
        *(3, 1, False, r"DIRECT=OS:srv01\PRIVATE$\orders;JOURNAL"),
    ),
    (8, r"DIRECT=OS:srv01\orders;jouRNal", 3, 1, False, r"DIRECT=OS:srv01\orders;JOURNAL"),
    (9, r"DIRECT=OS:srv01\SYSTEM$;JOURNAL", 3, 1, False, r"DIRECT=OS:srv01\SYSTEM$;JOURNAL"),
    (9, r"DIRECT=OS:s\system$;DeadLetter", 3, 2, False, r"DIRECT=OS:s\SYSTEM$;DEADLETTER"),
    (9, r"DIRECT=OS:s\SYSTEM$;DEADXACT", 3, 3, False, r"DIRECT=OS:s\SYSTEM$;DEADXACT"),
    (
        10,
        r"DIRECT=OS:srv01\private$\orders;poison",
        *(8, 5, False, r"DIRECT=OS:srv01\PRIVATE$\orders;poison"),
    ),
    (11, f"PUBLIC={G}", 1, 0, True, f"PUBLIC={LOW}"),
    (11, f"public={LOW};journal", 1, 1, False, f"PUBLIC={LOW};JOURNAL"),
    (12, f"PRIVATE={G}\\A", 2, 0, True, f"PRIVATE={LOW}\\0000000a"),
    (13, f"PRIVATE={G}\\4", 2, 0, False, f"PRIVATE={LOW}\\00000004"),
    (13, f"PRIVATE={G}\\a;JOURNAL", 2, 1, False, f"PRIVATE={LOW}\\0000000a;JOURNAL"),
    (14, f"MACHINE={G};JOURNAL", 4, 1, False, f"MACHINE={LOW};JOURNAL"),
    (14, f"MACHINE={G};DEADLETTER", 4, 2, False, f"MACHINE={LOW};DEADLETTER"),
    (14, f"MACHINE={G};deadxact", 4, 3, False, f"MACHINE={LOW};DEADXACT"),
    (15, f"CONNECTOR={G}", 5, 0, True, f"CONNECTOR={LOW}"),
    (15, f"CONNECTOR={G};XACTONLY", 5, 4, True, f"CONNECTOR={LOW};XACTONLY"),
    (16, f"DL={G}", 6, 0, True, f"DL={LOW}"),
    (16, f"DL={G}@corp.example", 6, 0, True, f"DL={LOW}@corp.example"),
    (17, "MULTICAST=234.1.1.1:8001", 7, 0, True, "MULTICAST=234.1.1.1:8001"),
    (17, "MULTICAST=224.0.0.0:0", 7, 0, True, "MULTICAST=224.0.0.0:0"),
    (17, "multicast=239.255.255.255:65535", 7, 0, True, "MULTICAST=239.255.255.255:65535"),
]


@pytest.mark.parametrize(("row", "text", "kind", "suffix", "sendable", "canonical"), ROWS)
def test_format_names(
    row: int, text: str, kind: int, suffix: int, sendable: bool, canonical: str
) -> None:
    name = parse_format_name(text)
    assert (name.kind, name.suffix, name.sendable) == (kind, suffix, sendable)
    assert name.canonical == str(name) == canonical
    assert parse_format_name(canonical) == name
    assert parse_format_name(text.swapcase()) == name
    assert parse_format_names(text) == (name,)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            r"DIRECT=OS:srv01\private$\orders",
            Direct(protocol="OS", host="srv01", private=True, queue="orders"),
        ),
        (r"DIRECT=OS:.\q", Direct(protocol="OS", host=".", queue="q")),
        (r"DIRECT=TCP:fe80::1\q", Direct(protocol="TCP", host="fe80::1", queue="q")),
        (
            r"DIRECT=HTTP://srv01/msmq/private$/orders",
            Direct(protocol="HTTP", host="srv01", port=80, private=True, queue="orders"),
        ),
        (
            "DIRECT=HTTPS://srv01/MSMQ/orders",
            Direct(protocol="HTTPS", host="srv01", port=443, queue="orders"),
        ),
        (
            r"DIRECT=OS:a\private$\q;poison",
            Direct(protocol="OS", host="a", private=True, queue="q", suffix=5, subqueue="poison"),
        ),
        (
            r"DIRECT=OS:a\system$;deadletter",
            Direct(protocol="OS", host="a", queue="SYSTEM$", suffix=2),
        ),
        (f"PUBLIC={G}", Public(guid=GUID)),
        (f"PRIVATE={G}\\ffffffff", Private(guid=GUID, number=0xFFFFFFFF)),
        (f"MACHINE={G};DEADXACT", Machine(guid=GUID, suffix=3)),
        (f"CONNECTOR={G};XACTONLY", Connector(guid=GUID, suffix=4)),
        (f"DL={G}@corp.example", DistributionList(guid=GUID, domain="corp.example")),
        ("MULTICAST=234.1.1.1:8001", Multicast(address="234.1.1.1", port=8001)),
    ],
)
def test_parts(text: str, name: FormatName) -> None:
    found = parse_format_name(text)
    assert type(found) is type(name)
    for field in name.__struct_fields__:
        assert getattr(found, field) == getattr(name, field)


def test_two_names_of_one_host_are_two_names() -> None:  # row 2: other stream
    short = parse_format_name(r"DIRECT=OS:srv01\private$\orders")
    assert short != parse_format_name(r"DIRECT=OS:srv01.corp.example\private$\orders")
    assert short != parse_format_name(r"DIRECT=OS:srv01\orders")
    assert short == parse_format_name(r"direct=os:SRV01\PRIVATE$\ORDERS")


def test_lists() -> None:  # rows 18, 19
    names = parse_format_names(f"DIRECT=OS:a\\q,PUBLIC={G},DL={G}")
    assert [name.kind for name in names] == [3, 1, 6]
    (only,) = parse_format_names(r"DIRECT=OS:a\q,direct=os:A\Q")
    assert only.canonical == r"DIRECT=OS:a\q"
    assert len(parse_format_names(f"CONNECTOR={G};XACTONLY,MULTICAST=234.1.1.1:1")) == 2


@pytest.mark.parametrize(
    ("text", "name", "canonical"),
    [
        (
            r"srv01\private$\orders;retry",  # row 20
            PathName(computer="srv01", private=True, queue="orders", suffix=5, subqueue="retry"),
            r"srv01\PRIVATE$\orders;retry",
        ),
        (r"srv01\orders", PathName(computer="srv01", queue="orders"), r"srv01\orders"),
        (
            r".\Private$\q",
            PathName(computer=".", private=True, queue="q"),
            r".\PRIVATE$\q",
        ),
        (
            r"srv01\system$;JOURNAL",
            PathName(computer="srv01", queue="SYSTEM$", suffix=1),
            r"srv01\SYSTEM$;JOURNAL",
        ),
        (
            r"srv01\q;journal",
            PathName(computer="srv01", queue="q", suffix=1),
            r"srv01\q;JOURNAL",
        ),
    ],
)
def test_path_names(text: str, name: PathName, canonical: str) -> None:
    found = parse_path_name(text)
    assert found == name
    for field in name.__struct_fields__:
        assert getattr(found, field) == getattr(name, field)
    assert found.canonical == canonical
    assert parse_path_name(canonical) == found
    assert found.local == (name.computer == ".")


BAD = [
    # row 21
    f"MACHINE={G}",
    "MULTICAST=192.0.2.1:80",
    "MULTICAST=234.1.1.1",
    # row 22
    r"DIRECT=OS:a",
    r"DIRECT=FTP:a\q",
    r"DIRECT=OS:a\private$\x;b;c",
    "PUBLIC=xyz",
    f"PUBLIC={{{G}}}",
    f"PRIVATE={G}",
    f"PRIVATE={G}\\123456789",
    "",
    r"DIRECT=OS:a\b+c",
    r"DIRECT=OS:a\private$" + "\\" + "x" * 125,
    # and their neighbours
    "=",
    "DIRECT",
    "DIRECT=",
    "DIRECT=OS",
    "DIRECT=OS:",
    "DIRECT=OS:\\q",
    "DIRECT=OS:a\\",
    r"DIRECT=OS:a\private$",
    "DIRECT=OS:a\\private$\\",
    r"DIRECT=OS:a\private$\private$",
    r"DIRECT=OS:a\b\c",
    r"DIRECT=OS:a\q;",
    r"DIRECT=OS:a\q;" + "x" * 33,
    r"DIRECT=OS:a\q;DEADLETTER",
    r"DIRECT=OS:a\q;XACTONLY",
    r"DIRECT=OS:a\SYSTEM$",
    r"DIRECT=OS:a\SYSTEM$;XACTONLY",
    r"DIRECT=OS:a\SYSTEM$;other",
    r"DIRECT=OS:a\private$\q,",
    "DIRECT=OS:a\\b\0c",
    'DIRECT=OS:a\\b"c',
    r"DIRECT=OS:a b\q",
    "DIRECT=OS:" + "h" * 257 + r"\q",
    r"DIRECT=TCP:localhost\q",
    r"DIRECT=TCP:300.1.1.1\q",
    r"DIRECT=TCP:[::1]\q",
    r"DIRECT=SPX:12:00a0234f7500\q",
    r"DIRECT=HTTP:srv01\q",
    "DIRECT=HTTP://srv01/orders",
    "DIRECT=HTTP:///msmq/orders",
    "DIRECT=HTTP://srv01:65536/msmq/orders",
    "DIRECT=HTTP://srv01:x/msmq/orders",
    "DIRECT=HTTP://srv01/msmq/a/b",
    "DIRECT=HTTP://srv01/msmq/",
    "DIRECT=HTTP://srv01/msmq/?a=b",
    "DIRECT=HTTP://srv01/msmq?/o",
    "DIRECT=HTTP://srv01/msmq/a%00b",
    "DIRECT=HTTP://srv01/msmq/a%0Ab",
    "DIRECT=HTTP://srv01/msmq/a%2Fb",
    "DIRECT=HTTP://srv01/msmq/a%2Cb",
    "DIRECT=HTTP://srv01/msmq/a%2bb",
    "DIRECT=HTTP://srv01%2Fmsmq/a",
    "DIRECT=HTTP://a b/msmq/q",
    f"PUBLIC={G};DEADLETTER",
    f"PUBLIC={G};sub",
    f"PUBLIC={G}\\1",
    f"PUBLIC= {G}",
    f"PUBL\u0131C={G}",  # a dotless i, whose capital is I
    f"PUBLIC={G[:-1]}\uff11",
    f"PUBLIC={G[:-1]}_",
    f"PRIVATE={G}\\",
    f"PRIVATE={G}\\g",
    f"PRIVATE={G}\\0x1",
    f"PRIVATE={G}\\+1",
    f"PRIVATE={G}\\1;sub",
    f"MACHINE={G};XACTONLY",
    f"MACHINE={G};",
    f"CONNECTOR={G};JOURNAL",
    f"DL={G}@",
    f"DL={G};JOURNAL",
    f"DL={G}@" + "d" * 256,
    "MULTICAST=240.0.0.0:1",
    "MULTICAST=223.255.255.255:1",
    "MULTICAST=234.1.1.1:",
    "MULTICAST=234.1.1.1:65536",
    "MULTICAST=234.1.1.1:-1",
    "MULTICAST=ff02::1:1",
    r" DIRECT=OS:a\q",
    r"srv01\orders",
]


@pytest.mark.parametrize("text", BAD)
def test_illegal_names(text: str) -> None:  # MQ_ERROR_ILLEGAL_FORMATNAME
    with pytest.raises(IllegalName) as caught:
        parse_format_name(text)
    assert caught.value.text == text
    assert caught.value.why
    assert caught.value.HRESULT == 0xC00E001E
    with pytest.raises(IllegalName):
        parse_format_names(text)


@pytest.mark.parametrize(
    "text",
    [
        f"DIRECT=OS:a\\q,MACHINE={G};JOURNAL",  # row 21
        r"DIRECT=OS:a\q,DIRECT=OS:b\q;JOURNAL",
        f"PUBLIC={G};JOURNAL,DIRECT=OS:a\\q",
        r"DIRECT=OS:a\q;JOURNAL,DIRECT=OS:a\q;JOURNAL",
        r"DIRECT=OS:a\q;sub,DIRECT=OS:b\q",
        r"DIRECT=OS:a\q,",
        ",",
    ],
)
def test_illegal_lists(text: str) -> None:  # MS-MQMQ 2.1.7: no read-only queues
    with pytest.raises(IllegalName):
        parse_format_names(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\\", "srv01", "srv01\\", "\\q", r"a b\q", r"srv01\a\b", r"a\q;b;c", "a\\q;"),
        *(
            r"a\private$",
            "a\\private$\\",
            r"a\system$",
            r"a\system$;q",
            r"a\b+c",
            "a\\" + "x" * 125,
        ),
        "h" * 257 + "\\q",
    ],
)
def test_illegal_paths(text: str) -> None:
    with pytest.raises(IllegalName):
        parse_path_name(text)


@pytest.mark.parametrize("queue", ["x" * 124, "a b", "größe", "a/b", "a=b", "a:b", "order_queue$"])
def test_queue_names_keep_their_text(queue: str) -> None:
    name = parse_format_name(f"DIRECT=OS:srv01\\private$\\{queue}")
    assert isinstance(name, Direct)
    assert name.queue == queue


@pytest.mark.parametrize(
    ("text", "queue"),
    [
        ("gr%C3%B6%C3%9fe", "größe"),
        ("größe", "größe"),
        ("a%3Fb", "a?b"),
        ("a%2525", "a%25"),  # undone once
        ("100%", "100%"),
        ("%zz", "%zz"),
        ("%ff", "\ufffd"),  # no UTF-8
        ("a%3fb?c", "a?b"),
        ("\ud800%41", "\ud800A"),
    ],
)
def test_a_url_may_hide_characters(text: str, queue: str) -> None:  # RFC 3986 2.1; srmp.md 1.1
    name = parse_format_name(f"DIRECT=HTTP://srv01/msmq/private$/{text}")
    assert isinstance(name, Direct)
    assert name.queue == queue
    again = parse_format_name(name.canonical)
    assert isinstance(again, Direct)
    assert again.queue == queue


def test_only_in_a_url() -> None:
    name = parse_format_name(r"DIRECT=OS:srv01\a%20b?c")
    assert isinstance(name, Direct)
    assert name.queue == "a%20b?c"


PIECES = st.lists(
    st.sampled_from(
        [
            *("DIRECT=", "PUBLIC=", "PRIVATE=", "MACHINE=", "CONNECTOR=", "DL=", "MULTICAST="),
            *("OS:", "TCP:", "HTTP:", "HTTPS:", "SPX:", "//", "/", "\\", ";", ",", "@", ":", "="),
            *("private$", "system$", "journal", "deadletter", "msmq", "srv01", "q", "10.1.2.3"),
            *(G, "234.1.1.1", "8001", "[::1]", "+", '"', " ", "\0", "\ud800", "A"),
            *("DIRECT=HTTP://a/msmq/", "?", "%", "25", "%25", "%3f", "%5c"),
        ]
    ),
    max_size=12,
).map("".join)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(max_size=60), PIECES))
def test_parsing_is_total(text: str) -> None:
    for parse in (parse_format_name, parse_format_names, parse_path_name):
        with suppress(IllegalName):
            parse(text)


@settings(deadline=None, max_examples=300)
@given(PIECES)
def test_canonical_text_means_the_same(text: str) -> None:
    try:
        name = parse_format_name(text)
    except IllegalName:
        return
    again = parse_format_name(name.canonical)
    assert again == name
    assert hash(again) == hash(name)
    assert again.canonical == name.canonical
