"""spark-submit on one machine, as on a cluster: our code comes from the zip and nowhere else."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.spark_jars import connector_jars
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from tests.docs.runner import ROOT
from tests.spark.letters import ORDERS, letter, write_lines
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, read_topic, unique

PATIENCE_S = 600
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
}


def bare_python(folder: Path) -> Path:
    """An environment with the packages that ours has, but not ours: a `.pth` in a folder that
    another `.pth` names is not read."""
    venv.create(folder, with_pip=False, symlinks=True)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / name / "site-packages" / "packages.pth"
    packages.write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return folder / "bin" / "python"


def run(line: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line,
        cwd="/",  # nothing of ours is importable from there
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def submit(python: Path, packages: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    line = [str(program), "--master", "local[2]", "--py-files", str(packages)]
    line += ["--jars", ",".join(map(str, connector_jars()))]
    for name, value in LOOPBACK.items():
        line += ["--conf", f"{name}={value}"]
    find_java()
    return run(
        [*line, str(packages.with_name("backfill.py")), *options],
        PYSPARK_PYTHON=str(python),
        SPARK_LOCAL_IP="127.0.0.1",
    )


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(2 * PATIENCE_S)
def test_the_zip_is_all_that_a_cluster_needs(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    built = run([str(uv), "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)])
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    # As `make spark-wheel` does it. Spark gives its Python workers .zip files, and no .whl.
    packages = Path(shutil.copy(wheel, tmp_path / "msmq_bridge.zip"))
    shutil.copy(ROOT / "spark" / "backfill.py", tmp_path)  # away from the packages beside it
    python = bare_python(tmp_path / "bare")
    assert "No module named 'bridge'" in run([str(python), "-c", "import bridge"]).stderr

    prefix = unique("submit")
    config = write_config(tmp_path / "config", kafka.bootstrap_servers, topic_prefix=prefix)
    orders = create_topic(kafka.bootstrap_servers, topic(prefix, "orders"), 2)
    ensure_topics({"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(prefix), 1, [])
    letters = [letter(n, ORDERS) for n in range(1, 21)]
    source = write_lines(tmp_path / "in.jsonl", letters, rest=b"half a line")
    options = ("--config", str(config), "--source", str(source), "--out", str(tmp_path / "out"))
    done = submit(python, packages, *options, "-o", "json")
    assert done.returncode == 2, done.stderr  # half a line: the exit code comes through
    told = json.loads(done.stdout[done.stdout.index("{") :])  # Spark puts our stderr in front
    assert (told["written"], told["skipped"]) == (20, {"unreadable": 1})
    found = read_topic(kafka.bootstrap_servers, orders)
    assert [message.value() for message in found] == [data.body for data in letters]


def cluster_lines() -> list[list[str]]:
    """The lines of the README that start with spark-submit, as a shell takes them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("spark-submit ")]


def test_the_lines_of_the_readme_can_be_typed() -> None:
    """For YARN and for Kubernetes: Spark takes the options, our files are where they say."""
    lines = cluster_lines()
    assert [line[line.index("--master") + 1].split(":")[0] for line in lines] == ["yarn", "k8s"]
    usage = run([str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--help"]).stderr
    for line in lines:
        at = next(n for n, word in enumerate(line) if word.endswith("backfill.py"))
        for option in (word for word in line[:at] if word.startswith("--")):
            assert re.search(rf"^ +{option}[ ,]", usage, re.MULTILINE), option
        (packages,) = (Path(word).name for word in line if word.endswith(".zip"))
        assert packages == f"msmq_bridge-{version('msmq-bridge')}.zip"
        assert (ROOT / "spark" / Path(line[at]).name).is_file()
        ours = run([sys.executable, "-m", "bridge.cli.app", "backfill", *line[at + 1 :], "--help"])
        assert ours.returncode == 0, ours.stderr
