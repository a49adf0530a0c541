"""Bodies that stay outside Kafka: whole, once, and on the disk before a record points to them."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from bridge.adapters import claims as module
from bridge.adapters.claims import ClaimStore
from bridge.core.chunks import claim, redeem
from bridge.core.ports import Claim, Record
from bridge.model.errors import ConfigError, SinkUnavailable

BODY = bytes(range(256)) * 1000


def claim_of(data: bytes = BODY, store: str = "") -> Claim:
    return claim(Record("t", data), store)[1]


def store(where: ClaimStore, *claims: Claim) -> None:
    asyncio.run(where.store(claims))


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A folder that nobody may write to, whoever runs the tests: there is a file in its place."""
    folder = tmp_path / "locked"
    folder.write_text("a file")
    return folder


# -- folders --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", "bodies", "a/b", "../beside"])
def test_a_folder_counts_from_the_data_folder(tmp_path: Path, where: str) -> None:
    data = tmp_path / "data"
    one = claim_of(store=where)
    store(ClaimStore(data), one)
    folder = data / (where or "claims")
    digest = sha256(BODY).hexdigest()
    assert files(folder) == {f"{digest[:2]}/{digest[2:4]}/{digest}": BODY}


def test_an_absolute_folder_stays_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    store(ClaimStore(tmp_path / "data"), claim_of(store=str(folder)))
    assert list(files(folder).values()) == [BODY]
    assert not (tmp_path / "data").exists()


def test_who_follows_the_headers_finds_the_value(tmp_path: Path) -> None:
    record = Record("t", BODY, headers={"msmq.id": b"1"})
    small, one = claim(record)
    store(ClaimStore(tmp_path), one)
    path = tmp_path / "claims" / small.headers["msmq.claim.path"].decode()
    assert redeem(small, path.read_bytes()) == record


def test_several_at_once_and_the_same_twice(tmp_path: Path) -> None:
    one, other, empty = claim_of(), claim_of(b"other"), claim_of(b"")
    where = ClaimStore(tmp_path)
    store(where, one, other, one, empty)
    store(where, one)
    found = files(tmp_path / "claims")
    assert sorted(found.values()) == sorted([BODY, b"other", b""])


def test_a_repeated_write_changes_nothing(tmp_path: Path) -> None:
    where, one = ClaimStore(tmp_path), claim_of()
    store(where, one)
    path = tmp_path / "claims" / one.name
    before = path.stat()
    store(where, one)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_half_a_body_is_written_again(tmp_path: Path) -> None:
    """Nobody but us writes there, but a disk that was full may have left something."""
    where, one = ClaimStore(tmp_path), claim_of()
    path = tmp_path / "claims" / one.name
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY[:100])
    store(where, one)
    assert path.read_bytes() == BODY


def test_a_reader_never_sees_half_a_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It appears under its name by a rename, when it is whole and on the disk."""
    one = claim_of()
    path = tmp_path / "claims" / one.name
    told: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def on_fsync(handle: int) -> None:
        told.append("file" if os.fstat(handle).st_size == len(BODY) else "folder")
        fsync(handle)

    def on_replace(self: Path, target: Path) -> Path:
        assert not path.exists()
        assert self.read_bytes() == BODY
        told.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", on_fsync)
    monkeypatch.setattr(Path, "replace", on_replace)
    store(ClaimStore(tmp_path), one)
    assert told[:2] == ["file", "rename"]
    assert set(told[2:]) == {"folder"}  # the names are on the disk too
    assert len(told[2:]) == 3
    assert list(files(tmp_path)) == [f"claims/{one.name}"]  # and nothing else is left


def test_a_crash_before_the_rename_leaves_no_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, where = claim_of(), ClaimStore(tmp_path)

    def fail(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(SinkUnavailable, match="No space left"):
            store(where, one)
    assert not (tmp_path / "claims" / one.name).exists()
    store(where, one)  # later there is room
    assert (tmp_path / "claims" / one.name).read_bytes() == BODY


def test_shards_that_store_the_same_body_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a thread of its own; none may see, rename or cut what the other is writing."""
    together = threading.Barrier(2)
    fsync = os.fsync
    first = threading.local()

    def on_fsync(handle: int) -> None:
        if not hasattr(first, "done"):  # both have written, neither has renamed
            first.done = True
            together.wait(10)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", on_fsync)
    one, where = claim_of(), ClaimStore(tmp_path)

    async def both() -> None:
        await asyncio.gather(where.store([one]), where.store([one]))

    asyncio.run(both())
    assert files(tmp_path / "claims") == {one.name: BODY}


def test_a_folder_that_cannot_be_written_to_means_later(locked: Path) -> None:
    where = ClaimStore(locked.parent)
    with pytest.raises(SinkUnavailable, match=r"claim check: .*locked") as caught:
        store(where, claim_of(store="locked"))
    assert len(str(caught.value).splitlines()) == 1
    assert isinstance(caught.value.__cause__, OSError)
    locked.unlink()
    store(where, claim_of(store="locked"))
    assert list(files(locked).values()) == [BODY]


# -- at the start ---------------------------------------------------------------------------


def test_the_folders_are_made_at_the_start(tmp_path: Path) -> None:
    ClaimStore(tmp_path / "data").check(["", "bodies", "", str(tmp_path / "x/y")])
    for folder in ("data/claims", "data/bodies", "x/y"):
        assert (tmp_path / folder).is_dir()
    assert files(tmp_path) == {}


def test_nothing_is_made_that_nobody_needs(tmp_path: Path) -> None:
    ClaimStore(tmp_path / "data").check([])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_folder_that_cannot_be_is_refused_at_the_start(locked: Path, below: str) -> None:
    with pytest.raises(ConfigError, match="cannot be made") as caught:
        ClaimStore(locked.parent).check([f"locked{below}"])
    assert caught.value.where == "claims"
    assert caught.value.mend
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_of_somebody_else_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(ConfigError, match="cannot be written to") as caught:
        ClaimStore(tmp_path).check([""])
    assert caught.value.where == "claims"


# -- an object store ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The environment that the AWS client looks into, and a client of our own."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    module._client.cache_clear()
    client = boto3.client("s3")
    client.create_bucket(Bucket="bodies")
    yield client
    for found in client.list_objects_v2(Bucket="bodies").get("Contents", []):
        client.delete_object(Bucket="bodies", Key=found["Key"])
    client.delete_bucket(Bucket="bodies")
    client.close()
    module._client.cache_clear()


def objects(client: Any) -> dict[str, bytes]:
    found = client.list_objects_v2(Bucket="bodies").get("Contents", [])
    return {
        one["Key"]: client.get_object(Bucket="bodies", Key=one["Key"])["Body"].read()
        for one in found
    }


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("s3://bodies", ""),
        ("s3://bodies/", ""),
        ("s3://bodies/msmq", "msmq/"),
        ("s3://bodies/msmq/eu/", "msmq/eu/"),
    ],
)
def test_an_object_by_its_content(aws: Any, tmp_path: Path, url: str, prefix: str) -> None:
    one, where = claim_of(store=url), ClaimStore(tmp_path)
    where.check([url])
    store(where, one, claim_of(b"other", url))
    store(where, one)
    other = claim_of(b"other").name
    assert objects(aws) == {f"{prefix}{one.name}": BODY, f"{prefix}{other}": b"other"}
    assert list(tmp_path.iterdir()) == []  # nothing on the disk


def test_a_bucket_that_is_missing_means_later(aws: Any, tmp_path: Path) -> None:
    where = ClaimStore(tmp_path)
    one = claim_of(store="s3://missing/x")
    with pytest.raises(SinkUnavailable, match=r"claim check: s3://missing/x: .*NoSuchBucket"):
        store(where, one)
    aws.create_bucket(Bucket="missing")
    store(where, one)
    aws.delete_object(Bucket="missing", Key=f"x/{one.name}")
    aws.delete_bucket(Bucket="missing")


def test_an_object_store_that_is_away_means_later(
    aws: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    module._client.cache_clear()
    with pytest.raises(SinkUnavailable, match="claim check: s3://bodies: "):
        store(ClaimStore(tmp_path), claim_of(store="s3://bodies"))


def test_what_came_before_the_failure_is_stored(aws: Any, tmp_path: Path) -> None:
    """All are tried again then, which changes nothing."""
    several = claim_of(store="s3://bodies"), claim_of(b"x", "s3://missing")
    with pytest.raises(SinkUnavailable):
        store(ClaimStore(tmp_path), *several)
    assert objects(aws) == {several[0].name: BODY}


def test_without_boto3_it_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    module._client.cache_clear()
    with pytest.raises(ConfigError, match="needs the package boto3") as caught:
        ClaimStore(tmp_path).check(["s3://bodies"])
    assert "pip install msmq-bridge[s3]" in caught.value.mend


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_ENDPOINT_URL", "nonsense"), ("AWS_PROFILE", "nobody")]
)
def test_a_client_that_cannot_be_made_is_one_line_at_the_start(
    aws: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    module._client.cache_clear()
    with pytest.raises(ConfigError) as caught:
        ClaimStore(tmp_path).check(["s3://bodies"])
    assert caught.value.where == "claims"
    assert value in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# -- who may read them ------------------------------------------------------------------------


@pytest.fixture
def _generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in (folder, *folder.rglob("*"))}


@pytest.mark.usefixtures("_generous")
def test_they_are_for_our_user_only(tmp_path: Path) -> None:
    where = ClaimStore(tmp_path / "data")
    where.check([""])
    store(where, claim_of())
    assert modes(tmp_path / "data") == {"0o700", "0o600"}


@pytest.mark.usefixtures("_generous")
@pytest.mark.parametrize(
    ("mode", "found"), [(0o755, {"0o755", "0o750", "0o640"}), (0o700, {"0o700", "0o600"})]
)
def test_a_folder_of_the_operator_s_is_shared_with_its_group(
    tmp_path: Path, mode: int, found: set[str]
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=mode)
    where = ClaimStore(tmp_path / "data")
    where.check([str(shared)])
    store(where, claim_of(store=str(shared)))
    assert modes(shared) == found
