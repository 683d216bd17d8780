"""The database of a test with a Spark in `make test`; `make test-long` has the other one too.

For what Spark does either database will do: the metastore's own tests all run on both.
"""

from __future__ import annotations

import pytest

on_postgres = pytest.mark.parametrize(
    "metastore_url",
    [
        pytest.param("sqlite", marks=pytest.mark.long),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ],
    indirect=True,
)
on_sqlite = pytest.mark.parametrize(
    "metastore_url",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
)
