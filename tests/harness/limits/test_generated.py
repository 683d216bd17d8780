"""LIMITs over generated tables return as many rows as plain Spark, of the table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.harness.limits.generated import wrong_of
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("limits")
    yield from make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}")


@pytest.mark.parametrize("seed", range(12))
def test_limits_over_a_generated_table(lab: Lab, seed: int) -> None:
    assert wrong_of(lab.spark, lab.plain, f"generated{seed}", seed) == []
