"""A cache's partial rows read as one row a group.

The SELECT gives the columns of `render_stored`, in its order, with its names and types, so that
whoever reads the cache's table reads this in its place. Sums and counts are added up, a group whose
rows are all taken away is left out, and a SUM or AVG with nothing left to add is NULL. NULL in a
key that a grouping set does not have is not the NULL of one that it has: groups are told apart by
the grouping id first.

Under ANSI whole numbers are added as DECIMAL and cast back: partial sums x, x and -x overflow
BIGINT on the way where their total does not. Without ANSI sums wrap around, and those of partial
sums come to the same. An AVG is computed from its sum and count; what its own column holds in a
partial row is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
    CachePlan,
    GroupingSet,
    MatchOptions,
    Measure,
    StoredColumn,
)
from matcher.model.types import INTEGRAL, decimal_parts, sum_type
from matcher.partials.merge import union_of
from matcher.partials.partial_rows import (
    EXTREMES,
    SKETCHES,
    count_measure,
    rows_measure,
    sum_measure,
    why_not_partials,
)
from matcher.partials.split import LONG_DECIMAL, WIDE_SUM
from matcher.render.placeholders import PARTS
from matcher.render.select import quote, render_expr
from matcher.rules.roll_up.arithmetic import opposite
from matcher.rules.roll_up.distinct import united

SIGN: Final = "__sign"
"""1 in a row to add up, -1 in one to take away."""

_SIGN: Final = Col(0, SIGN, "int", nullable=False)
_ZERO: Final = Lit(0, "bigint")


def render_collapsed(plan: CachePlan, table_sql: str, options: MatchOptions) -> str:
    """The SELECT that reads a table of partial rows as one row a group.

    Args:
        plan: The cache; `why_not_partials` has nothing against it.
        table_sql: How the table is spelled in FROM, without an alias.
        options: The settings that the cache is refreshed under.

    Raises:
        ValueError: The cache cannot be stored as partial rows; says why.

    >>> from matcher.examples import plan_of
    >>> plan = plan_of("SELECT store, SUM(price) AS p FROM sales GROUP BY store")
    >>> print(render_collapsed(plan, "c", MatchOptions()))
    SELECT `store`,
      CASE WHEN (SUM(`__count_0`) <> 0L) THEN CAST(SUM(`p`) AS DECIMAL(19,2)) END AS `p`,
      SUM(`__rows`) AS `__rows`,
      SUM(`__count_0`) AS `__count_0`
    FROM c AS __parts
    GROUP BY `store`
    HAVING (SUM(__parts.`__rows`) <> 0L)
    """
    return _collapsed(plan, f"{table_sql} AS {PARTS}", options, signed=False)


def holds_partials(plan: CachePlan, grouping_set: GroupingSet | None) -> bool:
    """Whether what is read of a cache has to be collapsed.

    Args:
        plan: The cache, as it is stored.
        grouping_set: The set of a cube that is read; None for several, and for a cache that is no
            cube.
    """
    if grouping_set is None:
        return bool(plan.partials)
    return grouping_set.grouping_id in plan.partials


def of_one_set(plan: CachePlan, grouping_set: GroupingSet) -> CachePlan:
    """A cube with one of its sets alone, and of its keys those of that set: in the rows of the set
    the others are NULL, and nobody who reads it asks for them.

    Args:
        plan: The cube.
        grouping_set: One of its sets.

    >>> from matcher.examples import plan_of
    >>> plan = plan_of("SELECT store, day, COUNT(*) AS n FROM sales GROUP BY CUBE (store, day)")
    >>> one = of_one_set(plan, next(s for s in plan.grouping_sets if s.keys == (1,)))
    >>> [key.name for key in one.keys], [(s.grouping_id, s.keys) for s in one.grouping_sets]
    (['day'], [(2, (0,))])
    """
    keys = tuple((plan.keys or ())[i] for i in grouping_set.keys)
    only = replace(grouping_set, keys=tuple(range(len(keys))))
    return replace(plan, keys=keys, grouping_sets=(only,))


def with_sign(plan: CachePlan, sign: Col) -> CachePlan:
    """The definition over rows that came and rows that went, apart: `SIGN` is a key more.

    It is the first one, so that the ids of grouping sets stay what they are.

    Args:
        plan: The cache, which has groups.
        sign: The column that says which rows are which, of the table that changed.

    >>> from matcher.examples import plan_of
    >>> from matcher.render.select import render_stored
    >>> plan = plan_of("SELECT store, COUNT(*) AS n FROM sales GROUP BY store")
    >>> print(render_stored(with_sign(plan, Col(0, "_change", "int")), ["t"]))
    SELECT t0.`_change` AS `__sign`,
      t0.`store` AS `store`,
      COUNT(*) AS `n`
    FROM t AS t0
    GROUP BY t0.`_change`, t0.`store`
    """
    keys = (StoredColumn(SIGN, sign, hidden=True), *(plan.keys or ()))
    sets = [replace(s, keys=(0, *(key + 1 for key in s.keys))) for s in plan.grouping_sets]
    return replace(plan, keys=keys, grouping_sets=tuple(sets))


def merged_rows(
    plan: CachePlan,
    added: Sequence[str],
    removed: Sequence[str],
    options: MatchOptions,
    signed: Sequence[str] = (),
) -> str:
    """The SELECT of a cache's rows, one a group, from rows to add up and rows to take away.

    Args:
        plan: The cache; `why_not_partials` has nothing against it, signed if any are removed.
        added: SELECTs of the cache's columns in their order: what is stored, the definition over
            appended base rows.
        removed: The same, of what goes: the definition over deleted base rows.
        options: The settings that the cache is refreshed under.
        signed: The same of both, with `SIGN` as one column more at the end.

    Raises:
        ValueError: The cache cannot be merged so; says why.
    """
    if not removed and not signed:
        return _collapsed(plan, union_of(added), options, signed=False)
    return _collapsed(plan, _signed(added, removed, signed), options, signed=True)


def net_partials(
    plan: CachePlan,
    added: Sequence[str],
    removed: Sequence[str],
    options: MatchOptions,
    signed: Sequence[str] = (),
) -> str:
    """The SELECT of the partial rows that, appended to a cache's table, add some base rows and
    take others away: one row for each group in which anything changes.

    The counts of a row may be negative, or 0 beside a sum that is not: an updated value. An AVG is
    NULL in it. A sum that does not fit its column, such as the opposite of the least BIGINT, is an
    error under ANSI.

    Args:
        plan: The cache; `why_not_partials` has nothing against it, signed.
        added: SELECTs of the definition over appended base rows.
        removed: The same over deleted base rows.
        options: The settings that the cache is refreshed under.
        signed: Those of both, with `SIGN` as one column more at the end.

    Raises:
        ValueError: The cache cannot be stored as signed partial rows; says why.
    """
    _refuse(plan, options, signed=True)
    adding = _Adding(plan, options, signed=True)
    items = [_item(m, adding.net(m), _plain) for m in plan.measures]
    changed = [
        Call("ne", (_or_zero(adding.net(m)), _zero(m.agg.type)), "boolean")
        for m in plan.measures
        if m.agg.func != "avg"
    ]
    having = render_expr(Call("or", tuple(changed), "boolean"), _qualified)
    return _select(plan, items, _signed(added, removed, signed), having)


def _collapsed(plan: CachePlan, source: str, options: MatchOptions, *, signed: bool) -> str:
    _refuse(plan, options, signed=signed)
    if plan.keys is None:
        return _select(plan, [], source, "")
    adding = _Adding(plan, options, signed)
    rows = rows_measure(plan)
    assert rows is not None
    some = Call("ne", (adding.count(rows), _ZERO), "boolean")
    items = [_item(m, adding.value(m), _plain) for m in plan.measures]
    return _select(plan, items, source, render_expr(some, _qualified))


def _refuse(plan: CachePlan, options: MatchOptions, *, signed: bool) -> None:
    reason = why_not_partials(plan, options, signed=signed)
    if reason is not None:
        raise ValueError(reason.detail)


def _select(plan: CachePlan, items: list[str], source: str, having: str) -> str:
    stored = plan.columns if plan.keys is None else plan.keys
    keys = [quote(c.name) for c in stored]
    if plan.is_cube:
        keys.insert(0, quote(GROUPING_ID_COLUMN))
    lines = ["SELECT " + ",\n  ".join([*keys, *items]), f"FROM {source}"]
    if plan.keys or plan.is_cube:
        lines += ["GROUP BY " + ", ".join(keys), f"HAVING {having}"]
    return "\n".join(lines)


def _item(measure: Measure, expr: Expr, column: Callable[[Col], str]) -> str:
    return f"{render_expr(expr, column)} AS {quote(measure.name)}"


def _plain(col: Col) -> str:
    return quote(col.name)


def _qualified(col: Col) -> str:
    """In HAVING an output of the name would be meant."""
    return f"{PARTS}.{quote(col.name)}"


def _signed(added: Sequence[str], removed: Sequence[str], signed: Sequence[str]) -> str:
    sign = quote(SIGN)
    sides = [f"SELECT *, 1 AS {sign} FROM (\n{side}\n)" for side in added]
    sides += [f"SELECT *, -1 AS {sign} FROM (\n{side}\n)" for side in removed]
    return union_of([*sides, *signed])


@dataclass(frozen=True, slots=True)
class _Adding:
    """The columns of a group, from those of its partial rows.

    Args:
        plan: The cache.
        options: Whether sums are ANSI.
        signed: The rows have the column `__sign`.
    """

    plan: CachePlan
    options: MatchOptions
    signed: bool

    def value(self, measure: Measure) -> Expr:
        """The column of the group."""
        agg = measure.agg
        if agg.func == "count":
            return self.count(measure)
        if agg.func == "avg":
            return self._average(measure)
        if agg.func in ("sum", "try_sum"):
            return self._where_any(agg, self._total(measure))
        if agg.func in EXTREMES:
            return Agg(agg.func, (_column(measure),), agg.type)
        if agg.func in SKETCHES:
            return united(_column(measure), agg)
        found = Agg("bit_xor", (_column(measure),), agg.type)
        return self._where_any(agg, found) if self.signed or self._counted(agg) else found

    def net(self, measure: Measure) -> Expr:
        """What the group's column changes by."""
        agg = measure.agg
        if agg.func == "count":
            return self.count(measure)
        if agg.func == "avg":
            return Lit(None, agg.type)
        if agg.func == "bit_xor":
            return Agg("bit_xor", (_column(measure),), agg.type)
        return self._total(measure)

    def count(self, measure: Measure) -> Expr:
        """How many rows there are: none, where there is no partial row of a cache without keys."""
        total = Agg("sum", (self._side(_column(measure)),), "bigint")
        return total if self.plan.keys else _or_zero(total)

    def _counted(self, agg: Agg) -> bool:
        return count_measure(self.plan, agg) is not None

    def _where_any(self, agg: Agg, value: Expr) -> Expr:
        """NULL where there is nothing to add."""
        count = count_measure(self.plan, agg)
        assert count is not None
        some = Call("ne", (self.count(count), _ZERO), "boolean")
        return Call("case", (some, value), value.type)

    def _total(self, measure: Measure) -> Expr:
        column = _column(measure)
        if column.type == "bigint" and self.options.ansi:
            wide = self._side(Call("cast", (column,), LONG_DECIMAL))
            total: Expr = Agg("sum", (wide,), WIDE_SUM)
        else:
            total = Agg("sum", (self._side(column),), sum_type(column.type) or column.type)
        return total if total.type == column.type else Call("cast", (total,), column.type)

    def _average(self, measure: Measure) -> Expr:
        """As `matcher.rules.roll_up.averages` has it."""
        agg = measure.agg
        stored, count = sum_measure(self.plan, agg), count_measure(self.plan, agg)
        assert stored is not None and count is not None
        total = self._total(stored)
        rows = Call("nullif", (self.count(count), _ZERO), "bigint")
        kind = "double" if agg.args[0].type in INTEGRAL else LONG_DECIMAL
        if kind == "double":
            total = Call("cast", (total,), kind)
        return Call("cast", (Call("div", (total, Call("cast", (rows,), kind)), kind),), agg.type)

    def _side(self, column: Expr) -> Expr:
        """A value to add or, of a row that is taken away, to subtract."""
        if not self.signed:
            return column
        taken = Call("lt", (_SIGN, Lit(0, "int")), "boolean")
        less = opposite(column)
        assert less is not None  # `why_not_partials` has looked at that
        return Call("case", (taken, less, column), column.type)


def _column(measure: Measure) -> Col:
    return Col(0, measure.name, measure.agg.type)


def _or_zero(total: Expr) -> Expr:
    return Call("coalesce", (total, _zero(total.type)), total.type, False)


def _zero(type: str) -> Expr:
    zero = Lit(0, "int")
    if type == "bigint":
        return _ZERO
    return Call("cast", (zero,), type) if decimal_parts(type) or type in INTEGRAL else zero
