# ruff: noqa: E501 - tables of SQL read better unbroken
"""ORDER BY in a definition: the table is clustered by it where it can be, and CREATE says what became
of it."""

from __future__ import annotations

import pytest

from cachemgr.errors import DefinitionError

pytestmark = pytest.mark.spark

GROUPS = (
    "SELECT region, day, SUM(amt) AS s, SUM(amt) / COUNT(*) AS mean FROM sales GROUP BY region, day"
)


def created(lab, text: str) -> str:
    (row,) = lab.sql(f"CREATE RELATIONAL CACHE {text}")
    return row["result"]


def clustered_by(lab, name: str) -> list[str]:
    """By the cache's table itself."""
    (place,) = (
        r[1] for r in lab.sql(f"DESCRIBE RELATIONAL CACHE EXTENDED {name}") if r[0] == "location"
    )
    (detail,) = lab.plain.sql(f"DESCRIBE DETAIL delta.`{place}`").collect()
    return list(detail["clusteringColumns"])


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        ("region", ["region"]),
        ("2 DESC, region NULLS LAST", ["day", "region"]),
        ("SUM(amt) DESC, region", ["s", "region"]),
    ],
)
def test_the_table_is_clustered_by_what_is_stored(lab, order: str, columns: list[str]) -> None:
    text = f"{GROUPS} ORDER BY {order}"
    said = created(lab, f"c AS {text}")
    assert said == f"created; its table is clustered by {', '.join(columns)}, as its ORDER BY asks"
    for _ in range(2):
        lab.sql("REFRESH RELATIONAL CACHE c")
        assert clustered_by(lab, "c") == columns
        lab.hit(GROUPS)
        lab.hit(f"{text}, 1, 2")  # ties may come in any order
        lab.plain.sql(
            "INSERT INTO sales VALUES (9, DATE'2024-01-02', 'north', 2, 31, 5, 2.50, 0.25)"
        )
    (shown,) = lab.sql("SHOW CREATE RELATIONAL CACHE c")
    assert "CLUSTER BY" not in shown[0] and shown[0].endswith(text)


@pytest.mark.parametrize(
    ("clause", "text", "why"),
    [
        ("", f"{GROUPS} ORDER BY mean", "mean is computed when it is read, and not stored"),
        ("", f"{GROUPS} ORDER BY COUNT(*) + 1", "one of its keys is computed when it is read"),
        ("", f"{GROUPS} ORDER BY upper(region)", "one of its keys is computed when it is read"),
        (
            "",
            "SELECT amt > 1 AS much, id FROM sales ORDER BY much",
            "much is a BOOLEAN, which no table clusters by",
        ),
        (
            "",
            "SELECT id, day, region, cust, amt FROM sales ORDER BY 1, 2, 3, 4, 5",
            "it names 5 columns, and a table is clustered by 4 at most",
        ),
        ("CLUSTER BY (day)", f"{GROUPS} ORDER BY region", "CLUSTER BY lays its table out"),
        ("PARTITIONED BY (day)", f"{GROUPS} ORDER BY region", "PARTITIONED BY lays its table out"),
        (
            "",
            "SELECT region, COUNT(*) AS n FROM sales GROUP BY CUBE (region) ORDER BY region",
            "the table of a cube is laid out by its grouping sets",
        ),
    ],
)
def test_an_order_that_is_not_kept_is_told_and_the_cache_serves(
    lab, clause: str, text: str, why: str
) -> None:
    items = {
        row[0]: row[1] for row in lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE c {clause} AS {text}")
    }
    assert items["order"].startswith(f"the order of its ORDER BY is not kept: {why}")
    said = created(lab, f"c {clause} AS {text}")
    assert said.endswith(items["order"])
    lab.sql("REFRESH RELATIONAL CACHE c")
    assert clustered_by(lab, "c") == (["day"] if clause.startswith("CLUSTER") else [])
    lab.hit(f"{text}, 1, 2")


@pytest.mark.parametrize(
    ("tail", "code", "told"),
    [
        ("ORDER BY upper(region) LIMIT 3", "ORDER_KEY_NOT_STORED", "is no output column"),
        ("LIMIT 3", "CLAUSE_NOT_SUPPORTED", "LIMIT without ORDER BY"),
        ("ORDER BY region LIMIT 3 OFFSET 1", "CLAUSE_NOT_SUPPORTED", "OFFSET"),
        ("SORT BY region", None, "the block holds ORDER BY"),
    ],
)
def test_limits_whose_rows_the_order_does_not_tell(
    lab, tail: str, code: str | None, told: str
) -> None:
    with pytest.raises(DefinitionError, match=told) as caught:
        lab.sql(f"CREATE RELATIONAL CACHE c AS {GROUPS} {tail}")
    assert code is None or caught.value.code == code


def test_rows_of_a_cache_over_an_ordered_one(lab) -> None:
    lab.cache("raw AS SELECT id, region, amt FROM sales WHERE amt > 0 ORDER BY amt")
    lab.cache("c AS SELECT region, SUM(amt) AS s FROM raw GROUP BY region ORDER BY s DESC")
    lab.hit("SELECT region, SUM(amt) AS s FROM sales WHERE amt > 0 GROUP BY region")
    lab.hit("SELECT id, amt FROM sales WHERE amt > 5")
