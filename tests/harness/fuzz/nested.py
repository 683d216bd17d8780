"""A cache over a cache, as far as the text door goes: the rewritten text of a hit is a query over
the first cache's table, and is answered in turn from a cache over that table.

The judge compares the query's own rows with those of the second rewrite. A session decides a query
once: there a nested cache is served where the query names the first cache's table.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from cachemgr.errors import CacheManagerError
from cachemgr.text.offline import Workspace, answer, prepare
from matcher.model.errors import MatcherError
from matcher.model.ir import CachePlan
from matcher.model.types import INTEGRAL
from tests.harness.fuzz.caches import Cache
from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.decide import Accepted, Prepared
from tests.harness.fuzz.spec import Spec
from tests.harness.fuzz.world import World

_SIMPLE = re.compile(r"(tiny|small|big)?int|decimal\(\d+,\d+\)|date|timestamp|string|boolean")


def nested(rng: Random, world: World, pair: Accepted, number: int) -> Accepted | None:
    """`pair` answered from a cache over its cache's table, the world's of that number; None where
    that is no hit."""
    base = pair.cache
    if pair.spec.wrap != "{}" or base.cache.spec.limit is not None or pair.more:
        return None
    plan = base.workspace.plans[base.cache.name]
    if any(f"`{name}`" in pair.rewritten for name in _undeclared(plan)):
        return None  # the second text would be about a table that lacks what the first one reads
    name = f"{base.cache.name}n{number}"
    select = _definition(rng, plan)
    if select is None:
        return None
    columns = ", ".join(f"`{n}` {t}" for n, t, _ in _columns(plan))
    ddl = f"{world.ddl}\nCREATE TABLE {plan.name} ({columns});\n"
    statement = f"CREATE RELATIONAL CACHE {name} AS {select};"
    try:
        workspace = prepare(ddl, statement, world.conf)
        found = answer(workspace, pair.rewritten)
    except (CacheManagerError, MatcherError):
        return None
    if not found.rewrites:
        return None
    steps = found.rewrites[0].steps
    return replace(
        pair,
        rewritten=found.sql,
        steps=(*pair.steps, *(f"nested: {s}" for s in steps)),
        tags=pair.tags | tags("whole.nested_cache"),
        more=(base, _prepared(name, select, workspace, plan.name)),
        nested=select.replace(plan.name, "base"),
    )


def _prepared(name: str, select: str, workspace: Workspace, base: str) -> Prepared:
    made = Cache(name, Spec(wrap=select), (), ())
    return Prepared(made, workspace, workspace.stored[name], base)


def _undeclared(plan: CachePlan) -> set[str]:
    """What the cache stores and a nested cache's table is not declared with: arrays, sketches."""
    stored = {c.name for c in (*(plan.keys or ()), *plan.columns)} | {m.name for m in plan.measures}
    return stored - {name for name, _, _ in _columns(plan)}


def _columns(plan: CachePlan) -> list[tuple[str, str, bool]]:
    """Name, type and whether it is a measure, of what the cache's table stores."""
    found = [(c.name, c.expr.type, False) for c in (*(plan.keys or ()), *plan.columns)]
    found += [(m.name, m.agg.type, True) for m in plan.measures]
    if plan.is_cube:
        found.append(("__grouping_id", "bigint", False))
    return [c for c in found if _SIMPLE.fullmatch(c[1])]


def _definition(rng: Random, plan: CachePlan) -> str | None:
    stored = _columns(plan)
    keys = [n for n, _, measure in stored if not measure and rng.random() < 0.9]
    if plan.keys is None or rng.random() < 0.3:
        kept = [n for n, _, _ in stored if rng.random() < 0.95]
        items = ", ".join(f"`{n}` AS x{i}" for i, n in enumerate(kept))
        return f"SELECT {items} FROM {plan.name}" if kept else None
    items = [f"`{n}` AS x{i}" for i, n in enumerate(keys)]
    for number, (name, type_, measure) in enumerate(stored):
        if measure and (type_ in INTEGRAL or type_.startswith("decimal")):
            items.append(f"SUM(`{name}`) AS s{number}")
        if measure:
            items += [f"MIN(`{name}`) AS a{number}", f"MAX(`{name}`) AS b{number}"]
    if not items:
        return None
    group = f" GROUP BY {', '.join(f'`{n}`' for n in keys)}" if keys else ""
    return f"SELECT {', '.join(items)} FROM {plan.name}{group}"
