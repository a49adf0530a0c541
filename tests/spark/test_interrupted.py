"""A job that is stopped by hand, or whose Java is gone: what a person sees then."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from tests.support.waiting import eventually

JOB = """
import sys, time
from bridge.cli import app, backfill
from msmq_jobs.session import session

def run(order, master):
    with session("interrupted", "local[2]") as spark:
        spark.sparkContext.parallelize(range(2), 2).map(lambda _: time.sleep(600)).collect()

backfill._run = run
sys.exit(app.main(["backfill", "--source", "x"]))
"""


def started() -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """With a process for each of its two tasks."""
    job = subprocess.Popen(
        [sys.executable, "-c", JOB],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"MSMQ_BRIDGE_SPARK_MEMORY": "512m"},
    )

    def working() -> list[psutil.Process]:
        assert job.poll() is None, job.communicate()[1]
        children = psutil.Process(job.pid).children(recursive=True)
        return children if sum(map(_is_python, children)) == 3 else []  # a parent of two

    return job, eventually(working, 300.0)


def _is_python(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "pyspark.daemon" in " ".join(process.cmdline())
    return False


@pytest.mark.parametrize("how", ["Ctrl-C", "Java killed"])
def test_it_ends_with_a_line_at_most_and_leaves_nothing(how: str) -> None:
    job, children = started()
    if how == "Ctrl-C":
        os.killpg(job.pid, signal.SIGINT)  # a terminal tells all of them
    else:
        next(child for child in children if child.name() == "java").kill()
    _, told = job.communicate(timeout=300)
    lines = [line for line in told.splitlines() if "incubator" not in line]  # Java's own
    if how == "Ctrl-C":
        assert (job.returncode, lines) == (130, [])
    else:
        (line,) = lines
        assert job.returncode == 1
        assert line.startswith("msmq-bridge: error: Spark's Java process has ended; run it again")
    _, alive = psutil.wait_procs(children, timeout=300)
    assert not alive
