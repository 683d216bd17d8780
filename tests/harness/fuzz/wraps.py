"""What stands around a SELECT: CTEs, subqueries of every kind, set operations, windows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.predicates import simple
from tests.harness.fuzz.spec import Spec
from tests.harness.fuzz.world import World

_SETS = {
    "UNION ALL": "union_all",
    "UNION": "union",
    "INTERSECT": "intersect",
    "EXCEPT": "except",
    "EXCEPT ALL": "except",
}


def wrapped(rng: Random, world: World, spec: Spec) -> Spec:
    """`spec` inside another query, one time in four."""
    if rng.random() > 0.27:
        return spec
    ways = [_cte, _from, _union, _union, _window, _in, _exists, _scalar]
    return rng.choice(ways)(rng, world, spec) or spec


def _with(spec: Spec, wrap: str, *names: str) -> Spec:
    return replace(spec, wrap=wrap, tags=spec.tags | tags(*names))


def _cte(rng: Random, world: World, spec: Spec) -> Spec:
    name = spec.items[0].name
    outer = rng.choice(["SELECT * FROM q", f"SELECT q.{name} AS a, COUNT(*) AS n FROM q GROUP BY 1",
                        f"SELECT * FROM q WHERE q.{name} IS NOT NULL"])  # fmt: skip
    return _with(spec, "WITH q AS ({}) " + outer, "whole.cte")


def _from(rng: Random, world: World, spec: Spec) -> Spec:
    name = rng.choice(spec.items).name
    outer = rng.choice(
        ["SELECT * FROM ({}) AS q", f"SELECT q.{name} AS a FROM ({{}}) AS q",
         f"SELECT q.{name} AS a, COUNT(*) AS n FROM ({{}}) AS q GROUP BY q.{name}",
         f"SELECT MAX(q.{name}) AS a FROM ({{}}) AS q",
         f"SELECT * FROM ({{}}) AS q WHERE q.{name} IS NOT NULL"]
    )  # fmt: skip
    return _with(spec, outer, "whole.from_subquery")


def _union(rng: Random, world: World, spec: Spec) -> Spec | None:
    word = rng.choice([*_SETS, "UNION ALL"])
    columns = [c for t in world.tables.values() for c in t.columns if t.name in spec.aliases]
    stored = [c for c in columns if c.ref in {p.column for p in spec.keys or ()}]
    if not columns:  # over groups alone
        return None
    extra = simple(rng, rng.choice(stored or columns))
    other = replace(spec, where=(*spec.where[:1], extra), order=(), limit=None, offset=None)
    bare = replace(spec, order=(), limit=None, offset=None)
    tag = f"whole.{_SETS[word]}"
    return _with(bare, f"({{}}) {word} ({other.select()})", tag)


def _window(rng: Random, world: World, spec: Spec) -> Spec:
    name = rng.choice(spec.items).name
    order = ", ".join(f"q.{i.name}" for i in spec.items)
    column = rng.choice(
        [f"rank() OVER (ORDER BY q.{name})", f"row_number() OVER (ORDER BY {order})",
         f"COUNT(*) OVER (PARTITION BY q.{name})", f"MAX(q.{name}) OVER ()",
         f"dense_rank() OVER (ORDER BY q.{name} DESC)"]
    )  # fmt: skip
    return _with(spec, f"SELECT q.*, {column} AS w FROM ({{}}) AS q", "whole.window")


def _in(rng: Random, world: World, spec: Spec) -> Spec | None:
    columns = {c.ref: c for t in world.tables.values() for c in t.columns}
    shown = [i for i in spec.items if i.piece.text in columns]
    if not shown:
        return None
    item = rng.choice(shown)
    column = columns[item.piece.text]
    negated = "NOT " if rng.random() < 0.2 else ""
    outer = (
        f"SELECT t.{column.name} AS a FROM {column.table} AS t "
        f"WHERE t.{column.name} {negated}IN (SELECT q.{item.name} FROM ({{}}) AS q)"
    )
    return _with(spec, outer, "whole.in_subquery")


def _exists(rng: Random, world: World, spec: Spec) -> Spec:
    negated = "NOT " if rng.random() < 0.3 else ""
    return _with(
        spec, f"SELECT t.d1_id AS a FROM d1 AS t WHERE {negated}EXISTS ({{}})", "whole.exists"
    )


def _scalar(rng: Random, world: World, spec: Spec) -> Spec | None:
    name = rng.choice(spec.items).name
    if spec.keys == () and len(spec.items) == 1:
        return _with(spec, "SELECT t.d1_id AS a, ({}) AS s FROM d1 AS t", "whole.scalar_subquery")
    outer = f"SELECT t.d1_id AS a, (SELECT MAX(q.{name}) FROM ({{}}) AS q) AS s FROM d1 AS t"
    return _with(spec, outer, "whole.scalar_subquery")
