"""The rules by which a query is answered from a cache, in the order in which they are tried: cheap
refusals first.

The rules of a plan look at tables and predicates, once a cache; the rules of a view at columns,
groups and aggregates, once a grouping set. A rule returns the attempt with its own findings, or
raises `Refused` with the one reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.rules.attempt import PlanAttempt, ViewAttempt
from matcher.rules.carry_outputs import carry_outputs
from matcher.rules.contain_grouping import contain_grouping, refuse_invisible_aggregate
from matcher.rules.contain_having import contain_having, refuse_all_groups
from matcher.rules.contain_limit import contain_limit, refuse_unlimited
from matcher.rules.derive_columns import derive_filters, find_stored, refuse_missing
from matcher.rules.leave_out_tables import leave_out_tables
from matcher.rules.map_full_joins import without_full_joins
from matcher.rules.map_outer_joins import map_outer_joins, with_inner_joins
from matcher.rules.map_relations import ignore_extra_tables, join_absent_tables
from matcher.rules.restate_guards import restate_guards
from matcher.rules.subsume_predicates import refuse_minus_zero, subsume_predicates

PLAN_RULES: Final[tuple[Callable[[PlanAttempt], PlanAttempt], ...]] = (
    refuse_unlimited,
    refuse_all_groups,
    refuse_minus_zero,
    without_full_joins,
    with_inner_joins,
    leave_out_tables,
    join_absent_tables,
    map_outer_joins,  # knows which tables are joined
    ignore_extra_tables,  # nor are those of outer joins that do not matter
    subsume_predicates,
    refuse_invisible_aggregate,
)

VIEW_RULES: Final[tuple[Callable[[ViewAttempt], ViewAttempt], ...]] = (
    find_stored,
    derive_filters,  # first: later rules ask whether any is left
    contain_grouping,
    contain_having,  # knows whether the groups are aggregated again
    carry_outputs,  # needs the derived keys and whether the groups are aggregated again
    contain_limit,
    restate_guards,  # once it is known which tables are joined, and whether any filter is left
    refuse_missing,  # last, so that the reason names all that lacks and not just the first
)

__all__ = ["PLAN_RULES", "VIEW_RULES"]
