"""The demo's queries: the cube that answers one answers its states too, and these merge."""

from __future__ import annotations

from functools import cache

import pytest

from cachemgr.demo import ssb_cube
from cachemgr.demo.ssb_queries import QUERIES, SsbQuery
from cachemgr.demo.ssb_schema import TABLES
from cachemgr.text import offline
from matcher.index.registry import Registry
from matcher.model.ir import CachePlan, MatchOptions, Rewrite
from matcher.partials.linear import why_not_linear
from matcher.partials.merge import merge
from matcher.partials.partial_rows import why_not_partials
from matcher.partials.split import States, split
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = ";\n".join(
    f"CREATE TABLE {name} ({', '.join(f'{column} {kind} NOT NULL' for column, kind in columns)})"
    for name, columns in TABLES.items()
)


@cache
def cube() -> CachePlan:
    statements = [*ssb_cube.RECORD_PRESERVING_JOINS, ssb_cube.cube_ddl()]
    return offline.prepare(SCHEMA, ";\n".join(statements) + ";").plans[ssb_cube.CUBE_NAME]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
@pytest.mark.parametrize("ansi", [True, False])
def test_states_are_answered_by_the_set_that_answers_the_query(query: SsbQuery, ansi: bool) -> None:
    options = MatchOptions(ansi=ansi)
    registry = Registry()
    registry.put(cube())
    (found,) = parse_query(query.sql(), Schema.parse(SCHEMA)).walk()
    assert found.block is not None
    states = split(found.block, options)
    assert isinstance(states, States)
    assert isinstance(merge(found.block, states, options), Rewrite)
    whole = registry.decide(found.block, options).rewrite
    part = registry.decide(states.block, options).rewrite
    assert whole is not None and part is not None
    assert part.grouping_set == whole.grouping_set
    fact = [r.name for r in found.block.relations].index("lineorder")
    assert why_not_linear(found.block, fact) is None


@pytest.mark.parametrize("signed", [True, False])
def test_the_cube_may_be_stored_as_partial_rows(signed: bool) -> None:
    assert why_not_partials(cube(), MatchOptions(), signed=signed) is None
