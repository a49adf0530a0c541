"""The Spark session of a job: on a cluster the one that spark-submit made, else `local[*]`."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGINT, signal
from typing import Final, NoReturn

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION, connector_jars
from bridge.model.errors import BridgeError, ConfigError
from msmq_jobs.sources.exports import reason_of

LOCAL: Final = "local[*,4]"  # all cores; a task whose Python worker dies is tried again
MEMORY: Final = "1g"
_MASTER: Final = re.compile(
    r"local(\[(\*|\d+)(, *\d+)?\])?|yarn|(spark|k8s)://.+|local-cluster\[.+\]"
)
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


class SparkFailed(BridgeError):
    """There is no Spark to work with."""


@contextmanager
def session(name: str, master: str = "") -> Iterator[SparkSession]:
    """Stopped however it ends. Ctrl-C and the end of Java are told as what they are."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j)
    spark = open_session(name, master)
    stopped: list[bool] = []

    def stop(*_: object) -> NoReturn:
        stopped.append(True)
        raise KeyboardInterrupt

    signal(SIGINT, stop)  # PySpark's own would speak to Java, in the middle of a call to it
    try:
        yield spark
    except Exception as error:
        if stopped:  # what fails then fails for that
            raise KeyboardInterrupt from None
        is_lost = isinstance(error, (Py4JError, ConnectionError, EOFError))
        if not is_lost or isinstance(error, Py4JJavaError) or _is_alive(spark):
            raise
        what = "Spark's Java process has ended"
        mend = "run it again; if memory ran out, with more (MSMQ_BRIDGE_SPARK_MEMORY)"
        raise SparkFailed(f"{what}; {mend}") from error
    finally:
        with suppress(Py4JError, OSError, EOFError):
            spark.stop()


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """It logs what it raises, with a traceback, partly as nobody in particular."""
    return record.module not in ("java_gateway", "clientserver")


def _is_alive(spark: SparkSession) -> bool:
    try:
        spark.sparkContext._jvm.System.nanoTime()  # type: ignore[union-attr]
    except (Py4JError, OSError, EOFError):
        return False
    return True


def open_session(
    name: str, master: str = "", connector: str = CONNECTOR_VERSION, **settings: str
) -> SparkSession:
    """`settings` are Spark's, with `_` for dots. Given nothing, and not under spark-submit, it is
    a session of this process alone: no page, no port that others could reach."""
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    if master and not _MASTER.fullmatch(master):
        mend = "local[*], local[2], spark://host:7077, k8s://https://host:6443 or yarn"
        raise ConfigError(f"{master!r} is no master of Spark", where="--master", mend=mend)
    builder = SparkSession.Builder().appName(name)
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if not submitted:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need our packages
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        find_java()
        builder = builder.master(master or LOCAL)
        for key, value in _local(connector).items():
            builder = builder.config(key, value)
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        mend = "; look at --master" if master else ""
        raise SparkFailed(f"Spark does not start: {reason_of(error)}{mend}") from error
    if submitted:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def require_connector(spark: SparkSession) -> None:
    """On a cluster the connector is the user's to bring."""
    try:
        spark.sparkContext._jvm.java.lang.Class.forName(  # type: ignore[union-attr]
            _CONNECTOR_CLASS,
            False,
            spark.sparkContext._jvm.Thread.currentThread().getContextClassLoader(),  # type: ignore[union-attr]
        )
    except Exception as error:  # py4j's own, and whatever it wraps
        packages = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR_VERSION}"
        raise SparkFailed(
            f"Spark has no Kafka connector; add --packages {packages} to spark-submit"
        ) from error


def _local(connector: str) -> dict[str, str]:
    return {
        "spark.jars": ",".join(map(str, connector_jars(connector))),
        "spark.driver.memory": os.environ.get("MSMQ_BRIDGE_SPARK_MEMORY", MEMORY),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.adaptive.enabled": "true",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    }
