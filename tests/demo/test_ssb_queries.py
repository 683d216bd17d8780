"""The 13 queries and the cubes: complete, distinct, and answering on real data."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from cachemgr.ddl import parse
from cachemgr.ddl.statements import CreateRecordPreservingJoin, CreateRelationalCache
from cachemgr.demo import ssb_cube
from cachemgr.demo.measure import is_empty
from cachemgr.demo.ssb_draw import drawn
from cachemgr.demo.ssb_queries import QUERIES, SsbQuery
from cachemgr.demo.ssb_schema import TABLES
from cachemgr.demo.ssb_words import NATIONS

#: A tiny fact may lack two cities in one month; see the generator.
MAY_BE_EMPTY = {"Q3.3", "Q3.4"}
by_set = pytest.mark.parametrize("number", range(5))
by_name = pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)


def columns_of(sql: str) -> set[str]:
    known = {name for columns in TABLES.values() for name, _ in columns}
    found = {c.name for c in sqlglot.parse_one(sql, read="spark").find_all(exp.Column)}
    return found & known


def test_names() -> None:
    assert [q.name for q in QUERIES] == [
        "Q1.1", "Q1.2", "Q1.3", "Q2.1", "Q2.2", "Q2.3", "Q3.1",
        "Q3.2", "Q3.3", "Q3.4", "Q4.1", "Q4.2", "Q4.3",
    ]  # fmt: skip


@by_name
def test_five_distinct_sets_that_use_every_parameter(query: SsbQuery) -> None:
    assert len({query.sql(number) for number in range(5)}) == len(query.parameters) == 5
    for values in query.parameters:
        assert all(f"${name}" in query.template for name in values)


@pytest.mark.parametrize(
    ("name", "literals"),
    [
        ("Q1.1", ["1993", "1", "3", "25"]),
        ("Q1.2", ["199401", "4", "6", "26", "35"]),
        ("Q1.3", ["6", "1994", "5", "7", "26", "35"]),
        ("Q2.1", ["MFGR#12", "AMERICA"]),
        ("Q2.2", ["MFGR#2221", "MFGR#2228", "ASIA"]),
        ("Q3.3", ["UNITED KI1", "UNITED KI5", "1992", "1997"]),
        ("Q3.4", ["UNITED KI1", "UNITED KI5", "Dec1997"]),
        ("Q4.2", ["AMERICA", "1997", "1998", "MFGR#1", "MFGR#2"]),
        ("Q4.3", ["AMERICA", "UNITED STATES", "1997", "1998", "MFGR#14"]),
    ],
)
def test_the_first_set_is_the_papers(name: str, literals: list[str]) -> None:
    query = next(q for q in QUERIES if q.name == name)
    assert list(query.parameters[0].values()) == literals


@by_name
def test_some_set_of_the_cube_holds_all_a_query_needs(query: SsbQuery) -> None:
    measures = {"lo_revenue", "lo_supplycost", "lo_extendedprice"}
    keys = {"lo_orderdate", "lo_custkey", "lo_suppkey", "lo_partkey"}
    keys |= {"d_datekey", "c_custkey", "s_suppkey", "p_partkey"}
    needed = columns_of(query.sql()) - measures - keys
    meant = [set(columns) for columns, names in ssb_cube.CUBE_SETS if query.name in names.split()]
    assert len(meant) == 1
    assert needed <= meant[0]


@by_name
@by_set
def test_every_set_of_parameters_selects_rows(ssb: Any, query: SsbQuery, number: int) -> None:
    rows = ssb.sql(query.sql(number)).collect()
    if query.name not in MAY_BE_EMPTY:
        assert not is_empty(rows)
    ordered = [tuple(row[key] for key in query.order) for row in rows]
    if query.order[-1:] == ("revenue",):
        assert ordered == sorted(ordered, key=lambda pair: (pair[0], -pair[1]))
    else:
        assert ordered == sorted(ordered)


def test_statements_are_ours() -> None:
    joins = [parse(text) for text in ssb_cube.RECORD_PRESERVING_JOINS]
    assert all(isinstance(join, CreateRecordPreservingJoin) for join in joins)
    for text in (ssb_cube.cube_ddl(), ssb_cube.cube_ddl(replace=True), ssb_cube.published_ddl()):
        assert isinstance(parse(text), CreateRelationalCache)


def test_the_published_cube_is_as_published() -> None:
    assert len(ssb_cube.PUBLISHED_COLUMNS) == 15
    assert len(ssb_cube.PUBLISHED_SETS) == 16
    assert len({frozenset(columns) for columns in ssb_cube.PUBLISHED_SETS}) == 14
    named = {column for columns in ssb_cube.PUBLISHED_SETS for column in columns}
    assert named == set(ssb_cube.PUBLISHED_COLUMNS)
    assert not any(ssb_cube_set >= set(ssb_cube.PUBLISHED_FIX) for ssb_cube_set in map(
        set, ssb_cube.PUBLISHED_SETS
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_drawn_sets_are_others_for_each_seed_and_fit_the_data(seed: int) -> None:
    found, other = drawn(seed), drawn(seed + 1)
    assert [q.name for q in found] == [q.name for q in QUERIES] and found == drawn(seed)
    nations = dict(NATIONS)
    for query, again, papers in zip(found, other, QUERIES, strict=True):
        assert query.parameters[0] == papers.parameters[0]
        assert len({query.sql(number) for number in range(6)}) == len(query.parameters) == 6
        assert query.parameters[1:] != again.parameters[1:]
        for values in query.parameters[1:]:
            assert list(values) == list(papers.parameters[0])
            assert values.get("since", "") <= values.get("until", "~")
            assert values.get("first", "") <= values.get("last", "~")
            if "nation" in values and "region" in values:
                assert nations[values["nation"]] == values["region"]
            city = values.get("city1", "x" * 9)
            assert len(city) in (9, 10) and values.get("city2", city)[:9] == city[:9]


@by_name
def test_drawn_sets_select_rows(ssb: Any, query: SsbQuery) -> None:
    (found,) = [q for q in drawn(1) if q.name == query.name]
    rows = [ssb.sql(found.sql(number)).collect() for number in range(1, 6)]
    assert query.name in MAY_BE_EMPTY or sum(map(is_empty, rows)) < 3
