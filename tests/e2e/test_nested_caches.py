# ruff: noqa: E501 - tables of SQL read better unbroken
"""Caches defined over caches, through spark.sql, on real Spark and Delta."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemgr.errors import CacheManagerError, ConflictError, DefinitionError, RefreshError
from tests.worlds.lab_star import same

pytestmark = pytest.mark.spark

BY_DAY = (
    "by_day AS SELECT day, region, cust, SUM(amt) AS s, SUM(price) AS p, COUNT(*) AS n, COUNT(amt) AS c, "
    "MIN(amt) AS low, MAX(cost) AS high FROM sales GROUP BY day, region, cust"
)
BY_MONTH = (
    "by_month AS SELECT date_trunc('MONTH', day) AS month, region, SUM(s) AS s, SUM(p) AS p, SUM(n) AS n, "
    "SUM(c) AS c, MIN(low) AS low, MAX(high) AS high FROM by_day GROUP BY ALL"
)
BY_REGION = "by_region AS SELECT region, SUM(s) AS s, SUM(n) AS n FROM by_month WHERE region IS NOT NULL GROUP BY region"
NORTH = "SELECT region, SUM(amt), SUM(price), COUNT(*) FROM sales WHERE region = 'north' GROUP BY region"


@pytest.fixture
def chain(lab, monkeypatch):
    """Three levels, none refreshed yet. What is looked at is how they are built from each other, so
    nothing is added to them, and nothing read beside them."""
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.WORTH_IT", 0.0)
    lab.spark.conf.set("spark.cachemgr.freshHits", "false")
    for text in (BY_DAY, BY_MONTH, BY_REGION):
        lab.cache(text, refresh=False)
    return lab


def stored(lab, metastore, name):
    """The rows that a cache serves from, its visible columns in their order."""
    cache = metastore.caches.named(lab.schema, name)
    snapshot = metastore.snapshots.published(cache.id)
    reader = lab.plain.read.format("delta").option("versionAsOf", snapshot.run.cache_version)
    return reader.load(cache.location).select([c.name for c in cache.columns])


def holds(lab, metastore, name, query):
    """The cache's rows are those of `query` over the base tables."""
    found = stored(lab, metastore, name)
    same(found, found.collect(), lab.plain.sql(query), ordered=False)


def test_a_definition_over_caches_is_one_over_their_base_tables(chain, metastore):
    for name in ("by_day", "by_month", "by_region"):
        chain.sql(f"REFRESH RELATIONAL CACHE {name}")
    holds(
        chain, metastore, "by_month",
        "SELECT date_trunc('MONTH', day) AS month, region, SUM(amt) AS s, SUM(price) AS p, COUNT(*) AS n, "
        "COUNT(amt) AS c, MIN(amt) AS low, MAX(cost) AS high FROM sales GROUP BY 1, 2",
    )  # fmt: skip
    holds(
        chain, metastore, "by_region",
        "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales WHERE region IS NOT NULL GROUP BY region",
    )  # fmt: skip
    ids = {n: metastore.caches.named(chain.schema, n).id for n in ("by_day", "by_month")}
    assert metastore.caches.named(chain.schema, "by_month").depends_on == (ids["by_day"],)
    assert metastore.caches.named(chain.schema, "by_region").depends_on == (ids["by_month"],)
    chain.sql("ALTER RELATIONAL CACHE by_day DISABLE REWRITE")
    chain.hit("SELECT year(day), SUM(amt), SUM(price), COUNT(*) FROM sales GROUP BY year(day)")
    chain.sql("ALTER RELATIONAL CACHE by_month DISABLE REWRITE")
    chain.hit("SELECT region, SUM(amt), COUNT(*) FROM sales WHERE region = 'north' GROUP BY region")
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in _error(chain, "SELECT * FROM by_day")


def _error(lab, text):
    with pytest.raises(Exception) as caught:
        lab.sql(text)
    return str(caught.value)


def test_the_text_stays_as_it_was_written(chain):
    text = chain.sql("SHOW CREATE RELATIONAL CACHE by_month")[0].createtab_stmt
    assert "FROM by_day GROUP BY ALL" in text
    chain.sql("DROP RELATIONAL CACHE by_region")
    chain.sql("DROP RELATIONAL CACHE by_month")
    chain.sql(text)
    assert chain.sql("SHOW CREATE RELATIONAL CACHE by_month")[0].createtab_stmt == text
    found = {r[0]: r[1] for r in chain.sql(f"EXPLAIN CREATE RELATIONAL CACHE {BY_REGION}")}
    assert found["defined over"] == f"{chain.schema}.by_month"


def test_other_ways_to_name_a_cache(chain, metastore):
    """Qualified, in a CTE and beside one of the same name, with an alias, joined, without grouping."""
    total = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    for name, text in {
        "q1": f"SELECT region, SUM(by_day.s) AS s FROM {chain.schema}.by_day GROUP BY region",
        "q2": "WITH d AS (SELECT region, s FROM by_day) SELECT region, SUM(s) AS s FROM d GROUP BY region",
        "q3": "SELECT x.region, SUM(x.s) AS s FROM (SELECT * FROM `BY_DAY`) x GROUP BY 1",
    }.items():
        chain.cache(f"{name} AS {text}")
        holds(chain, metastore, name, total)
    chain.cache(
        "q4 AS WITH by_day AS (SELECT region, amt AS s FROM sales WHERE amt > 10) "
        "SELECT region, SUM(s) AS s FROM by_day GROUP BY region"
    )
    assert metastore.caches.named(chain.schema, "q4").depends_on == ()
    holds(
        chain,
        metastore,
        "q4",
        "SELECT region, SUM(amt) AS s FROM sales WHERE amt > 10 GROUP BY region",
    )
    chain.cache(
        "cities AS SELECT city, SUM(s) AS s, SUM(n) AS n FROM by_day JOIN cust ON cust = cid GROUP BY city"
    )
    holds(
        chain,
        metastore,
        "cities",
        "SELECT city, SUM(amt) AS s, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city",
    )
    chain.cache("flat AS SELECT id, region, amt * 2 AS twice FROM sales WHERE amt > 0")
    chain.cache(
        "over_flat AS SELECT region, SUM(twice) AS t FROM flat WHERE id < 7 GROUP BY region"
    )
    holds(
        chain,
        metastore,
        "over_flat",
        "SELECT region, SUM(amt * 2) AS t FROM sales WHERE amt > 0 AND id < 7 GROUP BY region",
    )
    chain.cache("few AS SELECT region, day, n FROM by_day WHERE region <> 'west'")
    holds(
        chain,
        metastore,
        "few",
        "SELECT region, day, COUNT(*) AS n FROM sales WHERE region <> 'west' GROUP BY region, day, cust",
    )


def test_a_table_goes_before_a_cache_of_its_name(chain, metastore):
    chain.sql("CREATE TABLE by_cust USING delta AS SELECT 1 AS k, 2 AS v")
    chain.cache("by_cust AS SELECT cust, SUM(amt) AS v FROM sales GROUP BY cust")
    chain.cache("over AS SELECT SUM(v) AS v FROM by_cust")
    assert metastore.caches.named(chain.schema, "over").depends_on == ()
    holds(chain, metastore, "over", "SELECT SUM(v) AS v FROM by_cust")


REFUSED = [
    (
        "x AS SELECT SUM(s) AS s FROM nowhere",
        "TABLE_OR_VIEW_NOT_FOUND",
        "no relational cache has that name",
    ),
    ("x AS SELECT k, SUM(v) AS v FROM cube GROUP BY k", "CACHE_IS_CUBE", "several grouping sets"),
    ("x AS SELECT region FROM top", "CACHE_IS_TOP_K", "first 2 rows"),
    ("x AS SELECT region, SUM(s) AS s FROM x GROUP BY region", "CACHE_CYCLE", "x → {s}.x"),
]


def test_what_a_definition_over_a_cache_may_not_say(lab):
    lab.cache(BY_DAY, refresh=False)
    lab.cache(
        "cube AS SELECT region AS k, SUM(amt) AS v FROM sales GROUP BY region WITH CUBE",
        refresh=False,
    )
    lab.cache("top AS SELECT region, id FROM sales ORDER BY region, id LIMIT 2", refresh=False)
    for text, code, words in REFUSED:
        with pytest.raises(DefinitionError) as caught:
            lab.sql(f"CREATE RELATIONAL CACHE {text}")
        assert caught.value.code == code and words.format(s=lab.schema) in str(caught.value), text
    with (
        lab.conf(spark__sql__session__timeZone="Asia/Tokyo"),
        pytest.raises(DefinitionError, match=r"SETTINGS_DIFFER.*timeZone is Asia/Tokyo"),
    ):
        lab.sql(
            "CREATE RELATIONAL CACHE tokyo AS SELECT region, SUM(s) AS s FROM by_day GROUP BY region"
        )


OVER_GROUPS = [
    "SELECT region, COUNT(*) AS n FROM {} GROUP BY region",
    "SELECT region, AVG(n) AS m FROM {} GROUP BY region",
    "SELECT region, SUM(s) AS m FROM {} WHERE s > 5 GROUP BY region",
    "SELECT city, s FROM {} JOIN cust ON cust = cid",
]


@pytest.mark.parametrize("select", OVER_GROUPS)
def test_a_cache_that_counts_or_joins_the_groups_of_another(lab, select):
    lab.cache(BY_DAY)
    lab.sql("ALTER RELATIONAL CACHE by_day DISABLE REWRITE")
    lab.cache(f"x AS {select.format('by_day')}")
    lab.hit(select.format(f"({BY_DAY.partition(' AS ')[2]})"))


def test_circles_and_changes_below(chain):
    circle = BY_DAY.replace("FROM sales", "FROM by_region")
    with pytest.raises(
        DefinitionError, match=r"by_day → \w+\.by_region → \w+\.by_month → \w+\.by_day"
    ):
        chain.sql(f"CREATE OR REPLACE RELATIONAL CACHE {circle}")
    with pytest.raises(ConflictError, match=r"by_month is defined over it; drop that first"):
        chain.sql("DROP RELATIONAL CACHE by_day")
    with pytest.raises(ConflictError, match="cannot be renamed"):
        chain.sql("ALTER RELATIONAL CACHE by_day RENAME TO days")
    with pytest.raises(ConflictError, match="another definition"):
        chain.sql(f"CREATE OR REPLACE RELATIONAL CACHE {BY_DAY.replace('SUM(amt)', 'SUM(cost)')}")
    replaced = BY_DAY.replace("by_day AS", "by_day COMMENT 'daily' REFRESH ON COMMIT AS")
    told = chain.sql(f"CREATE OR REPLACE RELATIONAL CACHE {replaced}")[0].result
    assert told.startswith("replaced; it is refreshed by `cachemgr serve`")
    with pytest.raises(ConflictError, match="by_month is defined"):
        chain.sql("DROP RELATIONAL CACHE by_day")
    for name in ("by_region", "by_month", "by_day"):
        chain.sql(f"DROP RELATIONAL CACHE {name}")


def test_a_redefined_view_below_is_followed(lab, metastore):
    lab.sql("CREATE VIEW big AS SELECT * FROM sales WHERE amt > 10")
    lab.cache("v_day AS SELECT day, SUM(amt) AS s FROM big GROUP BY day")
    lab.cache("v_all AS SELECT SUM(s) AS s FROM v_day")
    holds(lab, metastore, "v_all", "SELECT SUM(amt) AS s FROM sales WHERE amt > 10")
    lab.sql("CREATE OR REPLACE VIEW big AS SELECT * FROM sales WHERE amt > 20")
    assert lab.sql("REFRESH RELATIONAL CACHE v_all")[0].result == "PUBLISHED"
    holds(lab, metastore, "v_all", "SELECT SUM(amt) AS s FROM sales WHERE amt > 20")
    lab.sql("DROP VIEW big")
    with pytest.raises(CacheManagerError, match=r"names cache \w+\.v_day, whose definition"):
        lab.sql("REFRESH RELATIONAL CACHE v_all")


def refreshed(lab, name, mode=""):
    """What EXPLAIN REFRESH said, and the run, which must have done that."""
    rows = lab.sql(f"EXPLAIN REFRESH {name} {mode}")
    told = [r.detail for r in rows if r.stage == "WriteFull"]
    result = lab.sql(f"REFRESH RELATIONAL CACHE {name} {mode}")[0]
    assert (result.result, result.reason) == ("PUBLISHED", rows[0].detail)
    return told[0], result.reason


def source_of(lab, metastore, name):
    run = metastore.snapshots.published(metastore.caches.named(lab.schema, name).id).run
    return (run.facts.get("source") or {}).get("cache")


MONTHS = (
    "SELECT date_trunc('MONTH', day) AS month, region, SUM(amt) AS s, SUM(price) AS p, COUNT(*) AS n, "
    "COUNT(amt) AS c, MIN(amt) AS low, MAX(cost) AS high FROM sales GROUP BY 1, 2"
)
REGIONS = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales WHERE region IS NOT NULL GROUP BY region"


def test_each_level_is_built_from_the_one_below(chain, metastore):
    told, reason = refreshed(chain, "by_month")
    assert "from the base tables, since cache" in reason and "it was never refreshed" in reason
    assert "from cache" not in told and source_of(chain, metastore, "by_month") is None
    chain.sql("REFRESH RELATIONAL CACHE by_day")
    chain.sql("INSERT INTO sales VALUES (9, DATE'2024-03-01', 'north', 1, 90, 9, 9.00, 0.9)")
    chain.sql("REFRESH RELATIONAL CACHE by_day")
    chain.sql("ALTER RELATIONAL CACHE by_day DISABLE REWRITE")
    told, reason = refreshed(chain, "by_month")
    assert f"from cache {chain.schema}.by_day at its version 2" in told
    assert f"from cache {chain.schema}.by_day, which holds these versions" in reason
    assert source_of(chain, metastore, "by_month") == f"{chain.schema}.by_day"
    holds(chain, metastore, "by_month", MONTHS)
    told, _ = refreshed(chain, "by_region")
    assert f"from cache {chain.schema}.by_month at its version" in told
    holds(chain, metastore, "by_region", REGIONS)
    run = metastore.snapshots.published(metastore.caches.named(chain.schema, "by_region").id)
    assert [(t.name.split(".")[-1], t.version) for t in run.tables] == [("sales", 2)]
    assert run.run.rows == 3 and run.run.facts["base_rows"] == 7
    chain.hit("SELECT region, SUM(amt), COUNT(*) FROM sales WHERE region = 'north' GROUP BY region")
    chain.sql("INSERT INTO sales VALUES (10, DATE'2024-03-01', 'north', 1, 90, 9, 9.00, 0.9)")
    chain.miss(
        "SELECT region, SUM(amt), COUNT(*) FROM sales WHERE region = 'north' GROUP BY region"
    )


def test_a_level_that_holds_other_versions_is_passed_over(chain, metastore):
    for name in ("by_day", "by_month"):
        chain.sql(f"REFRESH RELATIONAL CACHE {name}")
    chain.sql("INSERT INTO sales VALUES (9, DATE'2024-03-01', 'north', 1, 90, 9, 9.00, 0.9)")
    _, reason = refreshed(chain, "by_region")
    assert reason.count(f"it holds version 1 of {chain.schema}.sales, which is at version 2") == 2
    assert source_of(chain, metastore, "by_region") is None
    holds(chain, metastore, "by_region", REGIONS)
    chain.sql("DELETE FROM sales WHERE id = 1")
    chain.sql("REFRESH RELATIONAL CACHE by_day")
    told, reason = refreshed(chain, "by_region")
    assert f"from cache {chain.schema}.by_day at its version" in told, "the level between is behind"
    holds(chain, metastore, "by_region", REGIONS)
    assert "FULL asks for" in refreshed(chain, "by_month", "FULL")[1]
    holds(chain, metastore, "by_month", MONTHS)


def test_what_cannot_be_had_exactly_comes_from_the_base(lab, metastore):
    lab.cache(
        "weights AS SELECT day, region, SUM(weight) AS w, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY day, region"
    )
    lab.cache("light AS SELECT region, SUM(w) AS w FROM weights GROUP BY region", refresh=False)
    told, reason = refreshed(lab, "light")
    assert "from cache" not in told and "weights: " in reason and "FLOAT" in reason.upper()
    lab.cache(
        "sets AS SELECT region, year(day) AS y, SUM(s) AS s, SUM(n) AS n FROM weights "
        "GROUP BY region, year(day) GROUPING SETS ((region, year(day)), (region), ())",
        refresh=False,
    )  # fmt: skip
    assert "3 grouping sets from cache" in refreshed(lab, "sets")[0]
    lab.hit("SELECT region, SUM(amt), COUNT(*) FROM sales GROUP BY region")
    lab.hit("SELECT SUM(amt), COUNT(*) FROM sales")
    lab.hit("SELECT year(day), region, SUM(amt) FROM sales GROUP BY year(day), region")
    lab.cache("pairs AS SELECT id, region, cust, amt, day FROM sales WHERE amt > 0")
    lab.cache(
        "cities AS SELECT city, AVG(amt) AS m, SUM(amt) AS s, COUNT(*) AS n FROM pairs JOIN cust ON cust = cid GROUP BY city",
        refresh=False,
    )
    told, reason = refreshed(lab, "cities")
    assert "from cache" not in told and "may repeat rows" in reason, "an average beyond 2^53"
    lab.cache(
        "towns AS SELECT city, SUM(amt) AS s, COUNT(*) AS n FROM pairs JOIN cust ON cust = cid GROUP BY city",
        refresh=False,
    )
    assert "from cache" in refreshed(lab, "towns")[0]
    holds(
        lab,
        metastore,
        "cities",
        "SELECT city, AVG(amt) AS m, SUM(amt) AS s, COUNT(*) AS n FROM sales JOIN cust ON cust = cid WHERE amt > 0 GROUP BY city",
    )
    lab.hit("SELECT AVG(amt) FROM sales JOIN cust ON cust = cid WHERE amt > 0")


def test_after_a_refresh_from_a_cache_that_failed_the_base_is_read(chain, metastore):
    chain.sql("REFRESH RELATIONAL CACHE by_day")
    place = Path(metastore.caches.named(chain.schema, "by_day").location)
    for file in place.glob("*.parquet"):
        file.unlink()
    with pytest.raises(RefreshError):
        chain.sql("REFRESH RELATIONAL CACHE by_month")
    _, reason = refreshed(chain, "by_month")
    assert "by_day: the last refresh from it failed" in reason
    holds(chain, metastore, "by_month", MONTHS)
