"""What a statement may write: texts of a writer who was granted SELECT on some tables, and what
becomes of the tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worlds.write_world import MARK, World

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

MERGE = "MERGE INTO w USING also ON w.a = also.a"
TWO = "(1, 'x'), (2, 'y')"

# text of the statement, rows of `w` (1 x, 2 y) afterwards, rows that Spark gives
ALLOWED: dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "INSERT INTO w VALUES (3, 'z')": ([(1, "x"), (2, "y"), (3, "z")], []),
    "insert into Writes.W select 3, 'z'": ([(1, "x"), (2, "y"), (3, "z")], []),
    "INSERT INTO spark_catalog.writes.w TABLE also": ([(1, "x")] * 2 + [(2, "y")] * 2, []),
    "INSERT INTO TABLE w (b) SELECT b FROM also WHERE a = 1": (
        [(1, "x"), (2, "y"), (None, "x")],
        [],
    ),
    "INSERT INTO w BY NAME SELECT 'z' AS b, 3 AS a": ([(1, "x"), (2, "y"), (3, "z")], []),
    "INSERT INTO w SELECT a + 2, b FROM v_seen": ([(1, "x"), (2, "y"), (3, "x"), (4, "y")], []),
    "INSERT INTO w SELECT a, b FROM w": ([(1, "x")] * 2 + [(2, "y")] * 2, []),
    "INSERT INTO w WITH c AS (TABLE seen) SELECT * FROM c WHERE a > 1": (
        [(1, "x"), (2, "y"), (2, "y")],
        [],
    ),
    "WITH c AS (TABLE seen) INSERT INTO w SELECT * FROM c WHERE a > 1": (
        [(1, "x"), (2, "y"), (2, "y")],
        [],
    ),
    "FROM seen INSERT INTO w SELECT a, b WHERE a > 1": ([(1, "x"), (2, "y"), (2, "y")], []),
    "INSERT INTO w SELECT a, b FROM seen WHERE a IN (SELECT max(a) FROM also)": (
        [(1, "x"), (2, "y"), (2, "y")],
        [],
    ),
    "INSERT INTO w VALUES (3, CAST(now() > DATE'2020-01-01' AS STRING))": (
        [(1, "x"), (2, "y"), (3, "true")],
        [],
    ),
    "INSERT INTO w VALUES (3, DEFAULT)": ([(1, "x"), (2, "y"), (3, None)], []),
    "INSERT OVERWRITE w SELECT 9, 'q'": ([(9, "q")], []),
    "INSERT OVERWRITE TABLE w BY NAME SELECT 'q' AS b, 9 AS a": ([(9, "q")], []),
    "INSERT INTO w REPLACE WHERE a = 1 SELECT 1, 'new'": ([(1, "new"), (2, "y")], []),
    "INSERT INTO w BY NAME REPLACE WHERE a = 1 SELECT 'new' AS b, 1 AS a": (
        [(1, "new"), (2, "y")],
        [],
    ),
    "UPDATE w SET b = 'q'": ([(1, "q"), (2, "q")], [(2,)]),
    "UPDATE writes.w AS t SET t.b = upper(t.b), a = a + 1 WHERE t.a = 2": (
        [(1, "x"), (3, "Y")],
        [(1,)],
    ),
    "UPDATE w SET b = DEFAULT WHERE a = 1": ([(1, None), (2, "y")], [(1,)]),
    "UPDATE w SET b = 'q' WHERE a = 7": ([(1, "x"), (2, "y")], [(0,)]),
    "DELETE FROM w": ([], [(2,)]),
    "DELETE FROM w AS t WHERE t.a = 1": ([(2, "y")], [(1,)]),
    f"{MERGE} WHEN MATCHED THEN DELETE": ([], [(2, 0, 2, 0)]),
    f"{MERGE} AND w.a > 1 WHEN MATCHED THEN UPDATE SET b = also.b || '!'": (
        [(1, "x"), (2, "y!")],
        [(1, 1, 0, 0)],
    ),
    "MERGE INTO w AS t USING (SELECT a + 1 AS a, b FROM v_seen) s ON t.a = s.a "
    "WHEN MATCHED AND s.b = 'x' THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 'left'": (
        [(1, "left"), (2, "x"), (3, "y")],
        [(3, 2, 0, 1)],
    ),
    "MERGE INTO w USING seen s ON w.a = s.a + 5 WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a) "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": ([(1, None), (2, None)], [(4, 0, 2, 2)]),
    "WITH c AS (TABLE also) MERGE INTO w USING c ON w.a = c.a WHEN MATCHED THEN DELETE": (
        [],
        [(2, 0, 2, 0)],
    ),
}


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(writes: World, text: str) -> None:
    """A write runs as it was looked through, in one commit that says whose it is, and not before
    it is told to."""
    from cachemgr.spark.results.targets import commit_of

    _, place = writes.fresh("a INT, b STRING", rows=TWO)
    expected, told = ALLOWED[text]
    before = writes.state()
    write = writes.allowed(text, writes.places | {place})
    assert writes.state() == before, "a look changes nothing"
    assert (write.table.place, write.table.version) == (place, 1)
    assert place in write.places
    result = write.carried_out(writes.spark)
    assert [tuple(row) for row in result.collect()] == told
    assert writes.rows() == sorted(expected, key=repr)
    version = commit_of(writes.spark, place, write.table.version, MARK)
    assert version == (None if told == [(0,)] else 2)
    assert commit_of(writes.spark, place, 1, MARK + "0") is None


# columns, more of the table, its rows; the statement; rows afterwards
SHAPES: dict[str, tuple[str, str, str, str, list[tuple[Any, ...]]]] = {
    "partitions": (
        "a INT, p INT",
        "PARTITIONED BY (p)",
        "(1, 1), (2, 2)",
        "INSERT OVERWRITE w PARTITION (p = 1) SELECT 9",
        [(2, 2), (9, 1)],
    ),
    "partitions that are inserted into": (
        "a INT, p INT",
        "PARTITIONED BY (p)",
        "(1, 1), (2, 2)",
        "INSERT INTO w PARTITION (p) SELECT 9, 3",
        [(1, 1), (2, 2), (9, 3)],
    ),
    "a generated column": (
        "a INT, g INT GENERATED ALWAYS AS (a + 1)",
        "",
        "",
        "INSERT INTO w (a) VALUES (4)",
        [(4, 5)],
    ),
    "a generated column that is merged into": (
        "a INT, g INT GENERATED ALWAYS AS (a + 1)",
        "",
        "",
        "MERGE INTO w USING seen ON w.a = seen.a WHEN NOT MATCHED THEN INSERT (a) VALUES (seen.a)",
        [(1, 2), (2, 3)],
    ),
    "a default": (
        "a INT, b STRING DEFAULT upper('d')",
        "TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')",
        "",
        "INSERT INTO w (a) VALUES (4)",
        [(4, "D")],
    ),
    "an identity column": (
        "a INT, i BIGINT GENERATED ALWAYS AS IDENTITY",
        "",
        "",
        "INSERT INTO w (a) VALUES (4)",
        [(4, 1)],
    ),
    "an identity column that is merged into": (
        "a INT, i BIGINT GENERATED ALWAYS AS IDENTITY",
        "",
        "",
        "MERGE INTO w USING (SELECT 4 AS a) s ON w.a = s.a WHEN NOT MATCHED THEN INSERT (a) "
        "VALUES (s.a)",
        [(4, 1)],
    ),
    "deletion vectors": (
        "a INT, b STRING",
        "TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "(1, 'x'), (2, 'y'), (3, 'z')",
        "DELETE FROM w WHERE a = 2",
        [(1, "x"), (3, "z")],
    ),
    "row tracking": (
        "a INT, b STRING",
        "TBLPROPERTIES (delta.enableRowTracking = true)",
        TWO,
        "UPDATE w SET b = 'q' WHERE a = 2",
        [(1, "x"), (2, "q")],
    ),
    "column mapping": (
        "a INT, `b c` STRING",
        "TBLPROPERTIES (delta.columnMapping.mode = 'id')",
        TWO,
        "MERGE INTO w USING seen ON w.a = seen.a WHEN MATCHED THEN UPDATE SET `b c` = 'q'",
        [(1, "q"), (2, "q")],
    ),
    "a change feed": (
        "a INT, b STRING",
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        TWO,
        "DELETE FROM w WHERE a = 1",
        [(2, "y")],
    ),
    "clustering": (
        "a INT, b STRING",
        "CLUSTER BY (a)",
        "",
        "INSERT INTO w TABLE seen",
        [(1, "x"), (2, "y")],
    ),
    "structs, and lengths": (
        "a INT, s STRUCT<x: INT, y: STRING>, c CHAR(3)",
        "",
        "(1, named_struct('x', 1, 'y', 'a'), 'b')",
        "UPDATE w SET s.x = 2, c = 'c'",
        [(1, (2, "a"), "c  ")],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_any_kind(writes: World, shape: str) -> None:
    columns, more, rows, text, expected = SHAPES[shape]
    _, place = writes.fresh(columns, more, rows)
    writes.allowed(text, writes.places | {place}).carried_out(writes.spark)
    found = [tuple(tuple(v) if isinstance(v, tuple) else v for v in row) for row in writes.rows()]
    assert found == expected


def test_dynamic_partition_overwrite(writes: World) -> None:
    _, place = writes.fresh("a INT, p INT", "PARTITIONED BY (p)", "(1, 1), (2, 2)")
    mode = "spark.sql.sources.partitionOverwriteMode"
    writes.spark.conf.set(mode, "dynamic")
    try:
        text = "INSERT OVERWRITE w SELECT 9, 1"
        writes.allowed(text, writes.places | {place}).carried_out(writes.spark)
    finally:
        writes.spark.conf.unset(mode)
    assert writes.rows() == [(2, 2), (9, 1)]


def test_a_check_constraint_is_kept(writes: World) -> None:
    _, place = writes.fresh("a INT, b STRING NOT NULL")
    writes.spark.sql("ALTER TABLE w ADD CONSTRAINT small CHECK (a < 10 AND length(b) < 5)")
    granted = writes.places | {place}
    writes.allowed("INSERT INTO w VALUES (1, 'x')", granted).carried_out(writes.spark)
    for row in ("(10, 'x')", "(1, 'xxxxx')", "(1, NULL)"):
        write = writes.allowed(f"INSERT INTO w VALUES {row}", granted)
        with pytest.raises(Exception, match="DELTA_"):
            write.carried_out(writes.spark)
    assert writes.rows() == [(1, "x")]


def test_what_was_checked_is_what_is_written_to(writes: World) -> None:
    """A name that leads elsewhere after the check is written to where it led."""
    first, place = writes.fresh("a INT, b STRING")
    write = writes.allowed("INSERT INTO w TABLE seen", writes.places | {place})
    writes.spark.sql("DROP TABLE w")
    writes.spark.sql(f"CREATE TABLE w (a INT, b STRING) USING delta LOCATION '{first}-other'")
    write.carried_out(writes.spark)
    assert writes.rows() == []
    assert len(writes.rows(f"SELECT * FROM delta.`{first}`")) == 2


def test_no_column_comes_with_a_write(writes: World) -> None:
    _, place = writes.fresh("a INT, b STRING")
    write = writes.allowed("INSERT INTO w BY NAME SELECT 1 AS a, 2 AS c", writes.places | {place})
    with pytest.raises(Exception, match=r"DELTA_METADATA_MISMATCH|schema mismatch"):
        write.carried_out(writes.spark)
    assert writes.spark.table("w").columns == ["a", "b"]
