# ruff: noqa: E501 - tables of SQL read better unbroken
"""A restricted base table is answered from no cache for anyone not granted, whichever way it gets
into a query or a cache."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.access.asker import Asker
from cachemgr.ddl import parse
from cachemgr.errors import DefinitionError, JoinValidationError, NotFoundError
from cachemgr.spark import api
from cachemgr.spark.session_statements import execute_for
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

BY_REGION = "by_region AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
WIDE = "wide AS SELECT region, city, SUM(amt) AS s, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY region, city"
FLAT = "flat AS SELECT cust, region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY cust, region"
BY_CITY = "SELECT city, SUM(amt) FROM sales JOIN cust ON cust = cid GROUP BY city"
TOTALS = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


def test_a_cache_over_it_serves_only_those_granted_not_its_owner(lab):
    lab.cache(WIDE)
    lab.hit(BY_CITY)
    assert lab.sql("RESTRICT BASE TABLE cust")[0].result == "restricted"
    lab.miss(BY_CITY, "TABLE_RESTRICTED")
    lab.sql("GRANT USE ON RELATIONAL CACHE wide TO somebody")
    lab.miss(BY_CITY, "TABLE_RESTRICTED")
    lab.sql(f"GRANT USE ON RELATIONAL CACHE wide TO `{lab.me}`")
    lab.hit(BY_CITY)
    lab.sql(f"REVOKE USE ON RELATIONAL CACHE wide FROM `{lab.me}`")
    lab.miss(BY_CITY, "TABLE_RESTRICTED")
    lab.sql("UNRESTRICT BASE TABLE cust")
    lab.miss(BY_CITY, "NOT_GRANTED")


def test_other_tables_go_on(lab):
    lab.cache(BY_REGION)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.hit(TOTALS)


def test_an_unbuilt_cache_over_it_would_answer_nobody(lab):
    (told,) = cachemgr.would_answer(lab.spark, f"CREATE RELATIONAL CACHE {WIDE}", [BY_CITY])
    assert told.hit
    lab.sql("RESTRICT BASE TABLE cust")
    (told,) = cachemgr.would_answer(lab.spark, f"CREATE RELATIONAL CACHE {WIDE}", [BY_CITY])
    assert [r.code.value for r in told.reasons] == ["TABLE_RESTRICTED"]


def test_a_cache_that_only_joins_it_record_preservingly(lab):
    lab.sql(JOIN)
    lab.cache(WIDE)
    lab.hit(TOTALS)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.miss(TOTALS, "TABLE_RESTRICTED")


def test_a_query_that_joins_it_to_a_cache_reads_it_with_the_users_own_rights(lab):
    lab.cache(FLAT)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.hit(BY_CITY)


@pytest.mark.parametrize(
    "join",
    [
        "LEFT JOIN cust ON cust = cid",
        "LEFT SEMI JOIN cust ON cust = cid",
        "LEFT ANTI JOIN cust ON cust = cid",
        "RIGHT JOIN cust ON cust = cid",
    ],
)
def test_other_joins(lab, join):
    # no join of the query's is done on top of the cache: it stores no key
    select = f"SELECT region, COUNT(*) AS n FROM sales {join} GROUP BY region"
    lab.cache(f"joined AS {select}")
    lab.hit(select)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.miss(select, "TABLE_RESTRICTED")


def test_views_in_the_query_and_in_the_definition(lab):
    lab.plain.sql("CREATE VIEW people AS SELECT cid, city FROM cust")
    lab.cache(
        "wide AS SELECT city, SUM(amt) AS s FROM sales JOIN people ON cust = cid GROUP BY city"
    )
    lab.hit(BY_CITY)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.miss(BY_CITY, "TABLE_RESTRICTED")
    lab.miss(BY_CITY.replace("JOIN cust", "JOIN people"), "TABLE_RESTRICTED")


def test_it_stays_restricted_under_another_name(lab):
    lab.cache(WIDE)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.plain.sql("ALTER TABLE cust RENAME TO clients")
    lab.sql("CREATE OR REPLACE RELATIONAL CACHE " + WIDE.replace("JOIN cust", "JOIN clients"))
    lab.sql("REFRESH RELATIONAL CACHE wide")
    lab.miss(BY_CITY.replace("JOIN cust", "JOIN clients"), "TABLE_RESTRICTED")
    assert lab.sql("SHOW RESTRICTED BASE TABLES")[0].restricted_by == lab.me


def test_it_stays_restricted_when_it_is_created_again(lab):
    lab.sql("RESTRICT BASE TABLE cust")
    lab.plain.sql("DROP TABLE cust")
    lab.plain.sql("CREATE TABLE cust (cid INT NOT NULL, city STRING) USING delta")
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Rome')")
    lab.cache(WIDE)
    lab.miss(BY_CITY, "TABLE_RESTRICTED")


def test_a_mark_outlives_its_table_and_goes_by_name_or_place(lab):
    for statement in ("UNRESTRICT BASE TABLE {name}", "UNRESTRICT BASE TABLE `{location}`"):
        lab.sql("RESTRICT BASE TABLE cust")
        lab.sql("RESTRICT BASE TABLE cust")
        (mark,) = lab.sql("SHOW RESTRICTED BASE TABLES")
        lab.plain.sql("DROP TABLE cust")
        lab.sql(statement.format(name=mark.name, location=mark.location))
        assert lab.sql("SHOW RESTRICTED BASE TABLES") == []
        lab.plain.sql("CREATE TABLE cust (cid INT NOT NULL, city STRING) USING delta")


def test_what_cannot_be_restricted(lab):
    lab.plain.sql("CREATE VIEW people AS SELECT cid, city FROM cust")
    lab.plain.sql("CREATE VIEW clients AS SELECT * FROM cust")
    # a view is not the table that it shows, however much of it: to mark, or to take its mark away
    for statement in ("RESTRICT BASE TABLE people", "RESTRICT BASE TABLE clients"):
        with pytest.raises(DefinitionError, match="is a view or no Delta table"):
            lab.sql(statement)
    assert lab.sql("SHOW RESTRICTED BASE TABLES") == []
    with pytest.raises(DefinitionError, match="name a Delta table that exists"):
        lab.sql("RESTRICT BASE TABLE nobody")
    with pytest.raises(NotFoundError, match="SHOW RESTRICTED BASE TABLES"):
        lab.sql("UNRESTRICT BASE TABLE cust")


def test_the_files_of_a_restricted_cache_are_restricted_too(lab, metastore):
    lab.cache(WIDE)
    place = metastore.caches.named(lab.schema, "wide").location
    select = f"SELECT city, SUM(s) AS s FROM delta.`{place}` GROUP BY city"
    lab.cache(f"over AS {select}")
    lab.hit(select)
    lab.sql("RESTRICT BASE TABLE cust")
    lab.miss(select, "TABLE_RESTRICTED")


def test_neither_its_values_nor_its_counts_are_told(lab):
    lab.sql("INSERT INTO cust VALUES (4711, 'Secretville', 'X'), (4711, 'Secretville', 'X')")
    lab.sql("RESTRICT BASE TABLE cust")
    with pytest.raises(JoinValidationError) as refused:
        lab.sql(
            "CREATE RECORD PRESERVING JOIN cs AS cust INNER JOIN sales ON cid = cust PRESERVES cust"
        )
    lab.sql(f"{JOIN} NOT VALIDATED")
    (checked,) = lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    lab.cache("few AS SELECT cid, city FROM cust WHERE city LIKE 'Secret%'", refresh=False)
    (refreshed,) = lab.sql("REFRESH RELATIONAL CACHE few")
    shown = [*lab.sql("SHOW RECORD PRESERVING JOINS"), *lab.sql("SHOW RELATIONAL CACHES")]
    described = lab.sql("DESCRIBE RELATIONAL CACHE EXTENDED few")
    assert checked.state == "BROKEN" and "does not hold" in str(refused.value)
    for told in (str(refused.value), str(checked), str(shown)):
        assert "4711" not in told and "2 rows" not in told and "for example" not in told, told
    assert refreshed.rows is refreshed.bytes is None and shown[1].rows is shown[1].bytes is None
    facts = {row.col_name: row.data_type for row in described}
    assert facts["rows"] == facts["bytes"] == "unknown"
    lab.sql(f"GRANT USE ON RELATIONAL CACHE few TO `{lab.me}`")
    assert lab.sql("SHOW RELATIONAL CACHES")[0].rows == 2


def asked_by(lab, asker: Asker, text: str) -> list[tuple]:
    """The rows of a statement that comes to a server."""
    return list(execute_for(lab.spark, api._of(lab.spark).session, parse(text), asker).rows)


def test_a_name_that_nobody_vouches_for_is_told_no_counts(lab):
    """Nor is he who gives no name taken for the server's own user."""
    lab.cache(BY_REGION)
    lab.sql("RESTRICT BASE TABLE sales")
    for name in ("ann", lab.me):
        lab.sql(f"GRANT USE ON RELATIONAL CACHE by_region TO `{name}`")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id <= 3")

    def told(asker: Asker) -> tuple[bool, bool]:
        shown = asked_by(lab, asker, "SHOW RELATIONAL CACHES")[0]
        steps = asked_by(lab, asker, "EXPLAIN REFRESH by_region")
        return shown[6] is not None, "3 rows" in str(steps)

    assert told(Asker("ann")) == told(Asker()) == (True, True)
    for asker in (Asker("ann", vouched=False), Asker("", vouched=False), Asker("bob")):
        assert told(asker) == (False, False), asker
    with lab.conf(spark__cachemgr__trustUserNames="true"):
        assert told(Asker("ann", vouched=False)) == (True, True)
