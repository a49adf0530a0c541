"""Gets the jars of Spark's own Kafka connector: once, beside Kafka's.

The rest of its dependencies is in every Spark already. `SPARK_KAFKA_JARS`, a folder that has them,
wins (air-gapped users, other versions) and is not checked; what is fetched has the SHA-256 of
`jars.sha256`.
"""

import os
import sys
from pathlib import Path
from typing import Final

from bridge.adapters.kafka.jars import Bundle, cache_root, filled, is_complete
from bridge.adapters.kafka.pins import read_pins
from bridge.model.errors import BrokerFailed

CONNECTOR_VERSION: Final = "4.0.0"  # the only complete one of Spark 4.0; works with 4.0.x
FOLDER_VARIABLE: Final = "SPARK_KAFKA_JARS"
_MODULE: Final = """\
<ivy-module version="2.0">
  <info organisation="msmq-bridge" module="spark-kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="{}"
                conf="default->default"/>
    <exclude org="org.apache.hadoop"/>
    <exclude org="org.scala-lang"/>
    <exclude org="org.scala-lang.modules"/>
    <exclude org="org.slf4j"/>
    <exclude org="com.google.code.findbugs"/>
  </dependencies>
</ivy-module>
"""
_NEEDED: Final = (
    "spark-sql-kafka-0-10_2.13-*.jar",
    "spark-token-provider-kafka-0-10_2.13-*.jar",
    "kafka-clients-*.jar",
    "commons-pool2-*.jar",
)
_MEND: Final = f"check the network, or set {FOLDER_VARIABLE} to a folder with its jars"


def connector_jars(version: str = CONNECTOR_VERSION) -> list[Path]:
    """For `spark.jars`, fetched first if need be. Raises BrokerFailed."""
    title = f"Spark's Kafka connector {version} (13 MB, once)"
    cached = cache_root() / f"spark-kafka-{version}"
    bundle = Bundle(title, _MODULE.format(version), _NEEDED, read_pins(cached.name), _MEND)
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return _jars_in(Path(given), bundle)
    if not bundle.pins:
        what = f"Spark's Kafka connector {version} has no known hashes and is not fetched"
        raise BrokerFailed(f"{what}; set {FOLDER_VARIABLE} to a folder with its jars")
    try:
        return sorted(filled(cached, bundle).glob("*.jar"))
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise BrokerFailed(f"cannot keep jars in {cached} ({reason}); {_MEND}") from error


def _jars_in(folder: Path, bundle: Bundle) -> list[Path]:
    if not is_complete(folder, bundle):
        missing = [name for name in bundle.needed if not any(folder.glob(name))]
        what = f"{FOLDER_VARIABLE} is {folder}, which has no {missing[0]}"
        raise BrokerFailed(f"{what}; point it at the connector's jars, or unset it")
    return sorted(folder.glob("*.jar"))


def main() -> int:
    """`python -m bridge.adapters.kafka.spark_jars` fills the cache ahead of time."""
    try:
        sys.stdout.write(f"{connector_jars()[0].parent}\n")
    except BrokerFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
