"""Which texts are ours, and that asking costs microseconds."""

from __future__ import annotations

import time

import pytest

from cachemgr.ddl import looks_like_ours

OURS = """
CREATE RELATIONAL CACHE c AS SELECT 1
create or replace relational cache c as select 1
CREATE RELATIONAL VIEW v
CREATE RECORD PRESERVING JOIN j AS a INNER JOIN b ON a.k = b.k PRESERVES a
CREATE OR REPLACE RECORD PRESERVING JOIN j
ALTER RELATIONAL CACHE c PAUSE
REFRESH RELATIONAL CACHE c
DROP RELATIONAL CACHE IF EXISTS c
DROP RECORD PRESERVING JOIN j
SHOW RELATIONAL CACHES
SHOW RELATIONAL CACHE
SHOW CREATE RELATIONAL CACHE c
SHOW RECORD PRESERVING JOINS
DESCRIBE RELATIONAL CACHE c
DESC RELATIONAL CACHE EXTENDED `c`
DESCRIBE RELATIONAL CACHE`c`
EXPLAIN REWRITE SELECT 1
EXPLAIN REWRITE
EXPLAIN REFRESH c FULL
EXPLAIN REFRESH `table`
EXPLAIN CREATE OR REPLACE RELATIONAL CACHE c AS SELECT 1
VALIDATE RECORD PRESERVING JOIN j
GRANT USE ON RELATIONAL CACHE c TO p
REVOKE USE ON RELATIONAL CACHE c FROM p
RESTRICT BASE TABLE t
UNRESTRICT BASE TABLE t
SHOW RESTRICTED BASE TABLES
GRANT SELECT ON BASE TABLE t TO p
REVOKE SELECT ON BASE TABLE t FROM p
SHOW SELECT GRANTS
SHOW SELECT GRANTS ON BASE TABLE t
 ; ;; /* a /* nested */ comment */ -- and a line
""".strip().split("\n")[:-1]
_LEADS = ("", "  ;\n;", "-- CREATE TABLE\n\t", "/* a /* nested; */ one */", "--\n--\n/**/ ;/***/")

NOT_OURS = """
SELECT * FROM t
WITH relational AS (SELECT 1) SELECT * FROM relational
CREATE TABLE relational (cache INT)
CREATE OR REPLACE TABLE t AS SELECT 'CREATE RELATIONAL CACHE c AS SELECT 1'
CREATE TABLE relational_cache (a INT)
CREATE RELATIONAL_CACHE c
SHOW TABLES
SHOW TABLES LIKE 'RELATIONAL CACHES'
SHOW CREATE TABLE relational
SHOW RELATIONAL FUNCTIONS
EXPLAIN SELECT 1
EXPLAIN EXTENDED SELECT 1
EXPLAIN REFRESH TABLE t
EXPLAIN REFRESH FUNCTION f
EXPLAIN REFRESH 's3://bucket/a'
EXPLAIN REFRESH s3://bucket/a
EXPLAIN REFRESH /data/a
EXPLAIN CREATE TABLE t AS SELECT 1
EXPLAIN REWRITES
REFRESH TABLE relational
REFRESH relational
REFRESH RELATIONAL
REFRESH TABLE relational.cache
DESCRIBE t
DESCRIBE relational
DESCRIBE relational cache
DESCRIBE relational cache;
DESCRIBE relational cache.field
DESCRIBE RELATIONAL CACHE AS JSON
DESCRIBE TABLE relational
GRANT SELECT ON TABLE t TO p
GRANT SELECT ON base TO p
GRANT SELECT ON BASE_TABLE t TO p
REVOKE SELECT ON TABLE base FROM p
SHOW SELECT
SHOW GRANT ON TABLE t
GRANT USE ON SCHEMA s TO p
REVOKE USE ON SCHEMA s FROM p
ALTER TABLE relational RENAME TO cache
DROP SCHEMA s RESTRICT
SHOW RESTRICTED TABLES
RESTRICTED BASE TABLE t
DROP TABLE relational
DROP TABLE IF EXISTS relational
VALIDATE
'CREATE RELATIONAL CACHE c AS SELECT 1'
-- CREATE RELATIONAL CACHE c AS SELECT 1
/* CREATE RELATIONAL CACHE c */ SELECT 1
/* /* */ CREATE RELATIONAL CACHE c */ SELECT 1
/* never closed CREATE RELATIONAL CACHE c
SELECT 1; CREATE RELATIONAL CACHE c AS SELECT 1
CACHE TABLE relational
RELATIONAL CACHE
""".strip().split("\n")


@pytest.mark.parametrize("lead", _LEADS)
@pytest.mark.parametrize("text", OURS)
def test_ours(text: str, lead: str) -> None:
    assert looks_like_ours(lead + text)
    assert looks_like_ours(lead + text.lower().replace(" ", "\n -- gap\n"))
    assert looks_like_ours(lead + text.title().replace(" ", "/* gap /* in */ gap */"))


@pytest.mark.parametrize("lead", ("", "; ", "/* x */"))
@pytest.mark.parametrize("text", NOT_OURS)
def test_not_ours(text: str, lead: str) -> None:
    assert not looks_like_ours(lead + text)
    assert not looks_like_ours(lead + text.lower())


@pytest.mark.parametrize("text", ["", " ", ";", "\0", "--", "/*", "é", "CREATE", "EXPLAIN REFRESH"])
def test_fragments_are_not_ours(text: str) -> None:
    assert not looks_like_ours(text)


def test_a_line_comment_goes_on_after_a_backslash_as_in_spark() -> None:
    assert not looks_like_ours("-- x \\\nDROP RELATIONAL CACHE c")
    assert looks_like_ours("-- x \\ y\nDROP RELATIONAL CACHE c")


@pytest.mark.parametrize(
    "text,limit",
    [
        ("SELECT a, b FROM t WHERE x = 1" * 4000, 20e-6),
        ("CREATE TABLE relational AS SELECT 1", 20e-6),
        # What makes a careless expression backtrack; seconds or more if it does.
        ("/*" * 50_000, 0.05),
        ("-- x\n" * 20_000 + "SELECT 1", 0.05),
        ("/* */" * 20_000 + "CREATE", 0.05),
        ("CREATE" + " " * 100_000 + "TABLE", 0.05),
    ],
    ids=["select", "create table", "open comments", "lines", "comments", "spaces"],
)
def test_is_cheap(text: str, limit: float) -> None:
    best = min(_timed(text) for _ in range(50))
    assert best < limit


def _timed(text: str) -> float:
    begin = time.perf_counter()
    assert not looks_like_ours(text)
    return time.perf_counter() - begin
