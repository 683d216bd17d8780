"""Which of the reasons for a miss is said first."""

from __future__ import annotations

import pytest

from cachemgr.text import offline
from matcher.index.miss_reasons import best_reasons
from matcher.model.ir import GroupingSet, Miss
from matcher.model.reasons import Reason, ReasonCode

_TABLES = """CREATE TABLE `file:/data/events` (user_id INT, n BIGINT);
CREATE TABLE `file:/data/users` (user_id INT, country STRING)"""


def reason(code: ReasonCode) -> Reason:
    return Reason(code, code.value)


def test_a_cache_that_matches_comes_before_all_that_do_not() -> None:
    misses = [
        Miss("a", None, (reason(ReasonCode.EXTRA_TABLE_NOT_PRESERVING),)),
        Miss("b", None, (reason(ReasonCode.COLUMN_NOT_IN_CACHE),), lacking=1),
        Miss("c", None, (reason(ReasonCode.STALE),), matched=True),
        Miss("d", None, (reason(ReasonCode.TABLE_NOT_IN_CACHE),)),
    ]
    otherwise = reason(ReasonCode.NO_CACHE_FOR_TABLES)
    found = [r.code for r in best_reasons(misses, otherwise)]
    assert found == [
        ReasonCode.STALE,
        ReasonCode.COLUMN_NOT_IN_CACHE,
        ReasonCode.EXTRA_TABLE_NOT_PRESERVING,
        ReasonCode.TABLE_NOT_IN_CACHE,
    ]


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_the_join_to_declare_can_be_written_of_folders_too(kind: str) -> None:
    workspace = offline.prepare(
        _TABLES,
        "CREATE RELATIONAL CACHE c AS SELECT e.n, u.country FROM `file:/data/events` e "
        f"{kind} JOIN `file:/data/users` u ON e.user_id = u.user_id",
        {},
    )
    result = offline.explain_query(workspace, "SELECT n FROM `file:/data/events`")
    (told,) = result["candidates"][0]["reasons"]
    assert (
        f"AS delta.`/data/events` a {kind} JOIN delta.`/data/users` b ON a.user_id = b.user_id "
        "PRESERVES a" in told["suggestion"]
    )


def test_columns_alone_can_be_declared_not_null() -> None:
    workspace = offline.prepare(
        "CREATE TABLE t (g INT, a INT, b INT, c INT NOT NULL)",
        "CREATE RELATIONAL CACHE s AS SELECT g, SUM(a) AS sa, SUM(a * b) AS sab, SUM(c) AS sc "
        "FROM t GROUP BY g",
        {},
    )
    told = {
        query: offline.explain_query(workspace, f"SELECT g, SUM({query}) AS s FROM t GROUP BY g")
        for query in ("c - a", "c - a * b")
    }
    (plain,), (product,) = (found["candidates"][0]["reasons"] for found in told.values())
    assert plain["suggestion"] == "declare a NOT NULL, or store SUM((c - a))"
    assert product["suggestion"] == "store SUM((c - (a * b)))"


def set_miss(cache: str, keys: tuple[int, ...], told: Reason, lacking: int = 1) -> Miss:
    return Miss(cache, GroupingSet(0, keys), (told,), lacking=lacking)


def test_of_the_sets_of_a_cache_the_nearest_have_their_say() -> None:
    def lacks(of: str, what: str, cure: str = "") -> Reason:
        return Reason(ReasonCode.COLUMN_NOT_IN_GROUPING_SET, f"{of} lacks {what}", cure)

    far = set_miss("a", (0, 1, 2), lacks("a.012", "x, y"), lacking=2)
    near = [set_miss("a", (0,), lacks("a.0", "x", f"add x to {n}")) for n in range(2)]
    other = set_miss("b", (), lacks("b", "x, y, z"), lacking=3)
    whole = Miss("a", None, (reason(ReasonCode.COLUMN_NOT_IN_CACHE),), lacking=9)
    found = best_reasons([far, *near, other, whole], reason(ReasonCode.NO_CACHE_FOR_TABLES))
    assert [r.detail for r in found] == ["a.0 lacks x"] * 2 + [
        "b lacks x, y, z",
        whole.reasons[0].detail,
    ]
    matched = Miss("a", GroupingSet(0, (0,)), (reason(ReasonCode.STALE),), matched=True)
    found = best_reasons([*near, matched], reason(ReasonCode.NO_CACHE_FOR_TABLES))
    assert [r.code for r in found] == [ReasonCode.STALE]


def test_sets_that_ask_for_the_same_change_say_it_once_in_the_name_of_the_finest() -> None:
    workspace = offline.prepare(
        "CREATE TABLE t (g INT, h INT, a INT, b INT)",
        "CREATE RELATIONAL CACHE c AS SELECT g, h, SUM(a) AS sa FROM t GROUP BY CUBE (g, h)",
        {},
    )
    result = offline.explain_query(workspace, "SELECT g, SUM(b) AS sb FROM t GROUP BY g")
    (told,) = result["reasons"]
    assert "SUM(b) cannot be computed from grouping set (g, h) of cache c" in told["detail"]
    assert len(result["candidates"]) == 4, "each set has its own line in the data"


def test_all_left_joins_whose_found_rows_are_not_told_are_named() -> None:
    workspace = offline.prepare(
        "CREATE TABLE f (i INT, s INT, n BIGINT); CREATE TABLE items (i INT, brand STRING); "
        "CREATE TABLE stores (s INT, city STRING)",
        "CREATE RELATIONAL CACHE c AS SELECT brand, city, SUM(n) AS n FROM f "
        "LEFT JOIN items ON f.i = items.i LEFT JOIN stores ON f.s = stores.s GROUP BY brand, city",
        {},
    )
    query = (
        "SELECT brand, city, SUM(n) AS n FROM f JOIN items ON f.i = items.i "
        "JOIN stores ON f.s = stores.s GROUP BY brand, city"
    )
    told = offline.explain_query(workspace, query)["candidates"][0]["reasons"][0]
    assert "stores or items was not found" in told["detail"]
    assert "add s of stores and i of items to the GROUP BY list of c" in told["suggestion"]
    filtered = query.replace("GROUP BY", "WHERE city = 'Rome' GROUP BY")
    told = offline.explain_query(workspace, filtered)["candidates"][0]["reasons"][0]
    assert "add i of items to the GROUP BY list" in told["suggestion"]
