"""Design 3.5: what a source may be."""

import pytest

from bridge.model.errors import ConfigError
from msmq_jobs.sources.locator import Export, LiveQueue, parse_source


@pytest.mark.parametrize(
    ("text", "host", "port", "user", "path"),
    [
        (
            "msmq://user@host/private$/orders;journal",
            "host",
            None,
            "user",
            "private$\\orders;journal",
        ),
        ("msmq://host/;deadletter", "host", None, "", ";deadletter"),
        ("MSMQ://host:2103/;DEADXACT", "host", 2103, "", ";deadxact"),
        ("msmq://D%5Cbob@10.0.0.7/orders", "10.0.0.7", None, "D\\bob", "orders"),
        ("msmq://[fd00::7]:99/private$/a;poison", "fd00::7", 99, "", "private$\\a;poison"),
    ],
)
def test_queues(text: str, host: str, port: int | None, user: str, path: str) -> None:
    source = parse_source(text)
    assert isinstance(source, LiveQueue)
    assert (source.host, source.port, source.user, source.path) == (host, port, user, path)
    assert source.text == text


@pytest.mark.parametrize(
    ("text", "is_file", "is_parquet"),
    [
        ("a.jsonl", True, False),
        ("s3a://bucket/x/a.PARQUET", True, True),
        ("a.parquet/", True, True),
        ("exports", False, False),
        ("hdfs://name/exports/", False, False),
    ],
)
def test_exports(text: str, is_file: bool, is_parquet: bool) -> None:
    source = parse_source(text)
    assert source == Export(text)
    assert (source.is_file, source.is_parquet) == (is_file, is_parquet)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("msmq://", "names no host"),
        ("msmq://host", "names no queue"),
        ("msmq://host/", "names no queue"),
        ("msmq://host/;poison", "names no queue"),
        ("msmq://host:0/q", "names no host"),
        ("msmq://bob:secret@host/q", "not for the command line"),
    ],
)
def test_what_is_none(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_source(text)
    assert caught.value.where == "--source"
    assert "secret" not in str(caught.value)
