"""Top-k caches: `ORDER BY keys LIMIT n` answers the same rows in the same order, `LIMIT k` with
k ≤ n, and nothing else.

What the cache left out is unknown, so between its rows and the query's LIMIT only such operators
may stand as a limit moves below (`matcher.model.limits`): a projection, not a filter, not an
aggregate. Ties at the edge are any rows that Spark may return. The query's keys may be the first
ones of the cache's: rows that are equal by them may come in any order, so in the cache's as well.
Without ORDER BY any k rows of the same filter and groups are right, so the first k of a cache are:
it has them, or all there are.
"""

from __future__ import annotations

from matcher.model.expr import columns
from matcher.model.ir import SortKey
from matcher.model.limits import RULES, Operator, Push, Tail, covers
from matcher.model.message import Arg, CacheName, Message, Number, Sql, TableName, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.predicates.context import PredicateContext
from matcher.rules.attempt import PlanAttempt, Refused, ViewAttempt, spell


def refuse_unlimited(attempt: PlanAttempt) -> PlanAttempt:
    """The cheap part, before anything else is looked at: a cache of the first n rows serves
    queries for at most n rows alone.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: LIMIT_NOT_CONTAINED.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, qty FROM sales ORDER BY qty DESC LIMIT 100",
    ...     "SELECT id FROM sales ORDER BY qty DESC LIMIT 1000",
    ... )
    LIMIT_NOT_CONTAINED: cache c holds the first 100 rows alone, the query asks for the
    first 1000
    """
    stored = attempt.view.plan.limit
    if stored is None:
        return attempt
    block = attempt.query.block
    tail = Tail(block.limit, block.offset or 0)
    if not covers(stored, tail):
        if tail.reach is None:
            raise _refused(
                attempt,
                "cache {cache} holds the first {stored} rows alone, the query asks for all rows",
                "declare it without LIMIT",
                stored=Number(stored),
            )
        raise _refused(
            attempt,
            "cache {cache} holds the first {stored} rows alone, the query asks for the first "
            "{asked}",
            "raise its LIMIT to {asked}",
            stored=Number(stored),
            asked=Number(tail.reach),
        )
    return attempt


def contain_limit(attempt: ViewAttempt) -> ViewAttempt:
    """Check that nothing but a projection stands between a top-k cache and the query's LIMIT.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: LIMIT_NOT_CONTAINED.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, qty FROM sales ORDER BY qty DESC LIMIT 100",
    ...     "SELECT id FROM sales ORDER BY qty DESC LIMIT 10",
    ... )
    SELECT `id` FROM c ORDER BY `qty` DESC NULLS LAST LIMIT 10
    >>> answer(
    ...     "SELECT id, qty FROM sales ORDER BY qty DESC LIMIT 100",
    ...     "SELECT id FROM sales WHERE qty > 3 ORDER BY qty DESC LIMIT 10",
    ... )
    LIMIT_NOT_CONTAINED: cache c holds the first rows alone, and the query puts the filter
    (qty > 3) below its LIMIT: the rows kept below may all be filtered out
    """
    if attempt.view.plan.limit is None:
        return attempt
    for operator, what in _between(attempt):
        rule = RULES[operator]
        if rule.limit is not Push.MOVE:
            raise _refused(
                attempt,
                "cache {cache} holds the first rows alone, and the query puts {what} below its "
                "LIMIT: {why}",
                "give the cache the query's filter and groups, or declare it without LIMIT",
                what=what,
                why=Word(rule.why),
            )
    wanted, stored = attempt.query.order_by, attempt.view.order_by
    if len(wanted) > len(stored):
        missing = " and ".join(map(_spell_key, wanted[len(stored) :]))
        raise _refused(
            attempt,
            "cache {cache} is ordered by {stored}, the query by {missing} as well",
            "order both by the same keys: ORDER BY {wanted}",
            stored=Sql(_spell_keys(stored)),
            missing=Sql(missing),
            wanted=Sql(_spell_keys(wanted)),
        )
    for mine, theirs in zip(wanted, stored, strict=False):
        if not _same_key(mine, theirs, attempt.context):
            raise _refused(
                attempt,
                "cache {cache} is ordered by {theirs} where the query is by {mine}",
                "order both by the same keys: ORDER BY {wanted}",
                theirs=Sql(_spell_key(theirs)),
                mine=Sql(_spell_key(mine)),
                wanted=Sql(_spell_keys(wanted)),
            )
    return attempt


def _between(attempt: ViewAttempt) -> list[tuple[Operator, Arg]]:
    found: list[tuple[Operator, Arg]] = []
    if attempt.shared.extra:
        names = [attempt.query.relation(rel).name for rel in attempt.shared.extra]
        found.append(
            (Operator.INNER_JOIN, Message("a join with {tables}", tables=listed(TableName, names)))
        )
    # the key by which a table is joined once more loses no row
    own = [f for f in attempt.compensating() if all(c.rel == 0 for c in columns(f))]
    if attempt.shared.pending or own:
        filters = " AND ".join(spell(f) for f in attempt.shared.pending or own)
        found.append((Operator.FILTER, Message("the filter {sql}", sql=Sql(filters))))
    if attempt.groups.regroup or attempt.query.block.grouping_sets is not None:
        found.append((Operator.AGGREGATE, Word("an aggregation")))
    if attempt.carried.having:
        having = " AND ".join(spell(h) for h in attempt.carried.having)
        found.append((Operator.FILTER, Message("HAVING {sql}", sql=Sql(having))))
    return found


def _same_key(mine: SortKey, theirs: SortKey, context: PredicateContext) -> bool:
    return (
        mine.ascending == theirs.ascending
        and mine.nulls_first == theirs.nulls_first
        and context.canonical(mine.expr) == context.canonical(theirs.expr)
    )


def _spell_key(key: SortKey) -> str:
    direction = "ASC" if key.ascending else "DESC"
    return f"{spell(key.expr)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _spell_keys(keys: tuple[SortKey, ...]) -> str:
    return ", ".join(map(_spell_key, keys))


def _refused(
    attempt: PlanAttempt | ViewAttempt, template: str, remedy: str, /, **args: Arg
) -> Refused:
    cache = CacheName(attempt.view.name)
    return Refused(Reason(ReasonCode.LIMIT_NOT_CONTAINED, template, remedy, cache=cache, **args))
