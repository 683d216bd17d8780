"""What a miss says to add to a definition, and to which list of it."""

from __future__ import annotations

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.ir import MatchOptions

CUBE = "SELECT item, store, SUM(qty) AS q FROM sales GROUP BY item, store GROUPING SETS ((item))"
MONTHS = (
    "SELECT item, month(day) AS m, SUM(qty) AS q FROM sales "
    "GROUP BY item, month(day) GROUPING SETS ((item))"
)
GROUPS = "SELECT item, SUM(qty) AS q FROM sales GROUP BY item"


@pytest.mark.parametrize(
    ("definition", "query", "cure"),
    [
        (
            GROUPS,
            "SELECT month(day) AS m, SUM(qty) AS q FROM sales GROUP BY month(day)",
            "add day to the GROUP BY list of c",
        ),
        (
            GROUPS,
            "SELECT COUNT(DISTINCT note) AS n FROM sales",
            "add note to the GROUP BY list of c",
        ),
        (
            CUBE,
            "SELECT item, COUNT(DISTINCT store) AS n FROM sales GROUP BY item",
            "add store to grouping set (item), or add the set (item, store)",
        ),
        (
            MONTHS,
            "SELECT item, COUNT(DISTINCT month(day)) AS n FROM sales GROUP BY item",
            "add m to grouping set (item), or add the set (item, m)",
        ),
        (
            CUBE,
            "SELECT item, COUNT(DISTINCT note) AS n FROM sales GROUP BY item",
            "add note to the GROUP BY list of c, and note to a grouping set",
        ),
    ],
)
def test_what_is_missing_is_added_where_it_has_to_stand(
    definition: str, query: str, cure: str
) -> None:
    registry = Registry()
    registry.put(plan_of(definition))
    (reason,) = registry.decide(block_of(query), MatchOptions(), explain=True).reasons
    assert reason.suggestion == cure
