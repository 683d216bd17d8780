"""What a writer's statement may not do: each text is refused, and nothing has changed."""

from __future__ import annotations

import pytest

from cachemgr.errors import CacheManagerError, ErrorCode
from tests.results.test_writes import ALLOWED
from tests.worlds.write_world import World

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

NOT_GRANTED: dict[str, str] = {
    "INSERT INTO hidden VALUES (1, 'x')": "hidden",
    "INSERT INTO missing VALUES (1, 'x')": "missing",
    "INSERT INTO no_schema.missing VALUES (1, 'x')": "no_schema.missing",
    "INSERT INTO other.writes.seen VALUES (1, 'x')": "other.writes.seen",
    "INSERT INTO seen TABLE hidden": "hidden",
    "INSERT INTO seen SELECT a, b FROM v_hidden": "v_hidden",
    "INSERT INTO seen SELECT a, b FROM also WHERE a IN (SELECT a FROM hidden)": "hidden",
    "INSERT INTO seen VALUES ((SELECT max(a) FROM hidden), 'x')": "hidden",
    "WITH c AS (TABLE hidden) INSERT INTO seen TABLE c": "hidden",
    "WITH hidden AS (TABLE also) INSERT INTO hidden TABLE also": "hidden",
    "INSERT INTO seen WITH c AS (TABLE hidden) TABLE also": "hidden",
    "FROM hidden INSERT INTO seen SELECT *": "hidden",
    "INSERT OVERWRITE hidden TABLE seen": "hidden",
    "INSERT INTO hidden REPLACE WHERE a = 1 TABLE seen": "hidden",
    "INSERT INTO seen REPLACE WHERE a IN (SELECT a FROM hidden) TABLE also": "hidden",
    "INSERT INTO v_hidden VALUES (1, 'x')": "v_hidden",
    "INSERT INTO temporary VALUES (1)": "temporary",
    "INSERT INTO t_seen VALUES (1, 'x')": "t_seen",
    "INSERT INTO delta.`FOLDER/hidden` VALUES (1, 'x')": "delta.`",
    "INSERT INTO delta.`FOLDER/nothing` VALUES (1, 'x')": "delta.`",
    "UPDATE hidden SET a = 9": "hidden",
    "UPDATE seen SET b = (SELECT max(secret_column) FROM hidden)": "hidden",
    "UPDATE seen SET b = 'q' WHERE a IN (SELECT a FROM hidden)": "hidden",
    "UPDATE t_seen SET b = 'q'": "t_seen",
    "DELETE FROM hidden": "hidden",
    "DELETE FROM hidden WHERE nope = 1": "hidden",
    "DELETE FROM seen WHERE EXISTS (SELECT 1 FROM hidden)": "hidden",
    "DELETE FROM v_hidden": "v_hidden",
    "DELETE FROM t_seen": "t_seen",
    "MERGE INTO hidden USING seen ON hidden.a = seen.a WHEN MATCHED THEN DELETE": "hidden",
    "MERGE INTO seen USING hidden ON hidden.a = seen.a WHEN MATCHED THEN DELETE": "hidden",
    "MERGE INTO seen USING (SELECT a FROM hidden) h ON h.a = seen.a WHEN MATCHED THEN DELETE": (
        "hidden"
    ),
    "MERGE INTO seen USING also ON seen.a = (SELECT max(a) FROM hidden) WHEN MATCHED THEN DELETE": (
        "hidden"
    ),
    "MERGE INTO seen USING also ON seen.a = also.a WHEN MATCHED THEN UPDATE SET "
    "b = (SELECT max(secret_column) FROM hidden)": "hidden",
    "MERGE INTO seen USING also ON seen.a = also.a WHEN NOT MATCHED AND EXISTS (TABLE hidden) "
    "THEN INSERT *": "hidden",
    "MERGE INTO seen USING temporary t ON seen.a = t.secret_column WHEN MATCHED THEN DELETE": (
        "temporary"
    ),
    "MERGE INTO seen USING delta.`FOLDER/hidden` h ON seen.a = h.a WHEN MATCHED THEN DELETE": (
        "delta.`"
    ),
}

REFUSED: dict[str, str] = {
    # where nothing is written to
    "INSERT INTO v_seen VALUES (1, 'x')": "v_seen is a view",
    "UPDATE v_seen SET b = 'q'": "v_seen is a view",
    "DELETE FROM v_seen": "v_seen is a view",
    "MERGE INTO v_seen USING also ON v_seen.a = also.a WHEN MATCHED THEN DELETE": "is a view",
    "INSERT INTO plain VALUES (1, 'x')": "plain is no Delta table",
    "INSERT OVERWRITE plain VALUES (1, 'x')": "plain is no Delta table",
    "INSERT INTO delta.`FOLDER/seen` VALUES (1, 'x')": "by its path",
    "UPDATE delta.`FOLDER/seen` SET b = 'q'": "by its path",
    "DELETE FROM delta.`FOLDER/seen`": "by its path",
    "MERGE INTO delta.`FOLDER/seen` t USING also ON t.a = also.a WHEN MATCHED THEN DELETE": (
        "by its path"
    ),
    "INSERT INTO parquet.`FOLDER/plain` VALUES (1, 'x')": "by its path",
    "INSERT INTO csv.`FOLDER/made` VALUES (1, 'x')": "by its path",
    "INSERT INTO caches_0a1b VALUES (1, 'x')": "tables of relational caches",
    "UPDATE caches_0a1b SET b = 'q'": "tables of relational caches",
    "DELETE FROM moved_cache": "tables of relational caches",
    "INSERT OVERWRITE moved_cache_under TABLE seen": "tables of relational caches",
    "MERGE INTO moved_cache t USING also ON t.a = also.a WHEN MATCHED THEN DELETE": (
        "tables of relational caches"
    ),
    "INSERT INTO checked VALUES (1, 'x')": "generated column of checked holds reflect",
    "INSERT INTO IDENTIFIER('se' || 'en') VALUES (1, 'x')": "computed by IDENTIFIER",
    "DELETE FROM IDENTIFIER('se' || 'en')": "computed by IDENTIFIER",
    # what a write may not say
    "INSERT INTO seen WITH ('mergeSchema' = 'true') SELECT 1, 'x'": "the option",
    "INSERT INTO seen WITH ('path' = 'FOLDER/hidden') SELECT 1, 'x'": "the option",
    "INSERT OVERWRITE seen WITH ('overwriteSchema' = 'true') SELECT 1": "the option",
    "MERGE WITH SCHEMA EVOLUTION INTO seen USING also ON seen.a = also.a WHEN MATCHED THEN "
    "UPDATE SET *": "WITH SCHEMA EVOLUTION",
    # what it reads and calls
    "INSERT INTO seen SELECT reflect('java.lang.Math', 'abs', 1), 'x'": "reflect reaches",
    "INSERT INTO seen VALUES (java_method('java.lang.Math', 'abs', 1), 'x')": "java_method",
    "UPDATE seen SET b = reflect('java.lang.Math', 'abs', 1)": "reflect reaches",
    "DELETE FROM seen WHERE reflect('java.lang.Math', 'abs', 1) = '1'": "reflect reaches",
    "INSERT INTO seen REPLACE WHERE reflect('java.lang.Math', 'abs', 1) = '1' TABLE also": (
        "reflect reaches"
    ),
    "MERGE INTO seen USING also ON seen.a = also.a WHEN MATCHED THEN UPDATE SET "
    "b = reflect('java.lang.Math', 'abs', 1)": "reflect reaches",
    "MERGE INTO seen USING also ON reflect('x', 'y') = '1' WHEN MATCHED THEN DELETE": "reflect",
    "UPDATE seen SET a = python_udf(a)": "python_udf is none",
    "INSERT INTO seen SELECT most(), 'x'": "most is none",
    "DELETE FROM seen WHERE a = writes.most()": "writes.most is none",
    "INSERT INTO seen SELECT a, b FROM plain": "plain is no Delta table",
    "INSERT INTO seen SELECT * FROM csv.`FOLDER/lines.csv`": "read by its path",
    "MERGE INTO seen USING parquet.`FOLDER/plain` p ON seen.a = p.a WHEN MATCHED THEN DELETE": (
        "read by its path"
    ),
    "INSERT INTO seen SELECT TRANSFORM(a, b) USING 'cat' FROM also": "TRANSFORM, which runs",
    "INSERT INTO seen VALUES (:x, 'x')": "a parameter",
    "UPDATE seen SET a = ?": "a parameter",
    "INSERT INTO seen SELECT a, b FROM STREAM also": "a stream",
    # several at once
    "FROM also INSERT INTO seen SELECT * INSERT INTO seen SELECT *": "holds INSERT INTO",
    "FROM also INSERT INTO seen SELECT * INSERT OVERWRITE seen SELECT *": "holds INSERT INTO",
    "BEGIN INSERT INTO seen VALUES (1, 'x'); END": "a script (BEGIN … END)",
    "EXECUTE IMMEDIATE 'DELETE FROM seen'": "EXECUTE IMMEDIATE",
    "EXPLAIN DELETE FROM seen": "holds EXPLAIN",
    # what is neither
    "INSERT OVERWRITE DIRECTORY 'FOLDER/made' USING json SELECT 1": "holds INSERT INTO DIR",
    "INSERT OVERWRITE LOCAL DIRECTORY 'FOLDER/made' USING csv TABLE seen": "holds INSERT INTO DIR",
    "CREATE TABLE made (a INT) USING delta": "holds CREATE TABLE",
    "CREATE TABLE made USING delta AS TABLE seen": "holds CREATE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE seen USING delta AS TABLE also": "holds REPLACE TABLE AS SELECT",
    "REPLACE TABLE seen USING delta AS TABLE also": "holds REPLACE TABLE AS SELECT",
    "CREATE TABLE made SHALLOW CLONE seen": "CLONE",
    "CREATE VIEW made AS TABLE seen": "holds CREATE VIEW",
    "CREATE SCHEMA made": "holds CREATE NAMESPACE",
    "CREATE FUNCTION made AS 'x.Y'": "holds CREATE FUNCTION",
    "DROP TABLE seen": "holds DROP TABLE",
    "DROP SCHEMA writes CASCADE": "holds DROP NAMESPACE",
    "TRUNCATE TABLE seen": "holds TRUNCATE TABLE",
    "ALTER TABLE seen ADD COLUMN z INT": "holds ADD COLUMNS",
    "ALTER TABLE seen RENAME TO made": "holds RENAME TABLE",
    "ALTER TABLE seen SET TBLPROPERTIES (delta.appendOnly = true)": "holds SET TABLE PROPERTIES",
    "ALTER TABLE seen ADD CONSTRAINT c CHECK (a > 0)": "CONSTRAINT",
    "ALTER TABLE seen SET LOCATION 'FOLDER/hidden'": "holds SET TABLE LOCATION",
    "OPTIMIZE seen": "holds OPTIMIZE",
    "VACUUM seen": "holds VACUUM",
    "RESTORE TABLE seen TO VERSION AS OF 0": "holds RESTORE",
    "CONVERT TO DELTA parquet.`FOLDER/plain`": "holds CONVERT TO DELTA",
    "LOAD DATA INPATH 'FOLDER/lines.csv' INTO TABLE seen": "holds LOAD DATA",
    "MSCK REPAIR TABLE seen": "holds REPAIR TABLE",
    "CACHE TABLE seen": "holds CACHE TABLE",
    "SET spark.sql.ansi.enabled = false": "holds SET (",
    "SET spark.databricks.delta.schema.autoMerge.enabled = true": "holds SET (",
    "USE default": "holds USE",
    "COMMENT ON TABLE seen IS 'x'": "holds COMMENT ON TABLE",
    # ours
    "CREATE RELATIONAL CACHE made AS SELECT a FROM seen": "/api/v1/caches",
    "/* x */ REFRESH RELATIONAL CACHE made": "/api/v1/caches",
    "DROP RELATIONAL CACHE made": "/api/v1/caches",
    "GRANT SELECT ON BASE TABLE hidden TO ann": "/api/v1/caches",
    "SHOW RELATIONAL CACHES": "/api/v1/caches",
}


@pytest.mark.parametrize("text", NOT_GRANTED)
def test_not_granted(writes: World, text: str) -> None:
    """What was not granted is neither read nor written to, and nothing of it is told."""
    before = writes.state()
    error = writes.refusal(text)
    assert error.code == ErrorCode.SELECT_NOT_GRANTED, error
    assert f"SELECT on {NOT_GRANTED[text]}" in error.message
    assert "'b'" not in error.message
    assert writes.state() == before


@pytest.mark.parametrize("text", REFUSED)
def test_refused(writes: World, text: str) -> None:
    """What is no write that is known is refused by what it is, and nothing has changed."""
    before = writes.state()
    error = writes.refusal(text)
    assert error.code == ErrorCode.STATEMENT_REFUSED, error
    assert REFUSED[text] in error.message, error.message
    assert "secret_column" not in error.message
    assert writes.state() == before


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO seen VALUES (1)",
        "INSERT INTO seen (a, nope) VALUES (1, 'x')",
        "UPDATE seen SET nope = 1",
        "UPDATE seen SET b = 'q' WHERE a IN (SELECT a FROM also)",
        "DELETE FROM seen WHERE a IN (SELECT a FROM also)",
        "MERGE INTO seen USING also ON seen.a = also.nope WHEN MATCHED THEN DELETE",
        "INSERT INTO seen VALUES ('no number', 'x')",
        "INSERT INTO seen VERSION AS OF 0 VALUES (1, 'x')",
        "INSERT INTO seen@v0 VALUES (1, 'x')",
        "COPY INTO seen FROM 'FOLDER/lines.csv' FILEFORMAT = CSV",
        "INSERT INTO seen VALUES (1, 'x'); DELETE FROM seen",
        "",
    ],
)
def test_wrong_texts(writes: World, text: str) -> None:
    """What Spark or Delta do not take is told in one line, and nothing has changed."""
    before = writes.state()
    try:
        writes.allowed(text).carried_out(writes.spark)
    except CacheManagerError as error:
        assert error.code in (ErrorCode.STATEMENT_INVALID, ErrorCode.SYNTAX_ERROR), error
        assert "\n" not in error.message
    except Exception as error:  # some of it Delta sees as late as it runs
        assert "DELTA" in str(error) or "CAST" in str(error)
    else:
        pytest.fail("it ran")
    assert [f for f in writes.state()[4] if "_delta_log" in f] == [  # type: ignore[attr-defined]
        f
        for f in before[4]
        if "_delta_log" in f  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize("text", [*ALLOWED, *NOT_GRANTED][::3])
def test_who_may_not_write_is_told_so(writes: World, text: str) -> None:
    from cachemgr.spark.results.rights import allowed_query

    before = writes.state()
    with pytest.raises(CacheManagerError, match="statement_writers") as refused:
        allowed_query(writes.spark, text, writes.places, "ann")
    assert refused.value.code == ErrorCode.STATEMENT_REFUSED
    assert writes.state() == before


def test_a_writer_reads_as_ever(writes: World) -> None:
    rows = writes.allowed("SELECT a, b FROM seen").rows.collect()
    assert sorted(map(tuple, rows)) == [(1, "x"), (2, "y")]
