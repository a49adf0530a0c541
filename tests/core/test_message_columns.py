"""Design 3.6: the names of a message as data, each with a type."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import get_args

import msgspec

from bridge.core.message_columns import COLUMNS, Kind, spark_schema
from bridge.core.message_data import MessageData

DESIGN = """message_id queue source label body body_type class priority delivery sent_time
    arrived_time correlation_id response_queue admin_queue extension app_specific lookup_id
    tx_sequence_id tx_sequence_number transport headers"""


def test_the_names_of_the_design() -> None:
    assert [column.name for column in COLUMNS] == DESIGN.split()
    assert [field.encode_name for field in msgspec.structs.fields(MessageData)] == DESIGN.split()


def test_null_is_where_a_message_may_have_nothing() -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(MessageData)}
    for column in COLUMNS:
        assert column.is_required == (type(None) not in get_args(fields[column.name].type)), column


def test_for_spark() -> None:
    parts = re.split(r", (?=`)", spark_schema())
    assert parts[0] == "`message_id` STRING NOT NULL"
    assert "`lookup_id` DECIMAL(20,0)" in parts
    assert "`headers` MAP<STRING,STRING> NOT NULL" in parts
    assert len(parts) == len(COLUMNS)
    assert {kind.value for kind in Kind} >= {part.split()[1] for part in parts}


def test_spark_needs_nothing_else_for_it() -> None:
    program = (
        "import sys, bridge.core.message_columns\n"
        "print([n for n in sys.modules if n.partition('.')[0] in "
        "('pyarrow', 'pyspark', 'confluent_kafka', 'aiohttp', 'asyncio', 'typer')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout == "[]\n"
