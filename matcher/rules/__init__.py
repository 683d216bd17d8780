"""The compensations, in the order in which they are tried: cheap refusals first.

The rules of a plan look at tables and predicates, once a cache; the rules of a view at columns,
groups and aggregates, once a grouping
set. A rule raises `Refused` with the one reason, or leaves its part in the `Attempt`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.rules.attempt import Attempt
from matcher.rules.carry_outputs import carry_outputs
from matcher.rules.contain_grouping import contain_grouping
from matcher.rules.contain_limit import contain_limit, refuse_unlimited
from matcher.rules.derive_columns import derive_columns, refuse_missing
from matcher.rules.map_relations import map_relations
from matcher.rules.restate_guards import restate_guards
from matcher.rules.subsume_predicates import refuse_minus_zero, subsume_predicates

VIEW_RULES: Final[tuple[Callable[[Attempt], None], ...]] = (
    derive_columns,  # filters first: later rules ask whether any is left
    contain_grouping,
    carry_outputs,  # needs the derived keys and whether the groups are aggregated again
    contain_limit,
    restate_guards,  # once it is known which tables are joined, and whether any filter is left
    refuse_missing,  # last, so that the reason names all that lacks and not just the first
)

__all__ = [
    "VIEW_RULES",
    "Attempt",
    "map_relations",
    "refuse_minus_zero",
    "refuse_unlimited",
    "subsume_predicates",
]
