"""The Spark session of a job: on a cluster the one that spark-submit made, else `local[*]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION, connector_jars
from bridge.model.errors import BridgeError

LOCAL: Final = "local[*,4]"  # all cores; a task whose Python worker dies is tried again
MEMORY: Final = "1g"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


class SparkFailed(BridgeError):
    """There is no Spark to work with."""


def open_session(
    name: str, master: str = "", connector: str = CONNECTOR_VERSION, **settings: str
) -> SparkSession:
    """`settings` are Spark's, with `_` for dots. Given nothing, and not under spark-submit, it is
    a session of this process alone: no page, no port that others could reach."""
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
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
    except (PySparkException, RuntimeError, OSError) as error:
        raise SparkFailed(f"Spark does not start: {error}") from error
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
