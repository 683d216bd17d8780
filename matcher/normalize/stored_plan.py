"""From the block of a cache's definition to what is stored: keys, measures, hidden columns,
distinct grouping sets.

A cache stores more than its SELECT shows: a row count for each group, the count of non-null
arguments of nullable sums, and SUM and COUNT of every AVG, because AVG never rolls up from AVG
(docs/contract.md). Grouping sets that the DDL repeats are stored once; `__grouping_id` has Spark's
own numbering, bit by bit in the order of the GROUP BY list, the first key highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matcher.model.errors import DefinitionNotSupported, InputCode
from matcher.model.expr import (
    CHAR_PADDING,
    OPAQUE_PREFIX,
    Agg,
    Call,
    Col,
    Expr,
    Lit,
    is_opaque,
    walk,
)
from matcher.model.ir import (
    HIDDEN_PREFIX,
    ROWS_COLUMN,
    Block,
    CachePlan,
    GroupingSet,
    Measure,
    Output,
    RecordPreservingJoin,
    Relation,
    StoredColumn,
    reads_groups,
)
from matcher.model.moments import moment_partials
from matcher.model.types import sum_type
from matcher.normalize.kept_order import kept_order
from matcher.normalize.shown_outputs import grouped_columns, only_if_other, stored_names
from matcher.render.select import readable

# What Spark's NormalizeFloatingNumbers puts around join keys, as a call that has no meaning here.
_FLOATS_JOINED = f"{OPAQUE_PREFIX}KnownFloatingPointNormalized"
_COLLATED = f"{OPAQUE_PREFIX}Collate"


def plan_definition(
    name: str, block: Block, joins: tuple[RecordPreservingJoin, ...] = ()
) -> CachePlan:
    """The plan of a cache that materialises `block`.

    Args:
        name: the cache's name, as shown and as read in rewritten SQL.
        block: the normalised definition; OFFSET is refused, LIMIT is taken with an
            ORDER BY only: a cache of the first rows. An ORDER BY alone is a wish of how the table
            is laid out. HAVING is a filter above the groups.
        joins: record-preserving joins known to hold at the cache's snapshot.

    Raises:
        DefinitionNotSupported: names the construct and what to write instead.
    """
    _refuse_tail_clauses(block)
    for predicate in (*block.predicates, *(p for j in block.outer for p in j.conditions())):
        _refuse_opaque(predicate, "the WHERE or ON clause")
    _refuse_opaque_groups(block.relations)
    for part in block.having:
        _refuse_opaque(part, "the HAVING clause")
    if block.limit is not None:
        _refuse_unstored_order(block)
    for key in block.group_keys or ():
        _refuse_opaque(key, "a GROUP BY key")
    for output in block.outputs:
        _refuse_opaque(output.expr, f"output column {output.name}")
    plan = _plan(name, block, joins)
    if block.limit is None:
        return replace(plan, cluster_by=kept_order(block, plan).cluster_by)
    return replace(plan, order_by=block.order_by, limit=block.limit)


def _plan(name: str, block: Block, joins: tuple[RecordPreservingJoin, ...]) -> CachePlan:
    if block.group_keys is None:
        names = stored_names(block.outputs)
        named = zip(names, block.outputs, strict=True)
        columns = tuple(StoredColumn(name, o.expr) for name, o in named)
        shown = only_if_other(
            Output(o.name, Col(0, c.name, c.expr.type, c.expr.nullable))
            for c, o in zip(columns, block.outputs, strict=True)
        )
        return CachePlan(
            name=name,
            relations=block.relations,
            predicates=block.predicates,
            outer=block.outer,
            keys=None,
            columns=columns,
            visible=names,
            shown=shown,
            joins=joins,
        )
    return _plan_aggregate(name, block, block.group_keys, joins)


def _plan_aggregate(
    name: str, block: Block, group_keys: tuple[Expr, ...], joins: tuple[RecordPreservingJoin, ...]
) -> CachePlan:
    for expr in group_keys:
        if isinstance(expr, Lit):
            raise DefinitionNotSupported(
                InputCode.CONSTANT_KEY,
                "a GROUP BY key is a constant, which groups nothing: leave it out",
            )
    if block.grouping_sets is None:  # DISTINCT of a column that is selected twice
        group_keys = tuple(dict.fromkeys(group_keys))
    outputs = [o for o in block.outputs if not is_grouping_id(o.expr)]
    sets = _distinct_sets(block.grouping_sets, len(group_keys))
    found = grouped_columns(outputs, group_keys, sets, block.having)
    shown = only_if_other(found.shown)
    own = {o.expr.name: None for o in found.shown if isinstance(o.expr, Col)}
    return CachePlan(
        name=name,
        relations=block.relations,
        predicates=block.predicates,
        outer=block.outer,
        keys=found.keys,
        measures=(*found.measures, *_hidden_measures(found.measures)),
        grouping_sets=sets,
        having=block.having,
        visible=tuple(own),
        shown=shown,
        joins=joins,
    )


def grouping_id(keys: tuple[int, ...], key_count: int) -> int:
    """Spark's grouping_id of a set: bit `key_count - 1 - i` is 1 where key i is *not* in the set.

    >>> grouping_id((0, 2), 3)
    2
    """
    present = set(keys)
    return sum(1 << (key_count - 1 - i) for i in range(key_count) if i not in present)


def _distinct_sets(
    written: tuple[tuple[int, ...], ...] | None, key_count: int
) -> tuple[GroupingSet, ...]:
    if written is None:
        return ()
    found: dict[int, GroupingSet] = {}
    for keys in written:
        number = grouping_id(keys, key_count)
        found.setdefault(number, GroupingSet(number, tuple(sorted(set(keys)))))
    return tuple(found.values())


def _hidden_measures(shown: Sequence[Measure]) -> list[Measure]:
    """COUNT(*), and what sums and averages need to be rolled up and maintained, where the DDL does
    not store it."""
    known = {m.agg for m in shown}
    hidden: list[Measure] = []

    def want(column: str, agg: Agg) -> None:
        if agg not in known:
            known.add(agg)
            hidden.append(Measure(column, agg, hidden=True))

    want(ROWS_COLUMN, Agg("count", (), "bigint", nullable=False))
    for i, measure in enumerate(shown):
        agg = measure.agg
        for column, partial in _partials(agg):
            want(f"{HIDDEN_PREFIX}{column}_{i}", partial)
        if agg.func not in ("sum", "avg") or agg.distinct or len(agg.args) != 1:
            continue
        if agg.func == "avg":
            stored = sum_type(agg.args[0].type)
            if stored is None:
                continue
            # A BIGINT sum may overflow where AVG, which Spark computes in DOUBLE, does not: that
            # must not
            # fail the refresh. An AVG is only taken from sums that are proven small.
            func = "try_sum" if agg.args[0].type == "bigint" else "sum"
            want(f"{HIDDEN_PREFIX}sum_{i}", Agg(func, agg.args, stored, filter=agg.filter))
        if agg.args[0].nullable or agg.filter is not None:
            want(
                f"{HIDDEN_PREFIX}count_{i}",
                Agg("count", agg.args, "bigint", nullable=False, filter=agg.filter),
            )
    return hidden


def _partials(agg: Agg) -> list[tuple[str, Agg]]:
    """What a moment or a pick by another column needs beside itself to be rolled up."""
    if agg.distinct:
        return []
    if agg.func in ("max_by", "min_by"):
        by = agg.args[1]
        extreme = agg.func.removesuffix("_by")
        return [(extreme, Agg(extreme, (by,), by.type, filter=agg.filter))]
    return list(moment_partials(agg).items())


def is_grouping_id(expr: Expr) -> bool:
    """Whether an output is the number of its row's grouping set, which a cube stores anyway."""
    return isinstance(expr, Call) and expr.op == "grouping_id"


def _refuse_tail_clauses(block: Block) -> None:
    for clause, present in (
        ("HAVING without GROUP BY", bool(block.having) and not block.group_keys),
        ("HAVING on grouping sets", bool(block.having) and block.grouping_sets is not None),
        ("HAVING with LIMIT", bool(block.having) and block.limit is not None),
        ("LIMIT without ORDER BY", block.limit is not None and not block.order_by),
        ("OFFSET", bool(block.offset)),
        ("LIMIT on grouping sets", block.limit is not None and block.grouping_sets is not None),
        ("GROUPING SETS over groups", block.grouping_sets is not None and reads_groups(block)),
    ):
        if present:
            raise DefinitionNotSupported(
                InputCode.CLAUSE_NOT_SUPPORTED,
                f"{clause} is not supported in a cache definition: leave it out; queries that "
                "have it are answered all the same",
            )


def _refuse_unstored_order(block: Block) -> None:
    """The first rows can only be put in order again by what is stored."""
    shown = {o.expr for o in block.outputs}
    for key in block.order_by:
        _refuse_opaque(key.expr, "the ORDER BY clause")
        if key.expr not in shown:
            raise DefinitionNotSupported(
                InputCode.ORDER_KEY_NOT_STORED,
                f"ORDER BY {key.expr!r} is no output column: add it to the SELECT list",
            )


def _refuse_opaque(expr: Expr, where: str) -> None:
    if not is_opaque(expr):
        return
    calls = [node for node in walk(expr) if isinstance(node, Call)]
    what = f"is {readable(expr)}, which cannot be stored"
    instead = "leave it to the queries, or write it in another way"
    if any(CHAR_PADDING in call.params for call in calls):
        what = f"is {readable(expr)}, which reads a CHAR column"
        instead = "let the table declare it STRING or VARCHAR"
    elif any(call.op == _COLLATED for call in calls):
        what = "has a string with a collation of its own, which cannot be stored"
        instead = "leave the collation to the queries, or store the LOWER of the string"
    elif any(call.op == _FLOATS_JOINED for call in calls):
        what = "joins by FLOAT or DOUBLE columns, which cannot be stored"
        instead = "join by columns of another type"
    raise DefinitionNotSupported(InputCode.EXPRESSION_NOT_SUPPORTED, f"{where} {what}: {instead}")


def _refuse_opaque_groups(relations: tuple[Relation, ...]) -> None:
    """What is grouped below is computed at each refresh, too."""
    for groups in (relation.groups for relation in relations if relation.groups is not None):
        _refuse_opaque_groups(groups.relations)
        for column in groups.columns:
            _refuse_opaque(column.expr, "a column of a subquery")
        conditions = (p for join in groups.outer for p in join.conditions())
        for condition in (*groups.predicates, *conditions):
            _refuse_opaque(condition, "the WHERE or ON clause of a subquery")
