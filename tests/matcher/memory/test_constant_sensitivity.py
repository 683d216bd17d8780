"""A miss that is remembered is told to no query that a cache answers by its constants' values."""

from __future__ import annotations

import pytest

from cachemgr.text import offline
from matcher.memory.constant_sensitivity import order_of
from matcher.model.expr import Lit
from matcher.model.ir import Block

SCHEMA = """
CREATE TABLE f (k INT NOT NULL, od DATE NOT NULL, p DECIMAL(10,2) NOT NULL, b TINYINT NOT NULL,
  u INT NOT NULL, z STRING NOT NULL, x BIGINT NOT NULL);
CREATE TABLE dd (dk DATE NOT NULL, y INT);
"""
JOIN = "CREATE RECORD PRESERVING JOIN fd AS f INNER JOIN dd ON od = dk PRESERVES f;\n"
BY_PRICE = "SELECT k, p, COUNT(DISTINCT u) AS n FROM f GROUP BY k, p"
# of a cache: a query that it does not answer, and the same with constants by which it does
CASES = {
    "days of months": (
        "SELECT trunc(od, 'MM') AS m, SUM(x) AS s FROM f GROUP BY trunc(od, 'MM')",
        "SELECT SUM(x) AS s FROM f WHERE od >= DATE'2024-03-02'",
        "SELECT SUM(x) AS s FROM f WHERE od >= DATE'2024-03-01'",
    ),
    "days of a joined table's months": (
        JOIN + "SELECT k, trunc(dk, 'MM') AS m, SUM(x) AS s FROM f JOIN dd ON od = dk"
        " GROUP BY k, trunc(dk, 'MM')",
        "SELECT k, SUM(x) AS s FROM f WHERE od >= DATE'2024-03-02' GROUP BY k",
        "SELECT k, SUM(x) AS s FROM f WHERE od >= DATE'2024-03-01' GROUP BY k",
    ),
    "decimals without any between": (
        BY_PRICE,
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE p >= 1.00 AND p < 2.00 GROUP BY k",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE p >= 1.00 AND p < 1.01 GROUP BY k",
    ),
    "the last of a type": (
        "SELECT k, b, COUNT(DISTINCT u) AS n FROM f GROUP BY k, b",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE b > 5Y GROUP BY k",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE b > 126Y GROUP BY k",
    ),
    "the last day of a year": (
        "SELECT k, od, COUNT(DISTINCT u) AS n FROM f GROUP BY k, od",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE year(od) = 2024 AND od >= DATE'2024-06-01' GROUP BY k",  # noqa: E501
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE year(od) = 2024 AND od >= DATE'2024-12-31' GROUP BY k",  # noqa: E501
    ),
    "a number compared as two types": (
        "SELECT k, u, COUNT(DISTINCT p) AS n FROM f GROUP BY k, u",
        "SELECT k, COUNT(DISTINCT p) AS n FROM f WHERE CAST(u AS BIGINT) >= 50L AND u <= 90 GROUP BY k",  # noqa: E501
        "SELECT k, COUNT(DISTINCT p) AS n FROM f WHERE CAST(u AS BIGINT) >= 50L AND u <= 50 GROUP BY k",  # noqa: E501
    ),
    "whole numbers with one between": (
        "SELECT k, u, COUNT(DISTINCT p) AS n FROM f GROUP BY k, u",
        "SELECT k, COUNT(DISTINCT p) AS n FROM f WHERE u > 50 AND u < 90 GROUP BY k",
        "SELECT k, COUNT(DISTINCT p) AS n FROM f WHERE u > 50 AND u < 52 GROUP BY k",
    ),
    "every string": (
        "SELECT k, SUM(x) AS s FROM f GROUP BY k",
        "SELECT k, SUM(x) AS s FROM f WHERE startswith(z, 'abc') GROUP BY k",
        "SELECT k, SUM(x) AS s FROM f WHERE startswith(z, '') GROUP BY k",
    ),
    "a pattern that is an equality": (
        "SELECT k, z, COUNT(DISTINCT u) AS n FROM f GROUP BY k, z",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE z LIKE 'ab%' GROUP BY k",
        "SELECT k, COUNT(DISTINCT u) AS n FROM f WHERE z LIKE 'abc' GROUP BY k",
    ),
}


def _workspace(cache: str, name: str) -> offline.Workspace:
    joins, _, select = cache.rpartition("\n")
    return offline.prepare(SCHEMA, f"{joins}\nCREATE RELATIONAL CACHE c AS {select}; -- {name}")


def _block(workspace: offline.Workspace, query: str) -> Block:
    parsed = offline.answer(workspace, query, explain=False).parsed
    return next(b.block for b in parsed.walk() if b.block is not None)


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_miss_hides_no_hit(case: str, explain: bool) -> None:
    cache, missed, hit = CASES[case]
    workspace = _workspace(cache, f"{case} {explain}")
    workspace.registry.forget_decisions()
    options = workspace.conf.options
    answers = [
        workspace.registry.decide(_block(workspace, query), options, explain=explain).rewrite
        for query in (missed, missed, missed, hit, missed, hit)
    ]
    assert [found is not None for found in answers] == [False, False, False, True, False, True]


def test_how_constants_compare():
    def of(*values: int | str) -> tuple[object, ...]:
        return order_of(tuple(Lit(v, "int" if isinstance(v, int) else "string") for v in values))

    assert of(1, 2, "b", "a") == of(5, 6, "y", "x")
    assert of(1, 2) != of(2, 1) != of(2, 2)
    assert len({of(1, 1), of(1, 2), of(1, 3), of(1, 4)}) == 4, "0, 1 or more between"
    assert of(1, 4) == of(1, 40) and of("a", "b") == of("a", "z")
