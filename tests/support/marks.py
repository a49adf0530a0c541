"""Which cases of a test run in `make test`, and which in `make long`."""

from collections.abc import Collection

import pytest
from _pytest.mark import ParameterSet


def some_of(cases: Collection[str], short: Collection[str]) -> list[ParameterSet]:
    """All cases, in order; only the `short` ones run in `make test`."""
    return [
        pytest.param(case, marks=[] if case in short else [pytest.mark.long])
        for case in sorted(cases)
    ]
