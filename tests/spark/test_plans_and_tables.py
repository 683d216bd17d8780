"""Plans as data, their blocks, and tables by place and version, on real Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from cachemgr.delta.tables import (
    TableRead,
    current_versions,
    first_commit_after,
    normalise_location,
    run_select,
)
from cachemgr.spark.plans import capture_query
from matcher.catalyst.reader import LocatedBlock, blocks, definition_block
from matcher.model.errors import MatcherError
from matcher.model.ir import Block
from matcher.normalize.stored_plan import plan_definition
from tests.worlds.hook_star import Star

JOIN = "{s}.sales JOIN {s}.shops ON shop = id"


def captured(star: Star, text: str):
    return capture_query(star.spark, text.format(s=star.schema))


def block_of(star: Star, text: str) -> Block:
    return definition_block(captured(star, text).document)


def outputs(block: Block) -> list[str]:
    return [repr(o.expr) for o in block.outputs]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, sum(amount) AS t FROM " + JOIN + " WHERE product = 'a' GROUP BY region",
        "SELECT region, sum(amount) AS t FROM {s}.sales, {s}.shops WHERE product = 'a' AND "
        "shop = id GROUP BY 1",
        "SELECT r AS region, sum(a) AS t FROM (SELECT region AS r, amount AS a, product AS p FROM "
        + JOIN
        + ") WHERE p = 'a' GROUP BY r",
        "WITH f AS (SELECT * FROM {s}.sales WHERE product = 'a') SELECT region, sum(amount) "
        "AS t FROM f "
        "JOIN {s}.shops ON f.shop = shops.id GROUP BY region",
    ],
)
def test_the_same_query_in_other_words_is_the_same_block(star: Star, text: str) -> None:
    block = block_of(star, text)
    assert [r.key for r in block.relations] == [star.sales, star.shops]
    assert [r.name for r in block.relations] == [f"{star.schema}.sales", f"{star.schema}.shops"]
    assert {repr(p) for p in block.predicates} == {
        "eq($0.product, 'a':string)",
        "eq($0.shop, $1.id)",
    }
    assert [repr(k) for k in block.group_keys or ()] == ["$1.region"]
    assert outputs(block) == ["$1.region", "sum($0.amount)"]
    assert [o.name for o in block.outputs] == ["region", "t"]


def test_nullability_and_types_are_spark_s_own(star: Star) -> None:
    block = block_of(star, "SELECT amount, shop FROM {s}.sales")
    assert [(o.expr.type, o.expr.nullable) for o in block.outputs] == [
        ("bigint", False),
        ("int", True),
    ]
    assert captured(star, "SELECT amount FROM {s}.sales").schema == (("amount", "bigint", False),)


EXPRESSIONS = {
    "amount BETWEEN 1 AND 3": "and(ge($0.amount, 1:bigint), le($0.amount, 3:bigint))",
    "product <> 'x'": "ne($0.product, 'x':string)",
    "product LIKE 'a_b%'": "like($0.product, 'a_b%':string)",
    "product LIKE 'a/_b%' ESCAPE '/'": "like($0.product, 'a/_b%':string;/)",
    "product LIKE 'ab%'": "startswith($0.product, 'ab':string)",
    "product IN ('x', 'y')": "in($0.product, 'x':string, 'y':string)",
    "try_add(shop, 1)": "try_add($0.shop, 1:int)",
    "try_cast(product AS INT)": "try_cast($0.product):int",
    "amount - shop": "sub($0.amount, cast($0.shop):bigint)",
    "if(shop = 1, 'a', product)": "case(eq($0.shop, 1:int), 'a':string, $0.product)",
    "nvl(product, '-')": "coalesce($0.product, '-':string)",
    "substring(product, 2)": "substring($0.product, 2:int)",
    "upper(product)": "upper($0.product)",
    "product IS NOT DISTINCT FROM 'x'": "nseq($0.product, 'x':string)",
    "-amount": "neg($0.amount)",
    "sha2(product, 256)": "spark:Sha2(cast($0.product):binary, 256:int)",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(star: Star, text: str) -> None:
    block = block_of(star, "SELECT " + text + " AS x FROM {s}.sales")
    assert outputs(block) == [EXPRESSIONS[text]]


AGGREGATES = {
    "count(*)": "count(*)",
    "count(1)": "count(*)",
    "count(product)": "count($0.product)",
    "count(DISTINCT product)": "count(distinct $0.product)",
    "avg(shop)": "avg($0.shop)",
    "try_sum(amount)": "try_sum($0.amount)",
    "sum(amount) FILTER (WHERE shop > 1)": "sum($0.amount) filter gt($0.shop, 1:int)",
    "first(product) IGNORE NULLS": "first($0.product;ignore nulls)",
    "any_value(product)": "first($0.product)",
    "bool_and(shop > 1)": "min(gt($0.shop, 1:int))",
    "approx_count_distinct(shop, 0.1)": "approx_count_distinct($0.shop;0.1)",
    "collect_set(shop)": "collect_set($0.shop)",
    "hll_sketch_agg(shop)": "hll_sketch_agg($0.shop, 12:int)",
    "stddev(shop)": "stddev_samp(cast($0.shop):double)",
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates(star: Star, text: str) -> None:
    assert outputs(block_of(star, "SELECT " + text + " AS x FROM {s}.sales")) == [AGGREGATES[text]]


def test_a_view_with_other_settings_is_read_where_they_make_no_difference(star: Star) -> None:
    star.spark.conf.set("spark.sql.ansi.enabled", "false")
    star.spark.sql(
        f"CREATE OR REPLACE VIEW {star.schema}.old AS SELECT CAST(product AS INT) AS p, "
        f"sum(amount) AS s "
        f"FROM {star.schema}.sales GROUP BY 1"
    )
    star.spark.conf.unset("spark.sql.ansi.enabled")
    document = captured(star, "SELECT p FROM {s}.old").document
    assert [repr(k) for k in next(blocks(document)).block.group_keys] == [
        "spark:Cast($0.product;LEGACY)"
    ]
    (found,) = [b for b in blocks(captured(star, "SELECT s FROM {s}.old").document) if not b.path]
    assert "wrapping_sum(" in repr(found.block.outputs), found.block.outputs


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        (
            "GROUPING SETS ((region, product), (region), (product, region), ())",
            ((0, 1), (0,), (0, 1), ()),
        ),
        ("region, product GROUPING SETS ((product), (region), (product))", ((1,), (0,), (1,))),
        ("CUBE (region, product)", ((0, 1), (0,), (1,), ())),
        ("ROLLUP (region, product)", ((0, 1), (0,), ())),
        ("GROUPING SETS ((region, product))", ((0, 1),)),
    ],
)
def test_grouping_sets(star: Star, clause: str, sets: tuple[tuple[int, ...], ...]) -> None:
    text = "SELECT grouping_id() AS g, region, product, sum(amount) AS s FROM " + JOIN
    block = block_of(star, f"{text} GROUP BY {clause}")
    assert [repr(k) for k in block.group_keys or ()] == ["$1.region", "$0.product"]
    assert set(block.grouping_sets or ()) == set(sets)
    assert len(block.grouping_sets or ()) == len(sets)
    assert outputs(block) == ["grouping_id()", "$1.region", "$0.product", "sum($0.amount)"]


def located(star: Star, text: str) -> list[LocatedBlock]:
    return list(blocks(captured(star, text).document))


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        (
            "SELECT sum(s.amount) FROM ({s}.sales s LEFT JOIN {s}.shops t ON s.shop = t.id) "
            "FULL JOIN {s}.shops u ON s.shop = u.id GROUP BY u.region",
            "UNSUPPORTED_OPERATOR",
            "FULL OUTER JOIN",
        ),
        (
            "SELECT sum(x) FROM (SELECT max(amount) AS x FROM {s}.sales GROUP BY CUBE (shop, "
            "product))",
            "UNSUPPORTED_OPERATOR",
            "GROUPING SETS",
        ),
        (
            "SELECT sum(amount) FROM (SELECT * FROM {s}.sales UNION ALL SELECT * FROM {s}.sales)",
            "UNSUPPORTED_OPERATOR",
            "UNION",
        ),
        ("SELECT shop, rand() AS r FROM {s}.sales", "NON_DETERMINISTIC", "rand"),
        ("SELECT max(_metadata.file_path) FROM {s}.sales", "UNSUPPORTED_EXPRESSION", "_metadata"),
        ("SELECT count(*) FROM {s}.sales VERSION AS OF 1", "UNSUPPORTED_RELATION", "version 1"),
        (
            "SELECT sum(amount) FROM {s}.sales WHERE amount > (SELECT avg(amount) FROM {s}.sales)",
            "UNSUPPORTED_EXPRESSION",
            "subquery",
        ),
        (
            "SELECT count(*) FROM {s}.sales TABLESAMPLE (10 PERCENT)",
            "UNSUPPORTED_OPERATOR",
            "TABLESAMPLE",
        ),
    ],
)
def test_what_is_no_block_says_why(star: Star, text: str, code: str, detail: str) -> None:
    first = located(star, text)[0]
    assert first.block is None
    assert first.reasons[0].code.value == code
    assert detail in first.reasons[0].detail


def test_blocks_come_outermost_first_and_barriers_open(star: Star) -> None:
    found = located(
        star,
        "SELECT sum(x) AS y FROM (SELECT max(amount) AS x FROM " + JOIN + " GROUP BY region "
        "UNION ALL SELECT amount FROM {s}.sales WHERE shop = 1)",
    )
    assert found[0].path == () and found[0].block is None
    good = [b for b in found if b.block is not None]
    assert good[0].block.group_keys is not None and len(good[0].block.relations) == 2
    assert [len(b.path) for b in found] == sorted(len(b.path) for b in found[:1]) + [
        len(b.path) for b in found[1:]
    ]
    assert any(b.block.group_keys is None and len(b.block.relations) == 1 for b in good)


def test_definitions_refuse_limit_and_having_on_sets_by_name(star: Star) -> None:
    text = "SELECT region, sum(amount) AS t FROM " + JOIN + " GROUP BY region"
    assert len(block_of(star, text + " HAVING sum(amount) > 1").having) == 1
    with pytest.raises(MatcherError, match="LIMIT without ORDER BY"):
        plan_definition("any_three", block_of(star, text + " LIMIT 3"))
    # Spark pushes the condition on a key below the groups; the projection stays where it names a
    # sum twice.
    sets = text + " WITH CUBE HAVING region IS NOT NULL"
    twice = f"SELECT region, t, t AS u FROM ({sets})"
    with pytest.raises(MatcherError, match="HAVING on grouping sets is not supported"):
        plan_definition("twice", block_of(star, twice))


@pytest.mark.parametrize(
    ("text", "construct", "place"),
    [
        ("SELECT shop,\n rand() AS r FROM {s}.sales", ("NON_DETERMINISTIC", "rand()"), (2, 2)),
        (
            "SELECT current_date() AS d FROM {s}.sales",
            ("SESSION_DEPENDENT", "current_date()"),
            (1, 8),
        ),
        (
            "SELECT current_user() AS d FROM {s}.sales",
            ("SESSION_DEPENDENT", "current_user()"),
            (1, 8),
        ),
        ("SELECT now() AS d FROM {s}.sales", ("SESSION_DEPENDENT", "now()"), (1, 8)),
        (
            "SELECT current_catalog() AS d FROM {s}.sales",
            ("SESSION_DEPENDENT", "current_catalog()"),
            (1, 8),
        ),
        (
            "SELECT shop FROM {s}.sales WHERE shop > least_shop",
            ("SESSION_DEPENDENT", "the variable least_shop"),
            None,
        ),
        ("SELECT input_file_name() AS d FROM {s}.sales", None, (1, 8)),
        ("SELECT monotonically_increasing_id() AS d FROM {s}.sales", None, (1, 8)),
        ("SELECT plus_one(shop) AS d FROM {s}.sales", ("UDF", "plus_one"), (1, 8)),
        ("SELECT * FROM tv_for_problems", ("TEMP_VIEW", "tv_for_problems"), None),
        (
            "SELECT shop FROM {s}.sales TABLESAMPLE (10 PERCENT)",
            ("TABLESAMPLE", "TABLESAMPLE"),
            None,
        ),
        ("SELECT shop FROM {s}.sales VERSION AS OF 1", ("TIME_TRAVEL", "sales"), None),
        ("SELECT id FROM range(3)", ("RELATION", "Range"), None),
        ("SELECT shop, explode(array(1)) AS e FROM {s}.sales", ("TABLE_FUNCTION", "explode"), None),
        ("SELECT _metadata.file_name AS f FROM {s}.sales", ("METADATA_COLUMN", "_metadata"), None),
        (
            "SELECT shop FROM {s}.sales WHERE shop IN (SELECT id FROM range(3))",
            ("RELATION", "Range"),
            None,
        ),
    ],
)
def test_problems_of_definitions(star: Star, text: str, construct: object, place: object) -> None:
    star.spark.udf.register("plus_one", lambda x: x + 1, "int")
    star.spark.sql(f"SELECT * FROM {star.schema}.sales").createOrReplaceTempView("tv_for_problems")
    star.spark.sql("DECLARE OR REPLACE VARIABLE least_shop INT DEFAULT 1")
    try:
        found = captured(star, text).problems
    finally:
        star.spark.sql("DROP TEMPORARY VARIABLE least_shop")
        star.spark.catalog.dropTempView("tv_for_problems")
    assert found
    if construct is not None:
        assert construct in [(p.construct, p.detail) for p in found]
    if place is not None:
        assert place == (found[0].line, found[0].col)


def test_a_clean_definition_has_no_problems_and_bad_names_are_spark_s_error(star: Star) -> None:
    assert (
        captured(star, "SELECT shop, sum(amount) AS s FROM {s}.sales GROUP BY shop").problems == ()
    )
    with pytest.raises(AnalysisException, match="no_such_column"):
        captured(star, "SELECT no_such_column FROM {s}.sales")


def test_run_select_over_two_versions_of_one_table(own_star: Star) -> None:
    star = own_star
    star.append(4, "c", 100)
    frame = run_select(
        star.spark,
        "SELECT `__t0`.s - x.s AS d, '\\\\d' AS lit FROM (SELECT sum(amount) AS s FROM new) "
        "AS `__t0`, "
        "(SELECT sum(amount) AS s FROM old) x",
        {"new": TableRead(star.sales, 2), "old": TableRead(star.sales, 1)},
    )
    assert [tuple(r) for r in frame.collect()] == [(100, "\\d")]
    with pytest.raises(Exception, match="nowhere"):
        run_select(star.spark, "SELECT 1 FROM nowhere", {})


def test_versions_and_first_commits(
    own_star: Star, tmp_path_factory: pytest.TempPathFactory
) -> None:
    star = own_star
    none = normalise_location(star.spark, f"{tmp_path_factory.mktemp('no')}/table/")
    assert not none.endswith("/")
    found = current_versions(star.spark, {star.sales: "sales", none: "none"})
    assert found[none] is None
    assert found[star.sales] is not None and found[star.sales].version == 1
    assert first_commit_after(star.spark, star.sales, 1) is None
    star.append(4, "c", 1)
    first = first_commit_after(star.spark, star.sales, 1)
    star.append(4, "c", 1)
    assert first == first_commit_after(star.spark, star.sales, 1)
    assert first is not None and first >= found[star.sales].timestamp_ms
    assert first_commit_after(star.spark, star.sales, 2) >= first
