r"""A queue of any MSMQ host as a Spark data source: `spark.read.format("msmq")`.

    spark.dataSource.register(MsmqDataSource)
    spark.read.format("msmq").option("host", "msmq01").option("queue", "private$\\orders;journal")

Messages are peeked at by remote read (MS-MQRR) and stay where they are. A queue is a partition; a
long one falls into several, by ranges of lookup ids, at most `parts` of them. A password is never
an option: it is read where the reading is done, from `password_file` or MSMQ_BRIDGE_PASSWORD.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.rows import data_of_read
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import ConfigError
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.reader.cuts import PER_PART
from bridge.protocol.rpc.reader.packets import Read
from msmq_jobs.arrow import arrow_schema, batches_of
from msmq_jobs.rows import Values, fault_values, values_of
from msmq_jobs.schemas import READ
from msmq_jobs.sources.locator import LiveQueue

PASSWORD: Final = "MSMQ_BRIDGE_PASSWORD"  # noqa: S105 (the name of a variable)
PARTS: Final = 8  # connections to one queue, at most
_ARROW: Final = arrow_schema(READ)


class Part(InputPartition):
    """The messages behind one lookup id, up to and with another; None: from the head, to the end
    as it is then."""

    def __init__(self, after: int | None, until: int | None) -> None:
        super().__init__((after, until))
        self.after, self.until = after, until


class MsmqDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "msmq"

    def schema(self) -> StructType:
        return READ

    def reader(self, schema: StructType) -> MsmqReader:  # noqa: ARG002 (Spark's signature)
        return MsmqReader(dict(self.options))


class MsmqReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with RemoteReader(place_of(options)) as reader:
            per_part = int(options.get("per_part", PER_PART))
            cuts = reader.cuts(options["queue"], int(options.get("parts", PARTS)), per_part)
        return [Part(after, until) for after, until in pairwise((None, *cuts, None))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        options = self._options
        queue, origin = options["queue"], options.get("origin", options["queue"])
        with RemoteReader(place_of(options)) as reader:
            name = reader.target(queue).name
            job = reader.scan_job(queue, after=partition.after, until=partition.until)
            rows = (
                values_of(data_of_read(read, name), origin)
                for batch in reader.run(job)
                for read in batch.reads
            )
            read_so_far = 0
            for batch in batches(rows):
                read_so_far += batch.num_rows
                _note(options.get("progress", ""), partition, read_so_far)
                yield batch
            faults = [fault_values(f"{at}: {why}", origin) for at, why in job.unreadable.items()]
            yield from batches(faults)


def _note(folder: str, part: Part, rows: int) -> None:
    """For whoever looks on; on another machine the folder is not there."""
    if folder:
        with suppress(OSError):
            (Path(folder) / f"{part.after}-{part.until}").write_text(str(rows), encoding="ascii")


def options_of(source: LiveQueue, password_file: str = "") -> dict[str, str]:
    made = {"host": source.host, "queue": source.path, "origin": source.text}
    if source.port is not None:
        made["port"] = str(source.port)
    if source.user:
        made["user"] = source.user
    if password_file:
        made["password_file"] = password_file
    return made


def place_of(options: Mapping[str, str]) -> Place:
    """Raises ConfigError when there is a user and no password."""
    user, credentials = options.get("user", ""), None
    if user:
        credentials = Credentials(user, _password(options), "ntlm", AuthLevel.PRIVACY)
    port = options.get("port")
    return Place(host=options["host"], port=int(port) if port else None, credentials=credentials)


def _password(options: Mapping[str, str]) -> str:
    path = options.get("password_file")
    if not path:
        if PASSWORD in os.environ:
            return os.environ[PASSWORD]
        mend = f"give --password-file, or set {PASSWORD}"
        raise ConfigError("has no password", where=options["user"], mend=mend)
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.readline(4096).rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        what = f"{path!r} cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ConfigError(what, where="--password-file", mend="name another file") from error


def batches(rows: Iterable[Values]) -> Iterator[pa.RecordBatch]:
    return batches_of(rows, _ARROW)


def take_out(reader: RemoteReader, queue: str, wanted: Iterable[tuple[Decimal, str]]) -> int:
    """Receives messages by lookup id, each only if it is the one that was read; how many.

    They are committed in Kafka: what is lost on the way back was not the last copy.
    """
    removed = 0
    for lookup, message_id in wanted:
        for batch in reader.receive_at(queue, int(lookup)):
            same = [read for read in batch.reads if _is(read, message_id)]
            batch.confirm(same)
            removed += len(same)
    return removed


def _is(read: Read, message_id: str) -> bool:
    return read.message.id.lower() == message_id.lower()
