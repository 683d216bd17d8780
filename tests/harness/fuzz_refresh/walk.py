"""A random walk through the states of a world.

Not hypothesis' state machine: a step costs a third of a second and a world seconds, so its
shrinker, which runs hundreds of examples, does not end; its examples are counted, not timed; and
its steps are calls. A step that is plain data is the script of a failure, and can be done again
without the others. So steps are drawn here as data, and `shrink` does fewer and fewer of them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from tests.harness.fuzz_refresh import changes, queries
from tests.harness.fuzz_refresh.layouts import JOINS, LAYOUTS, OTHER_JOINS
from tests.harness.fuzz_refresh.live import World
from tests.harness.fuzz_refresh.shapes import SHAPES
from tests.harness.fuzz_refresh.steps import (
    CacheSpec,
    Declare,
    Manner,
    Refresh,
    Settings,
    Step,
    Walk,
)

_SET: Final = 0.25  # of the queries are asked in a session of other settings
_LAGGING: Final = "MAX STALENESS UNLIMITED"
_MODES: Final = (("AUTO", 6), ("", 3), ("FULL", 1), ("INCREMENTAL", 5), ("INCREMENTAL ONLY", 2))
_ALTER: Final = (
    "DISABLE REWRITE", "ENABLE REWRITE", "PAUSE", "RESUME", "SET REFRESH ON DEMAND INCREMENTAL",
    "SET REFRESH ON DEMAND AUTO", "SET TBLPROPERTIES ('note' = 'x')", "",
)  # fmt: skip
# The shapes of a walk, by its manner, where not all are of use to it: those whose stored rows take
# deletions, and those beside which appended rows can be read.
_SHAPES: Final = {
    Manner.APART: (
        "by_cat", "cube", "averages", "expressions", "left_join", "zoned", "semi", "ratios",
        "computed_keys",
    ),
    Manner.GROWING: tuple(SHAPES.keys() - {"top", "distinct_shops", "floats"}),
    Manner.JOINED: (
        "by_grp", "by_grp_of_item", "by_grp_and_item", "by_both", "cube", "joined_rows",
        "left_join", "zoned",
    ),
}  # fmt: skip


def beginning(
    rng: random.Random, manner: Manner | None = None, among: Collection[str] = ()
) -> Walk:
    """The tables and caches of a world, without steps.

    Args:
        rng: The source of chance.
        manner: How its steps will be drawn; None for any manner.
        among: Shapes of which it has one, where its tables and manner allow it.
    """
    drawn = rng.choices(tuple(Manner), (3, 4, 3, 2))[0]
    manner = manner or drawn
    joined = manner is Manner.JOINED
    layouts = tuple(name for name, layout in LAYOUTS.items() if layout.joins or not joined)
    layout = LAYOUTS[rng.choice(layouts)]
    there = frozenset(layout.tables)
    names = sorted(_SHAPES.get(manner, SHAPES))
    shapes = [SHAPES[name] for name in names if SHAPES[name].tables <= there]
    joining = [shape for shape in shapes if shape.over_fact() is not None]
    if layout.joins and len(joining) > 1 and rng.random() < 0.4:
        shapes = joining  # what is asked of the fact alone is theirs to answer, by their joins
    chosen = rng.sample(shapes, rng.randrange(2, min(5, len(shapes) + 1)))
    cubes = [shape for shape in shapes if shape.grouping]
    if cubes and rng.random() < 0.3 and not any(shape.grouping for shape in chosen):
        chosen[0] = rng.choice(cubes)  # some of its sets are replaced, others appended to
    wanted = [shape for shape in shapes if shape.name in among]
    if wanted and not any(shape in wanted for shape in chosen):
        chosen[-1] = rng.choice(wanted)
    for shape in tuple(chosen):
        if shape.over and SHAPES[shape.over[0]] not in chosen:
            chosen.append(SHAPES[shape.over[0]])
    # those that others are defined over come first
    chosen.sort(key=lambda s: s.over is not None)
    lagging = manner is Manner.WILD and rng.random() < 0.2
    specs = tuple(
        CacheSpec(s.name, _LAGGING if lagging and not n else "") for n, s in enumerate(chosen)
    )
    few_rows = rng.choice((None, -1, -1, 4, 4))
    pins, tails = rng.random() < 0.3, rng.random() < 0.5
    return Walk(layout.name, specs, pins=pins, tails=tails, few_rows=few_rows, manner=manner)


class Walker:
    """Draws the next step of a world from the state that it is in.

    Args:
        rng: The source of chance.
        world: The world; it is looked at, not changed.
    """

    def __init__(self, rng: random.Random, world: World) -> None:
        self.rng = rng
        self.world = world
        self.manner = world.walk.manner
        joined = self.manner is Manner.JOINED  # there what breaks a join goes again
        wild = not world.layout.joins or (not joined and rng.random() < 0.6)
        self.scene = changes.Scene(rng, world.layout, world.columns, wild)
        self._due: list[Step] = []
        # refreshed after each change, so that it is refreshed after each kind of change alone
        wild_one = self.manner is Manner.WILD and rng.random() < 0.6
        self._focus = self._cache() if wild_one else None

    def step(self) -> Step:
        """The next step."""
        if self._due:
            return self._due.pop(0)
        match self.manner:
            case Manner.WILD:
                return self._wild()
            case Manner.APART:
                return self._apart()
            case Manner.GROWING:
                return self._growing()
            case Manner.JOINED:
                return self._joined()

    def _apart(self) -> Step:
        change = self._undo() or self._change(changes.ROWS)
        if self.rng.random() < 0.2:  # two tables since the last refresh
            self._due.append(self._change(changes.DIMENSIONS))
        caches = [spec.shape for spec in self.world.walk.caches]
        # AUTO would mostly find that so few rows are computed anew at once
        refreshes = [Refresh(c, *self.rng.choices(("INCREMENTAL", "AUTO"), (9, 1))) for c in caches]
        self._due += [self._query(), *refreshes, self._query(), self._query()]
        return change

    def _growing(self) -> Step:
        if self.rng.random() < 0.12:
            return self._refresh()
        change = self._undo() or self._change(changes.GROWTH)
        self._due += [self._query() for _ in range(self.rng.randrange(3, 7))]
        return change

    def _joined(self) -> Step:
        change = self._undo() or (
            self._declare() if self.rng.random() < 0.25 else self._change(changes.JOINS)
        )
        for spec in self.world.walk.caches:
            mode = self.rng.choices(("INCREMENTAL", "AUTO", "FULL"), (7, 2, 1))[0]
            self._due += [self._query(spec.shape, 0.7), Refresh(spec.shape, mode)]
            self._due += [self._query(spec.shape, 0.7) for _ in range(2)]
        return change

    def _wild(self) -> Step:
        chance = self.rng.random()
        if chance < 0.03:
            return self._alter()
        if chance < 0.05 and self.world.layout.joins:
            return self._declare()
        if chance < 0.15:
            return self._refresh()
        if chance < 0.3:
            return self._query()
        change = self._undo() or self._change()
        if self._focus is not None:
            due = [self._query(self._focus), self._query()]
            self._due += [*due, self._refresh(self._focus), self._query(self._focus)]
            return change
        if self.rng.random() < 0.75:
            self._due += [self._query() for _ in range(self.rng.randrange(1, 3))]
        if self.rng.random() < 0.4:
            cache = self._cache()
            # else most queries would be misses while no hit includes what came since
            self._due += [self._refresh(cache), self._query(cache), self._query(cache)]
        return change

    def _undo(self) -> Step | None:
        waiting = self.scene.undo
        waiting[:] = [(left - 1, change) for left, change in waiting]
        for entry in waiting:
            if entry[0] <= 0:
                waiting.remove(entry)
                return entry[1]
        return None

    def _change(self, among: Mapping[changes.Draws, int] | None = None) -> Step:
        while True:
            change = changes.draw(self.scene, among)
            if change is not None:
                return change
            if not self.world.columns("sales"):
                return self._refresh()

    def _cache(self) -> str:
        return self.rng.choice(self.world.walk.caches).shape

    def _query(self, cache: str = "", fact_alone: float = queries.FACT_ALONE) -> Step:
        shape = SHAPES[cache or self._cache()]
        query = queries.draw(self.rng, shape, self.world.layout, fact_alone)
        if self.rng.random() > _SET:
            return query
        drawn = self.world.drawn
        draw = drawn.harmless if self.rng.random() < 0.7 else drawn.respelled
        return replace(query, settings=tuple(draw(self.rng).items()))

    def _refresh(self, cache: str = "") -> Step:
        modes, weights = zip(*_MODES, strict=True)
        return Refresh(cache or self._cache(), self.rng.choices(modes, weights)[0])

    def _declare(self) -> Step:
        name = self.rng.choice((*JOINS, "other"))
        if self.rng.random() < 0.15:
            return Declare((f"VALIDATE RECORD PRESERVING JOIN {name}",))
        statements = [f"DROP RECORD PRESERVING JOIN IF EXISTS {name}"]
        if self.rng.random() < 0.9:
            text = self.rng.choice((*JOINS.values(), *OTHER_JOINS))
            if name in JOINS and self.rng.random() < 0.5:
                text = JOINS[name]
            statements.append(f"CREATE RECORD PRESERVING JOIN {name} AS {text}")
        return Declare(tuple(statements))

    def _alter(self) -> Step:
        cache, words = self._cache(), self.rng.choice(_ALTER)
        if words == "DISABLE REWRITE":
            self._due.append(self._query())
            self._due.append(Settings(cache, "ENABLE REWRITE"))
        if words == "PAUSE":
            self._due.append(Settings(cache, "RESUME"))
        if not words:  # replaced: it holds nothing yet
            self._due.append(Refresh(cache))
        return Settings(cache, words)
