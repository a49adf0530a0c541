"""A session of this process alone, with the connector and our Python in its workers."""

import sys

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.java import find_java
from bridge.model.errors import ConfigError
from msmq_jobs import session
from msmq_jobs.session import SparkFailed, require_connector


def test_what_a_user_gets(spark: SparkSession) -> None:
    assert spark.version.startswith("4.")
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_the_workers_have_our_packages(spark: SparkSession) -> None:
    def found(_: int) -> str:
        import msmq_jobs

        return f"{sys.executable} {msmq_jobs.__name__}"

    (line,) = spark.sparkContext.parallelize([1], 1).map(found).collect()
    assert line == f"{sys.executable} msmq_jobs"


def test_the_connector_is_there(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    require_connector(spark)
    monkeypatch.setattr(session, "_CONNECTOR_CLASS", "org.example.Nothing")
    with pytest.raises(SparkFailed, match=r"--packages org.apache.spark:spark-sql-kafka"):
        require_connector(spark)


@pytest.mark.parametrize(
    "master", ["nonsense", "local[", "local[x]", "spark:/x", "spark[3]", "http://x"]
)
def test_a_master_that_is_none(master: str) -> None:
    with pytest.raises(ConfigError, match=r"--master: .* is no master of Spark; local"):
        session.open_session("x", master)


def test_java_is_looked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    with pytest.raises(Exception, match="JAVA_HOME"):
        find_java()
