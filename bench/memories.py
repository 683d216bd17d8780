"""What each memory of the matcher saves: times with it switched off as multiples of those with it.

A layer whose multiples are all near 1 does not pay for its lines. What is timed is that of
`bench.match_latency`, by turns with and without each layer, so that a busy machine slows both. The
memories that save space, not time, are not here (`matcher.model.hash_consing`), nor is `lru_cache`
around single functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from bench.match_latency import answer, timed
from bench.population import plan_document, registry_of
from bench.results import Figure, percentile
from matcher.catalyst.templates import PlanDocument, PlanShapes
from matcher.index.registry import Registry
from matcher.memory.decisions import Seen, Served, Shapes
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates import truth
from matcher.predicates.context import PredicateContext

# 30 of them reach the last check, as of any larger number
_CACHES: Final = 100
_ROUNDS: Final = 4
_FIRST: Final = 20
_SEEN: Final = 150


def _plan_templates() -> AbstractContextManager[Any]:
    return patch.object(PlanShapes, "read", lambda shapes, text: PlanDocument(json.loads(text)))


def _decisions() -> AbstractContextManager[Any]:
    return patch.object(Shapes, "get", lambda shapes, shape, tables: None)


def _misses() -> AbstractContextManager[Any]:
    return patch.object(Seen, "missed", lambda seen, block, constants: None)


def _filled_rewrites() -> AbstractContextManager[Any]:
    return patch.object(Served, "filled", lambda served, constants: None)


def _canonical_expressions() -> AbstractContextManager[Any]:
    def canonical(context: Any, expr: Any) -> Any:
        known = context._settled.get(expr)
        return context._canonicalise(expr) if known is None else known

    @contextmanager
    def off() -> Iterator[None]:
        kept = PredicateContext.canonical
        settle_on = PredicateContext.settle_on

        def settle(context: Any, exprs: Any) -> None:  # what a cache settles on is no memory
            with patch.object(PredicateContext, "canonical", kept):
                settle_on(context, exprs)

        with (
            patch.object(PredicateContext, "canonical", canonical),
            patch.object(PredicateContext, "settle_on", settle),
        ):
            yield

    return off()


class _Forgetful(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        return


def _domains() -> AbstractContextManager[Any]:
    return patch.object(truth, "_read", _Forgetful())


def _removals() -> AbstractContextManager[Any]:
    return patch.object(PreparedPlan, "removals", property(lambda plan: {}))


_LAYERS: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "plan templates": _plan_templates,
    "decisions by shape": _decisions,
    "misses by shape": _misses,
    "filled rewrites": _filled_rewrites,
    "canonical expressions": _canonical_expressions,
    "domains of predicates": _domains,
    "tables left out of a cache": _removals,
}


class _World:
    """A registry and what it remembers, timed."""

    def __init__(self) -> None:
        self._registry: Final[Registry] = registry_of(_CACHES)
        self._shapes: Final = PlanShapes()
        self._hits: Final = [plan_document("AMERICA", 1992 + i % 7) for i in range(7)]
        # a measure that no cache stores
        self._misses: Final = [t.replace("lo_supplycost", "lo_tax") for t in self._hits]
        self.times: Final[dict[str, list[float]]] = {"first": [], "seen": [], "missed": []}

    def round(self) -> None:
        """Some more of each."""
        self.times["first"] += timed(self._first, _FIRST)
        for i in range(len(self._hits)):  # what a first sight forgot
            self._again(i)
            self._missed(i)
        self.times["seen"] += timed(self._again, _SEEN)
        self.times["missed"] += timed(self._missed, _SEEN)

    def _first(self, i: int) -> None:
        self._registry.forget_decisions()
        answer(self._registry, PlanShapes(), self._hits[i % len(self._hits)], hit=True)

    def _again(self, i: int) -> None:
        answer(self._registry, self._shapes, self._hits[i % len(self._hits)], hit=True)

    def _missed(self, i: int) -> None:
        answer(self._registry, self._shapes, self._misses[i % len(self._misses)], hit=False)


def run() -> list[Figure]:
    """All figures of this module."""
    figures: list[Figure] = []
    for name, switched_off in _LAYERS.items():
        on = _World()
        with switched_off():
            off = _World()
        for _ in range(_ROUNDS):
            on.round()
            with switched_off():
                off.round()
        for what, share in (("seen", 0.5), ("seen", 0.99), ("missed", 0.5), ("first", 0.5)):
            label = {"seen": "seen before", "missed": "miss seen before", "first": "first sight"}
            ratio = percentile(off.times[what], share) / percentile(on.times[what], share)
            figures.append(Figure(f"without {name}: {label[what]} p{share * 100:.0f}", ratio, "x"))
    return figures
