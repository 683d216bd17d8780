"""Which ways a refresh of a cache has after each kind of change of each of its base tables. Pure.

What EXPLAIN CREATE says before the first refresh: judged by the plan alone, as a refresh itself
will judge it (`incremental`), where one base table has changed in one way. What only the rows can
tell (how many groups a set has, what costs less, whether sums stay within 2^53) is told as a
condition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from cachemgr.refresh.by_change.incremental import FEW_ROWS, WORTH_IT, why_not_of
from cachemgr.refresh.by_change.why_full import WhyFull
from cachemgr.refresh.planning.plan import APPEND, PARTIALS, REPLACE
from cachemgr.vocabulary import RefreshMode
from matcher.model.ir import CachePlan, MatchOptions


class Change(StrEnum):
    """What may happen to the rows of a base table."""

    APPENDED = "rows appended"
    REMOVED = "rows removed or updated"


@dataclass(frozen=True, slots=True)
class OpenWays:
    """What a refresh can do after one kind of change of one base table.

    Args:
        table: The table's name.
        change: What happened to it, and nothing to the others.
        ways: `APPEND`, `REPLACE` and `PARTIALS`, as far as they are open; always also `FULL`, last.
        why: Why the change alone is not enough; None where it is.
        condition: What only the rows can tell, for people; empty if nothing.
    """

    table: str
    change: Change
    ways: tuple[str, ...]
    why: WhyFull | None = None
    condition: str = ""

    def told(self) -> str:
        """For people, one line."""
        if self.why is not None:
            return f"{self.ways[-1]}: {self.why}"
        return f"{' or '.join(self.ways[:-1])}{self.condition}"


def open_ways(plan: CachePlan, options: MatchOptions) -> tuple[OpenWays, ...]:
    """The ways of a cache's refreshes, by base table and kind of change.

    Args:
        plan: What it is to hold.
        options: The settings that it is refreshed under.
    """
    tables = {relation.key: relation.name for relation in plan.tables}
    return tuple(
        _ways(plan, place, name, change, options)
        for place, name in tables.items()
        for change in Change
    )


def _ways(
    plan: CachePlan, place: str, name: str, change: Change, options: MatchOptions
) -> OpenWays:
    full = RefreshMode.FULL.value
    why = why_full_after(plan, place, change, options)
    unproven = ""
    if why is not None:
        # A refresh proves it or not; before the first one nobody knows.
        proven = replace(plan, exact_sums=frozenset(m.name for m in plan.measures))
        if why_full_after(proven, place, change, options) is None:
            unproven = f", once a refresh has proven its sums small; FULL until then: {why}"
            why = None
    if why is not None:
        return OpenWays(name, change, (full,), why)
    dear = f", unless that costs more than {WORTH_IT:.0%} of FULL"
    if plan.keys is None:
        return OpenWays(name, change, (APPEND, full), condition=dear + unproven)
    if not plan.keys:
        return OpenWays(name, change, (REPLACE, full), condition=dear + unproven)
    sets = f" (where a set has more than {FEW_ROWS:,} groups)"
    return OpenWays(name, change, (REPLACE, PARTIALS, full), condition=sets + dear + unproven)


def why_full_after(
    plan: CachePlan, place: str, change: Change, options: MatchOptions
) -> WhyFull | None:
    """Why everything has to be computed after a change; None where the change alone is enough.

    The one place that knows which kinds of change a refresh can add.

    Args:
        plan: What the cache is to hold.
        place: Location of the table that changed.
        change: What happened to it.
        options: The settings that the cache is refreshed under.
    """
    return why_not_of(plan, place, options, signed=change is Change.REMOVED)
