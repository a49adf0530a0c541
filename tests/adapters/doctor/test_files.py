"""Configuration, mappings, secrets, the data folder; read and never written."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from bridge.adapters.doctor import files
from bridge.adapters.doctor.finding import Result
from bridge.adapters.doctor.visit import Visit
from bridge.model.errors import ConfigError
from tests.adapters.doctor.fake_cluster import FakeCluster, bad, found, one, visit_to

Usage = namedtuple("Usage", "total used free")


def test_the_configuration_is_loaded_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("shards: 3\n")
    visit = Visit(path)
    assert one(files.configuration, visit).result is Result.OK
    assert visit.config.shards == 3
    path.write_text("shard: 3\n")
    with pytest.raises(ConfigError, match=r"bridge\.yaml:1:1"):
        found(files.configuration, Visit(path))
    assert "defaults" in one(files.configuration, Visit(None)).found


def test_mappings(tmp_path: Path) -> None:
    visit = visit_to(FakeCluster(), tmp_path)
    assert one(files.mappings, visit).found.startswith("1 queue in ")
    (tmp_path / "mappings.yaml").write_text("queues: []\n")
    finding = bad(files.mappings, visit)
    assert (finding.result, visit.mappings.queues) == (Result.WARN, ())


def token(tmp_path: Path, mode: int, text: str = "secret") -> Visit:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    return visit_to(FakeCluster(), tmp_path, admin={"token_file": "token"})


@pytest.mark.parametrize(
    ("mode", "result"),
    [(0o600, Result.OK), (0o640, Result.OK), (0o644, Result.WARN), (0o602, Result.FAIL)],
)
def test_who_may_read_a_secret(tmp_path: Path, mode: int, result: Result) -> None:
    finding = one(files.secrets, token(tmp_path, mode), "admin.token_file")
    assert finding.result is result
    assert finding.mend == ("" if result is Result.OK else f"chmod 600 {tmp_path / 'token'}")


def test_a_secret_that_is_not_there(tmp_path: Path) -> None:
    assert "empty" in bad(files.secrets, token(tmp_path, 0o600, "")).found
    for setting in ({"admin": {"token_file": "no"}}, {"rpc": {"users": "no"}}):
        finding = bad(files.secrets, visit_to(FakeCluster(), tmp_path, **setting))
        assert finding.result is Result.FAIL
        assert "No such file" in finding.found


def test_secrets_of_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = {"bootstrap.servers": "b:1", "sasl.password": {"env": "DOCTOR_TEST"}}
    visit = visit_to(FakeCluster(), tmp_path, kafka=kafka)
    monkeypatch.delenv("DOCTOR_TEST", raising=False)
    assert bad(files.secrets, visit).about == "kafka.sasl.password"
    monkeypatch.setenv("DOCTOR_TEST", "hidden")
    findings = found(files.secrets, visit)
    assert {finding.result for finding in findings} == {Result.OK}
    assert "hidden" not in str(findings)
    kafka["sasl.password"] = {"file": "gone"}
    assert bad(files.secrets, visit_to(FakeCluster(), tmp_path, kafka=kafka)).result is Result.FAIL


def test_a_secret_in_a_file_that_everybody_reads(tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": "b:1", "sasl.password": "hidden"}
    visit = visit_to(FakeCluster(), tmp_path, kafka=kafka)
    assert visit.path is not None
    visit.path.chmod(0o644)
    finding = bad(files.secrets, visit)
    assert (finding.result, finding.about) == (Result.WARN, "kafka.sasl.password")
    assert "hidden" not in str(finding)
    visit.path.chmod(0o600)
    assert one(files.secrets, visit).result is Result.OK


def test_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visit = visit_to(FakeCluster(), tmp_path, data="deep/data")
    for free, result in ((5 << 30, Result.OK), (500 << 20, Result.WARN), (1 << 20, Result.FAIL)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Usage(0, 0, free))
        finding = one(files.data_folder, visit)
        assert finding.result is result
        assert "will be made" in finding.found
    assert not (tmp_path / "deep").exists()  # asked, not tried
    in_a_file = visit_to(FakeCluster(), tmp_path, data="bridge.yaml/data")
    assert "is no folder" in bad(files.data_folder, in_a_file).found


def test_a_data_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    finding = bad(files.data_folder, visit_to(FakeCluster(), tmp_path))
    assert finding.result is Result.FAIL
    assert f"may not write to {tmp_path}" in finding.found
