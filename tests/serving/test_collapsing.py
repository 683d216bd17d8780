"""How a set of a cube is read that holds partial rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from cachemgr.serving.served_cache import collapsing_sql
from matcher.examples import plan_of


def test_no_row_of_another_set_is_added_up():
    """Whatever optimizes the text: their sums, added up by the keys of this one, may overflow."""
    plan = plan_of("SELECT store, day, COUNT(*) AS n FROM sales GROUP BY CUBE (store, day)")
    (chosen,) = (s for s in plan.grouping_sets if s.keys == (1,))
    cache = SimpleNamespace(
        plan=replace(plan, partials=frozenset({chosen.grouping_id})), settings=()
    )
    text = collapsing_sql(cache, chosen, "c")
    assert text is not None and "store" not in text
    assert "FROM (SELECT * FROM c WHERE `__grouping_id` = 2L) AS __parts" in text
    others = [s for s in plan.grouping_sets if s is not chosen]
    assert [collapsing_sql(cache, other, "c") for other in others] == [None] * 3
