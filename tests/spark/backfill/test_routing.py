"""Rows through the mapping, in Spark's workers."""

from decimal import Decimal

from pyspark.sql import SparkSession

from msmq_jobs.backfill.prepare import decode_prepared
from msmq_jobs.backfill.routing import routed
from msmq_jobs.backfill.transforms import Asked, chosen
from msmq_jobs.rows import fault_values, values_of
from msmq_jobs.schemas import READ, ROUTED
from tests.spark.backfill.test_prepare import target
from tests.spark.letters import ORDERS, SENDER, SEQUENCE, letter


def test_what_goes_and_what_stays(spark: SparkSession) -> None:
    letters = [
        letter(1, ORDERS, lookup_id=2**63),
        letter(2, message_class=0x8002),
        letter(3, "private$\\nobody"),
        letter(4, label="a\ud800"),
    ]
    rows = [values_of(data, "x") for data in letters] + [fault_values("half a line", "x")]
    frame = routed(chosen(spark.createDataFrame(rows, READ), Asked(), 0), target())
    assert frame.schema == ROUTED
    found = {row["message_id"]: row for row in frame.collect()}
    goes = found[f"{SENDER}\\1"]
    assert (goes["queue"], goes["topic"], goes["reason"]) == (ORDERS, "orders", None)
    assert (goes["tx_sequence_id"], goes["tx_sequence_number"]) == (Decimal(SEQUENCE), 1)
    assert (goes["ordinal"], goes["lookup_id"], goes["held_in"]) == (1, Decimal(2**63), ORDERS)
    (record,) = decode_prepared(bytes(goes["unit"])).records
    assert record.value == b"body 1"
    assert found[f"{SENDER}\\2"]["reason"] == "expired"
    assert found[f"{SENDER}\\3"]["reason"] == "unknown-queue"
    (record,) = decode_prepared(bytes(found[f"{SENDER}\\4"]["unit"])).records
    assert record.headers["msmq.label"] == "a\ud800".encode("utf-8", "surrogatepass")
    assert (found[None]["reason"], found[None]["detail"]) == ("unreadable", "half a line")
