"""What a remote reader has read, as data. Design 3.6"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from bridge.core.message_data import MessageData, as_json, data_of
from bridge.protocol.rpc.reader.packets import Read


def data_of_read(read: Read, queue: str) -> MessageData:
    """`queue` is its path name on its host."""
    data = data_of(read.message, queue)
    return replace(data, headers=data.headers | read.counters) if read.counters else data


def row_of(read: Read, queue: str) -> dict[str, Any]:
    """As the admin port of an appliance shows it; nobody else can hold what we can see."""
    return as_json(data_of_read(read, queue)) | {"locked": False}
