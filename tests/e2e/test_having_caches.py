# ruff: noqa: E501 - tables of SQL read better unbroken
"""HAVING in a definition: only groups that pass it are stored; queries whose HAVING implies it are
answered at the same groups, and each refresh that finds changes computes everything."""

from __future__ import annotations

import pytest
from test_text_door import Door

import cachemgr
from cachemgr.errors import DefinitionError, RefreshError
from tests.e2e.test_shown_outputs import read_by_hand

pytestmark = pytest.mark.spark

BY = "FROM sales GROUP BY region, cust"
OWN = f"SELECT region, cust, SUM(amt) AS s, SUM(amt) / COUNT(*) AS mean {BY} HAVING SUM(amt) > 15"
HITS = (
    OWN,
    f"{OWN} ORDER BY s DESC, region LIMIT 2",
    f"SELECT region, cust, SUM(amt) AS s {BY} HAVING SUM(amt) >= 30 AND COUNT(*) > 0",
    f"SELECT cust {BY} HAVING SUM(amt) > 15",
    f"SELECT MAX(s) AS top, COUNT(*) AS n FROM ({OWN}) AS q",
    f"WITH q AS ({OWN}) SELECT region, s FROM q WHERE cust = 1",
    "SELECT cust, SUM(amt) AS s FROM sales WHERE region = 'north' GROUP BY cust HAVING SUM(amt) > 20",
)
MISSES = (
    f"SELECT region, cust, SUM(amt) AS s {BY}",
    f"SELECT region, cust, SUM(amt) AS s {BY} HAVING SUM(amt) > 14",
    f"SELECT region, cust, SUM(amt) AS s {BY} HAVING COUNT(*) > 1",
    "SELECT region, SUM(amt) AS s FROM sales GROUP BY region HAVING SUM(amt) > 15",
    f"SELECT DISTINCT region, cust {BY}",
    "SELECT SUM(amt) AS s FROM sales",
    f"SELECT region, cust, SUM(cost) AS c {BY} HAVING SUM(cost) > 15",
)
# Two groups pass that did not, one does not that did, and one comes.
CHANGES = (
    "INSERT INTO sales VALUES (9, DATE'2024-01-02', 'south', 2, 31, 5, 2.50, 0.25), (10, NULL, 'new', 3, 99, 1, 7.00, 1.5)",
    "UPDATE sales SET amt = 14 WHERE region = 'west'",
    "DELETE FROM sales WHERE region = 'new'",
    "INSERT INTO sales VALUES (11, DATE'2024-01-05', 'west', 1, 2, 5, 2.50, 0.25)",
)


def test_groups_that_passed_are_stored_asked_for_and_computed_anew(lab) -> None:
    lab.cache(f"c AS {OWN}")
    for change in (*CHANGES, None):
        read_by_hand(lab, "c", OWN)
        for query in HITS:
            lab.hit(query)
        for query in MISSES:
            lab.miss(query)
        assert "HAVING_NOT_CONTAINED" in lab.codes(MISSES[0])
        if change is None:
            break
        lab.plain.sql(change)
        lab.miss(OWN)  # what came is not added: it may belong to a group that is not stored
        (done,) = lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
        assert done["mode"] == "FULL" and "because HAVING: a group" in done["reason"], done
    lab.plain.sql("INSERT INTO sales VALUES (12, NULL, 'x', 1, 1, 1, 1, 1)")
    told = " ".join(str(row) for row in lab.sql("EXPLAIN REFRESH c"))
    assert "HAVING: a group that did not pass" in told
    with pytest.raises(RefreshError, match="HAVING"):
        lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL ONLY")


def test_both_doors_say_the_same(lab) -> None:
    lab.cache(f"c AS {OWN}")
    door = Door(lab)
    for query in HITS[:4]:
        door.hit(query)
    for query in MISSES:
        assert door.ask(query).sql is None
    door.feed.close()
    told = cachemgr.would_answer(lab.spark, f"CREATE RELATIONAL CACHE d AS {OWN}", [*HITS, *MISSES])
    assert [found.hit for found in told] == [True] * len(HITS) + [False] * len(MISSES)


def test_an_ordinary_cache_answers_below_having_as_before(lab) -> None:
    lab.cache(f"part AS {OWN}")
    lab.cache(f"whole AS SELECT region, cust, day, SUM(amt) AS s, COUNT(*) AS n {BY}, day")
    for query in (*HITS, *MISSES[:6]):
        lab.hit(query)
    assert cachemgr.explain(lab.spark, OWN).caches == (f"{lab.schema}.part",)
    assert cachemgr.explain(lab.spark, MISSES[1]).caches == (f"{lab.schema}.whole",)


def test_a_group_that_would_raise(lab) -> None:
    """Spark works out the outputs of all groups, and then drops some."""
    ratio = f"SELECT region, cust, SUM(cost) / (SUM(amt) - 10) AS r {BY} HAVING SUM(amt) > 15"
    lab.cache(f"c AS {ratio}")
    lab.plain.sql("UPDATE sales SET amt = 10 WHERE region = 'west'")
    lab.sql("REFRESH RELATIONAL CACHE c")
    assert "HAVING_NOT_CONTAINED" in lab.codes(ratio)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lab.plain.sql(ratio).collect()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lab.sql(ratio)
    lab.hit(f"SELECT region, cust, SUM(amt) AS s {BY} HAVING SUM(amt) > 15")


@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("SELECT SUM(amt) AS s FROM sales HAVING SUM(amt) > 1", "CLAUSE_NOT_SUPPORTED"),
        (
            "SELECT region, SUM(amt) AS s FROM sales GROUP BY CUBE (region) HAVING SUM(amt) > 1",
            None,
        ),
        (f"{OWN} ORDER BY s LIMIT 2", "CLAUSE_NOT_SUPPORTED"),
        ("SELECT region, s FROM c", "CACHE_HAS_HAVING"),
        (f"SELECT region, cust {BY} HAVING SUM(amt) > (SELECT MAX(cost) FROM sales)", None),
    ],
)
def test_what_is_refused(lab, select: str, code: str | None) -> None:
    lab.cache(f"c AS {OWN}", refresh=False)
    with pytest.raises(DefinitionError) as caught:
        lab.sql(f"CREATE RELATIONAL CACHE d AS {select}")
    assert code is None or caught.value.code == code


def test_having_on_keys_is_a_filter_of_rows(lab) -> None:
    """Spark puts it there: such a cache rolls up and is refreshed by what changed."""
    lab.cache(f"c AS SELECT region, cust, SUM(amt) AS s {BY} HAVING region > 'a'")
    lab.hit("SELECT region, SUM(amt) AS s FROM sales WHERE region > 'a' GROUP BY region")
    lab.plain.sql(CHANGES[0])
    (done,) = lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
    assert done["mode"] != "FULL"
    lab.hit("SELECT region, SUM(amt) AS s FROM sales WHERE region > 'm' GROUP BY region")
