# ruff: noqa: E501 - tables of SQL read better unbroken
"""Texts of ours mean the same under every setting of Spark's parser."""

from __future__ import annotations

import pytest

from cachemgr.delta.own_session import own_session, session_for_definitions
from cachemgr.jvm.loader import java_class

pytestmark = pytest.mark.spark

OTHER = {
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.relationPrecedence": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "true",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
}
LATE = "CAST(s AS TIMESTAMP_LTZ) >= TIMESTAMP_LTZ'2020-01-01 00:00:00Z'"
SECONDS = "CAST(v AS TIMESTAMP_LTZ) >= TIMESTAMP_LTZ'1970-01-01 00:00:02Z'"
BACKSLASH = "s <> r'a\\b' AND s <> '2''3'"
QUERIES = (
    f"SELECT k, COUNT(*) AS n FROM texts WHERE {BACKSLASH} AND {LATE} GROUP BY k",
    f"SELECT k, SUM(v) AS v FROM texts WHERE {BACKSLASH} AND {SECONDS} GROUP BY k",
    "SELECT k AS `from`, AVG(v) * 1E-2 AS `a.b` FROM texts GROUP BY k HAVING SUM(v) > 1E0",
    "SELECT SUM(v) AS v FROM texts WHERE k = 1 HAVING COUNT(*) > 1",
)


@pytest.fixture
def texts(lab):
    lab.plain.sql("CREATE TABLE texts (k INT, s STRING, v BIGINT) USING delta")
    lab.plain.sql(
        "INSERT INTO texts VALUES (1, '2019-12-31 22:00:00-05:00', 1), (1, '2020-01-01 12:00:00Z', 2), "
        "(2, '2020-01-01 03:00:00+09:00', 3)"
    )
    with lab.conf(**{key.replace(".", "__"): value for key, value in OTHER.items()}):
        yield lab


def test_what_is_not_default_is_what_the_parser_is_kept_from(lab):
    assert set(java_class(lab.spark, "Tables").parserSettings().split(",")) == set(OTHER)


def test_definitions_and_filters_under_other_settings_of_the_parser(texts):
    lab = texts
    lab.cache("c AS SELECT k, s, v, COUNT(*) AS n, SUM(v) AS t FROM texts GROUP BY k, s, v")
    lab.cache(f"late AS SELECT k, COUNT(*) AS n FROM texts WHERE {LATE} GROUP BY k")
    lab.cache(f"seconds AS SELECT k, SUM(v) AS v FROM texts WHERE {SECONDS} GROUP BY k")
    lab.hit(f"SELECT k, COUNT(*) AS n FROM texts WHERE {LATE} GROUP BY k")
    lab.hit(f"SELECT k, SUM(v) AS v FROM texts WHERE {SECONDS} GROUP BY k")
    for query in QUERIES:
        lab.hit(query)
    lab.plain.sql("INSERT INTO texts VALUES (3, '2019-12-31 23:30:00-02:00', 4)")
    for query in QUERIES:
        lab.hit(query)
    lab.sql("REFRESH RELATIONAL CACHE c")
    for query in QUERIES:
        lab.hit(query)
    assert {row.name for row in lab.sql("SHOW RELATIONAL CACHES")} == {"c", "late", "seconds"}


def test_a_cube_under_other_settings_of_the_parser(texts):
    lab = texts
    lab.cache(
        "cube AS SELECT k, s, SUM(v) AS v, COUNT(*) AS n FROM texts GROUP BY k, s GROUPING SETS ((k, s), (k), ())"
    )
    lab.hit(f"SELECT k, SUM(v) AS v FROM texts WHERE {LATE} GROUP BY k")
    lab.plain.sql("INSERT INTO texts VALUES (3, '2019-12-31 23:30:00-02:00', 4)")
    lab.sql("REFRESH RELATIONAL CACHE cube INCREMENTAL")
    lab.hit("SELECT k, SUM(v) AS v FROM texts GROUP BY k")
    lab.hit("SELECT SUM(v) AS v FROM texts")
    # the table's own statements
    lab.sql("ALTER RELATIONAL CACHE cube SET TBLPROPERTIES ('delta.checkpointInterval' = '20')")
    lab.sql("REFRESH RELATIONAL CACHE cube")
    lab.hit("SELECT SUM(v) AS v FROM texts")


def test_the_definition_of_another_cache_is_read_as_its_user_wrote_it(texts):
    lab = texts
    lab.cache('one AS SELECT k, s, SUM(v) AS "total" FROM texts GROUP BY k, s')
    lab.cache('two AS SELECT k, SUM("total") AS t FROM one GROUP BY k')
    lab.hit("SELECT k, SUM(v) AS v FROM texts GROUP BY k")


def test_sessions_of_ours_parse_by_defaults_and_those_for_definitions_do_not(lab):
    ours, theirs = own_session(lab.spark, OTHER), session_for_definitions(lab.spark, OTHER)
    for key, value in OTHER.items():
        assert ours.conf.get(key).lower() != value.lower(), key
        assert theirs.conf.get(key) == value
