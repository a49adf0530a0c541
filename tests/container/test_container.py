"""The images, as far as they can be tried without an engine."""

import json
import re
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bridge.adapters.config_files import load_config, load_mappings
from tests.container.recipe import last, lineage, read_recipe
from tests.container.replay import CONTAINERFILE, FOLDER, NEEDS_ROOT, ROOT, Replay
from tests.docs.test_help import parsed
from tests.helm.chart import load_yaml

pytestmark = pytest.mark.timeout(600)  # registries and caches may be slow
STAGES = read_recipe(CONTAINERFILE)
IMAGES = ("bridge", "spark")
COMPOSE: dict[str, Any] = load_yaml((FOLDER / "compose.yaml").read_text(encoding="utf-8"))


def test_hadolint() -> None:
    tool = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([tool, "--no-color", CONTAINERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


# -- what the file says -------------------------------------------------------------------------


def test_the_appliance_is_what_is_built_when_nobody_names_a_target() -> None:
    assert list(STAGES)[-1] == "bridge"
    assert "openjdk" not in str([s.steps for s in lineage(STAGES, "bridge")])  # no Java in it
    assert "openjdk" in str(STAGES["spark"].steps)


@pytest.mark.parametrize("image", IMAGES)
def test_nobody_is_root(image: str) -> None:
    assert last(STAGES, image, "USER").rest == "10001:10001"


@pytest.mark.parametrize("image", IMAGES)
def test_ports_that_a_user_may_bind(image: str) -> None:
    ports = last(STAGES, image, "EXPOSE").words()
    assert all(int(port.partition("/")[0]) >= 1024 for port in ports)
    assert {"1801/tcp", "9180/tcp"} < set(ports)


def test_every_base_image_has_a_tag() -> None:
    for stage in STAGES.values():
        if stage.parent not in STAGES:
            assert re.fullmatch(r"[\w./-]+:(?!latest)[\w.-]+", stage.parent)


def test_labels() -> None:
    [label] = STAGES["base"].all("LABEL")
    names = {name.removeprefix("org.opencontainers.image.") for name in label.pairs()}
    assert names == {"title", "description", "licenses", "version", "revision"}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'(?m)^version = "(.+)"$', project)
    assert version is not None
    [argument] = [s for s in STAGES["base"].all("ARG") if s.rest.startswith("VERSION=")]
    assert argument.rest == f"VERSION={version[1]}"
    assert label.pairs()["org.opencontainers.image.version"] == "${VERSION}"


@pytest.mark.parametrize("image", IMAGES)
def test_the_entry_point_and_its_arguments(image: str) -> None:
    assert last(STAGES, image, "ENTRYPOINT").array() == ["msmq-bridge"]
    assert parsed(last(STAGES, image, "CMD").array()) == ("serve",)
    assert last(STAGES, image, "STOPSIGNAL").rest == "SIGTERM"  # what serve drains at


class Answer(BaseHTTPRequestHandler):
    code = 200

    def do_GET(self) -> None:
        self.send_response(self.code if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class NotReady(Answer):
    code = 503


@pytest.mark.parametrize(("handler", "code"), [(Answer, 0), (NotReady, 1)])
def test_the_health_check(handler: type[Answer], code: int) -> None:
    rest = last(STAGES, "bridge", "HEALTHCHECK").rest
    program, *arguments = json.loads(rest[rest.index("CMD ") + 4 :])
    assert program == "python"
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = str(server.server_address[1])
    try:
        words = [word.replace("9180", port) for word in arguments]
        done = subprocess.run([sys.executable, *words], capture_output=True, timeout=30)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.returncode == code


def test_the_builder_gets_what_is_copied_and_no_more() -> None:
    allowed = [
        line[1:]
        for line in (FOLDER / "Containerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = [
        source
        for stage in STAGES.values()
        for flags, words in (step.flags() for step in stage.all("COPY"))
        if "from" not in flags
        for source in words[:-1]
    ]
    assert all((ROOT / source).exists() for source in copied)
    for source in copied:
        assert source in allowed or Path(source).match("examples/container/*.lock")
    assert set(allowed) - set(copied) == {"examples/container/*.lock"}


# -- the locks ----------------------------------------------------------------------------------


def pins(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Name -> version and hashes."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)(.*)$", text)
    return {
        canonicalize_name(name): (version, frozenset(re.findall(r"sha256:(\w+)", rest)))
        for name, version, rest in found
    }


def closure(*roots: str) -> set[str]:
    """What a package needs here, by what is installed."""
    found: set[str] = set()
    todo = [Requirement(root) for root in roots]
    while todo:
        wanted = todo.pop()
        try:
            needs = distribution(wanted.name).requires or []
        except PackageNotFoundError:
            continue
        found.add(canonicalize_name(wanted.name))
        for need in map(Requirement, needs):
            extras = wanted.extras or {""}
            here = need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
            if here and canonicalize_name(need.name) not in found:
                todo.append(need)
    return found


def test_the_locks_are_parts_of_the_lock_file() -> None:
    whole = pins(ROOT / "requirements.lock")
    for name in ("bridge.lock", "spark.lock"):
        part = pins(FOLDER / name)
        assert part
        assert all(hashes for _, hashes in part.values())
        assert {n: v for n, v in part.items() if whole.get(n) != v} == {}, "run 'make lock'"


def test_together_they_are_all_that_the_program_needs() -> None:
    bridge, spark = pins(FOLDER / "bridge.lock").keys(), pins(FOLDER / "spark.lock").keys()
    needed = closure("msmq-bridge[s3,otel]") - {"msmq-bridge"}
    assert needed <= bridge | spark, "run 'make lock'"
    assert spark == {"pyspark", "py4j"}
    assert not bridge & {"pyspark", "py4j", "pytest", "mypy", "ruff", "hypothesis", "playwright"}


def test_the_builder_is_locked_too() -> None:
    assert {"hatchling", "uv"} < pins(FOLDER / "build.lock").keys()


# -- the build ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    replay = Replay(tmp_path_factory.mktemp("image"), lean=True)
    replay.build("bridge")
    return replay


def program(built: Replay, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = built.root / "opt/msmq-bridge/bin/msmq-bridge"
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=300, cwd="/")


def test_only_what_needs_root_was_not_run(built: Replay) -> None:
    assert [shlex.split(command)[0] for command in built.skipped] == [
        "groupadd",
        "useradd",
        "chown",
    ]
    assert set(NEEDS_ROOT) == {"apt-get", "groupadd", "useradd", "chown"}


def test_the_program_runs_from_its_image(built: Replay, tmp_path: Path) -> None:
    assert program(built, "--version").stdout == "msmq-bridge 0.1.0\n"
    done = program(built, "init", str(tmp_path / "new"))
    assert (done.returncode, done.stderr) == (0, "")
    inside = built.root / "opt/msmq-bridge"
    shebang = (inside / "bin/msmq-bridge").read_bytes().splitlines()[0].decode()
    assert shebang == f"#!{inside}/bin/python"  # not the one of the build stage, nor of this test


def test_it_has_no_spark_and_says_so(built: Replay, tmp_path: Path) -> None:
    packages = next((built.root / "opt/msmq-bridge/lib").glob("python3*")) / "site-packages"
    assert (packages / "bridge").is_dir()
    assert (packages / "confluent_kafka").is_dir()
    assert not (packages / "pyspark").exists()
    assert not (packages / "pytest").exists()
    source = tmp_path / "x.jsonl"
    source.write_text("")
    done = program(built, "backfill", "--source", str(source), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("msmq-bridge: error: ")
    assert "Spark is not here" in line


def test_the_folders_that_the_chart_and_compose_mount(built: Replay) -> None:
    for path in ("etc/msmq-bridge/config", "etc/msmq-bridge/mappings", "var/lib/msmq-bridge"):
        assert (built.root / path).is_dir()


# -- the try-out --------------------------------------------------------------------------------


def test_compose_runs_it_as_the_chart_does() -> None:
    bridge = COMPOSE["services"]["bridge"]
    assert bridge["read_only"] is True
    assert bridge["cap_drop"] == ["ALL"]
    assert bridge["security_opt"] == ["no-new-privileges:true"]
    assert bridge["build"]["target"] in STAGES
    assert (FOLDER / bridge["build"]["context"]).resolve() == ROOT
    assert (ROOT / bridge["build"]["dockerfile"]) == CONTAINERFILE
    admin = [port for port in bridge["ports"] if port.endswith(":9180")]
    assert admin == ["127.0.0.1:9180:9180"]  # not for the network
    mounts = dict(volume.split(":")[:2] for volume in bridge["volumes"])
    assert last(STAGES, "bridge", "CMD").array()[-1] == mounts["./bridge.yaml"]
    assert (FOLDER / "mappings").is_dir()


def test_its_configuration(tmp_path: Path) -> None:
    """As it lies in the container: beside the folder of the mappings."""
    config = load_config(FOLDER / "bridge.yaml")
    assert config.mappings == FOLDER / "../mappings"
    assert load_mappings(FOLDER / "mappings").queues
    bridge, kafka = COMPOSE["services"]["bridge"], COMPOSE["services"]["kafka"]
    inside = {int(port.rpartition(":")[2]) for port in bridge["ports"]}
    assert inside == {config.listen.binary, config.listen.srmp, config.listen.admin}
    advertised = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INSIDE://{config.kafka['bootstrap.servers']}" in advertised
    assert kafka["environment"]["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
