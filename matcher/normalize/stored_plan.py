"""From the block of a cache's definition to what is stored: keys, measures, hidden columns,
distinct grouping sets.

A cache stores more than its SELECT shows: a row count for each group, the count of non-null
arguments of nullable sums, and SUM and COUNT of every AVG, because AVG never rolls up from AVG
(docs/contract.md). Grouping sets that the DDL repeats are stored once; `__grouping_id` has Spark's
own numbering, bit by bit in the order of the GROUP BY list, the first key highest.
"""

from __future__ import annotations

from dataclasses import replace

from matcher.model.errors import DefinitionNotSupported, InputCode
from matcher.model.expr import (
    CHAR_PADDING,
    OPAQUE_PREFIX,
    Agg,
    Call,
    Expr,
    Lit,
    aggregates,
    is_opaque,
    walk,
)
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
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
from matcher.render.select import readable

_FORBIDDEN_IN_NAMES = frozenset(" ,;{}()\n\t=")
# What Spark's NormalizeFloatingNumbers puts around join keys, as a call that has no meaning here.
_FLOATS_JOINED = f"{OPAQUE_PREFIX}KnownFloatingPointNormalized"


def plan_definition(
    name: str, block: Block, joins: tuple[RecordPreservingJoin, ...] = ()
) -> CachePlan:
    """The plan of a cache that materialises `block`.

    Args:
        name: the cache's name, as shown and as read in rewritten SQL.
        block: the normalised definition; HAVING and OFFSET are refused, ORDER BY and LIMIT are
            taken together only: a cache of the first rows.
        joins: record-preserving joins known to hold at the cache's snapshot.

    Raises:
        DefinitionNotSupported: names the construct and what to write instead.
    """
    _refuse_tail_clauses(block)
    for predicate in (*block.predicates, *(p for j in block.outer for p in j.conditions())):
        _refuse_opaque(predicate, "the WHERE or ON clause")
    _refuse_opaque_groups(block.relations)
    _refuse_unstored_order(block)
    if block.group_keys is None:
        columns = tuple(StoredColumn(o.name, o.expr) for o in block.outputs)
        _check_names([c.name for c in columns])
        for output in block.outputs:
            _refuse_opaque(output.expr, f"output column {output.name}")
        return CachePlan(
            name=name,
            relations=block.relations,
            predicates=block.predicates,
            outer=block.outer,
            keys=None,
            columns=columns,
            visible=tuple(c.name for c in columns),
            joins=joins,
            order_by=block.order_by,
            limit=block.limit,
        )
    return replace(
        _plan_aggregate(name, block, block.group_keys, joins),
        order_by=block.order_by,
        limit=block.limit,
    )


def _plan_aggregate(
    name: str, block: Block, group_keys: tuple[Expr, ...], joins: tuple[RecordPreservingJoin, ...]
) -> CachePlan:
    shown_keys: dict[Expr, str] = {}
    measures: list[Measure] = []
    visible: list[str] = []
    for output in block.outputs:
        if _is_grouping_id(output.expr):
            continue
        visible.append(output.name)
        if output.expr in group_keys:
            if output.expr in shown_keys:
                raise DefinitionNotSupported(
                    InputCode.DUPLICATE_KEY_COLUMN,
                    f"group key {shown_keys[output.expr]} is selected again as {output.name}: "
                    "select it once",
                )
            shown_keys[output.expr] = output.name
        elif isinstance(output.expr, Agg):
            measures.append(Measure(output.name, output.expr))
        else:
            raise _not_a_column(output)
    _check_names(visible)
    for expr in group_keys:
        _refuse_opaque(expr, "a GROUP BY key")
        if isinstance(expr, Lit):
            raise DefinitionNotSupported(
                InputCode.CONSTANT_KEY,
                "a GROUP BY key is a constant, which groups nothing: leave it out",
            )
    for measure in measures:
        _refuse_opaque(measure.agg, f"output column {measure.name}")
    keys = tuple(
        StoredColumn(
            shown_keys.get(expr, f"{HIDDEN_PREFIX}key_{i}"), expr, hidden=expr not in shown_keys
        )
        for i, expr in enumerate(group_keys)
    )
    return CachePlan(
        name=name,
        relations=block.relations,
        predicates=block.predicates,
        outer=block.outer,
        keys=keys,
        measures=(*measures, *_hidden_measures(measures)),
        grouping_sets=_distinct_sets(block.grouping_sets, len(keys)),
        visible=tuple(visible),
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


def _hidden_measures(shown: list[Measure]) -> list[Measure]:
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


def _is_grouping_id(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "grouping_id"


def _not_a_column(output: Output) -> DefinitionNotSupported:
    if aggregates(output.expr):
        return DefinitionNotSupported(
            InputCode.EXPRESSION_OVER_AGGREGATES,
            f"output column {output.name} computes with aggregates: store the aggregates "
            "themselves "
            "(SUM, COUNT, …); queries that compute with them are answered all the same",
        )
    what = (
        "a constant" if isinstance(output.expr, Lit) else "neither a GROUP BY key nor an aggregate"
    )
    return DefinitionNotSupported(
        InputCode.OUTPUT_NOT_STORED,
        f"output column {output.name} is {what}: select group keys and aggregates only",
    )


def _refuse_tail_clauses(block: Block) -> None:
    for clause, present in (
        ("HAVING", bool(block.having)),
        ("ORDER BY without LIMIT", bool(block.order_by) and block.limit is None),
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


def _check_names(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise DefinitionNotSupported(
                InputCode.DUPLICATE_COLUMN,
                f"two output columns are named {name}: give each its own name with AS",
            )
        seen[name.lower()] = name
        if name.startswith(HIDDEN_PREFIX):
            raise DefinitionNotSupported(
                InputCode.RESERVED_COLUMN,
                f"output column {name} starts with {HIDDEN_PREFIX}, which is kept for hidden "
                "columns "
                f"such as {GROUPING_ID_COLUMN}: choose another name",
            )
        if _FORBIDDEN_IN_NAMES & set(name):
            raise DefinitionNotSupported(
                InputCode.UNNAMED_COLUMN,
                f"output column {name} has no name of its own, or one with blanks or brackets, "
                "which the cache's table cannot store: give it one with AS",
            )
