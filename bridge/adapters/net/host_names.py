"""Host names that a peer chose.

The resolver raises more than OSError: UnicodeError for a label that is empty or too long for IDNA,
ValueError for a NUL, OverflowError for a port. A name that cannot be resolved is a host that cannot
be reached, so callers see OSError only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SHOWN: Final = 80


@contextmanager
def resolving(host: str) -> Iterator[None]:
    """Raise OSError for every name and port that the resolver does not take."""
    try:
        yield
    except OSError:  # a refused certificate is a ValueError, too
        raise
    except (ValueError, OverflowError) as error:
        raise OSError(f"{host[:_SHOWN]!r} is not a valid host name: {error}") from error
