# ruff: noqa: E501 - tables of SQL read better unbroken
"""Columns whose names must be quoted: caches of every layout over them are refreshed, and answer in
sessions, from pins and by text."""

from __future__ import annotations

from urllib.parse import quote as escaped

import httpx
import pytest
from test_many_sessions import pins, until
from test_text_door import Door

import cachemgr
from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.delta.storage import LocalFiles
from cachemgr.errors import DefinitionError
from cachemgr.journal.rebuild import look
from cachemgr.refresh import stages
from cachemgr.refresh.full import sample
from tests.processes import free_port
from tests.servers import ServerThread

pytestmark = pytest.mark.spark

STORED = (
    "a`b",
    "``",
    "a.b",
    "it's",
    'q"u',
    "Größe",
    "back\\slash",
    "per%25cent",
    "a/b",
    "-",
    "1",
    "select",
    "a:b",
    "$x",
    "*",
)
# What Delta stores only under column mapping; a cache stores it under a name of its own.
MAPPED = ("x y", "a,b", "s;t", "{k}", "p=q", "(r)", "tab\tb", "count(1)")
MAPPING = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
MANY = "LATERAL VIEW explode(sequence(1, 300)) AS e"


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def make_wide(lab, names):
    """A table with an INT key of each name, and a number."""
    columns = ", ".join(f"{quoted(n)} INT" for n in names)
    lab.plain.sql(f"CREATE TABLE wide ({columns}, v BIGINT) USING delta {MAPPING}")
    rows = ((1, 1), (2, 2), (1, 3), ("NULL", 4))
    values = ", ".join(f"({', '.join([str(k)] * len(names))}, {v})" for k, v in rows)
    lab.plain.sql(f"INSERT INTO wide VALUES {values}")
    return [quoted(n) for n in names]


@pytest.mark.parametrize(
    "layout", ["PARTITIONED BY ({1}, {4}, {6})", "CLUSTER BY ({0}, {2}, {3}, {8})", ""]
)
def test_columns_whose_names_must_be_quoted(lab, layout):
    keys = make_wide(lab, STORED)
    lab.cache(f"raw {layout.format(*keys)} AS SELECT * FROM wide")
    lab.plain.sql(f"INSERT INTO wide SELECT {', '.join(['7'] * len(keys))}, 9")
    lab.sql("REFRESH RELATIONAL CACHE raw")
    for key in keys:
        lab.hit(f"SELECT {key}, v FROM wide WHERE {key} > 1")
    all_of_them = " AND ".join(f"{k} = 1" for k in keys)
    lab.hit(
        f"SELECT {', '.join(keys)}, v AS `a``v` FROM wide WHERE {all_of_them} ORDER BY {', '.join(keys)}, v"
    )
    lab.sql("DROP RELATIONAL CACHE raw")
    lab.cache(
        f"groups {layout.format(*keys)} AS SELECT {', '.join(keys)}, SUM(v) AS `s``v` FROM wide GROUP BY {', '.join(keys)}"
    )
    lab.hit(
        f"SELECT {keys[0]}, {keys[2]}, SUM(v) AS s FROM wide WHERE {keys[4]} > 0 GROUP BY {keys[0]}, {keys[2]}"
    )


@pytest.mark.parametrize("name", ["a`b", "a.b's Größe"])
def test_cubes_joins_pins_and_texts(lab, monkeypatch, name):
    # by way of a sample, however small
    monkeypatch.setattr(stages, "suits_one_task", lambda *_: False)
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    k, d, i = (quoted(f"{name}{suffix}") for suffix in ("", "d", "i"))
    lab.plain.sql(
        f"CREATE TABLE odd ({k} STRING, {d} INT, {i} INT NOT NULL, v BIGINT) USING delta {MAPPING}"
    )
    lab.plain.sql(
        "INSERT INTO odd VALUES ('x', 0, 1, 1), ('x', 0, 2, 2), (NULL, NULL, 3, 3), ('y', 1, 1, 4), ('y', 1, 1, 4), ('', 2, 2, NULL)"
    )
    lab.plain.sql(f"CREATE TABLE dim ({i} INT NOT NULL, {k} STRING) USING delta {MAPPING}")
    lab.plain.sql("INSERT INTO dim VALUES (1, 'one'), (2, 'two'), (3, NULL)")
    on = f"odd.{i} = dim.{i}"
    lab.sql(f"CREATE RECORD PRESERVING JOIN j AS odd INNER JOIN dim ON {on} PRESERVES odd")
    key, other = (k, d) if " " not in name else ("`k.`", "`o'`")  # no blank in a cache's own
    lab.cache(
        f"cube AS SELECT odd.{k} AS {key}, {d} AS {other}, dim.{k} AS `a``2`, SUM(v) AS s, COUNT(*) AS n, MAX({d}) AS most "
        f"FROM odd JOIN dim ON {on} "
        f"GROUP BY odd.{k}, {d}, dim.{k} GROUPING SETS ((odd.{k}, {d}), (odd.{k}), (dim.{k}, odd.{k}), ())"
    )
    queries = (
        f"SELECT {k}, SUM(v) AS s FROM odd GROUP BY {k} ORDER BY {k}",
        f"SELECT {k}, COUNT(*) AS n FROM odd WHERE {d} >= 1 GROUP BY {k}",
        f"SELECT dim.{k}, SUM(v) AS `s``v` FROM odd JOIN dim ON {on} WHERE odd.{k} <> 'x' GROUP BY dim.{k}",
    )
    for query in queries:
        lab.hit(query)
    store = pins(lab)
    until(lambda: store.stats().pins == 3, "the three sets that answer are pinned")
    hits = store.stats().hits
    for query in queries:
        lab.hit(query)
    assert store.stats().hits == hits + len(queries) and not store.stats().failed
    door = Door(lab)
    for query in queries:
        door.hit(query)
    door.feed.close()


@pytest.mark.parametrize("name", ["plain", "a.b", "a`b"])
def test_both_zeros_are_found_in_columns_of_any_name(lab, name):
    k = quoted(name)
    lab.plain.sql(f"CREATE TABLE z ({k} DOUBLE, st STRUCT<{k}: FLOAT>) USING delta")
    lab.plain.sql(
        f"INSERT INTO z SELECT /*+ COALESCE(1) */ v, struct(CAST(v AS FLOAT)) FROM VALUES (0.0D), (-0.0D), (1.5D), (-2D) AS t(v) {MANY}"
    )
    lab.cache("raw AS SELECT * FROM z")
    with lab.conf(spark__cachemgr__pin__enabled="false"):
        lab.hit(f"SELECT COUNT(*) AS n FROM z WHERE {k} = 0D")


def test_what_a_table_cannot_store_is_stored_under_a_name_of_ours_or_named_anew(lab):
    keys = make_wide(lab, MAPPED)
    for number, key in enumerate(keys):
        lab.cache(f"own{number} AS SELECT {key}, SUM(v) AS s FROM wide GROUP BY {key}")
        lab.hit(f"SELECT {key}, SUM(v) AS s FROM wide GROUP BY {key}")
        lab.sql(f"DROP RELATIONAL CACHE own{number}")
    named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    lab.cache(
        f"c CLUSTER BY (k1, k2) AS SELECT {named}, SUM(v) AS s FROM wide GROUP BY {', '.join(keys)}"
    )
    for key in keys:
        lab.hit(
            f"SELECT {key}, SUM(v) AS `sum of {key[1:-1]}` FROM wide WHERE {key} < 2 GROUP BY {key}"
        )


def test_names_that_differ_by_case_alone(lab):
    """Delta has none, whatever the session says: a cache's table calls the second one otherwise."""
    with lab.conf(spark__sql__caseSensitive="true"):
        both = "SELECT region AS a, day AS A, SUM(amt) AS s FROM sales GROUP BY region, day"
        lab.cache(f"c AS {both}")
        lab.hit(both)
        lab.cache("d AS SELECT region AS Ab, SUM(amt) AS S FROM sales GROUP BY region")
        lab.hit("SELECT region AS aB, region AS Ab, SUM(amt) AS s FROM sales GROUP BY region")


@pytest.mark.parametrize("name", ["my table", "pct%41", "x#y z"])
def test_a_table_whose_path_has_to_be_escaped_in_a_uri(lab, tmp_path, name):
    """It is refreshed by all and by the change alone, from files and from the feed, and grows."""
    place = f"delta.`{tmp_path / name}`"
    lab.plain.sql(f"CREATE TABLE {place} (k INT, v BIGINT) USING delta "
                  "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")  # fmt: skip
    lab.plain.sql(f"INSERT INTO {place} SELECT CAST(id % 3 AS INT), id FROM range(10)")
    query = f"SELECT k, SUM(v) AS v, COUNT(*) AS n FROM {place} GROUP BY k"
    lab.cache(f"escaped AS {query}")
    lab.hit(query)
    lab.plain.sql(f"INSERT INTO {place} VALUES (1, 7), (NULL, 8)")
    lab.hit(query)
    lab.sql("REFRESH RELATIONAL CACHE escaped INCREMENTAL")
    lab.hit(query)
    lab.plain.sql(f"UPDATE {place} SET v = v + 1 WHERE k = 1")
    assert lab.sql("REFRESH RELATIONAL CACHE escaped INCREMENTAL")[0]["mode"] == "REPLACE"
    lab.hit(query)


ODD_CACHES = (
    "x y",
    "Größe 日本",
    'a`b\'s "c"',
    "100% a?b#c",
    "a,b)c",
    "**",
    "back\\slash",
    "🦄" * 255,
)
SELECT = "SELECT region, COUNT(*) AS n FROM sales GROUP BY region"


@pytest.mark.parametrize("name", ODD_CACHES)
def test_a_cache_of_an_odd_name_works_at_each_door(lab, name):
    """The session, the hint, the real server over the same metastore, and the records beside it."""
    written = quoted(name)
    lab.cache("plain AS SELECT region, day, COUNT(*) AS n FROM sales GROUP BY region, day")
    lab.sql(f"CREATE RELATIONAL CACHE {written} COMMENT 'odd' AS {SELECT}")
    lab.sql(f"REFRESH RELATIONAL CACHE {written}")
    for only in (f"{written}", f"{lab.schema}.{written}"):
        lab.hit(SELECT.replace("SELECT", f"SELECT /*+ RELATIONAL_CACHE({only}) */", 1))
    assert cachemgr.explain(
        lab.spark, SELECT.replace("SELECT", f"SELECT /*+ RELATIONAL_CACHE({written}) */", 1)
    ).caches == (f"{lab.schema}.{name}",)
    hinted = lab.spark.sql(SELECT).hint("RELATIONAL_CACHE", f"{lab.schema}.{name}")
    assert len(hinted.collect()) == 4
    for statement in (
        "DESCRIBE RELATIONAL CACHE EXTENDED",
        "EXPLAIN REFRESH",
        "SHOW CREATE RELATIONAL CACHE",
    ):
        assert lab.sql(f"{statement} {written}")
    assert name in [row.name for row in lab.sql("SHOW RELATIONAL CACHES")]
    lab.sql(f"ALTER RELATIONAL CACHE {written} PAUSE")
    with lab.metastore() as store:
        port = free_port()
        server = ServerThread(
            create_app(ApiState(store, None, lambda: True, None, lambda: None)), port
        )
        try:
            place = (
                f"http://127.0.0.1:{port}/api/v1/caches/{escaped(f'{lab.schema}.{name}', safe='')}"
            )
            found = httpx.get(place, timeout=60).json()
            assert (found["name"], found["paused"]) == (name, True)
            assert httpx.post(f"{place}/resume", timeout=60).is_success
            assert httpx.get(f"{place}/refreshes", timeout=60).json()["refreshes"]
            assert httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).is_success
        finally:
            server.stop()
    found = look([str(lab.folder / "caches")], lambda root: LocalFiles())
    assert {dump.cache["name"] for dump in found.caches} == {"plain", name}
    renamed = quoted("r" + name[1:])
    lab.sql(f"ALTER RELATIONAL CACHE {written} RENAME TO {renamed}")
    lab.sql(f"DROP RELATIONAL CACHE {renamed}")


@pytest.mark.parametrize(
    "name", ["`a.b`", "`x.y`.c", "`a\nb`", "`x/y`", "`x `", "` x`", "`../x`", f"`{'x' * 256}`"]
)
def test_noop_a_cache_whose_name_could_be_another_ones_or_cannot_be_asked_for(lab, name):
    lab.cache(f"plain AS {SELECT}")
    for text in (
        f"CREATE RELATIONAL CACHE {name} AS {SELECT}",
        f"CREATE OR REPLACE RELATIONAL CACHE {name} AS {SELECT}",
        f"EXPLAIN CREATE RELATIONAL CACHE {name} AS {SELECT}",
        f"ALTER RELATIONAL CACHE plain RENAME TO {name}",
        f"CREATE RECORD PRESERVING JOIN {name} AS sales INNER JOIN cust ON cust = cid PRESERVES sales",
    ):
        with pytest.raises(DefinitionError, match="NAME_NOT_ALLOWED"):
            lab.sql(text)
    lab.sql("DROP RELATIONAL CACHE plain")
