"""The databases of a test with a Spark."""

from __future__ import annotations

import pytest

on_both = pytest.mark.parametrize(
    "metastore_url",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
)
