"""The table of LIMIT rules, cell by cell: every allowed push gives only what the query may give,
every other has an input on which it gives something else.

A LIMIT without ORDER BY may give any rows, so a plan stands for the set of its possible answers.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import pytest

from matcher.model.limits import RULES, Operator, Push, Tail, combined, covers

DOCS = Path(__file__).parents[3] / "docs" / "matching.md"
VALUES = (0, 1, 2)
INPUTS = [rows for size in range(4) for rows in product(VALUES, repeat=size)]
OTHERS = [(), (0,), (0, 0), (1, 2)]
TAILS = [Tail(0), Tail(1), Tail(2), Tail(1, 1), Tail(2, 1)]


def bag(rows):
    return frozenset(Counter(rows).items())


def cut(rows, tail):
    """All bags that LIMIT and OFFSET may leave of rows in no order."""
    size = max(len(rows) - tail.offset, 0)
    return set(combinations(sorted(rows, key=repr), min(size, tail.limit)))


def outer_join(left, right):
    found = []
    for row in left:
        partners = [(row, other) for other in right if other == row]
        found += partners or [(row, None)]
    return tuple(found)


def difference(left, right):
    return tuple(set(left) - set(right))


ONE = {
    Operator.SCAN: lambda rows, other: rows,
    Operator.PROJECTION: lambda rows, other: tuple(row * 10 for row in rows),
    Operator.FILTER: lambda rows, other: tuple(row for row in rows if row > 0),
    Operator.AGGREGATE: lambda rows, other: tuple(Counter(rows).items()),
    Operator.DISTINCT: lambda rows, other: tuple(set(rows)),
    Operator.UNION_ALL: lambda rows, other: rows + other,
    Operator.SET_OPERATION: difference,
    Operator.INNER_JOIN: lambda rows, other: tuple((a, b) for a in rows for b in other if a == b),
    Operator.PRESERVED_SIDE: outer_join,
    Operator.OTHER_SIDE: lambda rows, other: outer_join(other, rows),
    Operator.SEMI_JOIN: lambda rows, other: tuple(a for a in rows if a in other),
    Operator.WINDOW: lambda rows, other: tuple((a, rows.count(a)) for a in rows),
}


def answers(operator, rows, other, tail):
    return {bag(kept) for kept in cut(ONE[operator](rows, other), tail)}


def pushed(operator, rows, other, tail, push):
    """What may come out with the limit below the operator; for UNION ALL below both sides."""
    below = Tail(tail.reach) if push is Push.COPY else tail
    others = cut(other, below) if operator is Operator.UNION_ALL else [other]
    found = set()
    for kept in cut(rows, below):
        for side in others:
            result = ONE[operator](kept, side)
            found |= (
                {bag(left) for left in cut(result, tail)} if push is Push.COPY else {bag(result)}
            )
    return found


@pytest.mark.parametrize("operator", [o for o in Operator if o is not Operator.SORT])
@pytest.mark.parametrize("offset", [False, True])
def test_cell(operator, offset) -> None:
    rule = RULES[operator]
    push = rule.offset if offset else rule.limit
    cases = [
        (rows, other, tail)
        for rows in INPUTS
        for other in OTHERS
        for tail in TAILS
        if bool(tail.offset) is offset
    ]
    if push is Push.NEVER:
        for guess in (Push.MOVE, Push.COPY):
            assert any(
                not pushed(operator, *case, guess) <= answers(operator, *case) for case in cases
            ), f"{guess} would do"
        return
    for case in cases:
        assert pushed(operator, *case, push) <= answers(operator, *case), case


def test_sort() -> None:
    """Below ORDER BY the limit would keep other rows than the first."""
    assert RULES[Operator.SORT].limit is Push.NEVER
    assert {bag(sorted(kept)[:1]) for kept in cut((2, 1), Tail(1))} - {bag([1])}


def test_every_operator_has_a_rule_and_the_docs_have_the_same() -> None:
    assert set(RULES) == set(Operator)
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", DOCS.read_text(), re.M)
    listed = {row[0].strip(): tuple(cell.strip() for cell in row[1:]) for row in rows}
    for operator, rule in RULES.items():
        assert listed[operator.value] == (rule.limit.value, rule.offset.value, rule.why)


@pytest.mark.parametrize("inner", [Tail(n, o) for n in (None, 0, 2, 5) for o in (0, 1, 3)])
@pytest.mark.parametrize("outer", [Tail(n, o) for n in (None, 0, 1, 4) for o in (0, 2)])
def test_adjacent_limits_are_one(inner, outer) -> None:
    def keep(rows, tail):
        rows = rows[tail.offset :]
        return rows if tail.limit is None else rows[: tail.limit]

    rows = list(range(10))
    assert keep(keep(rows, inner), outer) == keep(rows, combined(inner, outer))


def test_the_first_rows_cover_what_reaches_no_further() -> None:
    assert covers(5, Tail(5)) and covers(5, Tail(3, 2))
    assert not covers(5, Tail(3, 3)) and not covers(5, Tail(None)) and not covers(5, Tail(6))
