"""Partial rows of a cache, read through the collapse, are the rows of its definition over the whole
table, column for column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from matcher.model.expr import Col
from matcher.model.ir import CachePlan, MatchOptions
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.collapse import (
    SIGN,
    merged_rows,
    net_partials,
    render_collapsed,
    with_sign,
)
from matcher.partials.partial_rows import why_not_partials
from matcher.render.select import quote, render_stored
from tests.matcher.partials.parted import (
    Row,
    block_of,
    facts,
    hold,
    result,
    sessions,
    show_parts,
    tables_of,
)

pytestmark = pytest.mark.spark
SUMS = (
    "SUM(x) AS sx, SUM(y) AS sy, SUM(i) AS si, SUM(p) AS sp, SUM(w) AS sw, AVG(p) AS ap, "
    "AVG(s) AS a_s, AVG(y) AS ay, COUNT(*) AS n, COUNT(y) AS cy, COUNT(i) AS ci, "
    "SUM(y) FILTER (WHERE x > 0) AS fy, COUNT(*) FILTER (WHERE x > 0) AS fn, "
    "BIT_XOR(i) AS xi, BIT_XOR(s) AS xs, SUM(CASE WHEN x > 0 THEN p ELSE 0 END) AS cp"
)
EXTREMES = (
    "MIN(y) AS my, MAX(g) AS mg, MIN(d) AS md, MAX(at) AS ma, BOOL_OR(b) AS bo, BOOL_AND(b) AS ba, "
    "BIT_OR(y) AS oy, BIT_AND(s) AS bs, MAX(p) FILTER (WHERE x > 0) AS fp"
)
GROUPS = (
    ("k, g, ", "GROUP BY k, g"),
    ("r, ", "GROUP BY r"),
    ("", ""),
    ("k, g, d, ", "GROUP BY k, g, d GROUPING SETS ((k, g, d), (k, g), (g), (d, k), ())"),
    ("k % 2 AS odd, ", "GROUP BY k % 2, d"),
)
DEFINITIONS = [f"SELECT {keys}{{}} FROM facts {by}" for keys, by in GROUPS] + [
    "SELECT name, {} FROM facts LEFT JOIN dims ON facts.k = dims.k GROUP BY name"
]
ANSI = pytest.mark.parametrize("ansi", [True, False])


def prepared(definition: str, options: MatchOptions) -> CachePlan:
    """The plan, its sums proven small."""
    plan = plan_definition("c", block_of(definition, options))
    return replace(plan, exact_sums=frozenset(m.name for m in plan.measures))


def stored(plan: CachePlan, part: int) -> str:
    return render_stored(plan, tables_of(plan, part))


def whole(plan: CachePlan) -> str:
    return render_stored(plan, [r.name for r in plan.relations])


def table_of(session: Any, *selects: str) -> None:
    """The cache's table `c`, of these rows."""
    hold(session, "c", session.sql(" UNION ALL ".join(f"({s})" for s in selects)))


def assert_same(session: Any, found: str, wanted: str) -> None:
    one, other = session.sql(found), session.sql(wanted)
    assert one.columns == other.columns
    assert result(one) == result(other)


LEGACY = [False, True]


@pytest.mark.parametrize("ansi", LEGACY)
@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(
    "sizes",
    [(25, 25, 10), (20, 0, 0), (0, 0, 0)],
    ids=str,
)
def test_results_over_parts(spark: Any, ansi: bool, definition: str, sizes: Sequence[int]) -> None:
    session, options = sessions(spark, ansi), MatchOptions(ansi=ansi, time_zone="UTC")
    random = Random(f"{definition}{sizes}")
    show_parts(session, [facts(random, size) for size in sizes])
    plan = prepared(definition.format(f"{SUMS}, {EXTREMES}"), options)
    assert why_not_partials(plan, options, signed=False) is None
    parts = [stored(plan, part) for part in range(3)]
    table_of(session, *parts)
    assert_same(session, render_collapsed(plan, "c", options), whole(plan))
    assert_same(session, merged_rows(plan, parts, [], options), whole(plan))


def changed(random: Random, rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """(removed, added, left) of a table: whole groups that go, rows that change a value alone."""
    going = [r for r in rows if r[0] == 1 or random.random() < 0.2]
    staying = [r for r in rows if r not in going]
    updated = staying[: len(staying) // 2]
    added = [(*r[:5], (r[5] or 0) + 1, *r[6:]) for r in updated] + facts(random, 5)
    removed = going + updated
    return removed, added, [*staying[len(updated) :], *added]


@pytest.mark.parametrize("ansi", LEGACY)
@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("all_go", [False, True])
def test_rows_that_are_taken_away(spark: Any, ansi: bool, definition: str, all_go: bool) -> None:
    session, options = sessions(spark, ansi), MatchOptions(ansi=ansi, time_zone="UTC")
    random = Random(definition)
    before = list({repr(row): row for row in facts(random, 40)}.values())
    removed, added, left = (before, [], []) if all_go else changed(random, before)
    show_parts(session, [before, added, removed, left])
    session.sql("TABLE part3").createOrReplaceTempView("facts")
    plan = prepared(definition.format(SUMS), options)
    assert why_not_partials(plan, options, signed=True) is None
    base, more, less = (stored(plan, part) for part in (0, 1, 2))
    table_of(session, base, net_partials(plan, [more], [less], options))
    assert_same(session, render_collapsed(plan, "c", options), whole(plan))
    assert_same(session, merged_rows(plan, [base, more], [less], options), whole(plan))
    # both in one scan, told apart by a column
    session.sql(
        "SELECT *, 1 AS _change FROM part1 UNION ALL SELECT *, -1 FROM part2"
    ).createOrReplaceTempView("part_changed")
    tables = ["part_changed" if name == "part1" else name for name in tables_of(plan, 1)]
    rel = tables.index("part_changed")
    both = render_stored(with_sign(plan, Col(rel, "_change", "int")), tables)
    names = ", ".join(quote(name) for name in session.sql(more).columns)
    signed = [f"SELECT {names}, {SIGN} FROM ({both})"]
    assert_same(session, merged_rows(plan, [base], [], options, signed), whole(plan))
    table_of(session, base, net_partials(plan, [], [], options, signed))
    assert_same(session, render_collapsed(plan, "c", options), whole(plan))
    # taken away first, added later
    less_first = net_partials(plan, [], [less], options)
    table_of(session, less_first, net_partials(plan, [more], [], options), base)
    assert_same(session, render_collapsed(plan, "c", options), whole(plan))
    types = [f.dataType for f in session.sql(less_first).schema]
    assert types == [f.dataType for f in session.sql(base).schema]


def test_what_does_not_change_has_no_partial_row(spark: Any) -> None:
    session, options = sessions(spark, True), MatchOptions(time_zone="UTC")
    rows = [row for row in facts(Random(5), 30) if row[0] is not None]
    update = [(*row[:4], row[4] + 1, *row[5:]) for row in rows if row[0] == 2]
    show_parts(session, [rows, [row for row in rows if row[0] != 2] + update])
    plan = prepared("SELECT k, SUM(x) AS sx, COUNT(*) AS n FROM facts GROUP BY k", options)
    net = session.sql(net_partials(plan, [stored(plan, 1)], [stored(plan, 0)], options))
    assert [(r["k"], r["sx"], r["n"]) for r in net.collect()] == [(2, len(update), 0)]


def test_a_cache_of_single_rows_is_read_as_it_is(spark: Any) -> None:
    session, options = sessions(spark, True), MatchOptions(time_zone="UTC")
    show_parts(session, [facts(Random(1), 5), facts(Random(2), 5)])
    plan = prepared("SELECT k, x AS amount FROM facts WHERE x > 0", options)
    table_of(session, stored(plan, 0), stored(plan, 1))
    assert_same(session, render_collapsed(plan, "c", options), whole(plan))


def test_sketches(spark: Any) -> None:
    session, options = sessions(spark, True), MatchOptions(time_zone="UTC")
    show_parts(session, [facts(Random(1), 30), facts(Random(2), 30)])
    plan = prepared("SELECT k, HLL_SKETCH_AGG(y) AS h FROM facts GROUP BY k", options)
    table_of(session, stored(plan, 0), stored(plan, 1))
    estimate = "SELECT k, HLL_SKETCH_ESTIMATE(h) AS n, __rows FROM ({})"
    found = estimate.format(render_collapsed(plan, "c", options))
    assert_same(session, found, estimate.format(whole(plan)))


MAX, MIN = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("values", "fits"),
    [((MAX, MAX, MIN, MIN), True), ((MAX, MAX, -MAX), True), ((MAX, 1), False), ((MIN, -1), False)],
)  # fmt: skip
@ANSI
def test_partial_sums_that_overflow_on_the_way(
    spark: Any, ansi: bool, values: Sequence[int], fits: bool
) -> None:
    session, options = sessions(spark, ansi), MatchOptions(ansi=ansi, time_zone="UTC")
    row = facts(Random(1), 1)[0]
    parts = [[(1, *row[1:12], value)] for value in values]
    show_parts(session, parts)
    plan = prepared("SELECT k, SUM(huge) AS h FROM facts GROUP BY k", options)
    table_of(session, *(stored(plan, part) for part in range(len(parts))))
    found = session.sql(f"SELECT h FROM ({render_collapsed(plan, 'c', options)})")
    if ansi and not fits:
        with pytest.raises(Exception, match=r"OVERFLOW"):
            found.collect()
        return
    total = sum(values)
    wrapped = (total - MIN) % 2**64 + MIN
    assert [r[0] for r in found.collect()] == [wrapped]


def test_the_least_whole_number_is_taken_away(spark: Any) -> None:
    session, options = sessions(spark, True), MatchOptions(time_zone="UTC")
    row = facts(Random(1), 1)[0]
    show_parts(session, [[(1, *row[1:12], MIN), (1, *row[1:12], 7)], [(1, *row[1:12], MIN)]])
    plan = prepared("SELECT k, SUM(huge) AS h FROM facts WHERE huge < 7 GROUP BY k", options)
    both = stored(plan, 0)
    plan_of_rest = prepared("SELECT k, SUM(huge) AS h FROM facts GROUP BY k", options)
    rest = session.sql(
        merged_rows(
            plan_of_rest,
            ["SELECT 1 AS k, 7L AS h, 1L AS `__rows`, 1L AS `__count_0`", both],
            [stored(plan, 1)],
            options,
        )
    )
    assert [(r["h"], r["__rows"]) for r in rest.collect()] == [(7, 1)]
    with pytest.raises(Exception, match=r"OVERFLOW"):  # its opposite has no BIGINT
        session.sql(net_partials(plan, [], [stored(plan, 1)], options)).collect()
