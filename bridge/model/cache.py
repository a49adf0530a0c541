"""A cache that is bounded in bytes as well as in entries: its keys come from peers."""

from __future__ import annotations

from typing import Final, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

FRAME: Final = 256  # bytes that an entry costs beside what its key and value hold
_LARGEST: Final = 64  # an entry above this part of the budget is not kept


class Cache(dict[Key, Value]):
    """A dict of answers that can be worked out again.

    Look up as in a dict; insert with `keep`. At the bound the cache is emptied: the entries that
    are still in use return with their next message.
    """

    __slots__ = ("_most", "_most_bytes", "size")

    def __init__(self, most: int, most_bytes: int) -> None:
        super().__init__()
        self._most, self._most_bytes = most, most_bytes
        self.size = 0  # bytes, as `keep` was told

    def keep(self, key: Key, value: Value, size: int) -> Value:
        """Insert `value`; `size` is what key and value hold. An entry that is large beside the
        budget is not inserted: a few of them would empty the cache."""
        size += FRAME
        if size * _LARGEST > self._most_bytes:
            return value
        if len(self) >= self._most or self.size + size > self._most_bytes:
            self.clear()
        self.size += size
        self[key] = value
        return value

    def resize(self, more: int) -> None:
        """An entry has grown by so many bytes since it was kept. (One that was not kept, too: then
        the cache is emptied a little early.)"""
        self.size += more

    def clear(self) -> None:
        super().clear()
        self.size = 0


def text_size(*texts: str) -> int:
    """Bytes that strings hold at most: four for a character."""
    return 4 * sum(map(len, texts))
