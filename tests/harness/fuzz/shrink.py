"""Makes a wrong pair small: drop parts of the query and of the cache while it stays wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from cachemgr.errors import CacheManagerError
from cachemgr.text.offline import prepare
from matcher.model.errors import MatcherError
from tests.harness.fuzz.decide import Accepted, Prepared, decide
from tests.harness.fuzz.spec import smaller
from tests.harness.fuzz.world import World

_TRIES = 150
_NUMBERS = count()  # no name twice: the judge keeps a cache's rows by its name


def shrink(world: World, judge: Any, pair: Accepted) -> Accepted:
    """The smallest pair found that is still accepted and wrong."""
    tries = 0
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(world, pair):
            tries += 1
            if tries > _TRIES:
                return pair
            if judge.judge(world, [candidate])[0].outcome == "wrong":
                pair, changed = candidate, True
                break
    return pair


def _candidates(world: World, pair: Accepted) -> Iterator[Accepted]:
    for spec in smaller(pair.spec):
        found = _decided(pair.cache, spec)
        if found is not None:
            yield found
    cache = pair.cache.cache
    for spec in smaller(cache.spec):
        made = replace(cache, spec=spec, name=f"{cache.name.split('_')[0]}_{next(_NUMBERS)}")
        try:
            workspace = prepare(world.ddl, world.joins + made.statement, world.conf)
        except (CacheManagerError, MatcherError):
            continue
        found = _decided(Prepared(made, workspace, workspace.stored[made.name]), pair.spec)
        if found is not None:
            yield found


def _decided(cache: Prepared, spec: Any) -> Accepted | None:
    try:
        found = decide(cache, spec)
    except (IndexError, AssertionError):
        return None
    return found if isinstance(found, Accepted) else None
