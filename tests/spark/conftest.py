"""One Spark for all tests of this package that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from msmq_jobs.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session(
        "tests", "local[1]", spark_sql_shuffle_partitions="2", spark_driver_memory="512m"
    )
    yield session
    session.stop()
