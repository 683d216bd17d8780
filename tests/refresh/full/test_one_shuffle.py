"""Groups that are sent to where they are written before they are put together: when that pays, and
that every group is whole and lies where it is to lie.
"""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.own_session import own_session
from cachemgr.refresh.full.layout import Layout, Split
from cachemgr.refresh.full.one_shuffle import FEW_PARTS, is_even, shuffle_once

BASE_ROWS = 1e8


def layout(*splits: Split) -> Layout:
    return Layout(dict(enumerate(splits)), 99, ())


@pytest.mark.parametrize(
    ("layouts", "groups", "even"),
    [
        pytest.param([layout(Split(0))], {0: FEW_PARTS / 8}, True, id="few parts in one task"),
        pytest.param([layout(Split(0))], {0: FEW_PARTS}, False, id="many parts in one task"),
        pytest.param([layout(Split(0), Split(1))], {0: 9e6, 1: 9e6}, True, id="two tasks"),
        pytest.param([layout(Split(0), Split(0))], {0: 9e6, 1: 9e6}, False, id="two sets in one"),
        pytest.param([layout(Split(0), Split(1))], {0: 9e6, 1: 9e4}, False, id="one much larger"),
        pytest.param([layout(Split(0, 1, (5, 9)))], {0: 9e6}, True, id="a set in three files"),
        pytest.param(
            [layout(Split(0)), Layout({1: Split(0)}, 99, ())],
            {0: 9e6, 1: 9e6},
            True,
            id="the first of one layout is not the first of another",
        ),
    ],
)
def test_when_groups_are_put_together_by_those_who_write(
    layouts: list[Layout], groups: dict[int, float], even: bool
) -> None:
    assert is_even(layouts, groups, BASE_ROWS, tasks=4, cores=2) is even


def test_a_group_has_no_more_parts_than_the_base_has_rows() -> None:
    two = [layout(Split(0), Split(1))]
    assert not is_even(two, {0: 9e6, 1: 1e6}, 1e7, tasks=4, cores=2)
    assert is_even(two, {0: 9e6, 1: 1e6}, 1e6, tasks=4, cores=2)


@pytest.fixture(scope="module")
def once(spark: SparkSession) -> SparkSession:
    own = own_session(spark, {})
    shuffle_once(own)
    return own


def cube(session: SparkSession, *measures: str) -> DataFrame:
    """Two keys, one with NULLs and one that is computed; several tasks have parts of a group."""
    return session.sql(
        f"""SELECT a, b + 1 AS c, GROUPING_ID() AS gid, {", ".join(measures)} FROM (
            SELECT IF(id % 7 > 0, 'a' || id % 7, NULL) AS a, CAST(id % 11 AS INT) AS b,
              id * 31 % 97 AS v FROM range(0, 5000, 1, 7))
        GROUP BY GROUPING SETS ((a, b + 1), (a), (b + 1), ())"""
    )


PLACE = "CASE WHEN gid = 0 THEN IF(c >= 6, 1, 0) ELSE 2 END"
SUMS = ("SUM(v) AS s", "COUNT(*) AS n", "MAX(v) AS m")


def laid_out(rows: DataFrame, place: str = PLACE) -> DataFrame:
    return rows.repartitionById(4, F.expr(place).cast("int"))


def placed(rows: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, rows.withColumn("at", F.spark_partition_id()).collect()), key=repr)


def shuffles(rows: DataFrame) -> int:
    rows.collect()  # adaptive execution plans anew
    text: str = rows._jdf.queryExecution().executedPlan().toString()
    return text.split("+- == Initial Plan ==")[0].count("Exchange ")


@pytest.mark.spark
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_groups_lie_whole_where_they_are_to_lie_after_one_shuffle(
    spark: SparkSession, adaptive: str
) -> None:
    plain, own = own_session(spark, {}), own_session(spark, {})
    shuffle_once(own)
    for session in (plain, own):
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
    assert shuffles(laid_out(cube(plain, *SUMS))) == 2
    found = laid_out(cube(own, *SUMS))
    assert shuffles(found) == 1
    assert placed(found) == placed(laid_out(cube(plain, *SUMS)))
    assert found.count() == 7 * 11 + 7 + 11 + 1


@pytest.mark.spark
def test_measures_may_be_conditional_and_keys_named_anew(once: SparkSession) -> None:
    def renamed(session: SparkSession) -> DataFrame:
        rows = cube(session, "SUM(v) FILTER (WHERE b > 3) AS s", "AVG(v) AS x")
        named = rows.selectExpr("gid", "c AS k", "a", "CAST(s AS INT) AS s", "x")
        return laid_out(named, "IF(gid = 0, k % 2, 2)")

    assert shuffles(renamed(once)) == 1
    assert placed(renamed(once)) == placed(renamed(own_session(once, {})))


@pytest.mark.spark
@pytest.mark.parametrize("key", ["x", "CAST(x AS FLOAT)", "STRUCT(x)", "ARRAY(x)", "x * 2"])
def test_both_zeros_are_one_key_and_so_is_every_nan(once: SparkSession, key: str) -> None:
    numbers = "CASE id % 5 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D WHEN 2 THEN 1.5D WHEN 3 THEN "
    numbers += "DOUBLE('NaN') ELSE -DOUBLE('NaN') END AS x"

    def by_number(session: SparkSession) -> DataFrame:
        rows = session.sql(
            f"""SELECT {key} AS k, GROUPING_ID() AS gid, COUNT(*) AS n
            FROM (SELECT {numbers} FROM range(0, 500, 1, 7)) GROUP BY GROUPING SETS (({key}), ())"""
        )
        return laid_out(rows, "IF(gid = 0 AND k IS NOT NULL, 1, 0)")

    assert shuffles(by_number(once)) == 1
    found = placed(by_number(once))
    assert repr(found) == repr(placed(by_number(own_session(once, {}))))
    assert sorted(row[2] for row in found) == [100, 200, 200, 500]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("measure", "place"),
    [
        pytest.param("SUM(v)", "s % 4", id="by a sum"),
        pytest.param("SUM(v)", "IF(gid = 0, s % 2, 2)", id="by a sum as well"),
        pytest.param("COUNT(DISTINCT v)", PLACE, id="DISTINCT"),
        pytest.param("MAX(a)", PLACE, id="groups that are sorted"),
        pytest.param("SORT_ARRAY(COLLECT_SET(v))", PLACE, id="objects"),
    ],
)
def test_noop_what_does_not_go_by_the_keys_alone_is_left_to_spark(
    once: SparkSession, measure: str, place: str
) -> None:
    own = laid_out(cube(once, f"{measure} AS s"), place)
    theirs = laid_out(cube(own_session(once, {}), f"{measure} AS s"), place)
    assert shuffles(own) == shuffles(theirs) >= 2
    assert placed(own) == placed(theirs)


@pytest.mark.spark
def test_noop_by_chance_parts_of_a_group_would_go_apart(once: SparkSession) -> None:
    by_chance = laid_out(cube(once, *SUMS), "floor(rand(1) * 4)")
    assert shuffles(by_chance) == 2
    assert by_chance.count() == 7 * 11 + 7 + 11 + 1


@pytest.mark.spark
@pytest.mark.parametrize("rows", [9, 0])
def test_noop_one_group_of_all_rows_is_one_row(once: SparkSession, rows: int) -> None:
    whole = once.range(rows).agg(F.count("*").alias("n"))
    assert [row["n"] for row in laid_out(whole, "2").collect()] == [rows]


@pytest.mark.spark
def test_noop_other_shuffles_are_left_to_spark(once: SparkSession) -> None:
    rows = once.range(100).groupBy((F.col("id") % 5).alias("k")).agg(F.sum("id").alias("s"))
    by_hash = rows.repartition(3, "k")
    filtered = laid_out(rows.where("s > 950"), "1")
    assert sorted(by_hash.collect()) == sorted(rows.collect())
    assert sorted(r["s"] for r in filtered.collect()) == [970, 990, 1010, 1030]
