"""The text door's names and types against Spark's own: analysed only, nothing runs."""

from __future__ import annotations

import pytest

from matcher.sql.reader import TextSettings, parse_query
from matcher.sql.schema import Schema

COLUMNS = """ti TINYINT, si SMALLINT, i INT, b BIGINT, f FLOAT, d DOUBLE, p DECIMAL(12,2),
q DECIMAL(38,10), r DECIMAL(5,0), s STRING, t DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, o BOOLEAN"""
SCALARS = """
ti + si | i + b | i + 1 | b + 1 | f + i | f + d | p + 1 | p + i | p + b | p - q | p * p | q * q
p / p
p / 3 | q / q | q + q | p % 7 | i / 2 | b / i | i % 5 | i DIV 2 | p DIV 2 | -p | -i | 1 + 1
1 - 0.05
p * (1 - 0.05) | 1.0 * i | i * 0.5 | b * 0.5 | d * 0.5 | d + p | ti * 2 | r * r | r / r | 2147483648
1.50 | 1e3 | 1.5D | 1.5F | 7L | 7S | 0.05 | .5 | DATE'2020-01-01'
TIMESTAMP'2020-01-01 00:00:00' | 'x'
CASE WHEN o THEN i ELSE b END | CASE WHEN o THEN p ELSE 0 END | CASE WHEN o THEN r ELSE 0 END
CASE WHEN o THEN p ELSE q END | if(o, i, 1.5) | if(o, NULL, p) | coalesce(i, p) | coalesce(t, ts)
coalesce(s, 'x') | nvl(i, 0) | nvl2(i, p, 1) | nullif(i, 3) | nullif(p, 3) | ifnull(b, i)
year(t) | year(ts) | quarter(t) | month(t) | day(t) | dayofweek(t) | weekofyear(t) | dayofyear(t)
hour(ts) | minute(ts) | date_trunc('month', t) | date_trunc('month', ts) | date_trunc('day', tn)
trunc(t, 'MM') | date_add(t, 3) | date_sub(t, i) | t + 3 | t - 3 | datediff(t, t) | last_day(t)
add_months(t, 2) | to_date(s) | extract(YEAR FROM t) | extract(WEEK FROM ts) | weekday(t)
unix_date(t)
date_format(t, 'yyyy') | date_format(ts, s) | to_date(s, 'yyyyMMdd') | to_date(ts, 'yyyy')
to_timestamp(s, 'yyyy') | to_timestamp(s) | to_timestamp_ntz(s, 'yyyy') | to_timestamp_ltz(i)
from_unixtime(i) | from_unixtime(b, 'yyyy') | unix_timestamp(s) | to_unix_timestamp(t, 'yyyy')
upper(s) | lower(s) | length(s) | substring(s, 1, 2) | left(s, 2) | right(s, 2) | s || 'x'
concat(s, i)
trim(s) | replace(s, 'a', 'b') | lpad(s, 3, 'x') | instr(s, 'a') | locate('a', s, 2) | repeat(s, 2)
startswith(s, 'a') | contains(s, 'a') | s LIKE 'a%' | s RLIKE 'a' | abs(p) | abs(i) | abs(d)
round(p) | round(p, 1) | round(p, 5) | round(q, 3) | round(i, 1) | round(d, 2) | round(p, -1)
ceil(p)
floor(p) | ceil(d) | floor(b) | ceil(r) | sqrt(i) | power(i, 2) | ln(d) | exp(d) | greatest(i, b, p)
least(i, 2.5) | cast(p AS int) | cast(s AS decimal(8,3)) | bigint(i) | int(s) | i = b | o AND i > 1
i BETWEEN 1 AND 2 | i IN (1, 2) | i <=> b | s IS NULL | try_cast(s AS int) | greatest(t, ts)
isnull(i)
"""
AGGREGATES = """
sum(ti) | sum(i) | sum(b) | sum(f) | sum(d) | sum(p) | sum(q) | sum(r) | sum(p * p) | sum(i * 0.5)
avg(i) | avg(b) | avg(d) | avg(p) | avg(q) | avg(r) | count(*) | count(i) | count(DISTINCT i, s)
min(i) | max(p) | min(s) | max(t) | min(ts) | first(i) | any_value(s) | stddev(i) | variance(p)
stddev_pop(d) | bool_and(o) | count_if(i > 1) | sum(s) | mean(i) | sum(p) / count(*) | sum(p) + 1
bit_and(i) | bit_xor(b) | first_value(i) IGNORE NULLS | max_by(s, i) | collect_set(s) | try_sum(p)
size(collect_set(i)) | approx_count_distinct(i) | hll_sketch_agg(i) | percentile(i, 0.5) | median(p)
hll_sketch_estimate(hll_sketch_agg(s)) | try_avg(i) | covar_pop(i, d) | kll_sketch_agg_bigint(b)
sum(b) FILTER (WHERE o) | max(i) - min(i) | every(o) | avg(p) * 2
"""


def split(text: str) -> list[str]:
    return [part.strip() for line in text.strip().split("\n") for part in line.split(" | ")]


@pytest.fixture(scope="module", params=[True, False], ids=["ansi", "no-ansi"])
def settings(request, spark):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    table = Schema.parse(f"CREATE TABLE v ({COLUMNS})").tables["default.v"]
    nulls = ", ".join(f"CAST(NULL AS {c.type}) AS {c.name}" for c in table.columns)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW v AS SELECT {nulls}")
    return session, TextSettings(ansi=request.param)


@pytest.mark.spark
@pytest.mark.parametrize("expression", [*split(SCALARS), *split(AGGREGATES)])
def test_type(expression: str, settings) -> None:
    session, text_settings = settings
    query = f"SELECT {expression} AS x FROM v"
    (found,) = parse_query(query, Schema.parse(f"CREATE TABLE v ({COLUMNS})"), text_settings).roots
    assert found.block is not None, found.reasons
    spark_type = session.sql(query).schema[0].dataType.simpleString()
    assert found.block.outputs[0].expr.type == spark_type


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT I, v.S, (b), `P` FROM V",
        "SELECT sum(i), SUM(V.B), count(*), COUNT(1) AS c, Min(T), max(`ts`), avg(p) FROM v",
        "SELECT * EXCEPT (f, d) FROM v",
        "SELECT w.*, X.i AS Y FROM v X JOIN v w USING (b, s)",
        "SELECT x.*, w.i FROM v x JOIN v w USING (s, b)",
        "SELECT * FROM v x JOIN (SELECT i AS i2, b FROM v) w USING (b) "
        "JOIN (SELECT t AS t2, s, b FROM v) z USING (s, b)",
        "SELECT z.*, x.*, w.* FROM v x JOIN (SELECT i AS i2, b FROM v) w USING (b) "
        "JOIN (SELECT t AS t2, s, b FROM v) z USING (s, b)",
        "SELECT K, n FROM (SELECT i AS k, s N FROM v)",
        "WITH c (One, Two) AS (SELECT i, s FROM v) SELECT *, ONE FROM c",
    ],
)
def test_output_names(query: str, settings) -> None:
    session, text_settings = settings
    (found,) = parse_query(query, Schema.parse(f"CREATE TABLE v ({COLUMNS})"), text_settings).roots
    assert found.block is not None, found.reasons
    assert [o.name for o in found.block.outputs] == session.sql(query).columns
