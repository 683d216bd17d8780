"""Statements that have nothing to do with caches are answered as without the extension: the same
rows, columns and error conditions.

The statements are the examples that Spark's own functions document, and lists of DDL, DML, types,
scripts and mistakes. They run through the Thrift door of two servers, in one session of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

import cachemgr
from cachemgr.errors import ConfigurationError
from tests.doors.spark_server import Server, server, server_conf

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_LEAST: Final = 1_000
# Attributes and classes are numbered through a server's life.
_NUMBERED = re.compile(r"#\d+L?|file:\S+|@[0-9a-f]+|Lambda[$/]\S+")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
# Another answer each time, by their nature.
_OF_THE_MOMENT = re.compile(
    r"\b(rand\w*|uuid|shuffle|now|curdate|current_\w+|localtimestamp|unix_timestamp|to_unix_"
    r"timestamp\(\)|version|user|session_user|reflect|java_method|try_reflect|input_file\w*|"
    r"monotonically\w*|spark_partition_id|sample|tablesample|kll\w*|theta\w*|\w*sketch\w*|hll\w*|"
    r"approx\w*|count_min\w*|uniform|randstr|tuple\w*|aes_encrypt|try_aes\w*)\b",
    re.IGNORECASE,
)
_TYPES = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "STRING", "BINARY",
    "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "VARCHAR(5)", "CHAR(5)", "ARRAY<INT>",
    "MAP<STRING,INT>", "STRUCT<a: INT, b: STRING>", "INTERVAL DAY TO SECOND", "NO_SUCH_TYPE",
)  # fmt: skip
_VALUES = ("1", "-1.5", "'x'", "NULL", "TRUE", "DATE'2024-02-29'", "X'00ff'", "array(1, 2)")
_OTHERS = """
CREATE TABLE one (a INT, b STRING) USING delta
INSERT INTO one VALUES (1, 'x'), (2, 'y'), (NULL, NULL)
SELECT * FROM one ORDER BY a
UPDATE one SET b = 'z' WHERE a = 2
MERGE INTO one USING (SELECT 1 AS a) s ON one.a = s.a WHEN MATCHED THEN UPDATE SET b = 'm'
DELETE FROM one WHERE a IS NULL
SELECT a, COUNT(*) FROM one GROUP BY ROLLUP (a) ORDER BY a
SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM one ORDER BY a
WITH c AS (SELECT 1 AS x UNION ALL SELECT 2) SELECT SUM(x) FROM c
SELECT * FROM one VERSION AS OF 1 ORDER BY a
SELECT * FROM no_such_table
SELECT nothing FROM one
SELECT FROM WHERE
SELECT 1 +
CREATE TABLE one (a INT) USING delta
ALTER TABLE one ADD COLUMN c INT
ALTER TABLE one ADD COLUMN a INT
DESCRIBE one
SHOW COLUMNS IN one
SHOW TABLES LIKE 'one'
SHOW DATABASES LIKE 'def*'
SHOW CREATE TABLE no_such
EXPLAIN SELECT 1
EXPLAIN REFRESH TABLE one
DESCRIBE relational cache
DESCRIBE QUERY SELECT 1 AS x
REFRESH TABLE one
REFRESH relational
DROP VIEW IF EXISTS relational
CREATE TEMPORARY VIEW relational AS SELECT 1 AS cache
SELECT relational.cache FROM relational
CREATE RELATIONALCACHE c
SHOW RELATIONAL FUNCTIONS
SET spark.sql.ansi.enabled=false
SELECT CAST('x' AS INT)
SET spark.sql.ansi.enabled=true
SELECT CAST('x' AS INT)
SELECT 1 / 0
SELECT ${no_such_variable} + 1
SET greeting=hello
SELECT '${greeting}'
BEGIN DECLARE x INT DEFAULT 1; SET x = x + 1; SELECT x; END
BEGIN SELECT no_such_column; END
EXECUTE IMMEDIATE 'SELECT ? + 1' USING 41
DECLARE VARIABLE v INT DEFAULT 5
SELECT v
CACHE TABLE one
UNCACHE TABLE one
ANALYZE TABLE one COMPUTE STATISTICS
TRUNCATE TABLE no_such_table
CREATE FUNCTION plus_one(x INT) RETURNS INT RETURN x + 1
SELECT plus_one(1)
DROP FUNCTION plus_one
SELECT /*+ BROADCAST(one) */ COUNT(*) FROM one
SELECT /*+ NO_SUCH_HINT */ COUNT(*) FROM one
SELECT * FROM VALUES (1, 2), (3, 4) AS t(a, b) ORDER BY a
SELECT a FROM VALUES (1) t(a) EXCEPT SELECT 1
VALUES (1), (2)
TABLE one
FROM one SELECT a ORDER BY a
FROM one |> WHERE a = 1 |> SELECT b
DROP TABLE one
""".strip().splitlines()


def _mistakes() -> Iterator[str]:
    for kind in _TYPES:
        yield from (f"SELECT CAST({value} AS {kind}), {value} = {value}" for value in _VALUES)
        yield f"SELECT typeof(CAST(NULL AS {kind}))"
    operators = ("+", "-", "*", "/", "%", "||", "<=>", "AND", "LIKE", "<<", "&")
    for left in _VALUES:
        for operator in operators:
            yield from (f"SELECT {left} {operator} {right} AS x" for right in _VALUES)


def _statements(plain: Server) -> list[str]:
    """All of them, those of Spark's functions among them."""
    names = [row[0] for row in plain.sql("SHOW FUNCTIONS")[0] if row[0].isidentifier()]
    told = plain.sql(*(f"DESCRIBE FUNCTION EXTENDED `{name}`" for name in names))
    texts = [str(row[0]) for rows in told for row in rows]
    examples = [
        line.strip().removeprefix(">").strip().rstrip(";")
        for text in texts
        for line in text.splitlines()
        if line.strip().startswith("> SELECT")
    ]
    found = [*_OTHERS, *examples, *_mistakes()]
    return [text for text in dict.fromkeys(found) if not _OF_THE_MOMENT.search(text)]


def _answers(asked: Server, texts: Sequence[str]) -> list[object]:
    with asked.session() as cursor:
        return [_answer(cursor, text) for text in texts]


def _answer(cursor: Any, text: str) -> object:
    try:
        cursor.execute(text)
        if not cursor.description:
            return None
        columns = [column[:2] for column in cursor.description]
        rows = [_NUMBERED.sub("#", str(row)) for row in cursor.fetchall()]
    except Exception as error:
        found = _CONDITION.search(str(error))
        return found[1] if found else re.sub(r"\W+", " ", str(error))[:60]
    return columns, sorted(rows)


def test_statements_of_others_are_answered_as_without_us(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with_us, without = (tmp_path_factory.mktemp(name) for name in ("with", "without"))
    conf = server_conf(without)
    conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
    with server(without, conf) as plain, server(with_us, server_conf(with_us)) as ours:
        texts = _statements(plain)
        assert len(texts) >= _LEAST
        expected, found = _answers(plain, texts), _answers(ours, texts)
        _is_told_what_to_configure(plain)
    errors = [each for each in expected if isinstance(each, str)]
    assert len(errors) > 20  # mistakes are among them
    differ = [t for t, a, b in zip(texts, expected, found, strict=True) if a != b]
    assert differ == [], [(t, expected[texts.index(t)], found[texts.index(t)]) for t in differ[:5]]


def _is_told_what_to_configure(plain: Server) -> None:
    from pyspark.sql.connect.session import SparkSession

    remote: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{plain.connect}").create()
    try:
        with pytest.raises(ConfigurationError, match="cachemgr jar --conf"):
            cachemgr.enable(remote)
    finally:
        remote.stop()
