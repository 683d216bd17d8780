"""The generator: the same rows from the same seed, the paper's counts, nothing dangling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachemgr.demo.errors import DemoError
from cachemgr.demo.ssb_data import prepare, table_path
from cachemgr.demo.ssb_rows import select
from cachemgr.demo.ssb_schema import TABLES, sizes
from tests.demo.conftest import SCALE, SEED

TINY = 0.001


def content(frame: Any) -> tuple[int, int]:
    """Rows, and a hash of them that does not depend on their order."""
    columns = ", ".join(frame.columns)
    row = frame.selectExpr(
        "count(*) AS n", f"sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))) AS h"
    ).collect()[0]
    return row.n, int(row.h)


def test_cardinalities_are_the_papers() -> None:
    one, four = sizes(1), sizes(4)
    assert (one.lineorder, one.customer, one.supplier, one.part, one.dates) == (
        6_000_000, 30_000, 2_000, 200_000, 2557,
    )  # fmt: skip
    assert (four.lineorder, four.part) == (24_000_000, 600_000)
    small = sizes(0.01)
    assert (small.lineorder, small.customer, small.supplier, small.part) == (60_000, 300, 250, 2000)


@pytest.mark.parametrize("table", list(TABLES))
def test_content_depends_on_the_seed_and_not_on_the_partitions(spark: Any, table: str) -> None:
    counts = sizes(TINY)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    one = content(spark.sql(select(table, counts, 7, 1)))
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "5")
        five = content(spark.sql(select(table, counts, 7, 5)).repartition(3))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    other = content(spark.sql(select(table, counts, 8, 1)))
    assert one == five
    assert one[0] == counts.of(table)
    assert (one == other) == (table == "dates")


@pytest.mark.parametrize(
    ("key", "dimension", "primary"),
    [
        ("lo_orderdate", "dates", "d_datekey"),
        ("lo_commitdate", "dates", "d_datekey"),
        ("lo_custkey", "customer", "c_custkey"),
        ("lo_suppkey", "supplier", "s_suppkey"),
        ("lo_partkey", "part", "p_partkey"),
    ],
)
def test_every_foreign_key_is_found_once(ssb: Any, key: str, dimension: str, primary: str) -> None:
    lost = ssb.sql(f"SELECT * FROM lineorder LEFT ANTI JOIN {dimension} ON {key} = {primary}")
    assert lost.count() == 0
    keys = ssb.table(dimension).select(primary)
    assert keys.distinct().count() == keys.count()


@pytest.mark.parametrize("table", list(TABLES))
def test_schema_is_not_null_and_as_declared(ssb: Any, table: str) -> None:
    fields = ssb.table(table).schema.fields
    kinds = tuple((f.name, {"int": "INT", "bigint": "BIGINT", "string": "STRING"}[
        f.dataType.simpleString()
    ]) for f in fields)  # fmt: skip
    assert kinds == TABLES[table]
    assert not any(f.nullable for f in fields)


def test_delta_refuses_a_null(ssb: Any) -> None:
    with pytest.raises(Exception, match=r"(?i)null"):
        ssb.sql("INSERT INTO supplier VALUES (NULL, 'a', 'b', 'c', 'd', 'e', 'f')").collect()


def test_value_distributions(ssb: Any) -> None:
    rows = ssb.table("lineorder").count()
    for column, low, high in (
        ("lo_quantity", 1, 50),
        ("lo_discount", 0, 10),
        ("lo_tax", 0, 8),
        ("lo_linenumber", 1, 7),
    ):
        grouped = ssb.sql(f"SELECT {column}, count(*) FROM lineorder GROUP BY 1").collect()
        counts = {row[0]: row[1] for row in grouped}
        assert sorted(counts) == list(range(low, high + 1)), column
        if column != "lo_linenumber":
            expected = rows / len(counts)
            assert all(0.8 * expected < n < 1.2 * expected for n in counts.values()), column
    for table, column, distinct in (
        ("customer", "c_city", 250), ("supplier", "s_city", 250), ("part", "p_brand1", 1000),
        ("part", "p_category", 25), ("part", "p_mfgr", 5), ("supplier", "s_nation", 25),
        ("customer", "c_region", 5), ("dates", "d_yearmonth", 84), ("dates", "d_year", 7),
    ):  # fmt: skip
        assert ssb.table(table).select(column).distinct().count() == distinct, column


def test_derived_measures(ssb: Any) -> None:
    wrong = ssb.sql("""
        SELECT * FROM lineorder WHERE lo_revenue != lo_extendedprice * (100 - lo_discount) div 100
          OR lo_supplycost != 6 * (lo_extendedprice div lo_quantity) div 10
          OR lo_extendedprice % lo_quantity != 0 OR lo_commitdate <= lo_orderdate""")
    assert wrong.count() == 0
    orders = ssb.sql("""
        SELECT lo_orderkey, max(lo_ordtotalprice) AS total, min(lo_ordtotalprice) AS same,
          sum(lo_extendedprice * (100 - lo_discount) div 100 * (100 + lo_tax) div 100) AS lines,
          count(*) AS n, max(lo_linenumber) AS last, count(DISTINCT lo_linenumber) AS numbers,
          count(DISTINCT lo_custkey, lo_orderdate) AS heads
        FROM lineorder GROUP BY lo_orderkey""")
    bad = orders.where("total != lines OR total != same OR n != last OR n != numbers OR heads != 1")
    assert bad.count() == 0
    assert orders.count() == pytest.approx(sizes(SCALE).lineorder / 4, rel=0.001)


def test_places_and_brands_follow_their_parents(ssb: Any) -> None:
    wrong = ssb.sql("""
        SELECT * FROM supplier
        WHERE substring(s_city, 1, 9) != rpad(substring(s_nation, 1, 9), 9, ' ')
          OR s_city NOT RLIKE '[0-9]$'
        UNION ALL SELECT * FROM supplier WHERE s_nation = 'CHINA' AND s_region != 'ASIA'""")
    assert wrong.count() == 0
    parts = ssb.sql("""
        SELECT * FROM part WHERE NOT startswith(p_category, p_mfgr)
          OR NOT startswith(p_brand1, p_category)
          OR p_brand1 NOT RLIKE '^MFGR#[1-5][1-5][0-4][0-9]$'""")
    assert parts.count() == 0


def test_dates_hold_known_days(ssb: Any) -> None:
    day = ssb.sql("SELECT * FROM dates WHERE d_datekey = 19971224").collect()[0]
    assert day.d_date == "December 24, 1997"
    assert (day.d_dayofweek, day.d_daynuminweek, day.d_weekdayfl) == ("Wednesday", 4, 1)
    assert (day.d_yearmonth, day.d_yearmonthnum, day.d_sellingseason) == (
        "Dec1997", 199712, "Christmas",
    )  # fmt: skip
    assert (day.d_daynuminyear, day.d_weeknuminyear, day.d_holidayfl) == (358, 52, 1)
    last = ssb.sql("SELECT max(d_weeknuminyear), min(d_datekey), max(d_datekey) FROM dates")
    assert tuple(last.collect()[0]) == (53, 19920101, 19981231)


def test_coverage_orders_trade_within_their_city(ssb: Any) -> None:
    mixed = ssb.sql("""
        SELECT * FROM lineorder JOIN customer ON lo_custkey = c_custkey
        JOIN supplier ON lo_suppkey = s_suppkey
        WHERE lo_orderkey % 50 = 0 AND lo_linenumber = 1 AND c_city != s_city""")
    assert mixed.count() == 0


def test_tables_are_reused_and_half_written_ones_made_again(
    spark: Any, schema: str, tmp_path: Path
) -> None:
    made: list[str] = []

    def watch(name: str, rows: int) -> Any:
        from contextlib import nullcontext

        made.append(name)
        return nullcontext()

    first = prepare(spark, tmp_path, TINY, SEED, watch)
    assert made == list(TABLES) and not any(t.reused for t in first)
    before = content(spark.table("lineorder"))
    made.clear()
    assert all(t.reused for t in prepare(spark, tmp_path, TINY, SEED, watch)) and made == []

    # Killed while writing: rows may be there, the marker is not.
    (tmp_path / "lineorder.made.json").unlink()
    spark.sql("DELETE FROM lineorder WHERE lo_quantity < 20")
    prepare(spark, tmp_path, TINY, SEED, watch)
    assert made == ["lineorder"]
    assert content(spark.table("lineorder")) == before

    made.clear()
    marker = tmp_path / "part.made.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"generator": 0}))
    prepare(spark, tmp_path, TINY, SEED, watch)
    assert made == ["part"]

    made.clear()
    prepare(spark, tmp_path, TINY, SEED + 1, watch)
    assert made == list(TABLES)
    assert content(spark.table("lineorder")) != before


def test_a_name_that_another_table_has_is_refused(spark: Any, schema: str, tmp_path: Path) -> None:
    place = table_path(tmp_path / "other", "dates")
    spark.sql(f"CREATE TABLE dates (x INT) USING DELTA LOCATION '{place}'")
    with pytest.raises(DemoError, match="dates already exists"):
        prepare(spark, tmp_path / "ssb", TINY, SEED)
    assert spark.table("dates").columns == ["x"]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_is_refused(spark: Any, tmp_path: Path, scale: float) -> None:
    with pytest.raises(DemoError, match="above 0"):
        prepare(spark, tmp_path, scale, SEED)
