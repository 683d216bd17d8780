# ruff: noqa: E501 - tables of SQL read better unbroken
"""Every way in which PySpark asks for rows: from which of them a cache answers, and that the rows are
what Spark gives without us. docs/matching.md has the table that comes out of it."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

import cachemgr
from cachemgr.metastore import open_metastore
from tests.worlds.lab_star import exact

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "matching.md"
README = ROOT / "README.md"
CACHE = (
    "by_region AS SELECT region, cust, SUM(amt) AS s, COUNT(amt) AS c, COUNT(*) AS n, "
    "MAX(day) AS last_day FROM sales GROUP BY region, cust"
)
QUERY = "SELECT region, SUM(amt) AS total, COUNT(*) AS n FROM sales GROUP BY region"
KEPT = "Spark computes lost rows again from their plan, when a cache's files may be gone: `KEPT_BY_SPARK`"
PLACED = "what it gives depends on where a row stands: `NON_DETERMINISTIC`"
EXACT = "from an exact cache only, whatever its MAX STALENESS"


@dataclass(frozen=True)
class Gesture:
    """A way to ask for rows.

    Args:
        shown: As the documentation has it.
        ask: Asks a DataFrame (of the session in the lab's place) and gives what can be compared.
        hit: Whether a cache answers.
        why: Said of it in the documentation.
        some: Any rows of the whole result are right, as many as without us.
    """

    shown: str
    ask: Callable[[Any, Asked], Any]
    hit: bool = True
    why: str = ""
    some: bool = False


@dataclass
class Asked:
    """The session asked, and a folder of its own."""

    spark: Any
    folder: Path
    name: str

    def table(self) -> str:
        return f"written_{self.name}"

    def path(self) -> str:
        return str(self.folder / self.name)


def _printed(act: Callable[[], None]) -> Counter[str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        act()
    return Counter(out.getvalue().splitlines())


def _rows(rows: Any) -> Counter[Any]:
    return Counter(exact(tuple(row)) for row in rows)


def _eager(df: Any, asked: Asked) -> Any:
    asked.spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
    try:
        return Counter(repr(df).splitlines()), sorted(df._repr_html_().splitlines())
    finally:
        asked.spark.conf.unset("spark.sql.repl.eagerEval.enabled")


def _pandas(df: Any, asked: Asked, arrow: bool) -> Any:
    key = "spark.sql.execution.arrow.pyspark.enabled"
    asked.spark.conf.set(key, str(arrow).lower())
    try:
        return sorted(df.toPandas().to_csv(index=False).splitlines())
    finally:
        asked.spark.conf.unset(key)


def _each(df: Any, asked: Asked, how: str) -> int:
    seen = asked.spark.sparkContext.accumulator(0)
    if how == "foreach":
        df.foreach(lambda row: seen.add(row.n))
    else:
        df.foreachPartition(lambda rows: seen.add(sum(row.n for row in rows)))
    return int(seen.value)


def _written(df: Any, asked: Asked, how: str) -> Counter[Any]:
    table, path = asked.table(), asked.path()
    if how == "saveAsTable":
        df.write.format("delta").saveAsTable(table)
    elif how == "insertInto":
        asked.spark.sql(f"CREATE TABLE {table} (region STRING, total BIGINT, n BIGINT) USING delta")
        df.write.insertInto(table)
    elif how == "writeTo":
        df.writeTo(table).using("delta").create()
    else:
        df.write.format(how).save(path)
        return _rows(asked.spark.read.format(how).load(path).collect())
    return _rows(asked.spark.sql(f"SELECT * FROM {table}").collect())


def _kept(df: Any, asked: Asked, how: str) -> Counter[Any]:
    kept = df.cache() if how == "cache" else df.persist()
    try:
        return _rows(kept.collect())
    finally:
        kept.unpersist(blocking=True)


def _view(df: Any, asked: Asked) -> Counter[Any]:
    df.createOrReplaceTempView("of_gestures")
    return _rows(asked.spark.sql("SELECT * FROM of_gestures WHERE total > 0").collect())


def _checkpoint(df: Any, asked: Asked) -> Counter[Any]:
    asked.spark.sparkContext.setCheckpointDir(asked.path())
    return _rows(df.checkpoint().collect())


def _doubled(df: Any, asked: Asked) -> Any:
    return df.withColumn("d", F.udf(lambda x: None if x is None else 2 * x, "bigint")("total"))


def _mapped(df: Any, asked: Asked) -> Any:
    return df.mapInPandas(lambda parts: parts, df.schema)


def _observed(df: Any, *metrics: Any) -> list[Any]:
    watched = Observation()
    df.observe(watched, *(m.alias(f"m{i}") for i, m in enumerate(metrics))).collect()
    return list(watched.get.values())


def _same_number(df: Any, act: Callable[[Any], Any]) -> int:
    return len(act(df))


GESTURES = (
    Gesture("collect()", lambda df, a: _rows(df.collect())),
    Gesture("show()", lambda df, a: _printed(df.show), why="also with truncate and vertical"),
    Gesture(
        "show(truncate=False, vertical=True)",
        lambda df, a: _printed(lambda: df.show(truncate=False, vertical=True)),
    ),
    Gesture("repr(df), _repr_html_() in a notebook", _eager, why="`spark.sql.repl.eagerEval.enabled`"),
    Gesture("take(n), head(n)", lambda df, a: df.take(2), some=True),
    Gesture("head(), first()", lambda df, a: [df.head(), df.first()], some=True),
    Gesture("limit(n)", lambda df, a: df.limit(2).collect(), some=True),
    Gesture("tail(n)", lambda df, a: df.tail(2), some=True),
    Gesture("isEmpty()", lambda df, a: df.isEmpty()),
    Gesture("count()", lambda df, a: df.count()),
    Gesture("toPandas(), with Arrow", lambda df, a: _pandas(df, a, True)),
    Gesture("toPandas(), without", lambda df, a: _pandas(df, a, False)),
    Gesture("toArrow()", lambda df, a: _rows(r.values() for r in df.toArrow().to_pylist())),
    Gesture("toLocalIterator()", lambda df, a: _rows(df.toLocalIterator())),
    Gesture("foreach(f)", lambda df, a: _each(df, a, "foreach")),
    Gesture("foreachPartition(f)", lambda df, a: _each(df, a, "foreachPartition")),
    Gesture("rdd, toJSON()", lambda df, a: (_rows(df.rdd.collect()), sorted(df.toJSON().collect()))),
    Gesture("write.parquet(…), save()", lambda df, a: _written(df, a, "parquet"), why=EXACT),
    Gesture("write.format('delta').save()", lambda df, a: _written(df, a, "delta"), why=EXACT),
    Gesture("write.saveAsTable(t)", lambda df, a: _written(df, a, "saveAsTable"), why=EXACT),
    Gesture("write.insertInto(t)", lambda df, a: _written(df, a, "insertInto"), why=EXACT),
    Gesture("writeTo(t).create()", lambda df, a: _written(df, a, "writeTo"), why=EXACT),
    Gesture("cache()", lambda df, a: _kept(df, a, "cache"), hit=False, why=KEPT),
    Gesture("persist()", lambda df, a: _kept(df, a, "persist"), hit=False, why=KEPT),
    Gesture("localCheckpoint()", lambda df, a: _rows(df.localCheckpoint().collect())),
    Gesture("checkpoint()", _checkpoint),
    Gesture(
        "createOrReplaceTempView(v)", _view,
        why="the view is the query: it is decided each time that somebody reads it",
    ),
    Gesture(
        "describe()", lambda df, a: _rows(df.describe().collect()), hit=False,
        why="its mean and deviation are floating sums, which depend on the order of rows",
    ),
    Gesture("summary()", lambda df, a: _rows(df.summary("min", "75%").collect())),
    Gesture("approxQuantile(…)", lambda df, a: df.approxQuantile("total", [0.5], 0.0)),
    Gesture("explain()", lambda df, a: bool(_printed(df.explain)), why="shows what would run"),
    Gesture("union(df)", lambda df, a: _rows(df.union(df).collect())),
    Gesture("distinct(), orderBy(…), filter(…)", lambda df, a: _rows(
        df.filter("total > 1").distinct().orderBy("n").collect())),
    Gesture("na.fill(…), withColumn(…)", lambda df, a: _rows(
        df.na.fill({"region": "?"}).withColumn("t", F.to_json(F.struct("total", "n"))).collect())),
    Gesture("withColumn(c, udf(…))", lambda df, a: _rows(_doubled(df, a).collect())),
    Gesture("mapInPandas(f, schema)", lambda df, a: _rows(_mapped(df, a).collect())),
    Gesture("repartition(n), coalesce(n)", lambda df, a: _rows(df.repartition(3).coalesce(1).collect())),
    Gesture(
        "sample(…), randomSplit(…)", lambda df, a: _rows(df.sample(1.0, seed=7).collect()),
        hit=False, why=PLACED,
    ),
    Gesture(
        "zipWithIndex()", lambda df, a: _rows(df.orderBy("region").zipWithIndex().collect()),
        hit=False, why=PLACED,
    ),
    Gesture("observe(o, count(…))", lambda df, a: _observed(df, F.count("*"), F.max("total"))),
    Gesture(
        "withColumn(c, rand(0))", lambda df, a: _rows(df.withColumn("r", F.rand(0)).collect()),
        hit=False, why=PLACED,
    ),
    Gesture(
        "inputFiles()", lambda df, a: all(Path(f.removeprefix("file:")).exists() for f in df.inputFiles()),
        why="the cache's files, which are what is read; none where its rows are in memory",
    ),
)  # fmt: skip


def as_text(session: Any) -> Any:
    return session.sql(QUERY)


def as_frame(session: Any) -> Any:
    grouped = session.table("sales").groupBy("region")
    return grouped.agg(F.sum("amt").alias("total"), F.count("*").alias("n"))


@pytest.fixture(scope="module")
def gestures_lab(spark, tmp_path_factory):
    from tests.worlds.lab_star import make_lab

    folder = tmp_path_factory.mktemp("gestures")
    for lab in make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}"):
        lab.cache(CACHE)
        yield lab


def ask(lab, gesture, make, name):
    """Asks with and without us; whether it was a hit."""
    number = GESTURES.index(gesture)
    before = lab.hits()
    got = gesture.ask(make(lab.spark), Asked(lab.spark, lab.folder, f"{name}{number}"))
    was_hit = lab.hits() > before
    wanted = gesture.ask(make(lab.plain), Asked(lab.plain, lab.folder, f"plain{name}{number}"))
    if gesture.some:
        every = _rows(make(lab.plain).collect())
        assert len(got) == len(wanted) and set(_rows(got)) <= set(every)
    else:
        assert got == wanted
    return was_hit


@pytest.mark.parametrize("gesture", GESTURES, ids=lambda g: g.shown)
def test_sql_text(gestures_lab, gesture):
    assert ask(gestures_lab, gesture, as_text, "sql") is gesture.hit


@pytest.mark.parametrize(
    "gesture",
    GESTURES,
    ids=lambda g: g.shown,
)
def test_dataframes(gestures_lab, gesture):
    assert ask(gestures_lab, gesture, as_frame, "df") is gesture.hit


def test_the_documentation_has_the_table():
    lines = ["| gesture | answered from | |", "|---|---|---|"]
    lines += [
        f"| `{g.shown}` | {'the cache' if g.hit else 'the tables'} | {g.why} |" for g in GESTURES
    ]
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)


def test_what_spark_is_to_keep_leaves_a_line_that_says_why(lab):
    lab.cache(CACHE)
    kept = lab.spark.sql(QUERY).cache()
    rows = kept.collect()
    kept.unpersist(blocking=True)
    lab.spark.sql(f"CACHE TABLE kept AS {QUERY}")
    lab.spark.sql("UNCACHE TABLE kept")
    assert _rows(rows) == _rows(lab.hit(QUERY))
    cachemgr.disable(lab.spark)  # flushes
    with open_metastore(lab.url) as metastore:
        found = [r["code"] for d in metastore.decisions.latest() for r in d.reasons]
    assert found.count("KEPT_BY_SPARK") == 2


OUTPUTS = (
    "SELECT region, plus(SUM(amt)) AS p, plus(plus(COUNT(*))) AS q FROM sales GROUP BY region",
    "SELECT plus(SUM(amt)), region FROM sales WHERE region > 'a' GROUP BY region HAVING SUM(amt) > 1",
    "SELECT plus(cust), region FROM sales GROUP BY cust, region",
    "SELECT region, to_json(named_struct('t', SUM(amt), 'n', COUNT(*))) FROM sales GROUP BY region",
    "SELECT region, named_struct('n', COUNT(*), 't', SUM(amt)) AS st FROM sales GROUP BY region",
    "SELECT plus(SUM(amt)) / COUNT(amt), 1, 'x' || plus(1) FROM sales",
    "SELECT array(region, 'x'), map('n', COUNT(*)) FROM sales GROUP BY region",
    "SELECT region, SUM(amt) / (SELECT SUM(cost) FROM sales) AS share FROM sales GROUP BY region",
    "SELECT plus(SUM(amt) FILTER (WHERE cust > 1)), region FROM sales GROUP BY region",
    "SELECT plus(COUNT(DISTINCT cust)), region FROM sales GROUP BY region",
    "SELECT plus(cust), region FROM (SELECT DISTINCT cust, region FROM sales)",
    "SELECT region, plus(cust), plus(SUM(amt)), grouping(cust), plus(grouping_id()) FROM sales "
    "GROUP BY ROLLUP (region, cust)",
    "SELECT region, transform(array(SUM(amt), COUNT(*)), x -> x + 1) FROM sales GROUP BY region",
)


def test_outputs_that_stay_above_what_is_replaced(lab):
    lab.cache(CACHE)
    for session in (lab.spark, lab.plain):
        session.udf.register("plus", lambda x: None if x is None else x + 1, "bigint")
    for query in OUTPUTS:
        try:
            lab.hit(query)
        except AssertionError as error:
            raise AssertionError(query) from error
    lab.miss("SELECT MAX(plus(amt)), region FROM sales GROUP BY region", "UNSUPPORTED_EXPRESSION")
    lab.miss("SELECT plus(SUM(cost)), region FROM sales GROUP BY region")


def test_shown_rows_of_other_blocks(lab):
    lab.cache("rows_kept AS SELECT id, region, price FROM sales WHERE id > 2")
    lab.cache("first_rows AS SELECT id, cust FROM sales ORDER BY id LIMIT 5")
    for query in (
        "SELECT id, price FROM sales WHERE id > 3",
        "SELECT id, cust FROM sales ORDER BY id LIMIT 4",
    ):
        lab.hit(query)
        before = lab.hits()
        shown = _printed(lab.spark.sql(query).show)
        assert lab.hits() > before, query
        assert shown == _printed(lab.plain.sql(query).show)


def test_padding_of_char_columns_stays_above(lab):
    lab.cache(CACHE)
    for session, table in ((lab.spark, "padded"), (lab.plain, "padded_plainly")):
        lab.plain.sql(f"CREATE TABLE {table} (region CHAR(8), total BIGINT) USING delta")
        before = lab.hits()
        session.sql(f"INSERT INTO {table} SELECT region, SUM(amt) FROM sales GROUP BY region")
        assert (lab.hits() > before) is (session is lab.spark)
    ours, theirs = (lab.plain.sql(f"SELECT * FROM {t}") for t in ("padded", "padded_plainly"))
    assert ours.schema == theirs.schema
    assert _rows(ours.collect()) == _rows(theirs.collect())


PLACED_ABOVE = (
    "SELECT *, rand(0) AS r FROM ({q})",
    "SELECT * FROM ({q}) WHERE rand(3) < 0.6",
    "SELECT *, monotonically_increasing_id() AS i FROM ({q})",
    "SELECT *, spark_partition_id() AS i FROM ({q})",
    "SELECT region, rand(1) AS r, SUM(amt) FROM sales GROUP BY region",
    "SELECT id, randn(1) AS r FROM sales WHERE id > 3",
    "SELECT id, shuffle(array(1, 2, 3), 5) AS r FROM sales WHERE id > 3",
    "SELECT id, input_file_name() FROM sales WHERE id > 3",
    "SELECT * FROM ({q}) ORDER BY rand(2)",
    "SELECT s, COUNT(*) FROM (SELECT *, rand(5) > 0.5 AS s FROM ({q})) GROUP BY s",
    "SELECT id FROM (SELECT id FROM sales WHERE id > 2) TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
)


def test_what_depends_on_the_place_of_rows_leaves_them_where_they_are(lab):
    lab.cache(CACHE)
    lab.cache("rows_kept AS SELECT id, region, price FROM sales WHERE id > 2")
    for query in PLACED_ABOVE:
        text = query.format(q=QUERY)
        lab.miss(text, "NON_DETERMINISTIC")
    # beside them, and where any row will do, caches answer
    lab.hit(f"SELECT a.region, a.total FROM ({QUERY}) a")
    lab.hit("SELECT cust, first(region, true) IS NULL FROM sales GROUP BY cust")


def test_numbers_of_rows_are_those_of_the_table(lab):
    """Two frames of one table, of which a cache answers one, are numbered alike."""
    lab.cache("rows_kept CLUSTER BY (region) AS SELECT id, region FROM sales WHERE id > 2")
    pairs = []
    for session in (lab.plain, lab.spark):
        ids, costs = (session.sql(f"SELECT {c} FROM sales WHERE id > 2") for c in ("id", "cost"))
        joined = ids.zipWithIndex().join(costs.zipWithIndex(), "index")
        pairs.append(_rows(joined.select("id", "cost").collect()))
    assert pairs[0] == pairs[1]
    assert "NON_DETERMINISTIC" in cachemgr.explain(lab.spark, ids.zipWithIndex()).text()


def test_metrics_that_show_the_order_of_rows(lab):
    lab.cache("rows_kept AS SELECT id, region, weight FROM sales WHERE id > 2")
    ids = "SELECT id, weight FROM sales WHERE id > 2"
    for metric, hits in (
        (F.count("*"), 1),
        (F.sum("id"), 1),
        (F.sum("weight"), 0),
        (F.min("weight"), 0),
    ):
        before = lab.hits()
        assert _observed(lab.spark.sql(ids), metric) == _observed(lab.plain.sql(ids), metric)
        assert lab.hits() - before == hits, metric


MOVED = ("repartition", "coalesce", "repartitionByRange", "sortWithinPartitions", "orderBy")


def test_rows_that_are_only_moved_before_they_are_grouped(lab):
    lab.cache(CACHE)
    lab.cache("rows_kept AS SELECT id, region, weight FROM sales WHERE id > 2")

    def moved(session, how):
        sales = session.table("sales")
        number = how in ("repartition", "coalesce")
        sales = getattr(sales, how)(*((3,) if number else ("id",)))
        return sales.groupBy("region").agg(F.sum("amt").alias("t"))

    for how in MOVED:
        before = lab.hits()
        assert _rows(moved(lab.spark, how).collect()) == _rows(moved(lab.plain, how).collect())
        assert lab.hits() == before + 1, how
    hinted = "SELECT /*+ REPARTITION(3) */ * FROM sales"
    lab.hit(f"SELECT region, SUM(amt) FROM ({hinted}) GROUP BY region")
    # in an order that was asked for, the first is no longer any
    lab.miss(
        "SELECT region, collect_list(cust) FROM (SELECT * FROM sales SORT BY id) GROUP BY region"
    )


def test_struct_fields(lab):
    lab.plain.sql(
        "CREATE TABLE nested (id INT, st STRUCT<a: INT, `b-c`: STRING, `a.b`: INT>) USING delta"
    )
    lab.plain.sql("INSERT INTO nested VALUES (1, named_struct('a', 1, 'b-c', 'x', 'a.b', 9)), "
                  "(2, NULL), (3, named_struct('a', NULL, 'b-c', 'y', 'a.b', 8)), (4, named_struct('a', 1, 'b-c', 'x', 'a.b', 7))")  # fmt: skip
    lab.cache("by_field AS SELECT st.a AS k, SUM(id) AS s, COUNT(*) AS n FROM nested GROUP BY st.a")
    lab.hit("SELECT st.a, SUM(id) FROM nested GROUP BY st.a")
    lab.hit("SELECT SUM(id) FROM nested WHERE st.a = 1")
    lab.hit("SELECT COUNT(*) FROM nested WHERE st.a IS NULL")
    lab.miss("SELECT COUNT(*) FROM nested WHERE st IS NULL")
    lab.miss("SELECT st.`b-c`, SUM(id) FROM nested GROUP BY st.`b-c`")
    lab.cache("whole AS SELECT id, st FROM nested WHERE id < 4")
    lab.hit("SELECT st.`b-c`, SUM(id) FROM nested WHERE id < 4 GROUP BY st.`b-c`")
    lab.hit("SELECT id, st.`a.b` FROM nested WHERE st.a = 1 AND id < 4")
    lab.hit("SELECT id FROM nested WHERE st IS NULL AND id < 4")
    lab.hit("SELECT id, IF(id = 3, NULL, st) AS c FROM nested WHERE id < 4")
    lab.hit(
        "SELECT CAST(st AS STRUCT<A: BIGINT, `b-c`: STRING, `d e`: INT>) AS c FROM nested WHERE id < 4"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region GROUPING SETS ((), (region))",
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY ROLLUP (region, cust)",
        "SELECT SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY region, city GROUPING SETS ((region, city), ())",
        "SELECT region, COUNT(*) AS n FROM sales GROUP BY region HAVING COUNT(*) > 1",
        "SELECT region FROM sales GROUP BY CUBE (region) HAVING SUM(amt) > 1",
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region ORDER BY s LIMIT 2",
        "SELECT DISTINCT region, cust FROM sales",
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region UNION ALL SELECT 'x', 1",
    ],
)
def test_rows_alone(lab, query):
    """Catalyst then asks for none of a block's columns."""
    lab.cache(CACHE)
    for ask in (lambda frame: frame.count(), lambda frame: frame.selectExpr("1 AS x").collect()):
        before = lab.hits()
        assert ask(lab.spark.sql(query)) == ask(lab.plain.sql(query))
        assert lab.hits() == before + 1, cachemgr.explain(lab.spark, query).text()
