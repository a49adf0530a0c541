"""One Spark for all tests of this package that need one."""

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from msmq_jobs.session import open_session

# PySpark leaves the sockets of `collect` to the garbage collector.
_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(_SOCKETS)


@pytest.fixture(scope="session")
def _session() -> Iterator[SparkSession]:
    session = open_session(
        "tests", "local[1]", spark_sql_shuffle_partitions="2", spark_driver_memory="512m"
    )
    yield session
    session.stop()


@pytest.fixture
def spark(_session: SparkSession) -> Iterator[SparkSession]:
    yield _session
    gc.collect()  # here, and not in a test of others
