"""What is remembered of decisions changes no explanation and no reason, whatever the constants
are."""

from __future__ import annotations

import random

from cachemgr.text import offline
from matcher.model.ir import Block

SCHEMA = "CREATE TABLE t (a INT, b INT NOT NULL, s STRING, v BIGINT, w BIGINT, d DATE, f BOOLEAN)"
CACHES = """
CREATE RELATIONAL CACHE fine AS SELECT a, b, s, SUM(v) AS x, COUNT(*) AS n FROM t GROUP BY a, b, s;
CREATE RELATIONAL CACHE coarse AS SELECT b, s, SUM(v) AS x FROM t GROUP BY b, s;
CREATE RELATIONAL CACHE late AS SELECT a, b, s, SUM(v) AS x FROM t WHERE a > 5 GROUP BY a, b, s;
CREATE RELATIONAL CACHE of_x AS SELECT a, b, SUM(v) AS x FROM t WHERE s = 'x' GROUP BY a, b;
CREATE RELATIONAL CACHE cube AS SELECT a, b, s, SUM(v) AS x FROM t
  GROUP BY GROUPING SETS ((a, b), (a, s), (b), ());
CREATE RELATIONAL CACHE rows AS SELECT a, b, s, v FROM t WHERE v IS NOT NULL;
CREATE RELATIONAL CACHE days AS SELECT d, SUM(v) AS x FROM t
  GROUP BY d ORDER BY d DESC LIMIT 100;
CREATE RELATIONAL CACHE flags AS SELECT f, SUM(v) AS x FROM t GROUP BY f ORDER BY f LIMIT 100;
CREATE RELATIONAL CACHE names AS SELECT s, SUM(v) AS x FROM t GROUP BY s ORDER BY s LIMIT 100;
CREATE RELATIONAL CACHE numbers AS SELECT a, SUM(v) AS x FROM t GROUP BY a ORDER BY a LIMIT 100;
"""
SHAPES = (
    "SELECT s, SUM(v) AS x FROM t WHERE a = {i} GROUP BY s",
    "SELECT a, SUM(v) AS x FROM t WHERE a >= {i} AND a <= {i} GROUP BY a",
    "SELECT b, SUM(v) AS x FROM t WHERE a = {i} AND s = {w} GROUP BY b",
    "SELECT b, SUM(v) AS x FROM t WHERE a IN ({i}, {i}) AND b > {i} GROUP BY b",
    "SELECT b, SUM(w) AS x FROM t WHERE s = {w} GROUP BY b",
    "SELECT SUM(v) AS x FROM t WHERE a > {i} AND (s = {w} OR a < {i})",
    "SELECT s, MAX(v) AS x FROM t WHERE b = {i} AND a = b GROUP BY s",
    "SELECT a, b, SUM(v) AS x FROM t WHERE s = {w} AND s <> {w} GROUP BY a, b",
    "SELECT d, SUM(v) AS x FROM t WHERE d >= {d} GROUP BY d ORDER BY d DESC LIMIT 10",
    "SELECT d, SUM(v) AS x FROM t WHERE d = {d} OR d > {d} GROUP BY d ORDER BY d DESC LIMIT 10",
    "SELECT d, SUM(v) AS x FROM t WHERE year(d) > {y} GROUP BY d ORDER BY d DESC LIMIT 10",
    "SELECT f, SUM(v) AS x FROM t WHERE f = {f} GROUP BY f ORDER BY f LIMIT 10",
    "SELECT s, SUM(v) AS x FROM t WHERE s >= {q} GROUP BY s ORDER BY s LIMIT 10",
    "SELECT s, SUM(v) AS x FROM t WHERE s LIKE {l} GROUP BY s ORDER BY s LIMIT 10",
    "SELECT a, SUM(v) AS x FROM t WHERE a + {i} > 7 GROUP BY a ORDER BY a LIMIT 10",
    "SELECT a, SUM(v) AS x FROM t WHERE a + {i} > {i} GROUP BY a ORDER BY a LIMIT 10",
    "SELECT a, SUM(v) AS x FROM t WHERE a > {n} GROUP BY a ORDER BY a LIMIT 10",
    "SELECT a, SUM(v) AS x FROM t WHERE NOT a < {n} GROUP BY a ORDER BY a LIMIT 10",
    "SELECT a, w, SUM(v) AS x FROM t WHERE w = {i} AND a > {i} GROUP BY a, w",
    "SELECT a, d, SUM(v) AS x FROM t WHERE a > {i} AND a < {i} GROUP BY a, d",
    "SELECT a, MIN(w) AS x FROM t WHERE s LIKE {l} AND b = {i} GROUP BY a",
)
VALUES = {
    "{i}": ("0", "3", "5", "6", "99"),
    "{w}": ("'x'", "'y'", "'z'"),
    "{d}": ("DATE '2024-01-01'", "DATE '2023-07-09'", "DATE '1969-12-31'"),
    "{y}": ("1994", "2001", "2024"),
    "{f}": ("TRUE", "FALSE"),
    "{q}": (r"'it\'s'", r"'that\'s'", r"'a\\b'"),
    "{l}": ("'x%'", "'yy%'", "'%z'"),
    "{n}": ("2.5", "7.25", "CAST(3.0 AS DOUBLE)"),
}


def _filled(shape: str, choose: random.Random) -> str:
    for mark, values in VALUES.items():
        while mark in shape:
            shape = shape.replace(mark, choose.choice(values), 1)
    return shape


def _block(workspace: offline.Workspace, query: str) -> Block:
    parsed = offline.answer(workspace, query, explain=False).parsed
    return next(b.block for b in parsed.walk() if b.block is not None)


def test_explanations_are_those_of_a_registry_that_remembers_nothing():
    choose = random.Random(3)
    keeps = offline.prepare(SCHEMA, CACHES)
    forgets = offline.prepare(SCHEMA, CACHES + "-- another registry")
    assert keeps.registry is not forgets.registry
    options = keeps.conf.options
    for _ in range(60):
        for shape in SHAPES:
            query = _filled(shape, choose)
            block = _block(keeps, query)
            found = keeps.registry.decide(block, options, explain=True, most=6)
            forgets.registry.forget_decisions()
            assert found == forgets.registry.decide(block, options, explain=True, most=6), query
            decided = keeps.registry.decide(block, options)
            forgets.registry.forget_decisions()
            wanted = forgets.registry.decide(block, options)
            assert (decided.rewrite is None) is (wanted.rewrite is None), query
            assert decided.reasons == wanted.reasons, query


def test_a_change_of_the_registry_is_explained_anew():
    workspace = offline.prepare(SCHEMA, CACHES + "-- anew")
    block = _block(workspace, "SELECT b, SUM(v) AS x FROM t WHERE b = 1 GROUP BY b")
    options = workspace.conf.options
    asked = [workspace.registry.decide(block, options, explain=True, most=3) for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]
    chosen = asked[0].rewrite
    assert chosen is not None
    workspace.registry.drop(chosen.cache)
    after = workspace.registry.decide(block, options, explain=True, most=3)
    assert after.rewrite is not None and after.rewrite.cache != chosen.cache
    assert chosen.cache not in {c.cache for c in after.candidates}
