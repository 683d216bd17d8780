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
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from cachemgr.delta.commits import Commit
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.file_stats import bounds_listed, files_listed
from cachemgr.refresh.totals import asked_totals
from matcher.model.expr import Agg, Col, Expr, columns
from matcher.model.integer_bounds import Bounds, is_exact, type_bounds
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
    ROWS_COLUMN,
    CachePlan,
    GroupingSet,
    reads_groups,
)
from matcher.model.types import INTEGRAL
from matcher.render.placeholders import TABLE
from matcher.render.select import quote


@dataclass(frozen=True, slots=True)
class Measured:
    """Facts about one written version.

    Args:
        plan: The cache's plan with its sizes and facts filled in.
        rows: Stored rows; None if Delta does not say.
        bytes: Bytes of its files.
        base_rows: Rows behind the cache.
        totals: The sum of each stored count over all rows.
        bounds: The least and the greatest value of the base columns that were looked at: over all
            of their tables; of a cache without groups, over the rows behind it.
    """

    plan: CachePlan
    rows: int | None
    bytes: int
    base_rows: int | None
    totals: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[Col, Bounds] = field(default_factory=dict)


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
    sets = set_sizes(plan, commit)
    sized = replace(plan, grouping_sets=sets, rows=commit.rows, bytes=commit.bytes)
    if plan.keys is None:
        return Measured(
            replace(sized, non_null=columns_without_nulls(plan, commit)),
            commit.rows,
            commit.bytes,
            commit.rows,
            bounds=bounds_written(plan, commit),
        )
    totals = asked_totals(session, sized, written) if observed is None else observed
    base_rows = totals.get(rows_name(plan))
    wanted = open_columns(plan, base_rows)
    bounds = _column_bounds(session, wanted, tables)
    facts = replace(
        sized,
        non_null=arguments_without_nulls(plan, totals),
        exact_sums=exact_sums(plan, base_rows, bounds),
    )
    return Measured(facts, commit.rows, commit.bytes, base_rows, totals, bounds)


def rows_name(plan: CachePlan) -> str:
    """The column with the number of rows: a COUNT(*) that the definition names itself is not stored
    a second time under the hidden name.
    """
    star = (m for m in plan.measures if m.agg == Agg("count", (), "bigint"))
    return next((m.name for m in star), ROWS_COLUMN)


def set_sizes(plan: CachePlan, commit: Commit) -> tuple[GroupingSet, ...]:
    """A cube's sets with the rows and bytes that a commit wrote of each."""
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


def columns_without_nulls(plan: CachePlan, commit: Commit) -> frozenset[str]:
    """Columns of which every file of a commit says that it holds no NULL; unknown is not none."""
    return frozenset(
        c.name for c in plan.columns if all(f.nulls.get(c.name) == 0 for f in commit.added)
    )


def bounds_written(plan: CachePlan, commit: Commit) -> dict[Col, Bounds]:
    """Of a cache without groups, the bounds of the base columns that it stores as they are, in the
    rows that a commit wrote; of those of which every file says them.

    Args:
        plan: The cache.
        commit: The commit that wrote its rows.
    """
    found: dict[Col, Bounds] = {}
    for column in plan.columns:
        said = [f.bounds.get(column.name) for f in commit.added if f.rows != 0]
        known = [bounds for bounds in said if bounds is not None]
        if isinstance(column.expr, Col) and column.expr.type in INTEGRAL and known == said:
            lows, highs = [low for low, _ in known], [high for _, high in known]
            found[column.expr] = (min(lows, default=0), max(highs, default=0))
    return found


def arguments_without_nulls(plan: CachePlan, totals: Mapping[str, int]) -> frozenset[str]:
    """Measures whose argument is never NULL, by its type or as the totals count it."""
    rows = totals.get(rows_name(plan))
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


def open_columns(plan: CachePlan, base_rows: int | None) -> tuple[Col, ...]:
    """The base columns whose bounds have to be known to tell which sums are exact, since their
    types do not.

    Args:
        plan: The cache.
        base_rows: The rows behind it.
    """
    if base_rows is None or reads_groups(plan):  # of what groups give no table tells
        return ()
    sums = _summed(plan)
    known = {c: type_bounds(c) for c in _integral_columns(sums.values())}
    open_ = [expr for expr in sums.values() if not is_exact(expr, known, base_rows)]
    return tuple(sorted(_integral_columns(open_), key=lambda c: (c.rel, c.name)))


def exact_sums(
    plan: CachePlan, base_rows: int | None, bounds: Mapping[Col, Bounds]
) -> frozenset[str]:
    """The sums, and the keys, of which AVG may be computed.

    Args:
        plan: The cache.
        base_rows: The rows behind it.
        bounds: What is known of base columns besides their types.
    """
    sums = _summed(plan)
    if base_rows is None:
        return frozenset()
    known = {c: type_bounds(c) for c in _integral_columns(sums.values())} | dict(bounds)
    return frozenset(name for name, expr in sums.items() if is_exact(expr, known, base_rows))


def _summed(plan: CachePlan) -> dict[str, Expr]:
    sums = {m.name: m.agg.args[0] for m in plan.measures if _is_integral_sum(m.agg)}
    # of a key too: a query may sum it, each value as often as it has rows
    return sums | {k.name: k.expr for k in plan.keys or () if k.expr.type in INTEGRAL}


def _integral_columns(exprs: Iterable[Expr]) -> set[Col]:
    return {c for expr in exprs for c in columns(expr) if c.type in INTEGRAL}


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
            known = asked_bounds(session, tables[rel], names)
        found |= {column: known[column.name] for column in mine}
    return found


def asked_bounds(
    session: SparkSession, relation: object, names: Sequence[str]
) -> dict[str, Bounds]:
    """The least and the greatest value of columns of whole numbers; (0, 0) for one without values.

    Args:
        session: A session of ours.
        relation: The rows, as `run_select` takes them.
        names: The columns.
    """
    items = ", ".join(f"MIN({quote(n)}), MAX({quote(n)})" for n in names)
    row = run_select(session, f"SELECT {items} FROM {TABLE}", {TABLE: relation}).collect()[0]
    pairs = {name: (row[2 * i], row[2 * i + 1]) for i, name in enumerate(names)}
    return {n: (0, 0) if low is None else (int(low), int(high)) for n, (low, high) in pairs.items()}
