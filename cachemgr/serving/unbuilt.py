"""Caches of which only the declaration is there: what they would answer if they were fresh."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cachemgr.access.grants import keys_of_relations
from cachemgr.base_state import TableAt
from cachemgr.config.judged.values import default_in_spark
from cachemgr.config.result_settings import SettingsComparer
from cachemgr.delta.past import UNKNOWN_PAST
from cachemgr.serving.eligibility import Checks
from cachemgr.serving.freshness import Histories
from cachemgr.serving.seen_tables import Seen
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind
from matcher.model.ir import CachePlan, Relation


def unbuilt(
    plan: CachePlan,
    seen: Seen,
    settings: frozenset[tuple[str, str]] = frozenset(),
    *,
    rewrite_enabled: bool = True,
) -> ServedCache:
    """A cache as if it had been refreshed from the very tables that a query sees.

    Args:
        plan: Its plan.
        seen: The tables by place.
        settings: Fingerprint of the settings that it would be refreshed under.
        rewrite_enabled: What was declared.
    """
    return ServedCache(
        id="",
        name=plan.name,
        plan=plan,
        location="",
        version=0,
        snapshot={place: tables[0].state for place, tables in seen.items()},
        freshness=FreshnessKind.UNLIMITED,
        max_staleness_seconds=None,
        rewrite_enabled=rewrite_enabled,
        settings=settings,
        principals=None,
        unvalidated=frozenset(join.name for join in plan.joins if not join.validated),
        reads=keys_of_relations((relation.key, relation.name) for relation in plan.tables),
    )


def tables_of_nowhere(relations: Iterable[Relation]) -> dict[str, list[TableAt]]:
    """Tables that are only declared, as a query sees tables.

    Args:
        relations: The tables.
    """
    return {
        relation.key: [TableAt(relation.name, relation.key, relation.key, 0, 0)]
        for relation in relations
    }


def checks_of(caches: Collection[ServedCache]) -> Checks:
    """What eligibility asks where there are only declarations.

    Args:
        caches: The caches.
    """
    return Checks(
        {cache.name: cache for cache in caches}.get,
        SettingsComparer(default_in_spark),
        Histories(lambda table, version, *, columns_then: UNKNOWN_PAST),
        dict,
    )
