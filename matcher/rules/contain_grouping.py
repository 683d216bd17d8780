"""Grouping: the query's groups are unions of the cache's; decide whether they must be aggregated
again.

They are the very same groups if the query's keys (and the values it pins) determine every key of
the view. Then measures are taken as
they are stored, which also lets in what never rolls up: DISTINCT aggregates, floating point sums,
moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matcher.model.expr import Call, Col, Expr, Lit, aggregates
from matcher.model.ir import SET_KEY_PREFIX
from matcher.model.message import CacheName, Sql
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, is_collated
from matcher.rules.attempt import Groups, PlanAttempt, Refused, ViewAttempt, may_be_error, spell
from matcher.rules.derive_columns import derive, determined


def refuse_invisible_aggregate(attempt: PlanAttempt) -> PlanAttempt:
    """A global aggregate that shows no aggregate has no SELECT without GROUP BY that returns its
    one row.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: UNSUPPORTED_EXPRESSION for such a query.

    >>> from matcher.examples import answer
    >>> answer("SELECT id FROM sales", "SELECT 1 AS one FROM sales HAVING COUNT(*) > 0")
    UNSUPPORTED_EXPRESSION: a GROUP BY whose aggregates are never used
    """
    query = attempt.query
    if query.group_keys == () and not any(aggregates(o.expr) for o in query.outputs):
        raise Refused(
            Reason(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "a GROUP BY whose aggregates are never used",
                "use one of its aggregates, or write SELECT without FROM",
            )
        )
    return attempt


def contain_grouping(attempt: ViewAttempt) -> ViewAttempt:
    """Find the `groups`.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: CACHE_IS_AGGREGATED, GROUPING_SETS_IN_QUERY or GLOBAL_AGGREGATE_ON_EMPTY.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY item, store",
    ...     "SELECT item, COUNT(*) AS n FROM sales WHERE store = 3 GROUP BY item",
    ... )
    SELECT `item`, `n` FROM c WHERE (`store` = 3)
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY item, store",
    ...     "SELECT item, COUNT(*) AS n FROM sales GROUP BY item",
    ... )
    SELECT `item`, SUM(`n`) AS `n` FROM c GROUP BY `item`
    >>> answer("SELECT item, COUNT(*) AS n FROM sales GROUP BY item", "SELECT id FROM sales")
    CACHE_IS_AGGREGATED: cache c holds groups, the query asks for single rows
    """
    query, view = attempt.query, attempt.view
    if query.group_keys is None:
        if view.keys is not None:
            raise Refused(
                Reason(
                    ReasonCode.CACHE_IS_AGGREGATED,
                    "cache {cache} holds groups, the query asks for single rows",
                    "declare a cache without GROUP BY for such queries",
                    cache=CacheName(view.name),
                )
            )
        return attempt
    _refuse_collated(query.group_keys)
    keys: dict[Expr, Expr] = {}
    for key in query.group_keys:
        found = derive(attempt, key, "group by", constants=True)
        if found is not None:
            keys[attempt.context.canonical(key)] = found
    groups = Groups(keys) if query.block.grouping_sets is None else _set_groups(attempt, keys)
    if view.keys is None:
        return replace(attempt, groups=replace(groups, regroup=True))
    if query.group_keys and not view.keys:
        raise Refused(
            Reason(
                ReasonCode.GLOBAL_AGGREGATE_ON_EMPTY,
                "cache {cache} returns one row for empty input; a grouped query returns none",
                "add the query's keys to the GROUP BY of {cache}",
                cache=CacheName(view.name),
            )
        )
    # a table that is joined to the groups may repeat them, and so do grouping sets
    repeated = attempt.shared.extra or query.block.grouping_sets is not None
    same = not repeated and _same_groups(attempt, keys)
    regroup = attempt.must_regroup or not same or _may_show_minus_zero(attempt, groups)
    return replace(attempt, groups=replace(groups, regroup=regroup, same=same))


def _refuse_collated(keys: tuple[Expr, ...]) -> None:
    """Of the strings that a collation puts in one group Spark shows the first that it comes by."""
    for key in keys:
        if is_collated(key.type):
            raise Refused(
                Reason(
                    ReasonCode.UNSUPPORTED_EXPRESSION,
                    "any of the strings may be shown that {key} takes for one",
                    "group by a string without a collation, such as its LOWER",
                    key=Sql(spell(key)),
                )
            )


def _set_groups(attempt: ViewAttempt, derived: Mapping[Expr, Expr]) -> Groups:
    """With grouping sets a key is NULL in the sets without it, while aggregates still see its
    values: so each key is a column of its own, beside what it is made of."""
    keys = attempt.query.group_keys or ()
    canonical = [attempt.context.canonical(key) for key in keys]
    if len(set(canonical)) < len(canonical):
        raise Refused(
            Reason(
                ReasonCode.GROUPING_SETS_IN_QUERY,
                "two keys of the grouping sets are always equal, and not in the same sets",
                "group by one of them",
            )
        )
    complete = all(key in derived for key in canonical)  # else `refuse_missing` names what lacks
    return Groups(
        {
            key: Col(0, f"{SET_KEY_PREFIX}{i}", original.type)
            for i, (key, original) in enumerate(zip(canonical, keys, strict=True))
            if key in derived
        },
        set_keys=tuple(derived[key] for key in canonical) if complete else (),
    )


def _may_show_minus_zero(attempt: ViewAttempt, groups: Groups) -> bool:
    """Spark groups -0.0 with 0.0 and shows 0.0: so do stored keys, but a FLOAT or DOUBLE that is
    computed from them, or fetched by a join, shows what it is until it is grouped."""
    grouped = {column.name for _, column in attempt.view.stored(attempt.grouping_set)}
    return any(
        any(kind in key.type for kind in FLOATS)
        and not isinstance(key, Lit)
        and not (isinstance(key, Col) and key.rel == 0 and key.name in grouped)
        for key in groups.keys.values()
    )


def _same_groups(attempt: ViewAttempt, keys: Mapping[Expr, Expr]) -> bool:
    query, view = attempt.query, attempt.view
    if not query.group_keys:  # one row even over no rows: only another global aggregate has that
        return not view.keys and not attempt.compensating()
    if may_be_error(attempt, (key for key in keys if key not in attempt.available)):
        return False  # it follows from the cache's keys, and is worked out all the same
    others = [canonical for canonical in attempt.available if canonical not in keys]
    if not others:
        return True
    left = [canonical for canonical in others if attempt.context.constant(canonical) is None]
    fixed = _fixed_by_equality(attempt)
    attempt.notes.groups_by_constants = any(other not in fixed for other in others)
    if not left:
        return True
    given = determined(attempt, keys)
    if not all(canonical in given for canonical in left):
        return False
    attempt.notes.joins_used += given.joins_used
    return True


def _fixed_by_equality(attempt: ViewAttempt) -> set[Expr]:
    """What the query says is equal to a constant, whichever that is."""
    found: set[Expr] = set()
    for part in attempt.context.conjuncts:
        if isinstance(part, Call) and part.op == "eq":
            left, right = part.args
            if isinstance(right, Lit) != isinstance(left, Lit):
                found.add(attempt.context.canonical(left if isinstance(right, Lit) else right))
    return found
