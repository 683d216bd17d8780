"""EXPLAIN REWRITE FILES tells which files would be opened; the scans say the same afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import cachemgr
from cachemgr.serving.files_opened import FilesOpened
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = "days AS SELECT day, k, COUNT(*) AS n, SUM(v) AS s FROM facts GROUP BY day, k"
REUSE_ONLY = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Facts of forty days in ten files that are no partitions, a cache of a partition a day, the
    same rows as a table of a partition a day, and dates."""
    folder = tmp_path_factory.mktemp("files")
    settings = {"spark__cachemgr__pin__maxBytes": "0"}
    for made in make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}", **settings):
        session = made.spark
        session.sql(
            "CREATE TABLE facts USING delta AS SELECT date_add(DATE'2024-01-01', CAST(id DIV 100 "
            "AS INT)) AS day, id % 7 AS k, id AS v FROM range(0, 4000, 1, 10)"
        )
        session.sql("CREATE TABLE parts USING delta PARTITIONED BY (day) AS SELECT * FROM facts")
        session.sql(
            "CREATE TABLE dates USING delta AS SELECT DISTINCT day AS d, "
            "IF(day < '2024-01-04', 'holiday', 'other') AS kind FROM facts"
        )
        session.sql(
            "CREATE TABLE large USING delta AS SELECT day, v, sha2(CAST(v AS STRING), 512) AS s "
            "FROM facts"
        )
        session.sql(f"CREATE RELATIONAL CACHE {DAYS.replace(' AS', ' PARTITIONED BY (day) AS', 1)}")
        session.sql("REFRESH RELATIONAL CACHE days")
        yield made


def told(lab: Lab, query: str) -> tuple[FilesOpened, FilesOpened | None]:
    """What is told of a query, and what it has opened."""
    explained = cachemgr.explain(lab.spark, query, files=True)
    assert explained.files is not None
    return explained.files, explained.files_without


def opened(lab: Lab, query: str) -> FilesOpened:
    """What a query has opened."""
    frame = lab.spark.sql(query)
    frame.collect()
    return cachemgr.files_opened(frame)


def sizes(found: FilesOpened) -> list[tuple[Any, ...]]:
    return sorted((s.files, s.of_files, s.bytes, s.of_bytes) for s in found.scans)


@pytest.mark.parametrize(
    ("query", "files", "without"),
    [
        ("SELECT day, SUM(v) AS s FROM facts WHERE day = '2024-01-05' GROUP BY day", 1, 1),
        ("SELECT day, SUM(v) AS s FROM facts WHERE day < '2024-01-05' GROUP BY day", 4, 1),
        ("SELECT k, SUM(v) AS s FROM facts GROUP BY k", 40, 10),
        ("SELECT SUM(v) AS s FROM facts WHERE year(day) = 2024 AND month(day) = 2", 9, 3),
        ("SELECT SUM(v) AS s FROM facts WHERE day = '2030-01-01'", 0, 0),
    ],
)
def test_a_hit_and_the_query_without_caches(lab: Lab, query: str, files: int, without: int) -> None:
    found, base = told(lab, query)
    assert base is not None and (found.files, base.files) == (files, without)
    assert {s.of_files for s in found.scans} <= {40} and {s.of_files for s in base.scans} <= {10}
    assert sizes(found) == sizes(opened(lab, query))
    with lab.conf(spark__cachemgr__mode="planOnly"):
        assert sizes(base) == sizes(opened(lab, query))


def test_a_miss_is_told_once(lab: Lab) -> None:
    query = "SELECT v FROM facts WHERE v < 100"
    found, base = told(lab, query)
    assert base is None and (found.files, found.scans[0].of_files) == (1, 10)
    rows = lab.spark.sql(f"EXPLAIN REWRITE FILES {query}").collect()
    lines = [r[1] for r in rows if r[0] == "files"]
    assert len(lines) == 1 and "facts: 1 of 10 files, " in lines[0]


def test_other_words_of_the_statement(lab: Lab) -> None:
    query = "SELECT day, SUM(v) AS s FROM facts WHERE day = '2024-01-05' GROUP BY day"
    rows = lab.spark.sql(f"EXPLAIN REWRITE FILES {query}").collect()
    assert any(r[0] == "files" and "days" in r[1] for r in rows)
    assert any(r[0] == "without caches: files" and "facts" in r[1] for r in rows)
    (row,) = lab.spark.sql(f"EXPLAIN REWRITE FILES FORMAT JSON {query}").collect()
    assert '"filesWithout"' in row[0] and '"ofFiles": 40' in row[0]
    plain = lab.spark.sql(f"EXPLAIN REWRITE {query}").collect()
    assert not any("files" in r[0] for r in plain)


JOINED = "SELECT SUM(v) AS s FROM parts {how} JOIN dates ON {on} WHERE {where}"
HOLIDAY = "kind = 'holiday'"


@pytest.mark.parametrize(
    ("query", "settings", "outcome", "files"),
    [
        (JOINED.format(how="", on="day = d", where=HOLIDAY), {}, "broadcast reused", 3),
        (JOINED.format(how="", on="day = d", where=HOLIDAY), {BROADCAST: "-1"},
         "none: reuse only", 40),
        (JOINED.format(how="", on="day = d", where=HOLIDAY), {BROADCAST: "-1", REUSE_ONLY: "false"},
         "filter query", 3),
        (JOINED.format(how="", on="day = d", where=HOLIDAY),
         {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}, "none: setting", 40),
        (JOINED.format(how="", on="day < d", where=HOLIDAY), {}, "none: no equi-join", 40),
        (JOINED.format(how="", on="v = dayofyear(d)", where=HOLIDAY), {},
         "none: not partitioned by the key", 40),
        ("SELECT SUM(v) AS s FROM parts LEFT JOIN (SELECT * FROM dates WHERE kind = 'holiday') "
         "ON day = d", {}, "none: join type cannot prune that side", 40),
        ("SELECT SUM(v) AS s, MAX(kind) AS m FROM parts JOIN dates ON day = d", {},
         "none: no selective filter", 40),
        ("SELECT SUM(p.v) AS s FROM parts p JOIN large l ON p.day = l.day WHERE l.v < 100",
         {"spark.sql.exchange.reuse": "false"}, "none: no benefit", 40),
        ("SELECT SUM(p.v) AS s FROM parts p JOIN large l ON p.day = l.day WHERE l.v < 100",
         {BROADCAST: "-1", REUSE_ONLY: "false"}, "none: no benefit", 40),
    ],
)  # fmt: skip
def test_what_becomes_of_dynamic_pruning(
    lab: Lab, query: str, settings: dict[str, str], outcome: str, files: int
) -> None:
    keys = {key.replace(".", "__"): value for key, value in settings.items()}
    with lab.conf(**keys):
        found, _ = told(lab, query)
        ran = opened(lab, query)
    assert [d.outcome for d in found.dynamic if "parts" in d.table] == [outcome]
    (scan,) = (s for s in found.scans if "parts" in s.table)
    assert (scan.files, scan.of_files, scan.dynamic) == (40, 40, files < 40)
    (scan,) = (s for s in ran.scans if "parts" in s.table)
    assert scan.files == files


@pytest.mark.parametrize(("table", "hit"), [("parts", False), ("facts", True)])
def test_a_join_that_leaves_a_twentieth_opens_a_tenth_at_most(
    lab: Lab, table: str, hit: bool
) -> None:
    """Of a table, and of a cache of which the joined table is no part: two days of forty."""
    few = "CONCAT(kind, dayofmonth(d)) IN ('holiday1', 'holiday2')"  # which says nothing of a day
    query = f"SELECT day, SUM(v) AS s FROM {table} JOIN dates ON day = d WHERE {few} GROUP BY day"
    lab.check(query, hit=hit)
    found, _ = told(lab, query)
    (planned,) = (s for s in found.scans if s.partitions is not None)
    (ran,) = (s for s in opened(lab, query).scans if s.partitions is not None)
    assert planned.dynamic and (planned.files, planned.of_files) == (40, 40)
    assert ran.files == 2 <= 40 / 10


def test_what_is_held_in_memory_opens_no_file(lab: Lab) -> None:
    parts = lab.spark.table("parts").cache()
    try:
        parts.count()
        found, _ = told(lab, JOINED.format(how="", on="day = d", where=HOLIDAY))
    finally:
        parts.unpersist(blocking=True)
    (scan,) = (s for s in found.scans if s.held)
    assert scan.files == 0 and scan.told().endswith("0 files, held in memory")
    assert "none: answer in memory" in [d.outcome for d in found.dynamic]
    assert found.files == 1  # of dates


def test_nothing_is_counted_for_it(lab: Lab) -> None:
    before = cachemgr.counters(lab.spark)
    told(lab, "SELECT day, SUM(v) AS s FROM facts GROUP BY day")
    assert cachemgr.counters(lab.spark) == before


def test_a_query_of_files_and_one_of_no_table(lab: Lab) -> None:
    path = lab.folder / "files"
    lab.spark.range(0, 50, 1, 5).write.parquet(str(path))
    found, base = told(lab, f"SELECT * FROM parquet.`{path}` WHERE id < 3")
    assert base is None and (found.files, found.scans[0].of_files) == (5, 5)
    found, _ = told(lab, "SELECT 1")
    assert found.scans == () and list(found.lines()) == [("files", "none")]
