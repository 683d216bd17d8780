"""[NOT] EXISTS and [NOT] IN with a query in WHERE, as the SEMI and ANTI joins that they are.

Spark's RewritePredicateSubquery makes the same joins of them. A query that does more than select,
join and filter is a block of its own, and its test no part of the block around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from matcher.model.expr import Expr, columns, conjuncts
from matcher.model.ir import OuterJoin, Relation
from matcher.model.message import Arg, Message, Word
from matcher.model.reasons import ReasonCode
from matcher.model.types import INTEGRAL
from matcher.normalize.grouped_relations import as_relation
from matcher.normalize.in_subqueries import equal_to
from matcher.normalize.outer_joins import declared
from matcher.sql.expressions.aggregates import is_aggregate
from matcher.sql.expressions.coerce import cast_to, refuse_char
from matcher.sql.expressions.expr import ExprBuilder
from matcher.sql.expressions.scope import Scope, unsupported
from matcher.sql.expressions.types import TextSettings
from matcher.sql.from_clause import FromClause

# What changes neither which values are found nor whether there are any.
_PLAIN: Final = frozenset({"expressions", "from_", "joins", "where", "order", "distinct", "group"})
_SETS: Final = (exp.Cube, exp.Rollup, exp.GroupingSets)


@dataclass(frozen=True, slots=True)
class SubqueryTest:
    """One test: its query, the values of IN (None for EXISTS), and whether it is negated."""

    select: exp.Select
    values: tuple[exp.Expr, ...] | None
    negated: bool

    @property
    def word(self) -> str:
        """What it is called in a reason."""
        kind = "EXISTS" if self.values is None else "IN"
        return f"{'NOT ' if self.negated else ''}{kind} (subquery)"


def subquery_test(node: exp.Expr) -> SubqueryTest | None:
    """The test that a conjunct of WHERE is, None where it is none or only holds one."""
    node, negated = node.unnest(), False
    if isinstance(node, exp.Not):
        node, negated = node.this.unnest(), True
    if isinstance(node, exp.Exists):
        select, values = node.this, None
    elif isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Expr):
        select, left = node.args["query"], node.this.unnest()
        values = tuple(left.expressions) if isinstance(left, exp.Tuple) else (left,)
    else:
        return None
    while isinstance(select, exp.Subquery) and not any(
        value for key, value in select.args.items() if key != "this"
    ):
        select = select.this
    return SubqueryTest(select, values, negated) if isinstance(select, exp.Select) else None


def as_join(
    test: SubqueryTest, clause: FromClause, relations: list[Relation], settings: TextSettings
) -> OuterJoin:
    """The join that the test is.

    Args:
        test: a conjunct of WHERE.
        clause: the FROM of the query around it.
        relations: the tables so far; those of the test's query are added.
        settings: the session's.

    Raises:
        NotSupported: the query is more than a filtered join, or what it is compared by is not
            certain.
        SqlInputError: a name that nothing in scope has.
    """
    if test.values is not None and _is_grouped(test.select):
        return _groups_as_join(test, clause, relations, settings)
    _check_plain(test)
    first = len(relations)
    scope = Scope(clause.scope.text, outer=clause.scope, correlated=True)
    inner = FromClause(clause.queries, clause.ctes, scope, relations, grouped=True)
    inner.read(test.select)
    if inner.reasons:
        raise unsupported(
            inner.reasons[0].code,
            "{why}, in {test}",
            why=inner.reasons[0].fault,
            test=Word(test.word),
        )
    if inner.outer and test.values is not None and test.select.args.get("group") is not None:
        del relations[first:]
        return _groups_as_join(test, clause, relations, settings)
    if inner.outer:
        raise _refused(test, "of tables that are outer joined")
    on = list(inner.predicates)
    builder = ExprBuilder(scope, settings)
    for item in test.select.expressions:
        if not _is_star(item):
            builder.build(item)  # what is not known may aggregate, or make no row or two of one
    where = test.select.args.get("where")
    if where is not None:
        on += conjuncts(builder.predicate(where.this))
    if test.values is not None:
        on += _equalities(test, clause.scope, builder, first)
    elif not any(c.rel < first for part in on for c in columns(part)):
        raise _refused(test, "that does not refer to the query around it")
    outer_tables = range(first, len(relations))
    own = declared((c.expr for source in scope.sources for c in source.columns), outer_tables)
    return OuterJoin("anti" if test.negated else "semi", tuple(outer_tables), tuple(on), own)


def _is_grouped(select: exp.Select) -> bool:
    """True of a query that aggregates, or filters its groups."""
    if select.args.get("having") is not None:
        return True
    return any(is_aggregate(node) for item in select.expressions for node in item.walk())


def _groups_as_join(
    test: SubqueryTest, clause: FromClause, relations: list[Relation], settings: TextSettings
) -> OuterJoin:
    """The join with the groups of a query that is not correlated."""
    built = clause.queries.query(test.select, clause.ctes, clause.scope, "subquery in IN")
    if built.written is None or built.outputs is None:
        raise _refused(test, "that aggregates")
    found = as_relation(built.written, len(relations))
    right = [found.over(output.expr) for output in built.written.outputs]
    on = [*found.predicates, *_compared(test, clause.scope, right, settings)]
    own = declared(right, (len(relations),))
    relations.append(found.relation)
    return OuterJoin("anti" if test.negated else "semi", (len(relations) - 1,), tuple(on), own)


def _refused(test: SubqueryTest, template: str, /, **args: Arg) -> Exception:
    return unsupported(
        ReasonCode.UNSUPPORTED_OPERATOR,
        "{test} {what}",
        test=Word(test.word),
        what=Message(template, **args),
    )


def _check_plain(test: SubqueryTest) -> None:
    select = test.select
    beyond = [k for k, v in select.args.items() if v and k not in _PLAIN]
    if beyond:
        word = beyond[0].rstrip("_").replace("_", " ").upper()
        raise _refused(test, "with {clause}", clause=Word(word))
    distinct, group = select.args.get("distinct"), select.args.get("group")
    if distinct is not None and distinct.args.get("on") is not None:
        raise _refused(test, "with DISTINCT ON")
    if group is not None and (group.find(*_SETS) or group.args.get("all")):
        raise _refused(test, "with GROUPING SETS or ALL")
    if any(is_aggregate(node) for item in select.expressions for node in item.walk()):
        raise _refused(test, "that aggregates")


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star)


def _equalities(test: SubqueryTest, around: Scope, builder: ExprBuilder, first: int) -> list[Expr]:
    right: list[Expr] = []
    for item in test.select.expressions:
        if _is_star(item):
            raise _refused(test, "of *")
        right.append(builder.build(item))
    if any(c.rel < first for found in right for c in columns(found)):
        raise _refused(test, "of what the query around it gives")
    return _compared(test, around, right, builder.settings)


def _compared(
    test: SubqueryTest, around: Scope, right: list[Expr], settings: TextSettings
) -> list[Expr]:
    """The values of IN, each compared with what the query gives for it."""
    left = [ExprBuilder(around, settings).build(value) for value in test.values or ()]
    if len(left) != len(right):
        raise _refused(test, "of another number of columns")
    pairs = [_aligned(pair, settings) for pair in zip(left, right, strict=True)]
    return equal_to([value for value, _ in pairs], [found for _, found in pairs], test.negated)


def _aligned(pair: tuple[Expr, Expr], settings: TextSettings) -> tuple[Expr, Expr]:
    """Both sides of one type, where that is certain."""
    left, right = pair
    for side in pair:
        refuse_char(side)
    if left.type == right.type:
        return pair
    if left.type in INTEGRAL and right.type in INTEGRAL:
        wide = max(left.type, right.type, key=lambda name: INTEGRAL[name])
        return cast_to(left, wide, settings), cast_to(right, wide, settings)
    raise unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "IN (subquery) of {other} for {type}",
        other=Word(right.type),
        type=Word(left.type),
    )
