"""A cube built down the lattice and split into files holds the rows that Spark's own GROUPING SETS
gives.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cachemgr.delta.log import read_commit
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead
from cachemgr.refresh import stages
from cachemgr.refresh.full import base, build, layout, sample
from cachemgr.refresh.full.build import build_rows
from cachemgr.refresh.full.lattice import grouping_id
from cachemgr.refresh.write import TableSpec, create_table, write_commit
from cachemgr.vocabulary import RunState
from matcher.model.expr import Agg, Call, Col, Lit
from matcher.model.ir import GroupingSet, Measure
from tests.worlds.refresh_star import AMOUNT, DAY, SALES, Star, cube_plan, rows_of

pytestmark = pytest.mark.spark


@pytest.fixture
def many(star: Star) -> Star:
    """Some thousand sales over few values, NULLs in keys and measures among them."""
    items = ["pen", "ink", "cup", None, "bag", "mug", "cap", "jar"]
    rows = [
        (i % 3 + 1, items[i * 7 % 8], i % 5, None if i % 11 == 0 else i % 13 - 4, f"{i % 17}.25")
        for i in range(3000)
    ]
    star.write("sales", rows, SALES, "overwrite")
    return star


@pytest.mark.parametrize("uneven", [False, True])
def test_the_lattice_gives_the_same_rows(
    many: Star, monkeypatch: pytest.MonkeyPatch, uneven: bool
) -> None:
    plan = cube_plan(many)
    late = Call("gt", (DAY, Lit(2, DAY.type)), "boolean")
    more = (
        Measure("odd", Agg("bit_xor", (AMOUNT,), "bigint")),
        Measure("late", Agg("sum", (AMOUNT,), "bigint", filter=late)),
        Measure("lates", Agg("count", (AMOUNT,), "bigint", nullable=False, filter=late)),
    )
    plan = replace(plan, measures=(*plan.measures, *more))
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    plain = build_rows(session, plan, reads)
    assert plain.lattice is None
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    monkeypatch.setattr(build, "LEAST_SAVED", 0)
    monkeypatch.setattr(build, "DEAL_OUT_FROM_GROUPS", 1)
    monkeypatch.setattr(base, "UNEVEN", 0.5 if uneven else 1000)
    built = build_rows(session, plan, reads)
    assert built.lattice is not None and built.lattice.families, "it is worth it here"
    plan_text = built.rows._jdf.queryExecution().optimizedPlan().toString()
    assert "InMemoryRelation" in plan_text
    assert not re.search(r"\bRelation \[", plan_text), "an ancestor is read from memory alone"
    assert bool(re.search(r"RoundRobin|SinglePartition, REPARTITION_BY_NUM", plan_text)) == uneven
    sources = {s["source"] for s in built.sources(plan)}
    assert any("ancestor of" in s for s in sources)
    try:
        assert built.rows.schema.simpleString() == plain.rows.schema.simpleString()
        assert rows_of(built.rows) == rows_of(plain.rows)
    finally:
        built.release()


def test_a_refresh_that_ends_while_it_plans_leaves_no_ancestor_in_memory(
    many: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def held() -> int:
        return int(many.spark._jsparkSession.sharedState().cacheManager().numCachedEntries())

    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    monkeypatch.setattr(build, "LEAST_SAVED", 0)
    monkeypatch.setattr(build, "_roll_up", interrupted)
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    before = held()
    with pytest.raises(KeyboardInterrupt):
        build_rows(session, cube_plan(many), reads)
    assert held() == before


def test_what_the_cache_holds_tells_the_sizes_without_a_sample(
    many: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "LEAST_SAVED", 0)
    monkeypatch.setattr(sample, "draw", lambda *_: pytest.fail("a sample"))
    plan = cube_plan(many)
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    sets = tuple(replace(s, rows=10 * (len(s.keys) + 1)) for s in plan.grouping_sets)
    before = replace(plan, grouping_sets=sets)
    built = build_rows(session, plan, reads, before=before)
    try:
        assert built.lattice is not None
        assert built.estimates[plan.grouping_sets[0].keys] == sets[0].rows
        assert rows_of(built.rows) == rows_of(build_rows(session, plan, reads).rows)
    finally:
        built.release()


def test_noop_both_zeros_are_one_group(many: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark makes one key of them where it plans to group."""
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    days = [[-0.0, 0.0, float("nan"), 1.5][i % 4] for i in range(400)]
    rows = [(i % 3 + 1, "pen", day, i % 7, "1.00") for i, day in enumerate(days)]
    plan = cube_plan(many)
    many.write("scores", rows, SALES.replace("day int", "day double"), "overwrite")
    *others, day = plan.keys or ()
    keys = (*others, replace(day, expr=Col(0, "day", "double")))
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("scores"), 0), TableRead(many.key("shops"), 0)]
    built = build_rows(session, replace(plan, keys=keys), reads)
    assert built.estimates, "it is built as a large one"
    try:
        found = rows_of(built.rows)
    finally:
        built.release()
    plain = build_rows(own_session(many.spark, {}), replace(plan, keys=keys), reads, plain=True)
    assert repr(found) == repr(rows_of(plain.rows))  # NaN equals nothing


def test_noop_a_sample_is_drawn_where_helpers_may_be_worth_it(
    many: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "LEAST_SAVED", 0)
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    plan = cube_plan(many)
    before = replace(plan, grouping_sets=tuple(replace(s, rows=9) for s in plan.grouping_sets))
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    built = build_rows(own_session(many.spark, {}), plan, reads, before=before)
    built.release()
    assert built.lattice is not None and any(not f.stored for f in built.lattice.families)


def test_sums_that_overflow_in_parts_alone_are_added_as_spark_adds_them(
    many: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums by item and by day are 0; those by both, from which they are taken, overflow."""
    monkeypatch.setattr(build, "LEAST_SAVED", 0)
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    monkeypatch.setattr(stages, "suits_one_task", lambda *_: False)
    big = 5 * 10**18
    rows = [
        (1, ["pen", "ink"][i % 2], i // 2 % 2, big if i // 2 % 2 == i % 2 else -big, "1.00")
        for i in range(4000)
    ]
    many.write("sales", rows, SALES, "overwrite")
    sets = tuple(GroupingSet(grouping_id(s, 4), s) for s in ((0,), (3,), ()))
    plan = replace(cube_plan(many), grouping_sets=sets)
    cache = many.cache(plan)
    run = many.refresh(cache)
    assert run.state is RunState.PUBLISHED
    assert sorted(r[-1] for r in many.stored(cache)) == [2000, 2000, 2000, 2000, 4000]


@pytest.mark.parametrize("how", ["other keys", "a set more", "not measured"])
def test_noop_what_the_cache_holds_tells_nothing_of_another_cube(many: Star, how: str) -> None:
    plan = cube_plan(many)
    keys = plan.keys or ()
    sets = tuple(replace(s, rows=10) for s in plan.grouping_sets)
    before = {
        "other keys": replace(plan, keys=keys[::-1], grouping_sets=sets),
        "a set more": replace(plan, grouping_sets=sets[1:]),
        "not measured": plan,
    }[how]
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    built = build_rows(own_session(many.spark, {}), plan, reads, before=before)
    assert built.lattice is None and not built.estimates


def test_a_table_of_few_files_is_counted_by_its_log(many: Star) -> None:
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("shops"), 0), TableRead(many.key("sales"), 1)]
    found = base.base_of(session, reads)
    assert (found.largest, found.rows, found.count(session)) == ("__t1", 3000, 3000)
    unknown = replace(found, rows=None)
    assert unknown.count(session) == 3000


def test_a_large_set_is_split_at_values_of_its_most_selective_key(
    many: Star, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(layout, "LARGE_SET_ROWS", 30)
    monkeypatch.setattr(layout, "ROWS_PER_FILE", 10)
    monkeypatch.setattr(sample, "ABOVE_ROWS", 1)
    plan = cube_plan(many)
    session = own_session(many.spark, {})
    reads = [TableRead(many.key("sales"), 1), TableRead(many.key("shops"), 0)]
    built = build_rows(session, plan, reads)
    expected = rows_of(built.rows)
    location = str(tmp_path / "split")
    spec = TableSpec(location, ("__grouping_id",), (), {})
    create_table(session, spec, built.rows.schema)
    write_commit(session, built.rows, spec, app_id="x", commit_number=1, stamp={})
    built.release()
    columns = built.rows.columns
    assert rows_of(session.read.format("delta").load(location).select(columns)) == expected
    files: dict[str, int] = {}
    for file in read_commit(session, location, 1).added:
        gid = file.partition["__grouping_id"] or ""
        files[gid] = files.get(gid, 0) + 1
    large = [s.grouping_id for s in plan.grouping_sets if len(s.keys) >= 2]
    assert files["15"] == 1 and max(files.values()) > 1
    split = max(files, key=lambda g: files[g])
    assert int(split) in large
    ranges = _ranges(session, location, split)
    assert all(a[1] < b[0] for a, b in pairwise(ranges)), ranges


def _ranges(session, location: str, gid: str) -> list[tuple[str, str]]:
    """Smallest and largest item of each file of a set, in order."""
    rows = session.sql(
        f"SELECT _metadata.file_name AS f, min(item) AS low, max(item) AS high "
        f"FROM delta.`{location}` WHERE __grouping_id = {gid} AND item IS NOT NULL GROUP BY 1"
    ).collect()
    return sorted((r["low"], r["high"]) for r in rows)
