"""Random caches over a world: plain, filtered, aggregated, GROUPING SETS cubes, outer and self
joins, top-k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.measures import COUNT_STAR, Measure, bucket, key, measure
from tests.harness.fuzz.predicates import and_of_ors, deep_case, guard, predicate
from tests.harness.fuzz.roles import roles, self_joins
from tests.harness.fuzz.spec import Item, Join, Piece, Spec
from tests.harness.fuzz.world import Column, Link, World


@dataclass(frozen=True)
class Cache:
    """A cache's definition in parts. `columns` are those of its tables, `keys` the base columns of
    its keys (or, without aggregation, of its stored columns)."""

    name: str
    spec: Spec
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    measures: tuple[Measure, ...] = ()

    @property
    def statement(self) -> str:
        return f"CREATE RELATIONAL CACHE {self.name} AS {self.spec.sql()};"


def cache(rng: Random, world: World, name: str) -> Cache:
    """One cache; the caller drops it where the matcher refuses the definition."""
    joins, columns = _joins(rng, world)
    where = tuple(_filters(rng, columns))
    base = Spec(joins=joins, where=where, style=rng.choice(["on", "on", "comma"]))
    return over(rng, name, base, columns)


def over(
    rng: Random, name: str, base: Spec, columns: list[Column], *, may_limit: bool = True
) -> Cache:
    """A cache of rows, groups or grouping sets over joins and filters; no sets, and no first rows
    alone, unless `may_limit`."""
    kind = rng.random()
    if kind < 0.24:
        found = _plain(rng, name, base, columns)
        if may_limit:
            return found
        return replace(found, spec=replace(found.spec, order=(), limit=None))
    return _aggregated(rng, name, base, columns, cube=may_limit and kind > 0.72)


def _joins(rng: Random, world: World) -> tuple[tuple[Join, ...], list[Column]]:
    chosen = chosen_links(rng, world, 0.65)
    kind = rng.random()
    columns = world.columns(["f", *(k.right for k in chosen)])
    if kind < 0.04:
        return self_joins(rng, world)
    if kind < 0.08:
        on = Piece("f.f_i < d1.d1_id", tags("join.non_equi"))
        return (Join("INNER", "d1", "d1", (on,)),), world.columns(["f", "d1"])
    if kind < 0.12:
        return (Join("CROSS", "d1", "d1", ()),), world.columns(["f", "d1"])
    if kind < 0.17:
        return roles(rng, world)
    if kind < 0.36 and chosen:
        return _outer(rng, chosen), columns
    return tuple(link_join(k) for k in chosen), columns


def _outer(rng: Random, links: list[Link]) -> tuple[Join, ...]:
    kinds = ["LEFT", "LEFT", "LEFT", "FULL", "FULL", "RIGHT", "RIGHT", "LEFT SEMI", "LEFT SEMI",
             "LEFT ANTI", "LEFT ANTI"]  # fmt: skip
    first = rng.choice(kinds)
    if first in ("FULL", "RIGHT", "LEFT SEMI", "LEFT ANTI"):
        return (link_join(links[0], first),)
    return tuple(link_join(k, rng.choice(["LEFT", "INNER"])) for k in links)


def link_join(link: Link, kind: str = "INNER") -> Join:
    """The join of a link, with the tags that its kind and place have."""
    found = {"LEFT": "join.left", "RIGHT": "join.right", "FULL": "join.full",
             "LEFT SEMI": "join.semi", "LEFT ANTI": "join.anti"}.get(kind)  # fmt: skip
    names = [n for n in (found, "join.chain" if link.left != "f" else None) if n]
    return Join(kind, link.right, link.right, (Piece(link.on, tags(*names)),))


def chosen_links(rng: Random, world: World, share: float) -> list[Link]:
    """Some links, each with those on the way to it."""
    have = {"f"}
    chosen = []
    for link in world.links:  # parents first
        if link.left in have and rng.random() < share:
            have.add(link.right)
            chosen.append(link)
    return chosen


def _filters(rng: Random, columns: list[Column]) -> list[Piece]:
    found = [predicate(rng, columns) for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2]))]
    kept = guard(rng, columns) if rng.random() < 0.2 else None
    found = found if kept is None else [*found, kept]
    kind = rng.random()
    if kind < 0.04:
        found += and_of_ors(rng, columns)
    elif kind < 0.08:
        found += filter(None, [deep_case(rng, columns)])
    return found


def _plain(rng: Random, name: str, base: Spec, columns: list[Column]) -> Cache:
    usable = _visible(base, columns)
    stored = [c for c in usable if rng.random() < 0.9] or usable[:1]
    items = _whole_structs(rng, stored)
    if rng.random() < 0.25:
        extra = bucket(rng, rng.choice(usable))
        if extra.text not in {i.piece.text for i in items}:
            items.append(Item(extra, "x0"))
    spec = replace(base, items=tuple(items), tags=base.tags | tags("whole.plain_cache"))
    if rng.random() < 0.4:
        order = tuple(
            (i, rng.choice(["ASC", "DESC NULLS LAST", "DESC"])) for i in range(len(items))
        )
        spec = replace(spec, order=order, limit=rng.choice([3, 5, 10, 20]))
    return Cache(name, spec, tuple(usable), tuple(stored))


def _whole_structs(rng: Random, stored: list[Column]) -> list[Item]:
    """The columns as they are stored: fields alone, or the struct that they are in."""
    whole = {c.struct for c in stored if c.struct and rng.random() < 0.3}
    columns = [replace(c, name=c.struct) if c.struct in whole else c for c in stored]
    found = {_stored_name(c): Item(key(c), _stored_name(c)) for c in columns}
    return list(found.values())


def _aggregated(rng: Random, name: str, base: Spec, columns: list[Column], cube: bool) -> Cache:
    usable = _visible(base, columns)
    chosen = rng.sample(usable, min(len(usable), rng.randint(1, 5)))
    keys = [bucket(rng, c) if rng.random() < 0.25 else key(c) for c in chosen]
    if rng.random() < 0.04:
        keys, chosen = [], []
    keys = list({k.text: k for k in keys}.values())
    measures = list(
        {
            m.piece.text: m for m in (measure(rng, usable, 0.27) for _ in range(rng.randint(1, 6)))
        }.values()
    )
    if rng.random() < 0.5 and COUNT_STAR not in measures:
        measures.append(COUNT_STAR)
    sets = _sets(rng, len(keys)) if cube and keys else None
    return _stored(name, base, keys, measures, sets, usable, chosen)


def _stored(
    name: str, base: Spec, keys: list[Piece], measures: list[Measure],
    sets: tuple[tuple[int, ...], ...] | None, usable: list[Column], chosen: list[Column],
) -> Cache:  # fmt: skip
    items = [
        Item(k, _stored_name(next(c for c in chosen if c.ref == k.column)) if "(" not in k.text
             and " " not in k.text and not k.text.startswith("-") else f"k{i}", i)
        for i, k in enumerate(keys)
    ]  # fmt: skip
    items += [Item(m.piece, f"m{i}") for i, m in enumerate(measures)]
    spec = replace(base, keys=tuple(keys), items=tuple(items), sets=sets)
    return Cache(name, spec, tuple(usable), tuple(chosen), tuple(measures))


def sibling(rng: Random, near: Cache, name: str) -> Cache:
    """A cache over the same joins that mostly has what `near` has and more: fewer filters, more
    keys, more measures."""
    where = [p for p in near.spec.where if rng.random() < 0.7]
    if rng.random() < 0.1:
        where.append(predicate(rng, list(near.columns)))
    base = replace(near.spec, where=tuple(where))
    usable = list(near.columns)
    unused = [c for c in usable if c not in near.keys]
    more = rng.sample(unused, min(len(unused), rng.randint(0, 3)))
    if near.spec.keys is None:
        items = [*near.spec.items, *(Item(key(c), _stored_name(c)) for c in more)]
        limit = near.spec.limit and near.spec.limit + rng.choice([0, 5])
        spec = replace(base, items=tuple(items), limit=limit)
        if limit is not None:  # the order stays one of all columns: no ties
            order = [*spec.order, *((i, "ASC") for i in range(len(spec.order), len(items)))]
            spec = replace(spec, order=tuple(order))
        return Cache(name, spec, near.columns, (*near.keys, *more), ())
    keys = [*near.spec.keys, *(bucket(rng, c) if rng.random() < 0.2 else key(c) for c in more)]
    keys = list({k.text: k for k in keys}.values())
    drawn = [measure(rng, usable, 0.3) for _ in range(rng.randint(0, 3))]
    measures = list({m.piece.text: m for m in [*near.measures, *drawn]}.values())
    sets = _sets(rng, len(keys)) if near.spec.sets is not None and keys else None
    return _stored(name, base, keys, measures, sets, usable, [*near.keys, *more])


def _sets(rng: Random, count: int) -> tuple[tuple[int, ...], ...]:
    found = [tuple(range(count))] if rng.random() < 0.8 else []
    for _ in range(rng.randint(1, 4)):
        found.append(tuple(sorted(rng.sample(range(count), rng.randint(0, count)))))
    covered = {i for s in found for i in s}
    if len(covered) < count:
        found.append(tuple(range(count)))
    if rng.random() < 0.15:
        found.append(found[0])
    return tuple(found)


def _visible(base: Spec, columns: list[Column]) -> list[Column]:
    return [c for c in columns if c.table in base.visible]


def _stored_name(column: Column) -> str:
    name = column.name.replace(".", "_")
    own = column.table == "f" or column.table.startswith("d")
    return name if own else f"{column.table}_{name}"
