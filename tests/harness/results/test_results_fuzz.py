"""The short version of `make fuzz-results`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.results.run import run


def test_rows_of_random_queries_are_read_back(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's rows have times of this process's zone
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    done, found = run(spark, tmp_path, range(9_000_000, 9_000_025), time.monotonic() + 300)
    assert found == [] and done > 5
