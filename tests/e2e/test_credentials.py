"""Credentials are refused in every clause, and one that an older release let in is shown nowhere,
while its cache goes on being refreshed and answering."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import update

from cachemgr.errors import CacheManagerError
from cachemgr.metastore.database import writing
from cachemgr.metastore.models import CacheRow

pytestmark = pytest.mark.spark

SELECT = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
PLANTED = re.compile(r"(?i)topsecret\w*")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "CREATE RELATIONAL CACHE c COMMENT 'jdbc:postgresql://u:topsecret@h/db' AS {0}",
            "COMMENT",
        ),
        ("CREATE RELATIONAL CACHE c COMMENT 'AKIATOPSECRETTOPSECR' AS {0}", "COMMENT"),
        ("CREATE RELATIONAL CACHE c COMMENT 'host=h password=topsecret' AS {0}", "COMMENT"),
        (
            "CREATE RELATIONAL CACHE c TBLPROPERTIES ('pw'='topsecret') AS {0}",
            "TBLPROPERTIES ('pw')",
        ),
        ("CREATE RELATIONAL CACHE c LOCATION 's3a://TOPSECRET@b/c' AS {0}", "LOCATION"),
        ("CREATE RELATIONAL CACHE c AS SELECT 'pwd=topsecret' AS a FROM sales", "the SELECT"),
        ("CREATE RELATIONAL CACHE c AS SELECT /* pwd=topsecret */ id FROM sales", "the SELECT"),
        ("EXPLAIN CREATE RELATIONAL CACHE c COMMENT 'pw=topsecret' AS {0}", "COMMENT"),
        ("ALTER RELATIONAL CACHE mine SET TBLPROPERTIES ('x.token'='topsecret')", "TBLPROPERTIES"),
        ("ALTER RELATIONAL CACHE mine SET TBLPROPERTIES ('a'='AKIATOPSECRETTOPSECR')", "TBLPROP"),
        (
            "CREATE RECORD PRESERVING JOIN j AS delta.`s3a://K:topsecret@b/t` a "
            "INNER JOIN cust b ON a.k = b.cid PRESERVES a",
            "its text",
        ),
        ("RESTRICT BASE TABLE delta.`s3a://K:topsecret@b/t`", "the table's name"),
        ("GRANT SELECT ON BASE TABLE delta.`s3a://K:topsecret@b/t` TO ann", "the table's name"),
    ],
)
def test_a_credential_is_refused_wherever_it_stands(lab, text, place):
    lab.cache(f"mine AS {SELECT}", refresh=False)
    with pytest.raises(CacheManagerError) as refused:
        lab.sql(text.format(SELECT))
    assert refused.value.code == "SECRET_IN_DEFINITION" and place in refused.value.message
    assert not PLANTED.search(str(refused.value))


def test_what_only_looks_alike_is_taken(lab):
    lab.cache(
        "mine COMMENT 'a token per shop; password: see the vault; pwd=null' "
        "TBLPROPERTIES ('owner'='ann@example.com', 'max.tokens.per.day'='3') AS "
        "SELECT region, COUNT(*) AS token FROM sales WHERE region <> 'password' GROUP BY region"
    )


def test_one_that_is_stored_is_shown_nowhere_and_the_cache_goes_on(lab):
    lab.cache(f"old AS {SELECT}")
    with lab.metastore() as store, writing(store.engine).begin() as connection:
        (row,) = store.caches.all()
        planted = f"{row.definition} -- pwd=topsecret2"
        connection.execute(
            update(CacheRow)
            .where(CacheRow.id == row.id)
            .values(
                definition=planted,
                comment="pw=topsecret3",
                properties={"pw": "topsecret4"},
                revision=CacheRow.revision + 1,
            )
        )
    told = []
    for text in (
        "SHOW RELATIONAL CACHES",
        "DESCRIBE RELATIONAL CACHE old",
        "DESCRIBE RELATIONAL CACHE EXTENDED old",
        "SHOW CREATE RELATIONAL CACHE old",
        "EXPLAIN REFRESH old FULL",
        "EXPLAIN REWRITE SELECT region, MAX(amt) FROM sales "
        "WHERE region <> 'jdbc:x://u:topsecret1@h' GROUP BY region",
    ):
        told.append(str(lab.sql(text)))
    told.append(str(lab.sql("REFRESH RELATIONAL CACHE old FULL")))
    assert not PLANTED.search("\n".join(told)), PLANTED.search("\n".join(told))
    assert told[3].count("***") == 3  # comment, property, and the note in the SELECT
    lab.hit(SELECT)
