"""The hook end to end with one hand-made cache: what is replaced, and that the rows, names and
types stay Spark's own."""

from __future__ import annotations

from typing import Any

import pytest

from cachemgr.spark import hook
from matcher.catalyst import templates
from tests.worlds.hook_star import Star, StarDecider, reads_cache, rows

REGION = (
    "SELECT region, sum(amount) AS total, count(*) AS n FROM {s}.sales JOIN {s}.shops "
    "ON shop = id GROUP BY region"
)


def frame_of(star: Star, text: str):
    return star.spark.sql(text.format(s=star.schema))


def check(star: Star, text: str, *, hit: bool = True, ordered: bool = False) -> StarDecider:
    """Runs `text` without and with the hook: same names, types and rows; answered from the cache or
    not as `hit` says."""
    hook.uninstall(star.spark)
    plain = frame_of(star, text)
    wanted, schema = plain.collect(), plain.schema
    decider = StarDecider(star)
    hook.install(star.spark, decider)
    frame = frame_of(star, text)
    got = frame.collect()
    assert frame.schema == schema
    assert (got if ordered else sorted(got, key=repr)) == (
        wanted if ordered else sorted(wanted, key=repr)
    )
    assert wanted, "the query returns no row, so it shows nothing"
    assert reads_cache(frame, star) is hit
    return decider


def test_sql_aggregate_is_answered_from_the_cache(star: Star) -> None:
    decider = check(star, REGION)
    assert len(decider.asked) == 1
    seen = decider.asked[0].seen()
    assert {t.location: t.version for tables in seen.values() for t in tables} == {
        star.sales: 1,
        star.shops: 1,
    }
    assert hook.counters(star.spark)["replaced"] >= 1


def test_the_same_query_with_other_constants_is_not_decoded_again(
    star: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[tuple[int, ...]] = []

    def counted(way: Any, path: tuple[int, ...], document: Any) -> Any:
        decoded.append(path)
        return raw_block_by(way, path, document)

    raw_block_by = templates.raw_block_by
    monkeypatch.setattr(templates, "raw_block_by", counted)
    text = (
        f"SELECT shop, sum(amount), count(*) FROM {star.schema}.sales WHERE shop = {{}} GROUP BY 1"
    )
    decider = StarDecider(star)
    hook.install(star.spark, decider)
    times, found = [], []
    for number in (1, 2, 3, 1):
        decoded.clear()
        found.append(rows(star.spark.sql(text.format(number))))
        times.append(len(decoded))
    assert found == [[(1, 15, 2)], [(2, 7, 1)], [(3, 4, 2)], [(1, 15, 2)]]
    asked = [b.block for b in decider.blocks if b.block is not None and b.block.is_aggregate]
    assert [repr(b.predicates[-1]) for b in asked] == [
        f"eq($0.shop, {n}:int)" for n in (1, 2, 3, 1)
    ]
    assert times[0] == 0 and times[1] > 0 and times[2:] == [0, 0]


@pytest.mark.parametrize(
    "text",
    [
        REGION + " ORDER BY total DESC, region LIMIT 2",
        REGION + " HAVING sum(amount) > 3 ORDER BY region NULLS LAST",
        "SELECT n, region, total, rank() OVER (ORDER BY total) AS r FROM ("
        + REGION
        + ") ORDER BY 4, 1",
    ],
)
def test_below_sort_limit_and_having(star: Star, text: str) -> None:
    check(star, text, ordered=True)


def test_dataframe_query(star: Star) -> None:
    from pyspark.sql import functions as F

    decider = StarDecider(star)
    hook.install(star.spark, decider)
    sales, shops = (star.spark.table(f"{star.schema}.{n}") for n in ("sales", "shops"))
    frame = sales.join(shops, F.col("shop") == F.col("id")).groupBy("region").agg(F.sum("amount"))
    assert frame.columns == ["region", "sum(amount)"]
    assert rows(frame) == [("north", 22), (None, 4)]
    assert reads_cache(frame, star)


def test_view_cte_and_temp_view(star: Star) -> None:
    star.spark.sql(f"CREATE OR REPLACE VIEW {star.schema}.v AS {REGION.format(s=star.schema)}")
    check(star, "SELECT * FROM {s}.v")
    check(star, "WITH w AS (" + REGION + ") SELECT w.region, w.total FROM w WHERE total > 1")
    frame_of(star, REGION).createOrReplaceTempView("tv_of_star")
    check(star, "SELECT total FROM tv_of_star")


def test_cte_used_twice_and_self_join_of_two_replaced_blocks(star: Star) -> None:
    decider = check(
        star,
        "WITH w AS (" + REGION + ") SELECT a.region, a.total, b.total AS again FROM w a JOIN w b "
        "ON a.region <=> b.region AND a.total = b.total",
    )
    assert len(decider.sql) == 2
    check(
        star,
        "SELECT * FROM (" + REGION + ") x, (SELECT product, sum(amount) AS q FROM {s}.sales "
        "JOIN {s}.shops ON shop = id GROUP BY product) y",
    )
    check(star, REGION + " UNION ALL " + REGION)


def test_global_aggregate_and_distinct_types(star: Star) -> None:
    check(star, "SELECT count(*) AS n, sum(amount) AS s FROM {s}.sales JOIN {s}.shops ON shop = id")


def test_a_dataframe_made_before_an_append_sees_it(own_star: Star) -> None:
    star = own_star
    decider = StarDecider(star, strict=True)
    hook.install(star.spark, decider)
    frame = frame_of(star, REGION)
    star.append(1, "a", 100)
    assert ("north", 122, 4) in rows(frame)
    assert not reads_cache(frame, star)
    assert ("north", 122, 4) in rows(frame.filter("total > 100"))


def test_a_block_beside_live_tables_pins_them(own_star: Star) -> None:
    """One moment a query: the table beside the cache is held at the version that the decision
    saw."""
    star = own_star
    decider = check(
        star,
        "SELECT r.region, r.total, s.amount FROM ("
        + REGION
        + ") r JOIN {s}.shops p ON r.region = p.region "
        "JOIN {s}.sales s ON s.shop = p.id",
    )
    frame = frame_of(
        star, "SELECT r.total, s.amount FROM (" + REGION + ") r CROSS JOIN {s}.sales s"
    )
    frame._jdf.queryExecution().optimizedPlan()
    star.append(2, "z", 1000)
    assert all(amount != 1000 for _, amount in rows(frame))
    assert len(decider.asked) == 2


def test_wrong_types_are_dropped_before_they_run(star: Star) -> None:
    decider = StarDecider(
        star,
        answer=lambda block, _: (
            block.group_keys
            and (
                "SELECT region AS c0, cast(sum(s) AS DECIMAL(20,0)) AS c1, count(*) AS c2 "
                "FROM __cache GROUP BY region"
            )
        ),
    )
    hook.install(star.spark, decider)
    frame = frame_of(star, REGION)
    assert rows(frame) == [("north", 22, 3), (None, 4, 2)]
    assert not reads_cache(frame, star)
    assert decider.dropped[0].code.value == "SCHEMA_WOULD_DIFFER"
    assert "total" in decider.dropped[0].detail and "DECIMAL(20,0)" in decider.dropped[0].detail


def test_replacement_text_with_replaceable_functions(star: Star) -> None:
    """nvl, left() and GROUP BY an expression are rewritten by batches that are over when the rule
    runs."""
    text = (
        "SELECT left(product, 1) AS p, sum(amount) AS s FROM {s}.sales JOIN {s}.shops ON "
        "shop = id GROUP BY left(product, 1)"
    )
    hook.uninstall(star.spark)
    wanted = rows(frame_of(star, text))
    decider = StarDecider(
        star,
        answer=lambda block, _: (
            block.group_keys
            and (
                "SELECT nvl(left(product, 1), NULL) AS c0, sum(s) AS c1 FROM __cache GROUP "
                "BY nvl(left(product, 1), NULL)"
            )
        ),
    )
    hook.install(star.spark, decider)
    frame = frame_of(star, text)
    assert rows(frame) == wanted
    assert reads_cache(frame, star)


def test_works_without_sql_on_files_and_shows_nothing(star: Star) -> None:
    star.spark.conf.set("spark.sql.runSQLOnFiles", "false")
    try:
        check(star, REGION)
    finally:
        star.spark.conf.unset("spark.sql.runSQLOnFiles")
    before = _shown(star)
    check(star, REGION + " ORDER BY total")
    assert _shown(star) == before


def test_parameters_and_another_current_schema(star: Star) -> None:
    decider = StarDecider(star)
    hook.install(star.spark, decider)
    star.spark.sql(f"USE {star.schema}")
    try:
        frame = star.spark.sql(
            "SELECT region, sum(amount) AS t FROM sales JOIN shops ON shop = id GROUP BY region "
            "UNION ALL SELECT :more, 0",
            args={"more": "else"},
        )
        assert rows(frame) == [("else", 0), ("north", 22), (None, 4)]
        assert reads_cache(frame, star)
    finally:
        star.spark.sql("USE default")


def _shown(star: Star) -> set[tuple[object, ...]]:
    texts = (f"SHOW TABLES IN {star.schema}", f"SHOW VIEWS IN {star.schema}", "SHOW SCHEMAS")
    return {tuple(row) for text in texts for row in star.spark.sql(text).collect()}
