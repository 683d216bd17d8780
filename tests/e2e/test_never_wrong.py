# ruff: noqa: E501 - tables of SQL read better unbroken
"""Every point of docs/contract.md that needs the whole product, as a test by name.

`POINTS` maps each point to the tests that hold it; points whose tests live elsewhere name the file.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

import cachemgr
from cachemgr.errors import CacheManagerError
from cachemgr.spark import hook
from cachemgr.spark import session as session_module
from tests.worlds.lab_star import JOIN, SALES, make_lab

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[1]
POINTS = {
    "where the hook sits: df first, append, then collect, filter, view": "test_a_dataframe_made_before_an_append",
    "schema: names, types and order are the original's": "test_names_types_and_order_are_the_originals",
    "snapshots: an unpublished commit on top is never read": "test_a_commit_that_was_not_published_is_never_read",
    "the fence: the same commit number twice, a lost lease": "refresh/test_refresh_crash.py",
    "the user's own insert during a refresh": "refresh/test_full_refresh.py",
    "freshness: STRICT": "test_strict_shows_what_was_appended_or_misses",
    "freshness: MAX STALENESS": "test_max_staleness_hits_within_its_bound_only",
    "freshness: a re-created table with as many versions": "test_a_recreated_table_with_as_many_versions",
    "freshness: a view redefined after the refresh": "test_a_view_redefined_after_the_refresh",
    "freshness: tables without versions": "test_a_parquet_table_cannot_be_cached",
    "one moment a query: stale cache and today's dimension": "test_a_stale_cache_and_todays_dimension",
    "one moment a query: two caches of different snapshots": "test_two_caches_with_different_snapshots",
    "one moment a query: subqueries": "test_a_stale_cache_beside_a_subquery",
    "one moment a query: a commit while it is planned": "test_a_commit_between_the_decisions_on_a_query_and_its_subquery",
    "places: names shadowed by a temp view or a CTE": "test_a_temp_view_or_cte_that_shadows_a_base_table",
    "places: what reads other rows than the table's": "test_what_reads_other_rows_than_the_tables_is_a_miss",
    "places: runSQLOnFiles=false": "test_runsqlonfiles_false_breaks_nothing",
    "settings: each result-changing one": "test_each_result_changing_setting",
    "semantics: NULL keys are not 'not grouped'": "test_null_keys_are_not_not_grouped",
    "semantics: COUNT over nothing": "test_count_over_nothing_is_zero",
    "semantics: AVG": "test_avg_from_sum_and_count_only_where_exact",
    "semantics: SUM(a - b) with one NULL": "test_sum_of_a_difference_with_a_null",
    "semantics: overflow types": "test_decimal_and_integer_overflow_types",
    "semantics: floats": "test_floats_only_when_allowed",
    "semantics: DISTINCT": "test_count_distinct_only_from_the_keys",
    "semantics: LIMIT below a compensation": "test_limit_below_a_compensation",
    "semantics: non-deterministic": "e2e/test_bad_input.py",
    "Spark's traps: a cube over nothing": "test_a_global_aggregate_over_an_empty_table",
    "Spark's traps: GROUP BY prefers the input column": "test_group_by_prefers_the_input_column",
    "Spark's traps: NULL/0": "test_division_by_zero_is_the_originals",
    "duplicate grouping sets": "test_duplicate_grouping_sets_count_once",
    "joins: broken after it was declared": "test_a_join_broken_after_it_was_declared",
    "joins: NULL keys": "test_a_join_with_null_keys_is_refused",
    "joins: an extra table with a predicate": "test_an_extra_table_with_a_predicate",
    "joins: fan-out": "test_fan_out_by_a_join_that_is_not_record_preserving",
    "joins: NOT VALIDATED": "test_unvalidated_joins_serve_only_when_trusted",
    "after planning: DROP between planning and the end": "test_drop_between_planning_and_the_end_of_a_query",
    "after planning: disable reaches other sessions": "test_drop_reaches_another_session",
    "writes": "test_writes_take_strict_caches_only",
    "writes: into what they read": "test_a_write_that_reads_the_table_it_writes_is_left_to_delta",
    "writes: view and cache bodies": "test_views_and_cached_tables_hold_no_rewrite",
    "who may see it": "e2e/test_statements.py",
    "never in the way: an error inside the matcher": "test_an_error_inside_the_matcher_never_reaches_the_user",
}  # fmt: skip

TOTALS = "SELECT region, SUM(amt) AS total FROM sales GROUP BY region"
WIDE = (
    "wide AS SELECT region, day, cust, SUM(amt) AS s, COUNT(amt) AS c, COUNT(*) AS n, "
    "MIN(amt) AS lo, MAX(amt) AS hi, SUM(cost) AS sc, COUNT(cost) AS cc, SUM(price) AS sp, "
    "COUNT(price) AS cp, SUM(weight) AS sw, AVG(amt) AS a, SUM(amt - cost) AS diff "
    "FROM sales GROUP BY region, day, cust"
)


def test_every_point_is_on_the_page_and_every_section_has_one():
    page = (ROOT.parent / "docs" / "contract.md").read_text()
    sections = {line[3:].lower() for line in page.splitlines() if line.startswith("## ")}
    named = {point.partition(":")[0].lower() for point in POINTS}
    assert named - sections == {"the user's own insert during a refresh"}
    elsewhere = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    for section in elsewhere:
        title, _, text = section.partition("\n")
        files = re.findall(r"`tests/([a-z0-9_/]+\.py)`", text)
        assert title.lower() in named or files, f"nothing holds {title}"
        assert all((ROOT / file).exists() for file in files), title


def test_every_point_names_a_test_that_exists():
    here = Path(__file__).read_text()
    for point, where in POINTS.items():
        if where.endswith(".py"):
            assert (ROOT / where).exists(), point
        else:
            assert f"def {where}(" in here, point


@pytest.fixture(scope="module")
def wide(spark, tmp_path_factory):
    """One cache for the tests that change nothing."""
    folder = tmp_path_factory.mktemp("wide")
    for lab in make_lab(spark, folder, f"sqlite:///{folder / 'm.db'}"):
        lab.cache(WIDE)
        yield lab


# -- semantics -----------------------------------------------------------------------------


def test_names_types_and_order_are_the_originals(wide):
    wide.hit("SELECT SUM(amt), region FROM sales GROUP BY region")
    wide.hit("SELECT region AS `Ünï code`, COUNT(*) `n`, SUM(price) FROM sales GROUP BY 1")
    wide.hit("SELECT region, SUM(amt) AS x FROM sales GROUP BY region ORDER BY x DESC, region")
    frame = wide.spark.table("sales").groupBy("region").sum("amt")
    plain = wide.plain.table("sales").groupBy("region").sum("amt")
    before = wide.hits()
    assert sorted(map(str, frame.collect())) == sorted(map(str, plain.collect()))
    assert wide.hits() == before + 1 and frame.schema == plain.schema


def test_null_keys_are_not_not_grouped(wide):
    wide.hit("SELECT region, COUNT(*) FROM sales GROUP BY region")
    wide.hit("SELECT COUNT(*) FROM sales WHERE region IS NULL")
    wide.hit("SELECT SUM(amt) FROM sales WHERE NOT (region = 'north')")
    wide.hit("SELECT SUM(amt) FROM sales WHERE region <=> NULL")


def test_count_over_nothing_is_zero(wide):
    rows = wide.hit("SELECT COUNT(*), COUNT(amt), SUM(amt) FROM sales WHERE region = 'nowhere'")
    assert [tuple(r) for r in rows] == [(0, 0, None)]
    assert wide.hit("SELECT region, COUNT(*) FROM sales WHERE region = 'x' GROUP BY region") == []


def test_avg_from_sum_and_count_only_where_exact(wide):
    wide.hit("SELECT region, AVG(price) FROM sales GROUP BY region")
    wide.hit("SELECT region, AVG(amt) FROM sales GROUP BY region")
    wide.miss("SELECT region, AVG(weight) FROM sales GROUP BY region")


def test_avg_of_huge_integers_is_refused(lab):
    lab.plain.sql("INSERT INTO sales SELECT 99, NULL, 'north', 1, 9007199254740993, 1, 1, 1")
    lab.cache("big AS SELECT region, cust, AVG(amt) AS a FROM sales GROUP BY region, cust")
    lab.miss("SELECT region, AVG(amt) FROM sales GROUP BY region", "AVG_NOT_EXACT")
    lab.hit("SELECT region, cust, AVG(amt) FROM sales GROUP BY region, cust")


def test_sum_of_a_difference_with_a_null(wide):
    wide.hit("SELECT region, SUM(amt - cost) FROM sales GROUP BY region")
    wide.miss("SELECT region, SUM(cost - amt) FROM sales GROUP BY region")


def test_decimal_and_integer_overflow_types(wide):
    rows = wide.hit("SELECT SUM(price) FROM sales")
    assert rows[0][0] is not None
    wide.hit("SELECT SUM(amt) + 1 AS x, SUM(price) * 2 AS y FROM sales")


def test_an_overflow_that_the_original_raises_is_never_turned_into_rows(lab):
    lab.plain.sql("INSERT INTO sales SELECT 90, NULL, 'x', 1, 9223372036854775807, 1, 1, 1")
    lab.plain.sql("INSERT INTO sales SELECT 91, NULL, 'x', 2, 9223372036854775807, 1, 1, 1")
    lab.cache("s AS SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY region, cust")
    # the total is a DECIMAL by then, which no BIGINT holds
    for session, error in ((lab.plain, "ARITHMETIC_OVERFLOW"), (lab.spark, "CAST_OVERFLOW")):
        with pytest.raises(Exception, match=error):
            session.sql(TOTALS).collect()


def test_floats_only_when_allowed(wide):
    query = "SELECT region, SUM(weight) FROM sales GROUP BY region"
    wide.miss(query, "FLOAT_NOT_EXACT")
    wide.hit("SELECT region, day, cust, SUM(weight) FROM sales GROUP BY region, day, cust")
    with wide.conf(spark__cachemgr__approximateFloats="true"):
        assert cachemgr.explain(wide.spark, query).hit


def test_count_distinct_only_from_the_keys(wide):
    wide.miss("SELECT region, COUNT(DISTINCT amt) FROM sales GROUP BY region")
    rows = wide.plain.sql("SELECT region, COUNT(DISTINCT day) FROM sales GROUP BY region")
    got = wide.spark.sql("SELECT region, COUNT(DISTINCT day) FROM sales GROUP BY region")
    assert sorted(map(str, got.collect())) == sorted(map(str, rows.collect()))


def test_limit_below_a_compensation(wide):
    wide.hit(TOTALS + " ORDER BY total DESC NULLS LAST, region LIMIT 2")
    inner = "(SELECT region, amt FROM sales ORDER BY id LIMIT 3)"
    wide.miss(f"SELECT region, SUM(amt) FROM {inner} GROUP BY region")
    below = "SELECT SUM(total) FROM (SELECT region, SUM(amt) AS total FROM sales GROUP BY region "
    wide.hit(below + "ORDER BY total DESC NULLS LAST LIMIT 2)")


def test_group_by_prefers_the_input_column(wide):
    wide.hit("SELECT upper(region) AS region, COUNT(*) FROM sales GROUP BY region")


def test_division_by_zero_is_the_originals(wide):
    query = "SELECT region, SUM(amt) / NULLIF(COUNT(cost), 0) FROM sales GROUP BY region"
    wide.hit(query)
    for session in (wide.plain, wide.spark):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            session.sql(
                "SELECT region, day, SUM(amt) / COUNT(cost) FROM sales GROUP BY region, day"
            ).collect()


def test_a_global_aggregate_over_an_empty_table(lab):
    lab.plain.sql("DELETE FROM sales")
    lab.cache(
        "cube AS SELECT region, day, COUNT(*) AS n, SUM(amt) AS s FROM sales "
        "GROUP BY region, day GROUPING SETS ((region, day), (region), ())"
    )
    query = "SELECT COUNT(*), SUM(amt) FROM sales"
    assert [tuple(r) for r in lab.plain.sql(query).collect()] == [(0, None)]
    assert [tuple(r) for r in lab.sql(query)] == [(0, None)]
    lab.hit("SELECT region, COUNT(*) FROM sales GROUP BY region")


def test_duplicate_grouping_sets_count_once(lab):
    lab.cache(
        "dup AS SELECT GROUPING_ID(), region, day, SUM(amt) AS s, COUNT(*) AS n FROM sales "
        "GROUP BY region, day GROUPING SETS ((region, day), (day, region), (region), (region))"
    )
    lab.hit(TOTALS)
    lab.hit("SELECT day, COUNT(*) FROM sales GROUP BY day")
    lab.hit("SELECT region, day, SUM(amt) FROM sales GROUP BY region, day")


# -- freshness and snapshots ---------------------------------------------------------------


def test_a_dataframe_made_before_an_append(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region")
    made, plain = lab.spark.sql(TOTALS), lab.plain.sql(TOTALS)
    filtered = lab.spark.sql(TOTALS).filter("region = 'new'")
    made_view = lab.spark.sql(TOTALS)
    made_view.createOrReplaceTempView("v")
    lab.plain.sql("INSERT INTO sales SELECT 50, NULL, 'new', 1, 5, 5, 5, 5")
    assert sorted(map(str, made.collect())) == sorted(map(str, plain.collect()))
    assert [tuple(r) for r in filtered.collect()] == [("new", 5)]
    assert ("new", 5) in [tuple(r) for r in lab.sql("SELECT * FROM v")]


def test_strict_shows_what_was_appended_or_misses(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.hit(TOTALS)
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
    lab.plain.sql("DELETE FROM sales WHERE id = 2")
    lab.miss(TOTALS, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)


def stale_hit(lab, query):
    """Run a query that a stale cache may answer: (was a hit, rows)."""
    before = lab.hits()
    rows = lab.sql(query)
    return lab.hits() > before, rows


def test_max_staleness_hits_within_its_bound_only(lab):
    lab.cache(
        "r MAX STALENESS INTERVAL 1 HOUR AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    before = sorted(map(str, lab.sql(TOTALS)))
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    hit, rows = stale_hit(lab, TOTALS)
    assert hit and sorted(map(str, rows)) == before
    lab.sql("ALTER RELATIONAL CACHE r SET MAX STALENESS INTERVAL 20 SECONDS")
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
    lab.hit(TOTALS)  # with what was appended
    lab.sql("ALTER RELATIONAL CACHE r SET MAX STALENESS UNLIMITED")
    assert stale_hit(lab, TOTALS)[0]


def test_a_recreated_table_with_as_many_versions(lab):
    lab.cache(
        "r MAX STALENESS UNLIMITED AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    place = lab.plain.sql("DESCRIBE DETAIL sales").first().location
    lab.plain.sql("DROP TABLE sales")
    lab.plain.sql(SALES)
    lab.plain.sql("INSERT INTO sales SELECT 1, NULL, 'other', 1, 1, 1, 1, 1")
    assert lab.plain.sql("DESCRIBE DETAIL sales").first().location == place
    lab.miss(TOTALS, "TABLE_RECREATED")


def test_a_view_redefined_after_the_refresh(lab):
    lab.plain.sql("CREATE VIEW v AS SELECT region, amt FROM sales WHERE cust = 1")
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM v GROUP BY region")
    query = "SELECT region, SUM(amt) FROM v GROUP BY region"
    lab.hit(query)
    lab.plain.sql("CREATE OR REPLACE VIEW v AS SELECT region, amt FROM sales WHERE cust = 2")
    lab.miss(query)
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(query)


def test_a_parquet_table_cannot_be_cached(lab):
    lab.plain.sql("CREATE TABLE pq USING parquet AS SELECT 1 AS k, 2 AS v")
    with pytest.raises(CacheManagerError, match="not a Delta table"):
        lab.sql("CREATE RELATIONAL CACHE p AS SELECT k, SUM(v) AS s FROM pq GROUP BY k")


def test_a_commit_that_was_not_published_is_never_read(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    location = metastore.caches.all()[0].location
    lab.plain.sql(f"UPDATE delta.`{location}` SET s = -1")
    lab.hit(TOTALS)
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)


def test_a_stale_cache_and_todays_dimension(lab):
    lab.cache("r MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = (
        "SELECT city, total FROM (SELECT cust, SUM(amt) AS total FROM sales GROUP BY cust) t "
        "JOIN cust ON t.cust = cid"
    )
    lab.hit(query)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    with lab.caches_alone():
        lab.miss(query, "MIXED_SNAPSHOTS")
    lab.hit(query)  # with what was appended, so as of now
    lab.plain.sql("DELETE FROM sales WHERE id = 2")
    lab.miss(query, "MIXED_SNAPSHOTS")
    assert stale_hit(lab, "SELECT cust, SUM(amt) FROM sales GROUP BY cust")[0]


def test_two_caches_with_different_snapshots(lab):
    lab.cache("r1 MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.cache("r2 MAX STALENESS UNLIMITED AS SELECT cust, MAX(cost) AS m FROM sales GROUP BY cust")
    query = (
        "SELECT a.cust, s, m FROM (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) a "
        "JOIN (SELECT cust, MAX(cost) AS m FROM sales GROUP BY cust) b ON a.cust = b.cust"
    )
    with lab.caches_alone():
        before = lab.hits()
        assert sorted(map(str, lab.sql(query))) == sorted(map(str, lab.plain.sql(query).collect()))
        assert lab.hits() == before + 1, "the current one serves, the stale one does not"
        assert cachemgr.explain(lab.spark, query).caches == (f"{lab.schema}.r2",)
    lab.hit(query)
    assert len(cachemgr.explain(lab.spark, query).caches) == 2, "one with what was appended since"


def test_a_stale_cache_beside_a_subquery(lab):
    lab.cache("r MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = (
        "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust "
        "HAVING SUM(amt) >= (SELECT AVG(amt) FROM sales)"
    )
    lab.plain.sql("INSERT INTO sales SELECT 77, NULL, 'x', 1, 1000, 1, 1, 1")
    scalar = "SELECT city, (SELECT SUM(amt) FROM sales) AS t FROM cust"
    with lab.caches_alone():
        lab.miss(query, "MIXED_SNAPSHOTS")
        lab.miss(scalar)
    lab.hit(query)
    lab.hit(scalar)


def commits_after_decisions(lab, monkeypatch, commits):
    """What each of the coming decisions put in place, if anything; `commits` are the statements
    that run right after a decision, by its number."""
    decide = session_module.CacheSession.decide
    made = []

    def commit(statements) -> None:
        with hook.suspended(lab.plain):
            for statement in statements:
                lab.plain.sql(statement)

    def decide_then_commit(self, document, context):
        found = decide(self, document, context)
        made.append(bool(found))
        if len(made) in commits:
            # in a thread of its own, as this one may be in a transaction of Delta's
            other = threading.Thread(target=commit, args=[commits[len(made)]])
            other.start()
            other.join()
        return found

    monkeypatch.setattr(session_module.CacheSession, "decide", decide_then_commit)
    return made


@pytest.mark.parametrize(
    "query",
    [
        # the subquery is answered from the cache, its query reads the table
        "SELECT MAX(id), (SELECT SUM(amt) FROM sales) AS t FROM sales",
        # the query is answered from the cache, its subquery reads the table
        "SELECT SUM(amt) AS s FROM sales HAVING SUM(amt) <> (SELECT MAX(id) FROM sales)",
        # one subquery from the cache, one from the table, and a query over neither
        "SELECT (SELECT SUM(amt) FROM sales) AS t, (SELECT MAX(id) FROM sales) AS m FROM cust",
        "SELECT (SELECT MAX(id) FROM sales) AS m, (SELECT SUM(amt) FROM sales) AS t FROM cust",
    ],
)
def test_a_commit_between_the_decisions_on_a_query_and_its_subquery(lab, monkeypatch, query):
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    expected = lab.plain.sql(query).collect()
    append = "INSERT INTO sales SELECT {}, NULL, 'x', 1, 1000, 1, 1, 1"
    commits = {number: [append.format(100 + number)] for number in (1, 2, 3)}
    made = commits_after_decisions(lab, monkeypatch, commits)
    assert lab.spark.sql(query).collect() == expected
    assert any(made)


@pytest.mark.parametrize(
    "write",
    [
        "INSERT INTO written {}",
        "CREATE OR REPLACE TABLE written USING delta AS {}",
        "INSERT OVERWRITE DIRECTORY '{{place}}' USING parquet {}",
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS part, SUM(amt) AS s FROM sales "
        "UNION ALL SELECT 2 AS part, SUM(amt) AS s FROM sales WHERE id >= 0",
        "SELECT 1 AS part, s FROM (SELECT SUM(amt) AS s FROM sales WHERE id >= 0) "
        "UNION ALL SELECT 2 AS part, (SELECT SUM(amt) FROM sales) AS s",
    ],
)
def test_a_write_sees_its_tables_at_one_moment(lab, monkeypatch, tmp_path, query, write):
    """One part of what is written is answered from the cache, the other reads the table."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.plain.sql("CREATE TABLE written (part INT, s BIGINT) USING delta")
    append = ["INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1"]
    made = commits_after_decisions(lab, monkeypatch, {n: append for n in range(1, 9)})
    place = tmp_path / "written"
    lab.spark.sql(write.format(query).replace("{place}", str(place)))
    written = lab.plain.read.parquet(str(place)) if place.exists() else lab.plain.table("written")
    first, second = sorted(written.collect())
    assert (first.part, second.part) == (1, 2) and first.s == second.s
    assert any(made)


@pytest.mark.parametrize("decision", [1, 2])
def test_a_merge_reads_its_source_at_one_moment(lab, monkeypatch, decision):
    """It is read twice, to find the files with matches and to write them again."""
    lab.plain.sql("CREATE TABLE base (k STRING, x INT) USING delta")
    lab.plain.sql("INSERT INTO base VALUES ('a', 6)")
    lab.plain.sql("CREATE TABLE merged (k STRING, s BIGINT) USING delta")
    lab.plain.sql("INSERT INTO merged VALUES ('a', 0)")
    lab.cache("c AS SELECT k, SUM(x) AS s FROM base GROUP BY k")
    made = commits_after_decisions(lab, monkeypatch, {decision: ["UPDATE base SET x = 1"]})
    with lab.conf(spark__databricks__delta__merge__materializeSource="none"):
        lab.spark.sql(
            "MERGE INTO merged USING (SELECT 'a' AS k, (SELECT SUM(x) FROM base) AS s) q "
            "ON merged.k = q.k AND q.s < 3 "
            "WHEN MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT *"
        )
    written = sorted(map(tuple, lab.plain.table("merged").collect()))
    assert written in ([("a", 0), ("a", 6)], [("a", 1)])
    assert any(made) and len(made) >= decision, made


def test_commits_after_the_decisions_on_two_subqueries(lab, monkeypatch):
    """One is answered from a cache, the other reads its table: as it was when it was decided."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.cache("of_cust AS SELECT nation, COUNT(*) AS n FROM cust GROUP BY nation")
    query = "SELECT (SELECT MAX(cid) FROM cust) AS m, (SELECT SUM(amt) FROM sales) AS t"
    expected = lab.plain.sql(query).collect()
    appends = [
        "INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1",
        "INSERT INTO cust SELECT 100, 'x', 'y'",
    ]
    made = commits_after_decisions(lab, monkeypatch, {2: appends})
    assert lab.spark.sql(query).collect() == expected
    assert sorted(made) == [False, True]


def fail_second(lab, made, decide):
    if made:
        raise RuntimeError("the second decision")
    return decide()


def disable_behind_the_first(lab, made, decide):
    """As when a server's sidecar ends meanwhile."""
    found = decide()
    cachemgr.disable(lab.spark)
    return found


@pytest.mark.parametrize("second", [fail_second, disable_behind_the_first])
def test_what_is_left_alone_behind_a_decision_on_a_subquery(lab, monkeypatch, second):
    """The subquery is answered from a cache by then: its query reads the table at that moment."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = "SELECT MAX(id) AS m, (SELECT SUM(amt) FROM sales) AS t FROM sales"
    expected = lab.plain.sql(query).collect()
    append = "INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1"
    made = commits_after_decisions(lab, monkeypatch, {1: [append]})
    decide = session_module.CacheSession.decide

    def decide_or_not(self, document, context):
        return second(lab, made, lambda: decide(self, document, context))

    monkeypatch.setattr(session_module.CacheSession, "decide", decide_or_not)
    with lab.conf(spark__cachemgr__mode="rewrite"):
        assert lab.spark.sql(query).collect() == expected
    assert made == [True]


def left_to_delta(lab):
    return hook.counters(lab.spark).get("own_target", 0)


def test_a_write_that_reads_the_table_it_writes_is_left_to_delta(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.plain.sql("CREATE TABLE totals (region STRING, total BIGINT) USING delta")
    before = lab.hits(), left_to_delta(lab)
    lab.sql(f"INSERT INTO totals {TOTALS}")
    assert lab.hits() > before[0] and left_to_delta(lab) == before[1]
    lab.sql("INSERT INTO sales SELECT 99, NULL, region, 1, total, 1, 1, 1 FROM "
            "(SELECT region, SUM(amt) AS total FROM sales GROUP BY region)")  # fmt: skip
    assert left_to_delta(lab) > before[1]
    rows = lab.plain.sql("SELECT region, amt FROM sales WHERE id = 99").collect()
    assert sorted(map(str, rows)) == sorted(
        str(r) for r in lab.plain.sql("SELECT region, total AS amt FROM totals").collect()
    )


@pytest.mark.parametrize(
    "select",
    [
        # the query of IN is answered from a cache, and what is around it reads the target
        "SELECT id + 100, day, region, cust, amt, cost, price, weight FROM sales "
        "WHERE cust IN (SELECT cid FROM cust)",
        # decided before its query
        "SELECT id + 100, day, region, cust, (SELECT COUNT(*) FROM cust), cost, price, weight "
        "FROM sales",
    ],
)
def test_delta_sees_what_a_write_reads_of_its_target_beside_a_cache(lab, select):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.cache("cities AS SELECT cid, COUNT(*) AS n FROM cust GROUP BY cid")
    before = left_to_delta(lab), lab.hits()
    lab.sql(f"INSERT INTO sales {select}")
    assert left_to_delta(lab) > before[0] and lab.hits() > before[1]
    [written] = lab.plain.sql("DESCRIBE HISTORY sales LIMIT 1").collect()
    assert written.isBlindAppend is False, "whoever deletes what it read is in conflict with it"


def test_a_write_to_its_source_sees_other_tables_at_one_moment(lab, monkeypatch):
    """The subquery is answered from a cache of `cust`, which its query reads beside its target."""
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.cache("cities AS SELECT nation, COUNT(*) AS n FROM cust GROUP BY nation")
    more = ["INSERT INTO cust VALUES (9, 'Pisa', 'Italy')"]
    made = commits_after_decisions(lab, monkeypatch, {n: more for n in range(1, 9)})
    lab.spark.sql(
        "INSERT INTO sales SELECT 500, NULL, 'x', 1, m, (SELECT COUNT(*) FROM cust), 1, 1 FROM "
        "(SELECT COUNT(*) AS m FROM cust WHERE cid > 0) CROSS JOIN (SELECT MAX(id) FROM sales)"
    )
    [row] = lab.plain.sql("SELECT amt, cost FROM sales WHERE id = 500").collect()
    assert row.amt == row.cost and any(made)


# -- places and names ----------------------------------------------------------------------


def test_a_temp_view_or_cte_that_shadows_a_base_table(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.miss(f"WITH sales AS (SELECT 'x' AS region, 1L AS amt) {TOTALS}")
    for session in (lab.spark, lab.plain):
        session.sql("CREATE TEMP VIEW sales AS SELECT 'y' AS region, 2L AS amt")
    lab.miss(TOTALS)
    lab.hit(TOTALS.replace("sales", f"{lab.schema}.sales"))
    lab.hit(f"WITH t AS (SELECT * FROM {lab.schema}.sales) {TOTALS.replace('sales', 't')}")


@pytest.mark.parametrize(
    "source",
    ["sales TABLESAMPLE (100 PERCENT)", "sales VERSION AS OF 1", "(SELECT explode(array(amt)) "
     "AS amt, region FROM sales)"],
)  # fmt: skip
def test_what_reads_other_rows_than_the_tables_is_a_miss(wide, source):
    query = f"SELECT region, SUM(amt) FROM {source} GROUP BY region"
    wide.miss(query)


def test_metadata_columns_are_a_miss(wide):
    wide.miss("SELECT MIN(_metadata.file_name), SUM(amt) FROM sales")


def test_runsqlonfiles_false_breaks_nothing(wide):
    with wide.conf(spark__sql__runSQLOnFiles="false"):
        wide.hit(TOTALS)


def test_parameters_and_other_schemas(wide):
    query = f"SELECT region, SUM(amt) FROM {wide.schema}.sales WHERE region = :r GROUP BY region"
    before = wide.hits()
    wide.spark.sql("USE default")
    try:
        got = wide.spark.sql(query, args={"r": "north"}).collect()
    finally:
        wide.spark.sql(f"USE {wide.schema}")
    assert [tuple(r) for r in got] == [("north", 50)] and wide.hits() == before + 1


# -- settings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
    ],
)
def test_each_result_changing_setting(wide, key, value):
    with wide.conf(**{key.replace(".", "__"): value}):
        wide.miss(TOTALS, "SETTINGS_DIFFER")
    wide.hit(TOTALS)


def test_settings_that_cannot_change_rows_do_not_matter(wide):
    with wide.conf(spark__sql__shuffle__partitions="3", spark__sql__adaptive__enabled="false"):
        wide.hit(TOTALS)


def test_a_cache_is_refreshed_under_its_own_settings(lab):
    with lab.conf(spark__sql__ansi__enabled="false"):
        lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
        lab.hit(TOTALS)
    lab.miss(TOTALS, "SETTINGS_DIFFER")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.miss(TOTALS, "SETTINGS_DIFFER")


# -- record-preserving joins ---------------------------------------------------------------

JOINED = "SELECT region, city, SUM(amt) AS s, COUNT(*) AS n FROM sales, cust WHERE cust = cid GROUP BY region, city"


def test_a_join_broken_after_it_was_declared(lab):
    lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.hit(TOTALS)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    lab.hit(TOTALS)  # the snapshot read cust as it was, and sales did not move
    lab.sql("REFRESH RELATIONAL CACHE rc")
    assert lab.sql("SHOW RECORD PRESERVING JOINS")[0].state == "BROKEN"
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")
    lab.hit(JOINED)


def test_a_join_with_null_keys_is_refused(lab):
    lab.plain.sql("INSERT INTO sales SELECT 60, NULL, 'north', NULL, 1, 1, 1, 1")
    with pytest.raises(CacheManagerError, match="1 of them with a NULL key"):
        lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")


def test_an_extra_table_with_a_predicate(lab):
    lab.sql(JOIN)
    lab.cache(
        f"rc AS {JOINED.replace('GROUP BY', 'AND city <> 0x GROUP BY').replace('0x', repr('Rome'))}"
    )
    lab.miss(TOTALS, "EXTRA_TABLE_FILTERED")


def test_fan_out_by_a_join_that_is_not_record_preserving(lab):
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")
    lab.hit(JOINED)
    with pytest.raises(CacheManagerError, match="multiplied"):
        lab.sql(JOIN)


def test_unvalidated_joins_serve_only_when_trusted(lab):
    lab.sql(JOIN + " NOT VALIDATED")
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS)
    with lab.conf(spark__cachemgr__trustUnvalidated="true"):
        lab.hit(TOTALS)
        assert cachemgr.explain(lab.spark, TOTALS).unvalidated_joins == ("sc",)


def test_a_dropped_join_stops_serving_at_once(lab):
    lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.hit(TOTALS)
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")


def test_a_join_declared_after_the_refresh_serves(lab):
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS)
    lab.sql(JOIN)
    lab.hit(TOTALS)


# -- after planning, writes, errors --------------------------------------------------------


def test_drop_between_planning_and_the_end_of_a_query(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    planned = lab.spark.sql(TOTALS)
    planned._jdf.queryExecution().executedPlan()
    assert lab.hits() == 1
    lab.sql("DROP RELATIONAL CACHE r")
    expected = lab.plain.sql(TOTALS).collect()
    assert sorted(map(str, planned.collect())) == sorted(map(str, expected))
    lab.miss(TOTALS)


def test_files_of_a_dropped_cache_go_after_the_grace(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    folder = Path(metastore.caches.all()[0].location)
    lab.sql("DROP RELATIONAL CACHE r")
    assert (folder / "_delta_log").is_dir()
    with lab.conf(spark__cachemgr__dropGrace="0s"):
        lab.sql("DROP RELATIONAL CACHE IF EXISTS r")
        lab.cache("q AS SELECT day, SUM(amt) AS s FROM sales GROUP BY day", refresh=False)
    assert not folder.exists()
    assert [c.name for c in metastore.caches.all(include_dropped=True)] == ["q"]


def test_drop_reaches_another_session(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    other = lab.spark.newSession()
    for key in ("spark.cachemgr.metastore.url", "spark.cachemgr.location"):
        other.conf.set(key, lab.spark.conf.get(key))
    cachemgr.enable(other)
    try:
        other.sql(f"USE {lab.schema}")
        other.sql(TOTALS).collect()
        assert cachemgr.counters(other)["hits"] == 1
        lab.sql("ALTER RELATIONAL CACHE r DISABLE REWRITE")
        other.sql(TOTALS).collect()
        assert cachemgr.counters(other)["hits"] == 1
    finally:
        cachemgr.disable(other)
    assert cachemgr.is_enabled(lab.spark) and not cachemgr.is_enabled(other)


def test_writes_take_strict_caches_only(lab):
    lab.cache(
        "r MAX STALENESS UNLIMITED AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    lab.spark.sql(f"CREATE TABLE t1 USING delta AS {TOTALS}")
    served = lab.hits()  # Spark plans a CTAS twice
    assert served >= 1, "a cache that is exact may serve a write"
    lab.plain.sql("INSERT INTO sales SELECT 61, NULL, 'new', 1, 1, 1, 1, 1")
    with lab.caches_alone():
        lab.spark.sql(f"CREATE TABLE t2 USING delta AS {TOTALS}")
        lab.spark.sql(f"INSERT INTO t1 {TOTALS}")
        assert lab.hits() == served
    lab.spark.sql(f"CREATE TABLE t3 USING delta AS {TOTALS}")
    assert lab.hits() > served, "with what was appended it is exact"
    fresh = sorted(map(str, lab.plain.sql(TOTALS).collect()))
    assert sorted(map(str, lab.plain.table("t2").collect())) == fresh
    assert sorted(map(str, lab.plain.table("t3").collect())) == fresh


def test_views_and_cached_tables_hold_no_rewrite(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.spark.sql(f"CREATE VIEW v AS {TOTALS}")
    lab.spark.sql(f"CACHE TABLE ct AS {TOTALS}")
    assert lab.hits() == 0
    lab.plain.sql("INSERT INTO sales SELECT 62, NULL, 'new', 1, 1, 1, 1, 1")
    assert ("new", 1) in [tuple(r) for r in lab.sql("SELECT * FROM v")]
    lab.spark.sql("UNCACHE TABLE ct")


def test_an_error_inside_the_matcher_never_reaches_the_user(lab, monkeypatch, caplog):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")

    def fail(*args, **kwargs):
        raise RuntimeError("injected into the matcher")

    monkeypatch.setattr(session_module, "decide", fail)
    with pytest.raises(Exception, match="injected into the matcher"):
        lab.sql(TOTALS)
    with lab.conf(spark__cachemgr__mode="rewrite"):
        lab.sql(TOTALS)
        assert sorted(map(str, lab.sql(TOTALS))) == sorted(
            map(str, lab.plain.sql(TOTALS).collect())
        )
    assert cachemgr.counters(lab.spark)["errors"] >= 3
    assert caplog.text.count("the original query runs") == 1


def test_modes_and_the_switch(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    with lab.conf(spark__cachemgr__mode="off"):
        lab.sql(TOTALS)
        assert lab.hits() == 0
    with lab.conf(spark__cachemgr__enabled="false"):
        lab.sql(TOTALS)
        assert lab.hits() == 0
    with lab.conf(spark__cachemgr__mode="planOnly"):
        lab.sql(TOTALS)
        assert cachemgr.counters(lab.spark)["plan_only"] == 1
    lab.hit(TOTALS)
    lab.miss(TOTALS.replace("SELECT", "SELECT /*+ NO_RELATIONAL_CACHE */", 1), "HINT")


def test_decisions_are_logged(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    lab.miss("SELECT day, SUM(amt) FROM sales GROUP BY day")
    cachemgr.disable(lab.spark)
    logged = metastore.decisions.latest()
    assert {d.outcome.value for d in logged} == {"HIT", "MISS"}
    hit = next(d for d in logged if d.outcome.value == "HIT")
    assert hit.caches == (f"{lab.schema}.r",) and hit.millis > 0


def test_two_threads_and_two_sessions_at_once(lab):
    lab.cache("r AS SELECT region, day, SUM(amt) AS s FROM sales GROUP BY region, day")
    expected = sorted(map(str, lab.plain.sql(TOTALS).collect()))
    failures = []

    def work():
        for _ in range(3):
            if sorted(map(str, lab.sql(TOTALS))) != expected:
                failures.append("rows differ")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and lab.hits() == 6


def test_the_users_catalog_shows_nothing_of_ours(lab):
    tables = [r.tableName for r in lab.sql("SHOW TABLES")]
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    assert [r.tableName for r in lab.sql("SHOW TABLES")] == tables
    assert lab.sql("SHOW VIEWS") == []


BIG = f"INSERT INTO big VALUES (1, {1 << 52}, 3), (1, {1 << 52}, 4), (2, 1, 1)"


@pytest.fixture
def small(lab):
    """A table of whole numbers whose types alone bound no sum of many of them."""
    lab.plain.sql("CREATE TABLE big (k INT, v BIGINT, w INT) USING delta")
    lab.plain.sql("INSERT INTO big VALUES (1, 5, 1), (1, -7, 2), (2, NULL, 3), (3, 9, NULL)")
    return lab


def test_averages_over_rows_of_whole_numbers(small):
    small.cache("rows AS SELECT k, v, w FROM big")
    averages = [
        "AVG(v)",
        "AVG(v + w)",
        "AVG(DISTINCT v)",
        "AVG(coalesce(v, 0)) FILTER (WHERE k < 3)",
    ]
    for average in averages:
        small.hit(f"SELECT k, {average} AS a FROM big GROUP BY k")
    small.plain.sql("INSERT INTO big VALUES (1, 6, 2)")
    for average in averages:
        small.hit(f"SELECT k, {average} AS a FROM big GROUP BY k")
    small.sql("REFRESH RELATIONAL CACHE rows INCREMENTAL")
    small.hit("SELECT AVG(v + w) AS a FROM big")
    small.plain.sql(BIG)
    small.sql("REFRESH RELATIONAL CACHE rows INCREMENTAL")
    for average in averages:
        small.miss(f"SELECT k, {average} AS a FROM big GROUP BY k", "AVG_NOT_EXACT")
    small.hit("SELECT k, AVG(w) AS a FROM big GROUP BY k")
    small.hit("SELECT k, AVG(CAST(v AS DECIMAL(19,0))) AS a FROM big GROUP BY k")
    small.plain.sql("DELETE FROM big WHERE v > 1000")
    small.sql("REFRESH RELATIONAL CACHE rows FULL")
    small.hit("SELECT k, AVG(v) AS a FROM big GROUP BY k")


def test_averages_over_rows_and_a_table_joined_to_them(small):
    """What the refresh saw is of the stored rows, not of the table where it stands once more."""
    small.plain.sql(f"INSERT INTO big VALUES (4, {1 << 60}, NULL)")
    small.cache("rows AS SELECT k, v, w FROM big WHERE w IS NOT NULL")
    small.hit("SELECT AVG(v) AS a FROM big WHERE w IS NOT NULL")
    small.miss(
        "SELECT AVG(b.v) AS a FROM big a JOIN big b ON a.k = b.k WHERE a.w > 1", "AVG_NOT_EXACT"
    )


def test_averages_above_what_a_cache_gives(small):
    small.cache(
        "parts AS SELECT k, w, SUM(v) AS s, COUNT(*) AS n, MAX(v) AS m FROM big GROUP BY k, w"
    )
    counts = "SELECT k, COUNT(*) AS n FROM big GROUP BY k"
    sums = "SELECT k, SUM(v) AS s, MAX(v) AS m FROM big GROUP BY k"
    exact = [
        f"SELECT AVG(n) AS a FROM ({counts})",
        f"SELECT k, AVG(n) OVER () AS a FROM ({counts})",
        f"SELECT AVG(n) AS a FROM (SELECT k AS j, n FROM ({counts}) WHERE n > 1 LIMIT 5)",
    ]
    bounded = [
        f"SELECT AVG(s) AS a FROM ({sums})",
        f"SELECT k % 2 AS j, AVG(s) AS a, AVG(m) AS b FROM ({sums}) GROUP BY 1",
        f"SELECT k, AVG(m) OVER (ORDER BY k) AS a FROM ({sums})",
        "SELECT AVG(DISTINCT s - m) AS a FROM (SELECT k, SUM(v) AS s, MAX(v) AS m FROM big GROUP BY k)",
    ]
    for query in (*exact, *bounded[:3]):
        small.hit(query)
    small.plain.sql("INSERT INTO big VALUES (1, 6, 2)")
    for query in (*exact, *bounded[:3]):
        small.hit(query)
    small.plain.sql(BIG)
    for query in exact:
        small.hit(query)
    for query in bounded:
        small.miss(query, "AVG_NOT_EXACT")
    small.sql("REFRESH RELATIONAL CACHE parts")
    for query in exact:
        small.hit(query)
    for query in bounded:
        small.miss(query, "AVG_NOT_EXACT")


def test_averages_above_a_join_of_what_a_cache_gives(small):
    """A join may repeat rows, whatever is known of them."""
    small.cache("parts AS SELECT k, COUNT(*) AS n FROM big GROUP BY k")
    counts = "SELECT k, COUNT(*) AS n FROM big GROUP BY k"
    small.miss(f"SELECT AVG(n) AS a FROM ({counts}) CROSS JOIN sales", "AVG_NOT_EXACT")
    small.miss(f"SELECT AVG(n * k) AS a FROM ({counts}) WHERE n > 0", "AVG_NOT_EXACT")
    small.miss(f"SELECT AVG(n) AS a FROM ({counts} UNION ALL {counts})", "AVG_NOT_EXACT")
    small.hit(f"SELECT AVG(CAST(n AS DECIMAL(19,0))) AS a FROM ({counts}) WHERE n > 0")


CORRELATED = [
    "SELECT cid, (SELECT AVG(u) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid, (SELECT SUM(f) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid, (SELECT STDDEV(u) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid FROM cust WHERE cid < (SELECT AVG(u) FROM large b WHERE b.k = cid)",
    "SELECT cid, (SELECT AVG(n) FROM (SELECT k, j, SUM(u DIV 64) AS n FROM large GROUP BY k, j) b "
    "WHERE b.k = cid) AS a FROM cust",
]


@pytest.mark.parametrize("query", CORRELATED)
def test_what_spark_aggregates_above_a_correlated_subquery(lab, query: str):
    """It optimises the rows of the subquery apart from the aggregation over them."""
    lab.plain.sql("CREATE TABLE large (k INT, j INT, u BIGINT, f DOUBLE) USING delta")
    lab.plain.sql(
        "INSERT INTO large SELECT CAST(id % 3 + 1 AS INT), CAST(id % 40 AS INT), xxhash64(id), "
        "rand(3) FROM range(0, 4000, 1, 2)"
    )
    lab.cache("rows AS SELECT k, j, u, f FROM large")
    lab.cache("parts AS SELECT k, j, SUM(u DIV 64) AS n FROM large GROUP BY k, j")
    lab.miss(query)


def test_extremes_in_a_correlated_subquery_are_answered(lab):
    lab.cache("rows AS SELECT cust, amt, region FROM sales")
    lab.hit("SELECT cid, (SELECT MAX(amt) FROM sales WHERE cust = cid) AS a FROM cust")
    lab.hit("SELECT cid, (SELECT COUNT(*) FROM sales WHERE cust = cid) AS a FROM cust")
