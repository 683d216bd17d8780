"""What a refresh knows about what it wrote: sizes of each set, sums that are exact, arguments that
are never NULL.

Sizes come from the commit in the Delta log, totals from the write itself (`totals`). A sum of
integers is exact in DOUBLE, so that AVG may be computed from it, if the largest argument times the
number of rows stays within 2^53: the argument's bounds follow from its columns' types, and only
where these do not tell from the base columns' minimum and maximum at the pinned versions, which
Delta answers from its statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from cachemgr.delta.commits import Commit
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.file_stats import Bounds, bounds_listed, files_listed
from cachemgr.refresh.totals import asked_totals
from matcher.model.expr import Agg, Call, Col, Expr, Lit, columns
from matcher.model.ir import GROUPING_ID_COLUMN, ROWS_COLUMN, CachePlan, GroupingSet
from matcher.model.types import INTEGRAL
from matcher.render.select import quote

EXACT_IN_DOUBLE = 1 << 53


@dataclass(frozen=True, slots=True)
class Measured:
    """Facts about one written version, `plan` being the cache's plan with all of them filled in."""

    plan: CachePlan
    rows: int | None
    bytes: int
    base_rows: int | None


def measure(
    session: SparkSession,
    plan: CachePlan,
    commit: Commit,
    written: TableRead,
    tables: Sequence[TableRead],
    observed: Mapping[str, int] | None = None,
) -> Measured:
    """Measure a written version.

    Args:
        session: A session of ours.
        plan: The plan that was computed.
        commit: The commit that wrote it.
        written: The cache's table at that version.
        tables: Each relation's location and version, in the plan's order.
        observed: What the write saw of the totals; None asks the written version for them.

    Returns:
        The facts.
    """
    sets = _set_sizes(plan, commit)
    sized = replace(plan, grouping_sets=sets, rows=commit.rows, bytes=commit.bytes)
    if plan.keys is None:
        return Measured(
            replace(sized, non_null=_columns_without_nulls(plan, commit)),
            commit.rows,
            commit.bytes,
            commit.rows,
        )
    totals = asked_totals(session, sized, written) if observed is None else observed
    base_rows = totals.get(_rows_name(plan))
    facts = replace(
        sized,
        non_null=_arguments_without_nulls(plan, totals),
        exact_sums=_exact_sums(session, plan, tables, base_rows),
    )
    return Measured(facts, commit.rows, commit.bytes, base_rows)


def _rows_name(plan: CachePlan) -> str:
    """The column with the number of rows: a COUNT(*) that the definition names itself is not stored
    a second time under the hidden name.
    """
    star = (m for m in plan.measures if m.agg == Agg("count", (), "bigint"))
    return next((m.name for m in star), ROWS_COLUMN)


def _set_sizes(plan: CachePlan, commit: Commit) -> tuple[GroupingSet, ...]:
    rows: dict[int, int | None] = {}
    size: dict[int, int] = {}
    for file in commit.added:
        text = file.partition.get(GROUPING_ID_COLUMN)
        if text is None:
            continue
        gid = int(text)
        before = rows.get(gid, 0)
        rows[gid] = None if before is None or file.rows is None else before + file.rows
        size[gid] = size.get(gid, 0) + file.bytes
    return tuple(
        replace(s, rows=rows.get(s.grouping_id, 0), bytes=size.get(s.grouping_id, 0))
        for s in plan.grouping_sets
    )


def _columns_without_nulls(plan: CachePlan, commit: Commit) -> frozenset[str]:
    """Columns for which every file says that it holds no NULL; unknown is not none."""
    return frozenset(
        c.name for c in plan.columns if all(f.nulls.get(c.name) == 0 for f in commit.added)
    )


def _arguments_without_nulls(plan: CachePlan, totals: Mapping[str, int]) -> frozenset[str]:
    rows = totals.get(_rows_name(plan))
    counted: dict[Expr, int] = {
        m.agg.args[0]: totals[m.name]
        for m in plan.measures
        if m.name in totals and len(m.agg.args) == 1 and m.agg.filter is None
    }
    return frozenset(
        m.name
        for m in plan.measures
        if len(m.agg.args) == 1
        and m.agg.filter is None
        and (
            not m.agg.args[0].nullable or (rows is not None and counted.get(m.agg.args[0]) == rows)
        )
    )


def _exact_sums(
    session: SparkSession, plan: CachePlan, tables: Sequence[TableRead], base_rows: int | None
) -> frozenset[str]:
    # of a key too: a query may sum it, each value as often as it has rows
    sums = {m.name: m.agg.args[0] for m in plan.measures if _is_integral_sum(m.agg)}
    sums |= {k.name: k.expr for k in plan.keys or () if k.expr.type in INTEGRAL}
    if base_rows is None or not sums:
        return frozenset()
    known = {c: _type_bounds(c) for c in _integral_columns(sums.values())}
    exact = {name for name, expr in sums.items() if is_exact(expr, known, base_rows)}
    open_ = {name: expr for name, expr in sums.items() if name not in exact}
    wanted = sorted(_integral_columns(open_.values()), key=lambda c: (c.rel, c.name))
    known |= _column_bounds(session, wanted, tables)
    return frozenset(exact | {n for n, expr in open_.items() if is_exact(expr, known, base_rows)})


def _integral_columns(exprs: Iterable[Expr]) -> set[Col]:
    return {c for expr in exprs for c in columns(expr) if c.type in INTEGRAL}


def _type_bounds(column: Col) -> Bounds:
    limit = 1 << (INTEGRAL[column.type] - 1)
    return (-limit, limit - 1)


def is_exact(expr: Expr, known: Mapping[Col, Bounds], rows: int) -> bool:
    """Whether all sums of an expression's values stay within what DOUBLE holds exactly.

    Args:
        expr: The expression, of whole numbers.
        known: The bounds of its columns.
        rows: How many values there are at most.
    """
    bounds = expression_bounds(expr, known)
    return bounds is not None and max(map(abs, bounds)) * rows <= EXACT_IN_DOUBLE


def _is_integral_sum(agg: Agg) -> bool:
    sums = agg.func in ("sum", "try_sum")
    return sums and not agg.distinct and agg.args[0].type in INTEGRAL


def _column_bounds(
    session: SparkSession, wanted: Sequence[Col], tables: Sequence[TableRead]
) -> dict[Col, Bounds]:
    found: dict[Col, Bounds] = {}
    for rel in sorted({c.rel for c in wanted}):
        mine = [c for c in wanted if c.rel == rel]
        names = [c.name for c in mine]
        files = files_listed(session, tables[rel])
        known = None if files is None else bounds_listed(files, names)
        if known is None:
            known = _asked_bounds(session, tables[rel], names)
        found |= {column: known[column.name] for column in mine}
    return found


def _asked_bounds(
    session: SparkSession, table: TableRead, names: Sequence[str]
) -> dict[str, Bounds]:
    items = ", ".join(f"MIN({quote(n)}), MAX({quote(n)})" for n in names)
    row = run_select(session, f"SELECT {items} FROM __t", {"__t": table}).collect()[0]
    pairs = {name: (row[2 * i], row[2 * i + 1]) for i, name in enumerate(names)}
    return {n: (0, 0) if low is None else (int(low), int(high)) for n, (low, high) in pairs.items()}


def expression_bounds(expr: Expr, known: Mapping[Col, Bounds]) -> Bounds | None:
    """Bounds of an integer expression by interval arithmetic, None where nothing is known.

    >>> x, y = Col(0, "x", "bigint"), Col(0, "y", "bigint")
    >>> expression_bounds(Call("mul", (x, y), "bigint"), {x: (-2, 3), y: (0, 10)})
    (-20, 30)
    """
    if isinstance(expr, Col):
        return known.get(expr)
    if isinstance(expr, Lit):
        whole = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return (expr.value, expr.value) if whole else None  # type: ignore[return-value]
    if not isinstance(expr, Call) or expr.type not in INTEGRAL:
        return None
    parts = [expression_bounds(a, known) for a in expr.args]
    if any(p is None for p in parts):
        return None
    result = _combine(expr, [p for p in parts if p is not None])
    limit = 1 << (INTEGRAL[expr.type] - 1)
    # Past its type's range the value wraps around or is an error, so its bounds say nothing.
    return result if result and -limit <= result[0] and result[1] < limit else None


def _combine(call: Call, parts: list[Bounds]) -> Bounds | None:
    if call.op == "neg":
        return (-parts[0][1], -parts[0][0])
    if call.op == "cast" and call.args[0].type in INTEGRAL:
        return parts[0]
    if call.op == "coalesce":
        return (min(p[0] for p in parts), max(p[1] for p in parts))
    if len(parts) != 2:
        return None
    (a, b), (c, d) = parts
    if call.op == "add":
        return (a + c, b + d)
    if call.op == "sub":
        return (a - d, b - c)
    if call.op == "mul":
        products = (a * c, a * d, b * c, b * d)
        return (min(products), max(products))
    return None
