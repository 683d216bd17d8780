"""A set of a cube in memory: its own keys alone, with the rows that the cube's files have, whether
they are stored one a group or as partial rows."""

from __future__ import annotations

import pytest

from cachemgr.refresh.by_change import incremental
from tests.e2e.test_many_sessions import pins, until

pytestmark = pytest.mark.spark

FROM = "FROM sales JOIN cust ON cust = cid"
CUBE = (
    f"cube AS SELECT city, region, day, SUM(amt) AS amt, COUNT(*) AS n, MAX(amt) AS most, "
    f"AVG(cust) AS mean {FROM} "
    "GROUP BY GROUPING SETS ((city, region), (region, day), (region), ())"
)
QUERIES = {
    # by the names of what is held
    ("city", "region"): f"SELECT city, region, SUM(amt) AS a, COUNT(*) AS n {FROM} GROUP BY 1, 2",
    ("region", "day"): f"SELECT day, MAX(amt) AS m {FROM} WHERE region <> 'east' GROUP BY day",
    (): f"SELECT SUM(amt) AS a, COUNT(*) AS n, AVG(cust) AS m {FROM} HAVING AVG(cust) < 9",
}


@pytest.mark.parametrize("partial", [False, True])
def test_a_set_is_held_with_its_own_keys(
    lab, monkeypatch: pytest.MonkeyPatch, partial: bool
) -> None:
    lab.cache(CUBE)
    if partial:
        monkeypatch.setattr(incremental, "FEW_ROWS", -1)
        monkeypatch.setattr(incremental, "MOST_PARTIALS", 100)
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id % 2 = 0")
        (run,) = lab.sql("REFRESH RELATIONAL CACHE cube INCREMENTAL")
        assert run["mode"] == "PARTIALS"
    store = pins(lab)
    for number, query in enumerate(QUERIES.values(), 1):
        lab.hit(query)
        until(lambda number=number: store.stats().pins == number, "pinned")
    hits = store.stats().hits
    for query in QUERIES.values():
        lab.hit(query)
    assert store.stats().hits == hits + len(QUERIES) and not store.stats().failed
    held = [pin.plan.schema().fieldNames() for pin in store._pins.values()]
    keys = {"city", "region", "day"}
    assert {tuple(name for name in names if name in keys) for names in held} == set(QUERIES)
