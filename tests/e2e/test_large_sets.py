"""A set too large to pin is read from the files of the published version, and of no other."""

from __future__ import annotations

import pytest

from cachemgr.spark import replacements
from cachemgr.spark.held.set_files import FileReads

pytestmark = pytest.mark.spark

BY_DAY = "SELECT day, SUM(amt) AS total FROM sales WHERE region = 'north' GROUP BY day"
TOTALS = "SELECT region, SUM(amt) AS total FROM sales GROUP BY region"


@pytest.fixture
def large(lab, monkeypatch):
    """A lab with one cube whose sets all count as large, and nothing pinned."""
    monkeypatch.setattr(replacements, "LARGE_SET_ROWS", 0)
    lab.spark.conf.set("spark.cachemgr.pin.enabled", "false")
    lab.cache(
        "cube AS SELECT region, day, SUM(amt) AS s, COUNT(*) AS n FROM sales "
        "GROUP BY GROUPING SETS ((region, day), (region))"
    )
    return lab


def _read_paths(large, query: str) -> set[str]:
    frame = large.spark.sql(query)
    return {path.split("/__grouping_id=")[1].split("/")[0] for path in frame.inputFiles()}


def test_a_hit_reads_the_files_of_its_set_alone(large):
    large.hit(BY_DAY)
    large.hit(TOTALS)
    assert _read_paths(large, TOTALS) == {"1"}
    plan = large.spark.sql(TOTALS)._jdf.queryExecution().optimizedPlan().toString()
    assert "parquet" in plan.lower()


def test_a_new_snapshot_is_read_from_its_own_files(large):
    large.hit(TOTALS)
    large.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 3")
    with large.caches_alone():
        large.miss(TOTALS, "STALE")
    large.sql("REFRESH RELATIONAL CACHE cube")
    large.hit(TOTALS)


def test_files_are_listed_once_a_version(large, monkeypatch):
    made = []
    original = FileReads._make
    monkeypatch.setattr(
        FileReads, "_make", lambda self, *args: made.append(args) or original(self, *args)
    )
    for _ in range(3):
        large.hit(TOTALS)
    assert len(made) == 1


SORTED = f"{BY_DAY} ORDER BY total DESC, day"


def _gathers(large, query: str) -> bool:
    plan = large.spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()
    return "Repartition 1, true" in plan


def test_few_rows_are_gathered_below_order_by(large, monkeypatch):
    large.hit(SORTED)
    assert _gathers(large, SORTED)
    assert _gathers(large, f"SELECT total, day FROM ({BY_DAY}) ORDER BY day")
    assert not _gathers(large, BY_DAY), "nothing sorts"
    assert not _gathers(large, f"{SORTED} LIMIT 2"), "the first rows are found without ranges"
    regrouped = "SELECT day, SUM(amt) AS total FROM sales WHERE region <> 'x' GROUP BY day"
    large.hit(f"{regrouped} ORDER BY day")
    assert not _gathers(large, f"{regrouped} ORDER BY day"), "grouped again"
    monkeypatch.setattr(replacements, "_FEW_ROWS", 0)
    large.hit(SORTED)
    assert not _gathers(large, SORTED), "too many rows"
