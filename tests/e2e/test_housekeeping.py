"""The disk under refreshes on a real Spark; which files go, tests/statements/test_tidy.py holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

QUERY = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


def used(folder: str) -> int:
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


def data(folder: str) -> set[str]:
    return {p.name for p in Path(folder).glob("part-*.parquet")}


@pytest.mark.parametrize("refreshes", [6, 50])
def test_the_disk_is_flat_and_a_query_planned_before_finishes(lab, metastore, refreshes):
    lab.sql("SET spark.cachemgr.pin.enabled=false")
    lab.cache(f"by_region AS {QUERY}")
    place = metastore.caches.all()[0].location
    planned = lab.spark.sql(QUERY)
    expected = sorted(map(str, lab.plain.sql(QUERY).collect()))
    planned._jdf.queryExecution().executedPlan()
    lab.sql("REFRESH RELATIONAL CACHE by_region FULL")
    assert sorted(map(str, planned.collect())) == expected, "within the grace nothing goes"
    assert len(data(place)) == 2

    lab.sql("SET spark.cachemgr.dropGrace=1s")
    sizes = []
    for _ in range(refreshes):
        time.sleep(1.1)
        lab.sql("REFRESH RELATIONAL CACHE by_region FULL")
        sizes.append(sum((Path(place) / name).stat().st_size for name in data(place)))
    assert len(data(place)) <= 3 and max(sizes[2:]) <= max(sizes[:3])
    assert used(f"{place}/_delta_log") / refreshes < 100_000
    lab.hit(QUERY)
