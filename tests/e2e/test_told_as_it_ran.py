# ruff: noqa: E501 - tables of SQL read better unbroken
"""Counters, the decision log and EXPLAIN REWRITE say what ran, and not what was decided: where
putting a cache's rows in place fails, where Spark drops a subquery, where a write is planned twice,
and which of several caches answered."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

import cachemgr
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import open_metastore
from cachemgr.serving import eligibility
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.spark import api
from cachemgr.spark import hook as hook_module
from cachemgr.spark.replacements import Replacements
from cachemgr.spark.session import CacheSession
from cachemgr.text.door import TextDoor, TextRequest
from cachemgr.text.settings import service_defaults
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.select import NotRenderable

pytestmark = pytest.mark.spark

DAYS = "days AS SELECT day, region, COUNT(*) AS n, SUM(amt) AS s FROM sales GROUP BY day, region"
REGIONS = "regions AS SELECT region, COUNT(*) AS n, SUM(amt) AS s FROM sales GROUP BY region"
BY_REGION = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"

DIFFERENTIAL = {
    "an aggregate": BY_REGION,
    "a coarser one": "SELECT COUNT(*) AS n FROM sales",
    "the latest day, from a cache's statistics": "SELECT MAX(day) AS d FROM sales",
    "the first and the latest": "SELECT MAX(day) AS d, MIN(day) AS e, COUNT(*) AS n FROM sales",
    "by a part of the date": "SELECT extract(YEAROFWEEK FROM day) AS y, SUM(amt) AS s FROM sales GROUP BY 1",
    "nothing stored": "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust",
    "an unknown table": "SELECT * FROM small",
    "two blocks, one missed": "SELECT * FROM (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) a JOIN (SELECT cust, SUM(cost) AS c FROM sales GROUP BY cust) b ON a.s = b.c",
    "EXISTS of a global aggregate": "SELECT * FROM small WHERE EXISTS (SELECT COUNT(*) FROM sales)",
    "EXISTS of a global aggregate over groups": "SELECT * FROM small WHERE EXISTS (SELECT SUM(amt) FROM sales WHERE region = 'north')",
    "EXISTS of a correlated global aggregate": "SELECT * FROM small s WHERE EXISTS (SELECT COUNT(*) FROM sales f WHERE f.region = s.name)",
    "NOT EXISTS of a global aggregate": "SELECT * FROM small WHERE NOT EXISTS (SELECT COUNT(*) FROM sales)",
    "a pruned scalar subquery": "SELECT k FROM (SELECT k, (SELECT SUM(amt) FROM sales) AS x FROM small)",
    "one pruned, one not": "SELECT k, x FROM (SELECT k, (SELECT SUM(amt) FROM sales) AS x, (SELECT COUNT(*) FROM sales) AS y FROM small)",
    "a pruned missed one": "SELECT k FROM (SELECT k, (SELECT MAX(cost) FROM sales) AS x FROM small)",
    "a scalar subquery": "SELECT k, (SELECT SUM(amt) FROM sales) AS x FROM small",
    "the same twice": "SELECT k, (SELECT SUM(amt) FROM sales) AS x, (SELECT SUM(amt) FROM sales) + 1 AS y FROM small",
    "a correlated scalar subquery": "SELECT k, (SELECT SUM(amt) FROM sales WHERE region = s.name) AS x FROM small s",
    "a missed correlated one": "SELECT k, (SELECT SUM(amt) FROM sales WHERE cust = s.k) AS x FROM small s",
    "EXISTS": "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM sales f WHERE f.region = s.name)",
    "NOT EXISTS, missed": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k AND f.amt > 5)",
    "IN": "SELECT * FROM small WHERE name IN (SELECT region FROM sales)",
    "EXISTS as a value": "SELECT k, EXISTS (SELECT 1 FROM sales f WHERE f.region = s.name) AS e FROM small s",
    "IN as a value": "SELECT k, name IN (SELECT region FROM sales) AS e FROM small",
    "EXISTS under an answered block": "SELECT region, SUM(amt) AS s FROM sales WHERE EXISTS (SELECT 1 FROM small) GROUP BY region",
    "one subquery in another": "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM small t WHERE t.k = s.k AND t.name IN (SELECT region FROM sales))",
    "a condition never true": "SELECT SUM(amt) AS s FROM sales WHERE 1 = 0",
    "a subquery under it": "SELECT * FROM small WHERE 1 = 0 AND k > (SELECT SUM(amt) FROM sales)",
    "a CTE used twice": "WITH t AS (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) SELECT a.region FROM t a JOIN t b ON a.s < b.s",
    "HAVING over a subquery": "SELECT region, SUM(amt) AS s FROM sales GROUP BY region HAVING SUM(amt) > (SELECT MIN(amt) FROM sales)",
}  # fmt: skip


@pytest.fixture
def told(lab):
    """A lab in which failures fall back, a table that no cache knows, and the decision log."""
    lab.spark.conf.set("spark.cachemgr.mode", "rewrite")
    lab.plain.sql("CREATE TABLE small (k INT, name STRING) USING delta")
    lab.plain.sql("INSERT INTO small VALUES (1, 'north'), (2, 'x'), (NULL, NULL)")
    lab.cache(DAYS)
    lab.cache(REGIONS)
    return lab


def counted(lab: Any, act: Any) -> dict[str, int]:
    """What `hits`, `misses` and `errors` grew by."""
    before = cachemgr.counters(lab.spark)
    act()
    after = cachemgr.counters(lab.spark)
    names = ("hits", "misses", "errors")
    return {
        n: after.get(n, 0) - before.get(n, 0) for n in names if after.get(n, 0) != before.get(n, 0)
    }


def logged(lab: Any) -> list[Any]:
    """The decisions that were logged, the oldest first."""
    api._of(lab.spark).session.feed.flush_log()
    with lab.metastore() as store:
        return list(reversed(store.decisions.latest(limit=100)))


def parts(explanation: Any) -> list[Any]:
    """The plans of a query of which something is said."""
    own = explanation if explanation.own is None else explanation.own
    return [own, *explanation.subqueries]


@pytest.mark.parametrize("title", DIFFERENTIAL)
def test_explain_says_what_the_counters_and_the_log_say(told, title: str) -> None:
    query = DIFFERENTIAL[title]
    start = len(logged(told))
    first = cachemgr.explain(told.spark, query)
    frame = told.spark.sql(query)
    found = counted(told, frame.collect)
    again = cachemgr.explain(told.spark, query)
    assert (first.hit, first.caches) == (again.hit, again.caches), "asking changes nothing"
    assert "errors" not in found
    assert sum(part.hit for part in parts(first)) == found.get("hits", 0), first.text()
    entries = logged(told)[start:]
    assert len(entries) == found.get("hits", 0) + found.get("misses", 0)
    hits = {name for entry in entries for name in entry.caches}
    assert hits == set(first.caches)
    assert sorted(map(str, frame.collect())) == sorted(map(str, told.plain.sql(query).collect()))


def test_the_cache_that_answered_is_the_one_that_is_told_of(told) -> None:
    """Two caches answer; the one in the plan, in the log and in EXPLAIN is one and the same."""
    told.cache(
        "more AS SELECT region, cust, COUNT(*) AS n, SUM(amt) AS s FROM sales GROUP BY region, cust"
    )
    for query in (
        BY_REGION,
        "SELECT COUNT(*) AS n FROM sales",
        "SELECT SUM(amt) AS s FROM sales WHERE region = 'north'",
    ):
        (one,) = cachemgr.explain(told.spark, query).caches
        with told.conf(spark__cachemgr__local__enabled="false"):  # its rows would name no cache
            frame = told.spark.sql(query)
            frame.collect()
        assert logged(told)[-1].caches == (one,)
        assert one in frame._jdf.queryExecution().executedPlan().toString()
        chosen = [
            c.cache for c in cachemgr.explain(told.spark, query).candidates if c.outcome == "chosen"
        ]
        assert chosen == [one]


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hit's SQL names a function that Spark does not have."""
    make = Replacements._replacement

    def spoilt(self: Any, *args: Any, **options: Any) -> Any:
        made = make(self, *args, **options)
        return replace(made, sql=f"SELECT nosuch(c0) AS c0, * EXCEPT (c0) FROM ({made.sql})")

    monkeypatch.setattr(Replacements, "_replacement", spoilt)


def test_a_hit_that_cannot_be_put_in_place_is_an_error_and_no_hit(
    told, monkeypatch, caplog
) -> None:
    broken(monkeypatch)
    expected = sorted(map(str, told.plain.sql(BY_REGION).collect()))
    frame = told.spark.sql(BY_REGION)
    with caplog.at_level(logging.WARNING):
        found = counted(told, lambda: told.sql(BY_REGION))
        assert counted(told, frame.collect) == found == {"misses": 1, "errors": 1}
    assert sorted(map(str, frame.collect())) == expected
    assert "regions" not in frame._jdf.queryExecution().executedPlan().toString()
    last = logged(told)[-1]
    assert (last.outcome, last.caches) == ("ERROR", ())
    assert [r["code"] for r in last.reasons] == ["INTERNAL_ERROR"] and "nosuch" in last.reasons[0][
        "detail"
    ]
    assert sum("nosuch" in r.getMessage() for r in caplog.records if r.name == "cachemgr.hook") == 1
    said = cachemgr.explain(told.spark, BY_REGION)
    assert not said.hit and said.rewritten_sql is None and said.caches == ()
    assert [r.code.value for r in said.reasons] == ["INTERNAL_ERROR"] and "nosuch" in said.text()


def test_what_fails_after_the_answer_is_no_hit_either(told, monkeypatch) -> None:
    """Java itself fails once everything is put together: the part of it that asks once more."""
    answer = hook_module._answer

    def raising(decider: Any, request: Any, text: str) -> None:
        answer(decider, request, text)
        raise ZeroDivisionError("made to fail")

    monkeypatch.setattr(hook_module, "_answer", raising)
    assert counted(told, lambda: told.sql(BY_REGION)) == {"misses": 1, "errors": 1}
    assert logged(told)[-1].outcome == "ERROR"


def test_a_decision_that_fails_is_an_error_and_a_miss_with_its_cause(told, monkeypatch) -> None:
    def failing(self: Any, *args: Any, **options: Any) -> Any:
        raise ZeroDivisionError("made to fail")

    monkeypatch.setattr(CacheSession, "examine", failing)
    assert counted(told, lambda: told.sql(BY_REGION)) == {"misses": 1, "errors": 1}
    last = logged(told)[-1]
    assert last.outcome == "ERROR" and "made to fail" in last.reasons[0]["detail"]


def test_a_part_that_is_dropped_is_a_miss_with_its_reason(told, monkeypatch) -> None:
    reason = Reason(ReasonCode.SCHEMA_WOULD_DIFFER, "made up", "report it")
    monkeypatch.setattr(hook_module, "_put_in", lambda request, replacement: reason)
    assert counted(told, lambda: told.sql(BY_REGION)) == {"misses": 1}
    assert [r["code"] for r in logged(told)[-1].reasons] == ["SCHEMA_WOULD_DIFFER"]
    said = cachemgr.explain(told.spark, BY_REGION)
    assert not said.hit and "made up" in said.text()


def test_what_cannot_be_written_as_sql_is_refused_at_both_doors(told, monkeypatch) -> None:
    def refusing(*args: Any, **options: Any) -> str:
        raise NotRenderable("made up")

    monkeypatch.setattr(eligibility, "render_rewrite", refusing)
    told.miss(BY_REGION, "UNSUPPORTED_EXPRESSION")
    assert [r["code"] for r in logged(told)[-1].reasons] == ["UNSUPPORTED_EXPRESSION"]
    feed = Feed(MetastoreSource(open_metastore(told.url)))
    feed.sync()
    defaults = service_defaults(dict(told.plain.sparkContext.getConf().getAll()))
    found = TextDoor(feed, Heads(), defaults).answer(
        TextRequest(BY_REGION, "ann", schema=told.schema)
    )
    assert found.sql is None
    assert [r.code.value for r in found.reasons] == ["UNSUPPORTED_EXPRESSION"]
    assert "made up" in found.reasons[0].detail


def test_the_year_of_a_week_is_answered_and_is_the_originals(told) -> None:
    """It was taken for a function of that name, which Spark does not have."""
    told.hit("SELECT extract(YEAROFWEEK FROM day) AS y, SUM(amt) AS s FROM sales GROUP BY 1")
    told.hit("SELECT SUM(amt) AS s FROM sales WHERE date_part('yearofweek', day) = 2024")


def test_fail_fast_raises_and_counts(told, monkeypatch) -> None:
    broken(monkeypatch)
    with told.conf(spark__cachemgr__mode="failFast"):

        def act() -> None:
            with pytest.raises(Exception, match="nosuch"):
                told.sql(BY_REGION)

        assert counted(told, act) == {"misses": 1, "errors": 1}


WRITES = {
    "CTAS": lambda lab, q: lab.sql(f"CREATE TABLE w USING delta AS {q}"),
    "CREATE OR REPLACE": lambda lab, q: lab.sql(f"CREATE OR REPLACE TABLE w USING delta AS {q}"),
    "CTAS of files": lambda lab, q: lab.sql(f"CREATE TABLE w USING parquet AS {q}"),
    "INSERT": lambda lab, q: lab.sql(f"INSERT INTO kept {q}"),
    "INSERT OVERWRITE": lambda lab, q: lab.sql(f"INSERT OVERWRITE kept {q}"),
    "INSERT into files": lambda lab, q: lab.sql(f"INSERT INTO files {q}"),
    "saveAsTable": lambda lab, q: lab.spark.sql(q).write.format("delta").saveAsTable("w"),
    "insertInto": lambda lab, q: lab.spark.sql(q).write.insertInto("kept"),
    "save": lambda lab, q: lab.spark.sql(q).write.parquet(f"{lab.folder}/out"),
    "writeTo": lambda lab, q: lab.spark.sql(q).writeTo("kept").append(),
}  # fmt: skip
WRITTEN = {
    "a hit": (BY_REGION, {"hits": 1}, ("regions",)),
    "a miss": ("SELECT region, SUM(cost) AS s FROM sales GROUP BY region", {"misses": 1}, ()),
    "a subquery": ("SELECT name AS region, (SELECT SUM(amt) FROM sales) AS s FROM small", {"hits": 1}, ("regions",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_write_is_one_decision(told, kind: str) -> None:
    query, counts, caches = WRITTEN[kind]
    told.plain.sql("CREATE TABLE kept (region STRING, s BIGINT) USING delta")
    told.plain.sql("CREATE TABLE files (region STRING, s BIGINT) USING parquet")
    found, log = {}, {}
    for title, write in WRITES.items():
        if title != "CREATE OR REPLACE":
            told.plain.sql("DROP TABLE IF EXISTS w")
        start = len(logged(told))
        found[title] = counted(told, lambda write=write: write(told, query))
        log[title] = [name.split(".")[-1] for e in logged(told)[start:] for name in e.caches]
    assert found == dict.fromkeys(WRITES, counts)
    assert log == {title: list(caches) for title in WRITES}


def test_a_merge_is_one_decision(told) -> None:
    told.plain.sql("CREATE TABLE kept (region STRING, s BIGINT) USING delta")
    told.plain.sql("INSERT INTO kept VALUES ('north', 1)")
    clauses = "WHEN MATCHED THEN UPDATE SET s = f.s WHEN NOT MATCHED THEN INSERT *"
    text = f"MERGE INTO kept USING ({BY_REGION}) f ON kept.region = f.region {clauses}"
    assert counted(told, lambda: told.sql(text)) == {"hits": 1}
    expected = told.plain.sql(BY_REGION).collect()
    assert sorted(map(str, told.plain.table("kept").collect())) == sorted(map(str, expected))


def test_a_subquery_is_asked_about_in_each_query_of_a_dataframe(told) -> None:
    """What was noted on it in one query must not keep it from a cache in the next."""
    frame = told.spark.sql(DIFFERENTIAL["IN"])
    for _ in range(3):
        assert counted(told, lambda: frame.limit(10).collect()) == {"hits": 1}
    cachemgr.explain(told.spark, frame)
    assert counted(told, lambda: frame.limit(10).collect()) == {"hits": 1}


def test_explaining_runs_no_job_counts_nothing_and_makes_nothing(told) -> None:
    session = api._of(told.spark).session
    tracker = told.spark.sparkContext.statusTracker()
    told.spark.sparkContext.setJobGroup("explaining", "explaining")
    before = cachemgr.counters(told.spark)
    try:
        for query in DIFFERENTIAL.values():
            cachemgr.explain(told.spark, query)
        assert list(tracker.getJobIdsForGroup("explaining")) == []
    finally:
        told.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert cachemgr.counters(told.spark) == before
    assert not session.application.outcomes._waiting
