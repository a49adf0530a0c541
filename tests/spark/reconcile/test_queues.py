"""What mappings say of queues, and which queue a source's message was for."""

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.core.mapping_rules import HeaderRules, Mappings, QueueMapping, QueuePath, Topic
from bridge.core.message_columns import COLUMNS
from msmq_jobs.backfill.prepare import Target
from msmq_jobs.reconcile import queues, sent
from msmq_jobs.schemas import READ
from tests.spark.letters import mappings
from tests.spark.reconcile.world import PLAIN, Seen, row


def of(**settings: Any) -> Mappings:
    plain = QueueMapping(queue=QueuePath("private$\\*"), topic=Topic("all"))
    orders = QueueMapping(queue=QueuePath("private$\\Orders"), topic=Topic("orders"), **settings)
    return Mappings(queues=(plain, orders))


def test_what_cannot_be_compared_is_not(spark: SparkSession) -> None:
    rules = HeaderRules(exclude=("msmq.label", "msmq.app"))
    columns = ("body_crc", "label", "rest", "tx", "body_sha")
    frame = spark.createDataFrame(
        [(q, 1, 2, 3, 4, 5, 6, 7, 8) for q in ("private$\\orders", "private$\\x")],
        "queue string, body_sha long, body_crc long, label long, correlation long, tx long, "
        "class long, rest long, which long",
    )
    assert queues.comparable(frame, mappings()) is frame
    one, two = queues.comparable(frame, of(headers=rules, value="text")).collect()
    assert [one[c] for c in columns] == [None, None, None, 5, 1]
    assert [two[c] for c in columns] == [2, 3, 7, 5, 1]


def test_words_about_content() -> None:
    told = [queues.content(m, ()) for m in of(value="json").queues]
    assert told == ["compared", "compared with sources only: the value is decoded"]
    hidden = of(headers=HeaderRules(exclude=("msmq.id",))).queues[1]
    assert queues.content(hidden, ()).startswith("not compared: ")
    silent = of(headers=HeaderRules(exclude=("msmq.queue",))).queues[1]
    assert queues.content(silent, ()).startswith("not compared: ")
    assert queues.content(silent, {"private$\\Orders"}) == "compared"  # its topic tells
    partly = of(headers=HeaderRules(exclude=("msmq.app",))).queues[1]
    assert queues.content(partly, ()).endswith("leaves out: msmq.app")


def test_homes_and_decoded_values(spark: SparkSession) -> None:
    """By destination, else by where it was held; a journal has messages for others, too."""
    mine = row(Seen(1, PLAIN)) | {"body": bytearray(b'{"a": 1}')}
    held = mine | {"headers": {}, "queue": "OLD01\\private$\\Orders;journal"}
    other = mine | {"headers": {"msmq.dest": "DIRECT=OS:far\\x"}, "queue": "x"}
    found = of(value="json")
    target = Target(run="", mappings=found, limits={})
    placed = queues.homes(spark, spark.createDataFrame([mine, held, other], READ), target)
    homes = {json.dumps(r["headers"]): r["home"] for r in placed.collect()}
    assert sorted(str(home) for home in homes.values()) == ["None", "private$\\Orders", PLAIN]
    made = queues.decoded(spark, placed, found)
    assert len(made.columns) == len(COLUMNS) + 3
    values = {r["home"]: bytes(r["body"]) for r in made.where(F.col("home").isNotNull()).collect()}
    assert values == {PLAIN: b'{"a": 1}', "private$\\Orders": b'{"a": 1}'}
    assert sent.sent(made).count() == 2
