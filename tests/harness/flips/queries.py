# ruff: noqa: E501 - tables of SQL read better unbroken
"""A hundred queries over types, aggregates, joins, casts and formats, and the tables they read.

Sums of FLOAT and DOUBLE are of quarters, which add up exactly in any order. A query that has no
ORDER BY may give its rows in any order.
"""

from __future__ import annotations

from typing import Any, Final

_TABLES: Final = (
    """CREATE TABLE facts (id INT NOT NULL, k STRING, part INT, i INT, l BIGINT, t TINYINT, sh SMALLINT,
    f FLOAT, d DOUBLE, n DECIMAL(12,2), w DECIMAL(38,6), s STRING, c CHAR(6), v VARCHAR(8), b BOOLEAN, x BINARY,
    day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, arr ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<a: INT, b: STRING>)
    USING delta PARTITIONED BY (part) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',
    'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7')""",
    """CREATE TABLE dims (k STRING, name STRING, score DECIMAL(8,3), since DATE, i INT) USING delta""",
)
_FACTS: Final = """INSERT INTO facts SELECT CAST(id AS INT),
    CASE WHEN id % 7 = 0 THEN NULL ELSE substr('abcdefg', CAST(id % 5 AS INT) + 1, 1) END, CAST(id % 3 AS INT),
    IF(id % 11 = 0, NULL, CAST(id * 37 % 101 - 50 AS INT)), id * 1000003, CAST(id % 120 AS TINYINT), CAST(id * 7 AS SMALLINT),
    CASE WHEN id = 5 THEN float('NaN') WHEN id = 6 THEN float('-0.0') ELSE CAST(id % 9 AS FLOAT) / 4 END,
    CASE WHEN id = 7 THEN double('Infinity') WHEN id % 13 = 0 THEN NULL ELSE CAST(id % 17 AS DOUBLE) / 4 END,
    CAST(id * 1.25 AS DECIMAL(12,2)), CAST(id AS DECIMAL(38,6)) * 1.5,
    CASE WHEN id % 10 = 0 THEN NULL WHEN id % 10 = 1 THEN '' ELSE concat('Straße ', id % 6) END,
    substr('xyz', 1, CAST(id % 3 AS INT) + 1), CAST(id AS STRING), IF(id % 8 = 0, NULL, id % 2 = 0), CAST(concat('b', id % 4) AS BINARY),
    date_add(DATE'1999-12-30', CAST(id AS INT)), TIMESTAMP'2020-03-28 23:30:00' + make_interval(0, 0, 0, 0, CAST(id AS INT)),
    TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' + make_interval(0, 0, 0, CAST(id AS INT)),
    IF(id % 6 = 0, NULL, array(CAST(id % 4 AS INT), NULL, 3)), map('one', CAST(id % 5 AS INT), 'two', NULL),
    named_struct('a', CAST(id % 4 AS INT), 'b', CAST(id % 2 AS STRING)) FROM range({first}, {last}, 1, 2)"""
_DIMS: Final = """INSERT INTO dims VALUES ('a', 'Anna', 1.125, DATE'2000-01-01', 1), ('b', 'Ben', -2.5, DATE'2001-02-03', 2),
    ('b', 'Bea', NULL, NULL, 3), ('c', NULL, 0.001, DATE'1582-10-15', NULL), (NULL, 'none', 9, DATE'1970-01-01', 5), ('z', 'Zoe', 7, NULL, 6)"""
_WRITES: Final = (
    _FACTS.format(first=1, last=40),
    _FACTS.format(first=40, last=61),
    "DELETE FROM facts WHERE id IN (13, 44)",
    _DIMS,
)

_COLUMNS: Final = (
    "i",
    "l",
    "t",
    "sh",
    "f",
    "d",
    "n",
    "w",
    "s",
    "c",
    "v",
    "b",
    "x",
    "day",
    "ts",
    "ntz",
)
_PLAIN: Final = tuple(
    [f"SELECT {c}, COUNT(*) AS n, COUNT({c}) AS m FROM facts GROUP BY {c}" for c in _COLUMNS]
    + [
        f"SELECT MIN({c}), MAX({c}), COUNT(DISTINCT {c}) FROM facts"
        for c in _COLUMNS
        if c not in ("f", "d")
    ]
    + [
        f"SELECT k, SUM({c}), AVG({c}) FROM facts GROUP BY k"
        for c in ("i", "l", "t", "sh", "f", "n", "w")
    ]
)
_OTHERS: Final = (
    "SELECT COUNT(*) FROM facts",
    "SELECT id, w / n, w * n FROM facts WHERE id < 20",
    "SELECT COUNT(*), SUM(i) FROM facts WHERE part = 1",
    "SELECT id, arr, m, st, x FROM facts WHERE id BETWEEN 10 AND 14",
    "SELECT id, st.a, m['one'], arr[2] FROM facts WHERE st.a = 2 AND arr IS NOT NULL",
    "SELECT * FROM facts ORDER BY id LIMIT 5",
    "SELECT id, d FROM facts ORDER BY d DESC NULLS LAST, id LIMIT 7 OFFSET 2",
    "SELECT DISTINCT k, b FROM facts",
    "SELECT k, stddev(i), var_pop(t), corr(i, t), covar_pop(i, t), skewness(t) FROM facts WHERE id < 30 GROUP BY k",
    "SELECT k, percentile(i, 0.5), percentile_approx(i, 0.3), median(t), mode(part) WITHIN GROUP (ORDER BY part) FROM facts GROUP BY k".replace(
        "mode(part) WITHIN GROUP (ORDER BY part)", "max_by(id, id)"
    ),
    "SELECT part, approx_count_distinct(k), bool_and(b), bit_xor(i), every(i > -60) FROM facts GROUP BY part",
    "SELECT part, sort_array(collect_list(i)), sort_array(collect_set(k)) FROM facts GROUP BY part",
    "SELECT part, listagg(DISTINCT k, ',') WITHIN GROUP (ORDER BY k) FROM facts GROUP BY part",
    "SELECT part, COUNT(DISTINCT k), COUNT(DISTINCT i), SUM(DISTINCT t) FROM facts GROUP BY part",
    "SELECT part, SUM(i) FILTER (WHERE b), COUNT(*) FILTER (WHERE k = 'a') FROM facts GROUP BY part",
    "SELECT k, part, SUM(n), GROUPING_ID() FROM facts GROUP BY CUBE (k, part)",
    "SELECT k, part, COUNT(*) FROM facts GROUP BY ROLLUP (k, part) HAVING COUNT(*) > 2",
    "SELECT k, part, SUM(w) FROM facts GROUP BY GROUPING SETS ((k), (part), ())",
    "SELECT COUNT(*), SUM(i), MAX(k) FROM facts WHERE id > 1000",
    "SELECT k, SUM(i) FROM facts WHERE id > 1000 GROUP BY k",
    "SELECT name, SUM(n) FROM facts JOIN dims USING (k) GROUP BY name",
    "SELECT f.k, name, COUNT(*) FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY ALL",
    "SELECT d.k, name, MAX(f.i) FROM facts f RIGHT JOIN dims d ON f.k = d.k AND f.part = 1 GROUP BY ALL",
    "SELECT f.k, d.k, COUNT(*) FROM facts f FULL JOIN dims d ON f.k = d.k AND f.i > d.i GROUP BY ALL",
    "SELECT COUNT(*) FROM facts f JOIN dims d ON f.k <=> d.k",
    "SELECT COUNT(*) FROM facts f JOIN dims d ON f.i > d.i AND d.score < f.n",
    "SELECT COUNT(*) FROM facts f, dims d WHERE f.id < 4",
    "SELECT k, COUNT(*) FROM facts f WHERE EXISTS (SELECT 1 FROM dims d WHERE d.k = f.k AND d.i = f.part + 1) GROUP BY k",
    "SELECT COUNT(*) FROM facts WHERE k NOT IN (SELECT k FROM dims WHERE k IS NOT NULL)",
    "SELECT COUNT(*) FROM facts WHERE k NOT IN (SELECT k FROM dims)",
    "SELECT COUNT(*) FROM facts WHERE i IN (SELECT i FROM dims) OR b",
    "SELECT id, (SELECT MAX(score) FROM dims d WHERE d.k = f.k) AS top FROM facts f WHERE id < 20",
    "SELECT (SELECT SUM(i) FROM facts) AS a, (SELECT SUM(l) FROM facts) AS b, (SELECT AVG(t) FROM facts) AS c",
    "SELECT k, i FROM facts WHERE id < 9 UNION SELECT k, i FROM dims",
    "SELECT k, part FROM facts EXCEPT SELECT k, i FROM dims",
    "SELECT k FROM facts INTERSECT ALL SELECT k FROM dims",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r, SUM(i) OVER (PARTITION BY part ORDER BY id ROWS 3 PRECEDING) AS s FROM facts",
    "SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY t DESC, id) AS r FROM facts) WHERE r <= 2",
    "SELECT k, lag(i, 2) OVER (PARTITION BY k ORDER BY id), first_value(s) OVER (PARTITION BY k ORDER BY id) FROM facts",
    "SELECT id, CAST(d AS STRING), CAST(f AS STRING), CAST(n AS STRING), CAST(ts AS STRING), CAST(ntz AS DATE), CAST(day AS TIMESTAMP) FROM facts",
    "SELECT id, CAST(arr AS STRING), CAST(m AS STRING), CAST(st AS STRING), CAST(x AS STRING), hex(x) FROM facts",
    "SELECT id, CAST(v AS INT), try_cast(s AS INT), CAST(i AS DECIMAL(5,1)), CAST(n AS INT), CAST(b AS INT), CAST(l AS DOUBLE) FROM facts WHERE id > 1",
    "SELECT id, n * 1.1, n / 3, w + n, i / 7, i DIV 7, i % 7, -i, l * 3, d * 2, t + sh FROM facts",
    "SELECT id, round(n, 1), bround(d, 0), ceil(n), floor(d), abs(i), sqrt(t), pow(t, 2) FROM facts WHERE id NOT IN (5, 7)",
    "SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm'), date_trunc('MONTH', ts), trunc(day, 'YEAR'), year(day), weekofyear(day), extract(HOUR FROM ts) FROM facts",
    "SELECT id, to_date('2020-01-02', 'yyyy-MM-dd'), to_timestamp(concat('2020-01-0', part + 1)), unix_timestamp(ts), datediff(ts, day), months_between(day, DATE'2000-01-31') FROM facts",
    "SELECT id, upper(s), lower(s), length(s), substr(s, 2, 3), trim(c), concat_ws('-', k, v), replace(s, 'ß', 'ss'), lpad(v, 4, '0') FROM facts",
    "SELECT id, s LIKE 'Str%', s RLIKE '[0-3]$', startswith(s, 'S'), c = 'x', c || '|', v IN ('1', '2', '30'), k BETWEEN 'b' AND 'd' FROM facts",
    "SELECT id, to_json(st), from_json('{\"a\":1}', 'a INT').a, get_json_object('{\"q\":[1]}', '$.q[0]'), to_csv(st) FROM facts",
    "SELECT id, size(arr), array_contains(arr, 3), sort_array(arr), transform(arr, e -> e + 1), filter(arr, e -> e IS NOT NULL), map_keys(m), element_at(m, 'one') FROM facts",
    "SELECT id, e FROM facts LATERAL VIEW explode(arr) a AS e WHERE e > 1",
    "SELECT id, posexplode_outer(arr) FROM facts WHERE id < 12",
    "SELECT CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END AS sign, coalesce(i, 0) AS z, nullif(part, 1) AS p, COUNT(*) FROM facts GROUP BY ALL",
    "SELECT COUNT(*) FROM facts WHERE day > DATE'2000-01-15' AND ts < TIMESTAMP'2020-03-30 00:00:00' AND ntz >= TIMESTAMP_NTZ'1970-01-03 00:00:00'",
    "SELECT COUNT(*) FROM facts WHERE (i > 10 OR i IS NULL) AND NOT (k = 'a' AND part = 2)",
    "SELECT COUNT(*) FROM facts WHERE d <> d OR f = 0 OR d > 3.5",
    "SELECT COUNT(*) FROM facts WHERE n > 20.5 AND w < 60.123456 AND x > CAST('b1' AS BINARY)",
    "WITH a AS (SELECT k, SUM(i) AS s FROM facts GROUP BY k), b AS (SELECT k, MAX(s) AS s FROM a GROUP BY k) SELECT a.k, a.s, b.s FROM a JOIN b ON a.k <=> b.k",
    "SELECT * FROM (SELECT k, part, i FROM facts) PIVOT (SUM(i) FOR part IN (0, 1, 2))",
    "SELECT id, name, value FROM facts UNPIVOT (value FOR name IN (i, l)) WHERE id < 8",
    "SELECT /*+ BROADCAST(d) */ d.name, SUM(f.l) FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.name",
    "SELECT /*+ MERGE(d) */ d.name, SUM(f.l) FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.name",
    "SELECT /*+ SHUFFLE_HASH(d) */ d.name, COUNT(*) FROM facts f FULL JOIN dims d ON f.k = d.k GROUP BY d.name",
    "SELECT k, hash(k, i), xxhash64(s), md5(v), crc32(x) FROM facts WHERE id < 15",
)
QUERIES: Final = (*_PLAIN, *_OTHERS)


def make_tables(session: Any) -> None:
    """The tables, in the session's current schema.

    Args:
        session: A session with Delta.
    """
    for text in (*_TABLES, *_WRITES):
        session.sql(text)
