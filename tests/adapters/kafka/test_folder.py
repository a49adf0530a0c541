import os
from pathlib import Path

import pytest

from bridge.adapters.kafka.folder import BrokerFolder, BrokerState, Lock, new_cluster_id
from bridge.model.errors import BrokerFailed

STATE = BrokerState(
    pid=4711, bootstrap_servers="127.0.0.1:9092", cluster_id="CgzBtUEETXSrlTMVFOCuaQ", detached=True
)


def test_a_lock_is_held_once_and_let_go(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert not first.is_taken()
    assert first.try_acquire()
    assert not second.acquire(timeout_s=0)
    assert second.is_taken()
    first.close()
    with second:
        assert second.acquire(timeout_s=0)
    assert not first.is_taken()


def test_the_lock_says_whether_and_the_file_says_who(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    assert folder.running() is None
    folder.write_state(STATE)
    assert folder.running() is None  # left behind by a broker that was killed
    with folder.broker_lock() as lock:
        assert lock.try_acquire()
        assert folder.running() == STATE
        folder.forget_state()
        assert folder.running() is None


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    (tmp_path / "broker.json").write_text("{")
    with folder.broker_lock() as lock:
        assert lock.try_acquire()
        with pytest.raises(BrokerFailed, match=r"broker\.json is damaged"):
            folder.running()


def test_a_state_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    (tmp_path / "broker.lock").mkdir()
    with pytest.raises(BrokerFailed, match=r"^cannot read .*broker\.lock \(Is a directory\)"):
        folder.running()


def test_the_cluster_id_is_that_of_the_storage(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    assert folder.cluster_id() is None
    fresh = folder.fresh_data()
    fresh.mkdir()
    (fresh / "meta.properties").write_text("#\nnode.id=1\ncluster.id=CgzBtUEETXSrlTMVFOCuaQ\n")
    assert folder.cluster_id() is None
    folder.adopt(fresh)
    assert folder.cluster_id() == "CgzBtUEETXSrlTMVFOCuaQ"


def test_the_log_of_the_last_run_is_kept(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    folder.log.write_text("what happened")
    folder.output.write_text("what was printed")
    folder.clear_logs()
    assert not folder.log.exists()
    assert folder.output.read_text() == ""
    assert (tmp_path / "kafka.log.old").read_text() == "what happened"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerFailed, match=r"^cannot use .*file/data .*Not a directory"):
        BrokerFolder(tmp_path / "file" / "data").create()


def test_a_cluster_id_is_22_characters_and_no_option() -> None:
    ids = [new_cluster_id() for _ in range(500)]
    assert {len(text) for text in ids} == {22}
    assert not any(text.startswith("-") for text in ids)


def test_its_files_are_for_our_user_only(tmp_path: Path) -> None:
    """Also those that an earlier version made readable; the folder of the operator stays."""
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        folder = BrokerFolder(tmp_path)
        folder.data.mkdir()
        folder.output.write_bytes(b"")
        folder.create()
        folder.clear_logs()
        folder.write_properties({"a": "b"}, folder.data)
        folder.write_state(STATE)
        with folder.owner_lock() as lock:
            assert lock.try_acquire()
        BrokerFolder(tmp_path / "new").create()
    finally:
        os.umask(before)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    assert {modes.pop(name) for name in ("logs", "new")} == {"0o700"}
    assert set(modes.values()) == {"0o600"}
    assert len(modes) == 5
    assert tmp_path.stat().st_mode & 0o777 == 0o755
