"""Definitions as people write them: outputs computed of aggregates and keys, constants, a key
selected twice, HAVING."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.harness.fuzz.caches import Cache
from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.spec import Item, Piece, Spec

_SHARE = 0.35
_COMPARED = ("SUM(", "COUNT(", "MIN(", "MAX(")


def as_written(cache: Cache) -> Cache:
    """A cache with other outputs over the same keys and aggregates now and then, or with HAVING; by
    a chance of its own, so that the other draws of a seed stay what they are.

    Args:
        cache: As it was drawn.
    """
    spec = cache.spec
    rng = Random(f"{cache.name} {spec.sql()}")
    if spec.limit is not None or rng.random() >= _SHARE:
        return cache
    items: list[Item] = []
    for item in spec.items:
        items.append(_computed(rng, spec, item) if rng.random() < 0.5 else item)
        if rng.random() < 0.2:
            items.append(replace(item, name=f"{item.name}_again"))
    if rng.random() < 0.4:
        items.append(Item(Piece("'all'"), "kind", -1))
    found = spec.tags | tags("whole.computed_output")
    having: tuple[Piece, ...] = ()
    if spec.keys and spec.sets is None and rng.random() < 0.5:
        having = (_condition(rng, spec),)
        found |= tags("whole.having_cache")
    return replace(cache, spec=replace(spec, items=tuple(items), having=having, tags=found))


def _computed(rng: Random, spec: Spec, item: Item) -> Item:
    text = item.piece.text
    if spec.keys is None or item.key is not None:
        text = rng.choice([f"({text}) IS NULL", f"CASE WHEN ({text}) IS NOT NULL THEN 1 END"])
    else:
        text = rng.choice([f"CASE WHEN COUNT(*) > 0 THEN {text} END", f"({text}) IS NULL"])
    return Item(Piece(text, item.piece.tags), item.name, item.key)


def _condition(rng: Random, spec: Spec) -> Piece:
    numbers = [i.piece.text for i in spec.items if i.piece.text.startswith(("SUM(", "COUNT("))]
    rest = [i.piece.text for i in spec.items if i.piece.text.startswith(_COMPARED)]
    kind = rng.random()
    if numbers and kind < 0.5:
        text = f"{rng.choice(numbers)} {rng.choice(['>', '>=', '<', '<>'])} {rng.randint(0, 3)}"
    elif rest and kind < 0.7:
        text = f"{rng.choice(rest)} IS NOT NULL"
    else:
        text = f"COUNT(*) {rng.choice(['>', '>=', '<'])} {rng.randint(1, 3)}"
    return Piece(text, tags("whole.having"))


def having_of_queries(rng: Random, cache: Cache, own: list[Piece]) -> list[Piece]:
    """What a query near a cache with HAVING says of its groups: mostly what the cache says, the
    same or near it, and what it says itself.

    Args:
        rng: Random numbers.
        cache: The cache.
        own: The query's own conditions.
    """
    found = [piece for piece in cache.spec.having if rng.random() < 0.9]
    if found and rng.random() < 0.4:
        words = found[0].text.split(" ")
        if words[-1].isdigit():
            near = " ".join([*words[:-1], str(int(words[-1]) + rng.choice([-1, 1, 1, 2]))])
            found[0] = replace(found[0], text=near)
    return [*found, *own]
