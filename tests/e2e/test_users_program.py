"""What we do beside a user's program must not change it."""

from __future__ import annotations

import pytest
from pyspark import RDD

import cachemgr
from cachemgr.delta.own_session import own_session
from cachemgr.errors import CacheManagerError

pytestmark = pytest.mark.spark


def test_our_sessions_do_not_take_over_todf(lab):
    before = RDD.toDF
    own_session(lab.spark, {})
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    assert RDD.toDF is before


@pytest.mark.parametrize(
    "statement",
    [
        "FROM sales INSERT INTO sales SELECT *",
        "WITH x AS (SELECT * FROM sales) INSERT INTO sales SELECT * FROM x",
        "DROP TABLE sales",
    ],
)
def test_explaining_a_statement_does_not_carry_it_out(lab, statement):
    before = lab.plain.sql("SELECT COUNT(*) FROM sales").collect()
    with pytest.raises(CacheManagerError, match="not a query"):
        cachemgr.explain(lab.spark, statement)
    assert lab.plain.sql("SELECT COUNT(*) FROM sales").collect() == before


@pytest.mark.parametrize("column", ["region"])
def test_partition_columns_that_folder_names_do_not_keep(lab, column):
    with pytest.raises(CacheManagerError, match="folder names"):
        lab.sql(
            f"CREATE RELATIONAL CACHE p PARTITIONED BY ({column}) AS "
            f"SELECT {column}, SUM(amt) AS s FROM sales GROUP BY {column}"
        )


def test_sets_with_floats_are_not_pinned(lab):
    """The statistics of Spark's memory batches pass over a batch whose only match is NaN."""
    lab.cache("f AS SELECT region, MAX(weight) AS w FROM sales GROUP BY region")
    lab.cache("i AS SELECT region, MAX(amt) AS w FROM sales GROUP BY region")
    asked = []
    for column in ("weight", "amt"):
        lab.hit(f"SELECT region, MAX({column}) AS w FROM sales GROUP BY region")
        asked.append(cachemgr.counters(lab.spark).get("pin_misses", 0))
    assert asked[0] == 0 and asked[1] == 1
