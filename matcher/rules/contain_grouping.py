"""Grouping: the query's groups are unions of the cache's; decide whether they must be aggregated
again.

They are the very same groups if the query's keys (and the values it pins) determine every key of
the view. Then measures are taken as
they are stored, which also lets in what never rolls up: DISTINCT aggregates, floating point sums,
moments.
"""

from __future__ import annotations

from matcher.reasons import Reason, ReasonCode
from matcher.rules.attempt import Attempt, Refused
from matcher.rules.derive_columns import derive


def contain_grouping(attempt: Attempt) -> None:
    """Fill `keys` (canonical query key → its derivation) and `regroup`.

    Raises:
        Refused: CACHE_IS_AGGREGATED, GROUPING_SETS_IN_QUERY or GLOBAL_AGGREGATE_ON_EMPTY.
    """
    query, view = attempt.query, attempt.view
    if query.group_keys is None:
        if view.keys is not None:
            raise Refused(
                Reason(
                    ReasonCode.CACHE_IS_AGGREGATED,
                    f"cache {view.name} holds groups, the query asks for single rows",
                    "declare a cache without GROUP BY for such queries",
                )
            )
        return
    if query.block.grouping_sets is not None:
        raise Refused(
            Reason(
                ReasonCode.GROUPING_SETS_IN_QUERY,
                "GROUPING SETS, CUBE or ROLLUP in the query",
                "query one grouping at a time",
            )
        )
    for key in query.group_keys:
        found = derive(attempt, key, "group by", constants=True)
        if found is not None:
            attempt.keys[attempt.context.canonical(key)] = found
    if view.keys is None:
        attempt.regroup = True
        return
    if query.group_keys and not view.keys:
        raise Refused(
            Reason(
                ReasonCode.GLOBAL_AGGREGATE_ON_EMPTY,
                f"cache {view.name} has one row even over no input, a grouped query has none then",
                f"add the query's keys to the GROUP BY of {view.name}",
            )
        )
    # a table that is joined to the groups may repeat them
    same = not attempt.extra and _same_groups(attempt)
    attempt.regroup = attempt.must_regroup or not same
    if attempt.regroup:
        attempt.steps.append("roll_up")


def _same_groups(attempt: Attempt) -> bool:
    query, view = attempt.query, attempt.view
    if not query.group_keys:  # one row even over no rows: only another global aggregate has that
        return not view.keys and not attempt.filters
    for canonical in attempt.available:
        if canonical not in attempt.keys and attempt.context.constant(canonical) is None:
            return False
    return True
