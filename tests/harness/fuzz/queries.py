"""Random queries near a cache: its definition with joins dropped and added, predicates narrowed
and widened, keys coarsened, other aggregates, HAVING, ORDER BY and LIMIT, inside other queries."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from tests.harness.fuzz.as_written import having_of_queries
from tests.harness.fuzz.caches import Cache, link_join
from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.measures import bucket, key, measure, near_measure, shown
from tests.harness.fuzz.predicates import (
    and_of_ors,
    deep_case,
    guarded,
    near,
    predicate,
    raising,
    simple,
)
from tests.harness.fuzz.roles import called_otherwise
from tests.harness.fuzz.spec import Item, Join, Piece, Spec
from tests.harness.fuzz.world import Column, World
from tests.harness.fuzz.wraps import wrapped

_DIRECTIONS = ("ASC", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST")


def query(rng: Random, world: World, cache: Cache) -> Spec:
    """One query near `cache`."""
    spec = replace(
        cache.spec, order=(), limit=None, having=(), tags=_carried(cache), style=cache.spec.style
    )
    usable = list(cache.keys)
    spec = replace(spec, where=_where(rng, world, cache, usable))
    if cache.spec.limit is not None and rng.random() < 0.85:
        return _top_k(rng, cache, spec)
    if cache.spec.keys is None:
        spec = _over_rows(rng, cache, spec)
    else:
        spec = _over_groups(rng, world, cache, spec)
    spec = _join_shape(rng, world, cache, spec)
    if spec.keys is not None:
        on_key = {k.column for k in spec.keys} | {c.ref for c in cache.keys}
        where = tuple(
            _tagged(p, "predicate.on_group_key") if p.column in on_key else p for p in spec.where
        )
        spec = replace(spec, where=where)
    spec = called_otherwise(rng, _tail(rng, spec))
    return wrapped(rng, world, spec)


def _carried(cache: Cache) -> frozenset[str]:
    return cache.spec.tags


def _where(rng: Random, world: World, cache: Cache, usable: list[Column]) -> tuple[Piece, ...]:
    by_ref = {c.ref: c for c in cache.columns}
    found: list[Piece] = []
    for piece in cache.spec.where:
        column = by_ref.get(piece.column)
        if rng.random() < 0.07:
            continue
        behind = guarded(rng, piece, list(cache.columns)) if rng.random() < 0.7 else None
        if behind is not None:
            found.append(behind)
            continue
        found += [piece] if column is None else near(rng, piece, column)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        if usable and rng.random() < 0.9:
            found.append(predicate(rng, usable))
        elif cache.columns:
            found.append(simple(rng, rng.choice(cache.columns)))
    kind = rng.random()
    if usable and kind < 0.05:
        found += and_of_ors(rng, usable)
    elif usable and kind < 0.09:
        found += filter(None, [deep_case(rng, usable)])
    joined = [k for k in world.links if {k.left, k.right} <= cache.spec.visible]
    if joined and rng.random() < 0.07:  # said of one side of a join, stored as the other
        link = rng.choice(joined)
        ends = [world.tables[link.left].column(link.column), world.tables[link.right].columns[0]]
        found.append(_tagged(simple(rng, rng.choice(ends)), "predicate.transitive"))
    stored = [
        k for k in (*(cache.spec.keys or ()), *(i.piece for i in cache.spec.items))
        if k.column and k.column != k.text and "(" in k.text and k.tags
        and any(t.startswith("key.") for t in k.tags)
    ]  # fmt: skip
    if stored and rng.random() < 0.35:  # a predicate on an expression that the cache stores
        expression = rng.choice(stored)
        text = rng.choice(
            [f"{expression.text} IS NOT NULL", f"{expression.text} IS NULL",
             f"{expression.text} <=> {expression.text}", f"NOT ({expression.text} IS NULL)"]
        )  # fmt: skip
        if expression.text.startswith(("year", "month", "quarter", "hour", "length", "extract")):
            number = rng.choice(["1", "2", "3", "10", "2019", "2020", "2021"])
            text = f"{expression.text} {rng.choice(['=', '>=', '<'])} {number}"
        found.append(Piece(text, tags("predicate.stored_expression"), expression.column))
    rng.shuffle(found)
    return tuple(found)


def _tagged(piece: Piece, *names: str) -> Piece:
    return replace(piece, tags=piece.tags | tags(*names))


def _over_rows(rng: Random, cache: Cache, spec: Spec) -> Spec:
    """A query over a cache without aggregation: rows, distinct rows or groups."""
    stored = list(cache.keys)
    kind = rng.random()
    chosen = rng.sample(stored, min(len(stored), rng.randint(1, 4)))
    if kind < 0.45:
        pieces = [bucket(rng, c) if rng.random() < 0.2 else key(c) for c in chosen]
        items = tuple(Item(p, f"o{i}") for i, p in enumerate(pieces))
        distinct = rng.random() < 0.3
        more = tags("whole.distinct", "rollup.distinct_on_keys") if distinct else tags()
        return replace(spec, items=items, distinct=distinct, keys=None, tags=spec.tags | more)
    keys = [bucket(rng, c) if rng.random() < 0.3 else key(c) for c in chosen]
    if rng.random() < 0.12:
        keys = []
    pieces = [shown(measure(rng, stored, 0.35)) for _ in range(rng.randint(1, 3))]
    return _grouped(rng, spec, list({k.text: k for k in keys}.values()), pieces, cache)


def _over_groups(rng: Random, world: World, cache: Cache, spec: Spec) -> Spec:
    keys = _keys(rng, world, cache)
    if cache.spec.having and rng.random() < 0.8:  # of coarser groups it says nothing
        keys = list(cache.spec.keys or ())
    plain = [c for c in cache.keys if c.ref in {k.text for k in cache.spec.keys or ()}]
    pieces = [
        near_measure(rng, list(cache.measures), plain)
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))
    ]
    if keys and rng.random() < 0.06:
        items = tuple(Item(k, f"o{i}") for i, k in enumerate(keys))
        found = spec.tags | tags("whole.distinct", "rollup.distinct_on_keys")
        return replace(spec, keys=None, sets=None, items=items, distinct=True, tags=found)
    return _grouped(rng, spec, keys, pieces, cache)


def _keys(rng: Random, world: World, cache: Cache) -> list[Piece]:
    found: list[Piece] = []
    by_ref = {c.ref: c for c in cache.columns}
    for piece in cache.spec.keys or ():
        kind = rng.random()
        column = by_ref.get(piece.column)
        if kind < 0.42:
            found.append(piece)
        elif kind < 0.60 and column is not None:
            coarse = bucket(rng, column)
            found.append(Piece(coarse.text, coarse.tags | tags("key.coarser"), coarse.column))
        elif kind < 0.70 and column is not None:
            found += _determined(rng, world, cache, column)
    plain = [c for c in cache.keys if c.ref in {k.text for k in found}]
    if plain and rng.random() < 0.02 and (more := raising(rng, plain)) is not None:
        found.append(more)
    return list({k.text: k for k in found}.values())


def _determined(rng: Random, world: World, cache: Cache, column: Column) -> list[Piece]:
    """An attribute of the dimension whose key `column` is."""
    hidden = cache.spec.aliases - cache.spec.visible
    for link in world.links:
        if link.right not in hidden and column.ref in (
            f"{link.left}.{link.column}",
            f"{link.right}.{link.right}_id",
        ):
            attributes = world.tables[link.right].columns[1:]
            if attributes:
                chosen = rng.choice(attributes)
                return [Piece(chosen.ref, tags("key.functional_dependency"), chosen.ref)]
    return []


def _grouped(rng: Random, spec: Spec, keys: list[Piece], pieces: list[Piece], cache: Cache) -> Spec:
    items = [Item(k, f"o{i}", i) for i, k in enumerate(keys) if rng.random() < 0.93]
    measures = list({p.text: p for p in pieces}.values())
    items += [Item(p, f"r{i}") for i, p in enumerate(measures)]
    found = spec.tags
    if len(keys) < len(cache.spec.keys or ()):
        found |= tags("key.key_subset")
    sets, style = None, "sets"
    if keys and rng.random() < 0.14:
        style = rng.choice(["sets", "sets", "CUBE", "ROLLUP"]) if len(keys) < 4 else "sets"
        count = len(keys)
        sets = tuple(
            tuple(sorted(rng.sample(range(count), rng.randint(0, count))))
            for _ in range(rng.randint(1, 3))
        )
        if len({i for s in sets for i in s}) < count:  # Spark forgets a key that is in no set
            sets = (*sets, tuple(range(count)))
        where = "cube" if cache.spec.sets is not None else "plain"
        found |= tags(f"key.grouping_sets_from_{where}")
        if rng.random() < 0.4:
            text = rng.choice(["grouping_id()", f"grouping({keys[0].text})"])
            items.append(Item(Piece(text, tags("key.grouping_id")), "gid"))
    having: list[Piece] = []
    if keys and measures and rng.random() < 0.14:
        numeric = [m for m in measures if m.text.startswith(("SUM", "COUNT", "AVG"))]
        if numeric and rng.random() < 0.7:
            text = f"{rng.choice(numeric).text} {rng.choice(['>', '<', '>='])} {rng.randint(0, 3)}"
            having.append(Piece(text, tags("predicate.having_on_measure", "whole.having")))
        else:
            base = rng.choice(keys).text
            text = rng.choice([f"{base} IS NOT NULL", f"{base} IS NULL OR COUNT(*) > 1"])
            if sets is not None:  # Spark does not find a key of GROUPING SETS there
                text = "COUNT(*) > 1"
            names = ["whole.having"]
            if "COUNT" not in text and sets is None:
                names.append("predicate.having_as_filter")
            having.append(Piece(text, tags(*names)))
    if cache.spec.having:
        having = having_of_queries(rng, cache, having)
    return replace(
        spec, keys=tuple(keys), items=tuple(items), sets=sets, sets_style=style,
        having=tuple(having), tags=found,
    )  # fmt: skip


def _join_shape(rng: Random, world: World, cache: Cache, spec: Spec) -> Spec:
    """Drop the joins that are not needed, add those that are, and some of each at random."""
    pieces = [*spec.where, *(spec.keys or ()), *(i.piece for i in spec.items), *spec.having]
    needed = frozenset().union(*(p.reads for p in pieces))
    dropped = set()
    for join in reversed(spec.joins):  # what a kept join hangs on is kept
        if join.alias in needed or rng.random() < 0.55:
            needed |= frozenset().union(*(p.reads for p in join.on))
        else:
            dropped.add(join.alias)
    joins = [j for j in spec.joins if j.alias not in dropped]
    for link in reversed(world.links):  # and so is what a table that is read hangs on
        if link.right in needed:
            needed |= {link.left}
    have = {"f", *(j.alias for j in joins)}
    hidden = cache.spec.aliases - cache.spec.visible
    added, found = _added_joins(rng, world, cache, needed, have)
    joins, more = _kinds(rng, cache, joins + added)
    found |= spec.tags | more
    style = rng.choice(["on", "on", "comma"])
    if len(joins) > 1 and all(j.kind == "INNER" for j in joins) and style == "comma":
        rng.shuffle(joins)
        found |= tags("join.any_order")
    first = spec.first
    where = spec.where
    if rng.random() < 0.04:
        extra = _semi(rng, world, have, hidden)
        if extra is not None:
            where = (*where, extra)
    if rng.random() < 0.05 and first == "f":
        first, found = "vf AS f", found | tags("whole.view")
    if len(joins) < len(cache.spec.joins):
        found |= tags("join.extra_table")
    joined = replace(spec, first=first, joins=tuple(joins), style=style, where=where, tags=found)
    if any(j.kind in ("LEFT SEMI", "LEFT ANTI") for j in joins) and rng.random() < 0.4:
        joined = replace(joined, exists=True, tags=found | tags("whole.exists"))
    return joined


def _added_joins(
    rng: Random, world: World, cache: Cache, needed: frozenset[str], have: set[str]
) -> tuple[list[Join], frozenset[str]]:
    """Joins of tables that are needed, and of others now and then; they go into `have`."""
    joins: list[Join] = []
    found: frozenset[str] = tags()
    hidden = cache.spec.aliases - cache.spec.visible
    for link in world.links:
        missing = link.right not in have and link.left in have - hidden
        wanted = link.right in needed
        if missing and (wanted or rng.random() < 0.07):
            again = any(j.alias == link.right for j in cache.spec.joins)
            found |= tags("join.dimension_again" if again else "join.compensating")
            kind = (
                rng.choice(["INNER", "INNER", "INNER", "LEFT"]) if rng.random() < 0.5 else "INNER"
            )
            joins.append(link_join(link, kind))
            have.add(link.right)
    return joins, found


def _kinds(rng: Random, cache: Cache, joins: list[Join]) -> tuple[list[Join], frozenset[str]]:
    """Outer joins of the cache asked for as inner ones, and now and then the reverse."""
    found: list[Join] = []
    more: frozenset[str] = frozenset()
    for join in joins:
        if join.kind in ("LEFT", "RIGHT", "FULL") and rng.random() < 0.45:
            kind = "INNER" if rng.random() < 0.75 or join.kind != "FULL" else "LEFT"
            bare = tuple(replace(p, tags=tags()) for p in join.on)
            found.append(replace(join, kind=kind, on=bare))
            more |= tags("join.inner_from_outer")
        elif join.kind == "INNER" and rng.random() < 0.04 and "join" not in str(join.on[:1]):
            on = tuple(replace(p, tags=p.tags | tags("join.left")) for p in join.on)
            found.append(replace(join, kind="LEFT", on=on))
        else:
            found.append(join)
    return found, more


def _semi(rng: Random, world: World, have: set[str], hidden: frozenset[str]) -> Piece | None:
    links = [k for k in world.links if k.left in have - hidden and k.right not in have]
    if not links:
        return None
    link = rng.choice(links)
    table = world.tables[link.right]
    inner = simple(rng, rng.choice(table.columns)).text
    key_ = f"{link.right}.{link.right}_id"
    negated = "NOT " if rng.random() < 0.3 else ""
    found = ["join.anti" if negated else "join.semi"]
    if rng.random() < 0.5:
        text = f"{negated}EXISTS (SELECT 1 FROM {link.right} WHERE {link.on} AND {inner})"
        found.append("whole.exists")
    else:
        text = (
            f"{link.left}.{link.column} {negated}IN (SELECT {key_} FROM {link.right} WHERE {inner})"
        )
        found.append("whole.in_subquery")
    return Piece(text, tags(*found))


def _tail(rng: Random, spec: Spec) -> Spec:
    kind = rng.random()
    if kind > 0.2:
        return spec
    order = list(range(len(spec.items)))
    rng.shuffle(order)
    chosen = tuple((i, rng.choice(_DIRECTIONS)) for i in order)
    found = spec.tags | tags("whole.order_by")
    limit = offset = None
    if kind < 0.12:
        limit, found = rng.choice([1, 2, 5, 100]), found | tags("whole.limit")
        if rng.random() < 0.25:
            offset, found = rng.choice([1, 2]), found | tags("whole.offset")
    return replace(spec, order=chosen, limit=limit, offset=offset, tags=found)


def _top_k(rng: Random, cache: Cache, spec: Spec) -> Spec:
    assert cache.spec.limit is not None
    items = tuple(replace(i, name=f"o{n}") for n, i in enumerate(cache.spec.items))
    where = cache.spec.where if rng.random() < 0.9 else spec.where
    stored = cache.spec.limit
    limit = rng.choice([1, 2, 3, stored - 1, stored, stored, 20])
    offset = rng.choice([1, stored - limit]) if rng.random() < 0.2 and limit < stored else None
    found = spec.tags | tags("whole.top_k", "whole.limit", "whole.order_by")
    found |= tags("whole.offset") if offset else tags()
    return replace(
        spec, items=items, where=where, order=cache.spec.order, limit=limit, offset=offset,
        tags=found,
    )  # fmt: skip


def relit(rng: Random, world: World, spec: Spec) -> Spec:
    """The same shape with other literals: what a dashboard asks next."""
    by_ref = {c.ref: c for t in world.tables.values() for c in t.columns}

    def other(piece: Piece) -> Piece:
        column = by_ref.get(piece.column)
        if column is None or not piece.op or column.type == "boolean":
            return piece
        value = rng.choice(column.values)
        written = rf"(?<![\w.']){re.escape(column.literal(piece.value))}(?![\w.])"
        text = re.sub(written, lambda _: column.literal(value), piece.text)
        return piece if text == piece.text else replace(piece, text=text, value=value)

    return replace(spec, where=tuple(map(other, spec.where)))
