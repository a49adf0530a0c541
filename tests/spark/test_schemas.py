"""One schema: that of every export."""

from bridge.core.message_columns import spark_schema
from msmq_jobs.schemas import MESSAGE, READ, ROUTED, WRITTEN


def test_the_columns_are_those_of_exports() -> None:  # design 3.6
    written_down = [part.split("`")[1:] for part in spark_schema().split(", ")]
    types = {name: kind.replace(" NOT NULL", "").strip().lower() for name, kind in written_down}
    assert {field.name: field.dataType.simpleString() for field in MESSAGE.fields} == types


def test_every_row_says_where_it_was_read() -> None:
    for schema in (READ, ROUTED, WRITTEN):
        assert "origin" in schema.fieldNames()
