# ruff: noqa: E501 - tables of SQL read better unbroken
"""The text door of the service over real caches: what it rewrites runs on a Spark without us and
gives the rows, names and types of the original, now and after the tables have moved on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from test_whole_queries import CUBE, SERVED

import cachemgr
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.spark_heads import SparkHeads
from cachemgr.metastore import open_metastore
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.text.door import TextAnswer, TextDoor, TextRequest
from cachemgr.text.settings import service_defaults
from tests.worlds.lab_star import JOIN, Lab, exact, same

pytestmark = pytest.mark.spark
# What Spark alone can tell: a subquery whose columns are of the query around it, a view.
NOT_IN_TEXT = {"a correlated scalar subquery", "a view"}
# IN and EXISTS that filter no rows are not read in a text.
REFUSED = {
    "IN in the select list",
    "EXISTS in the select list",
    "IN in the condition of an outer join",
}
GROUPED = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


class Door:
    """A text door over a lab's metastore, and the lab's Spark to run what it says."""

    def __init__(self, lab: Lab, heads: Heads | None = None) -> None:
        self.lab = lab
        self.feed = Feed(MetastoreSource(open_metastore(lab.url)))
        defaults = service_defaults(dict(lab.plain.sparkContext.getConf().getAll()))
        self.door = TextDoor(self.feed, heads or Heads(), defaults)

    def ask(self, sql: str, principal: str = "ann", **settings: str) -> TextAnswer:
        self.feed.sync()
        given = {k.replace("__", "."): v for k, v in settings.items()}
        return self.door.answer(TextRequest(sql, principal, schema=self.lab.schema, settings=given))

    def codes(self, sql: str, principal: str = "ann", **settings: str) -> list[str]:
        found = self.ask(sql, principal, **settings)
        assert found.sql is None, found.sql
        return [r.code.value for r in found.reasons]

    def hit(self, sql: str, **settings: str) -> TextAnswer:
        """The answer, which gives what the original gives."""
        found = self.ask(sql, **settings)
        assert found.sql is not None, found.reasons
        mine = self.lab.plain.sql(found.sql)
        same(mine, mine.collect(), self.lab.plain.sql(sql), "order by" in sql.lower())
        return found


@pytest.fixture
def door(lab) -> Iterator[Door]:
    made = Door(lab)
    yield made
    made.feed.close()


def rows(lab: Lab, sql: str) -> Counter:
    return Counter(map(exact, lab.plain.sql(sql).collect()))


def test_rewritten_texts_run_and_give_the_rows_of_the_original(lab, door):
    lab.sql(JOIN)
    lab.cache(CUBE)
    wrong = {}
    for title, query in SERVED.items():
        if title in NOT_IN_TEXT:
            continue
        try:
            if title in REFUSED:
                assert "UNSUPPORTED_OPERATOR" in door.codes(query)
                continue
            found = door.hit(query)
            assert found.exact and set(found.caches) == {f"{lab.schema}.c"}
        except AssertionError as error:
            wrong[title] = str(error)
    assert not wrong


def test_what_was_given_out_stays_true_when_the_tables_move_on(lab, door):
    """One moment a query: the SQL reads every table at the version that the answer names."""
    lab.sql(JOIN)
    lab.cache(CUBE)
    queries = (
        GROUPED,
        SERVED["a FROM-subquery joined with a table"],
        SERVED["NOT IN"],
        "SELECT city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY city",
        "WITH cust AS (SELECT cid FROM cust) SELECT s FROM (SELECT cust AS k, SUM(amt) AS s FROM sales GROUP BY cust) x JOIN cust ON k = cid",
        "SELECT s FROM (SELECT cust AS k, SUM(amt) AS s FROM sales GROUP BY cust) x LEFT JOIN cust ON k = cid, (SELECT MAX(cid) AS m FROM cust) y WHERE cid < m",
    )
    before = [(found.sql, rows(lab, q)) for q in queries if (found := door.hit(q))]
    lab.plain.sql("INSERT INTO cust VALUES (4, 'Riga', 'Latvia')")
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'north', 4, 5, 5, NULL, NULL)")
    for sql, wanted in before:
        assert rows(lab, sql) == wanted, sql
    assert set(door.codes(GROUPED)) == {"STALE", "FRESH_IN_SPARK_ONLY"}
    lab.sql("REFRESH RELATIONAL CACHE c")
    for query in queries:
        door.hit(query)


def test_a_stale_cache_says_of_which_versions_its_rows_are(lab, door):
    lab.sql(JOIN)
    lab.cache(f"d MAX STALENESS INTERVAL 1 HOUR AS {CUBE.partition(' AS ')[2]}")
    wanted = rows(lab, GROUPED)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'north', 4, 5, 5, NULL, NULL)")
    found = door.ask(GROUPED)
    assert found.sql is not None and not found.exact
    assert rows(lab, found.sql) == wanted != rows(lab, GROUPED)
    (table,) = found.tables
    at = f"SELECT region, SUM(amt) AS s FROM sales VERSION AS OF {table.version} GROUP BY region"
    assert rows(lab, at) == wanted
    mixed = SERVED["a FROM-subquery joined with a table"]
    assert "MIXED_SNAPSHOTS" in door.codes(mixed)


def test_a_table_that_changed_its_columns(lab, door):
    lab.cache("u MAX STALENESS UNLIMITED AS SELECT region, amt FROM sales")
    door.hit("SELECT region, amt FROM sales")
    lab.plain.sql("ALTER TABLE cust ADD COLUMN amt BIGINT")
    lab.cache("v AS SELECT cid, city FROM cust")
    # `amt` could be of either table now, so Spark refuses the text, and so must we
    both = "SELECT SUM(amt) AS s FROM sales JOIN cust ON cust = cid"
    assert any("AMBIGUOUS" in r.detail for r in door.ask(both).reasons)
    lab.plain.sql("ALTER TABLE sales ADD COLUMN extra INT")
    found = door.ask("SELECT * FROM sales")
    assert found.sql is None, "the new column is in no cache"
    assert door.ask("SELECT region, amt FROM sales").sql is not None


def test_a_table_that_was_created_again(lab, door):
    lab.cache(CUBE)
    door.hit(GROUPED)
    lab.plain.sql("CREATE OR REPLACE TABLE sales USING delta AS SELECT * FROM sales")
    assert set(door.codes(GROUPED)) <= {"STALE", "TABLE_RECREATED"}
    lab.plain.sql("DROP TABLE sales")
    lab.plain.sql(
        "CREATE TABLE sales (id BIGINT, day DATE, region STRING, cust INT, amt BIGINT) USING delta"
    )
    assert set(door.codes(GROUPED)) <= {"TABLE_RECREATED", "FRESHNESS_UNKNOWN", "STALE"}


def test_who_asks_and_under_which_settings(lab, door):
    lab.cache(CUBE)
    lab.sql("GRANT USE ON RELATIONAL CACHE c TO ann")
    assert door.hit(GROUPED).settings["spark.sql.session.timeZone"]
    assert door.codes(GROUPED, "bob") == ["NOT_GRANTED"]
    assert door.codes(GROUPED, spark__sql__ansi__enabled="false") == ["SETTINGS_DIFFER"]
    assert door.codes(GROUPED, spark__sql__session__timeZone="Asia/Tokyo") == ["SETTINGS_DIFFER"]
    assert door.codes(GROUPED, spark__sql__caseSensitive="true") == ["SETTINGS_DIFFER"]
    assert door.codes(GROUPED, spark__sql__runSQLOnFiles="false") == ["SETTINGS_DIFFER"]
    assert door.codes(GROUPED, spark__cachemgr__enabled="false") == ["SETTINGS_DIFFER"]
    door.hit(GROUPED, spark__sql__shuffle__partitions="7", spark__sql__ansi__enabled="TRUE")
    lab.sql("ALTER RELATIONAL CACHE c DISABLE REWRITE")
    assert door.codes(GROUPED) == ["CACHE_DISABLED"]


def test_heads_by_spark_are_those_of_the_logs(lab):
    lab.cache(CUBE)
    with open_metastore(lab.url) as store:
        seeds = store.tables.noted()
    spark = SparkHeads(lambda: lab.plain)
    until = time.monotonic() + 30
    while not spark.look(seeds) and time.monotonic() < until:
        time.sleep(0.05)
    for statement in (
        "INSERT INTO sales SELECT * FROM sales",
        "ALTER TABLE sales ADD COLUMN more STRING",
        "DELETE FROM sales WHERE id = 1",
        "CREATE OR REPLACE TABLE sales USING delta AS SELECT 1 AS one",
    ):
        local, remote = Heads().look(seeds), spark.look(seeds)
        assert local == remote and len(local) == len(seeds)
        (sales,) = [s for s in seeds if s.name.endswith("sales")]
        table = local[sales.location]
        if table.table_id == sales.table_id and table.version > sales.version:
            pasts = [h.past(table, sales.version, columns_then=True) for h in (Heads(), spark)]
            assert pasts[0] == pasts[1] and pasts[0].columns_then == sales.columns
        lab.plain.sql(statement)
    assert Heads().look(seeds) == spark.look(seeds)


def test_the_same_choice_as_in_a_session(lab, door):
    lab.sql(JOIN)
    lab.cache(CUBE)
    lab.cache(
        "by_city AS SELECT city, region, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY city, region"
    )
    for query in (
        GROUPED,
        "SELECT city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY city",
    ):
        found, explained = door.hit(query), cachemgr.explain(lab.spark, query)
        assert (found.caches, found.grouping_set) == (explained.caches, explained.grouping_set)
