"""Delta and Iceberg for Spark 4.0, as a user's cluster has them: their jars, once, in the cache."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyspark

from bridge.adapters.kafka.jars import Bundle, cache_root, filled
from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.pins import read_pins
from bridge.adapters.kafka.spark_jars import connector_jars
from tests.docs.runner import ROOT

PATIENCE_S = 600
PINS = Path(__file__).with_name("lakes.sha256")
MODULE = """\
<ivy-module version="2.0">
  <info organisation="msmq-bridge" module="lake"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{}" name="{}" rev="{}" conf="default->default"/>
    <exclude org="org.apache.spark"/>
    <exclude org="org.scala-lang"/>
    <exclude org="org.antlr"/>
  </dependencies>
</ivy-module>
"""


class Lake(NamedTuple):
    """A format, what brings it, and how Spark has to be started for it."""

    package: str  # as in --packages
    settings: dict[str, str]
    mark: str  # what only such a table has in its folder

    def jars(self) -> list[Path]:
        org, name, version = self.package.split(":")
        module = MODULE.format(org, name, version)
        cached = cache_root() / f"{name}-{version}"
        pins = read_pins(cached.name, PINS)
        bundle = Bundle(f"{name} {version} (once)", module, (f"{name}-*.jar",), pins, "network")
        return sorted(filled(cached, bundle).glob("*.jar"))


LAKES = {
    "delta": Lake(
        "io.delta:delta-spark_2.13:4.0.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
        "_delta_log",
    ),
    "iceberg": Lake("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1", {}, "metadata"),
}


def submit(
    jars: list[Path], settings: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """spark-submit with these jars and settings."""
    find_java()
    line = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    line += ["--jars", ",".join(map(str, [*connector_jars(), *jars]))]
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    usual = {**loopback, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    for name, value in {**usual, **settings}.items():
        line += ["--conf", f"{name}={value}"]
    return subprocess.run(
        [*line, str(ROOT / "spark" / "reconcile.py"), *options],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
