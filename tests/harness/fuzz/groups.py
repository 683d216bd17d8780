"""Caches over groups: the fact joined with groups of itself, groups of groups, filters above them;
and queries that ask for the same groups in other words, or for others that look like them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.harness.fuzz.caches import Cache, link_join, over
from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.predicates import simple
from tests.harness.fuzz.spec import Join, Piece, Spec
from tests.harness.fuzz.world import Column, World

_KEY_TYPES: Final = frozenset({"int", "smallint", "bigint", "string", "date", "boolean"})
_SUMMED: Final = frozenset({"int", "smallint"})
_KINDS: Final = {
    "INNER": "join.groups", "LEFT": "join.groups_outer", "LEFT SEMI": "join.groups_outer",
    "LEFT ANTI": "join.groups_outer", "FULL": "join.groups_outer", "RIGHT": "join.groups_outer",
}  # fmt: skip
_FEW: Final = ("0", "1", "2", "3", "7")
_OTHERWISE: Final = 0.5  # of the groups are written otherwise in a query
_OTHERS: Final = 0.25  # are others


@dataclass(frozen=True)
class Grouping:
    """A grouped subquery in parts; `names` are those of keys and aggregates."""

    source: str
    keys: tuple[Piece, ...]
    aggregates: tuple[Piece, ...]
    where: tuple[Piece, ...] = ()
    having: tuple[str, ...] = ()
    tables: tuple[str, ...] = ("f",)
    columns: tuple[Column, ...] = field(default=(), compare=False)

    def sql(self) -> str:
        """The subquery in parentheses."""
        items = [f"{k.text} AS k{i}" for i, k in enumerate(self.keys)]
        items += [f"{a.text} AS a{i}" for i, a in enumerate(self.aggregates)]
        text = f"SELECT {', '.join(items)} FROM {self.source}"
        if self.where:
            text += " WHERE " + " AND ".join(p.text for p in self.where)
        if self.keys:
            text += " GROUP BY " + ", ".join(k.text for k in self.keys)
        if self.having:
            text += " HAVING " + " AND ".join(self.having)
        return f"({text})"


def grouping(rng: Random, world: World, *, alone: bool = False) -> Grouping:
    """Random groups of the fact, perhaps joined with a dimension."""
    columns, source = world.columns(["f"]), "f"
    links = [k for k in world.links if k.left == "f"]
    if links and rng.random() < 0.3:
        link = rng.choice(links)
        source = f"f {rng.choice(['JOIN', 'JOIN', 'LEFT JOIN'])} {link.right} ON {link.on}"
        columns = world.columns(["f", link.right])
    plain = [c for c in columns if not c.struct]
    keys = [c for c in plain if c.type in _KEY_TYPES]
    least = 0 if not alone and rng.random() < 0.06 else 1
    chosen = rng.sample(keys, rng.randint(least, min(3, len(keys)))) if least else []
    aggregates: list[Piece] = [Piece("COUNT(*)")]
    found = [_column(f"k{i}", c.type, c.nullable or "LEFT" in source, c.values)
             for i, c in enumerate(chosen)]  # fmt: skip
    found.append(_column("a0", "bigint", False, _FEW))
    for number in range(1, rng.randint(1, 3) + 1):
        column = rng.choice(plain)
        funcs = ["COUNT", "COUNT(DISTINCT"]
        funcs += ["MIN", "MAX"] if column.type in _KEY_TYPES - {"boolean"} else []
        funcs += ["SUM"] * 3 if column.type in _SUMMED else []
        func = rng.choice(funcs)
        opened = f"{func} {column.ref}" if "(" in func else f"{func}({column.ref}"
        aggregates.append(Piece(f"{opened})", column=column.ref))
        shows = func in ("MIN", "MAX")
        kind = column.type if shows else "bigint"
        nullable = func in ("MIN", "MAX", "SUM")
        found.append(_column(f"a{number}", kind, nullable, column.values if shows else _FEW))
    where = tuple(simple(rng, rng.choice(plain)) for _ in range(rng.choice([0, 0, 0, 1, 2])))
    having = (f"COUNT(*) {rng.choice(['>', '>=', '<'])} {rng.choice(_FEW)}",)
    return Grouping(
        source,
        tuple(Piece(c.ref, column=c.ref) for c in chosen),
        tuple(aggregates),
        where,
        having if rng.random() < 0.25 else (),
        columns=tuple(found),
    )


def _column(name: str, kind: str, nullable: bool, values: tuple[str, ...]) -> Column:
    return Column("g", name, kind, nullable, values)


def grouped_cache(rng: Random, world: World, name: str) -> tuple[Cache, Grouping]:
    """A cache over groups, and what it groups."""
    alone = rng.random() < 0.35
    made = grouping(rng, world, alone=alone)
    columns = list(made.columns)
    if alone:  # groups of groups
        base = Spec(first=f"{made.sql()} AS g", tags=tags("whole.groups_of_groups"))
    else:
        rows = [c for c in world.columns(["f"]) if not c.struct]
        kind = rng.choice(["INNER", "INNER", "INNER", "LEFT", "LEFT", "LEFT SEMI", "LEFT ANTI",
                           "FULL", "RIGHT"])  # fmt: skip
        on = _on(rng, made, rows, kind)
        joins = [Join(kind, made.sql(), "g", on)]
        links = [k for k in world.links if k.left == "f"]
        if links and kind == "INNER" and rng.random() < 0.4:
            link = rng.choice(links)
            joins.append(link_join(link))
            rows += world.columns([link.right])
        base = Spec(joins=tuple(joins))
        columns = rows + columns
    if made.having:
        base = replace(base, tags=base.tags | tags("whole.groups_filtered"))
    where = [simple(rng, rng.choice(made.columns))] if rng.random() < 0.15 else []
    where = [p for p in where if "g" in base.visible]
    base = replace(base, where=tuple(where))
    return over(rng, name, base, columns, may_limit=False), made


def _on(rng: Random, made: Grouping, rows: list[Column], kind: str) -> tuple[Piece, ...]:
    """Mostly by the keys of the groups, all of them or some."""
    tag = tags(_KINDS[kind])
    found: list[Piece] = []
    for number, key in enumerate(made.keys):
        if found and rng.random() < 0.25:
            continue
        mine = key.column if key.column.startswith("f.") and rng.random() < 0.9 else None
        same = [c.ref for c in rows if c.type == made.columns[number].type]
        op = "<=>" if rng.random() < 0.1 else "="
        found.append(Piece(f"{mine or rng.choice(same or ['f.f_i'])} {op} g.k{number}", tag))
    if not found or rng.random() < 0.08:
        found.append(Piece(f"f.f_i {rng.choice(['<', '>='])} g.a0", tag))
    return tuple(found)


def regrouped(rng: Random, spec: Spec, made: Grouping) -> Spec:
    """The query with its groups written otherwise, or with others in their place."""
    kind = rng.random()
    if kind < _OTHERS:
        other = _other(rng, made)
    elif kind < _OTHERS + _OTHERWISE:
        other = _otherwise(rng, made)
    else:
        return spec
    old, new = made.sql(), other.sql()
    joins = tuple(replace(j, table=new) if j.table == old else j for j in spec.joins)
    return replace(spec, joins=joins, first=spec.first.replace(old, new))


def _otherwise(rng: Random, made: Grouping) -> Grouping:
    """The same groups in other words."""
    where = list(made.where)
    rng.shuffle(where)
    keys = [k for k in made.keys if k.column.startswith("f.")]
    way = rng.random()
    if way < 0.3 and where:
        where.append(rng.choice(where))
    elif way < 0.7 and made.columns:  # a filter on a key, which takes groups whole
        number = rng.randrange(len(made.keys)) if made.keys else 0
        if keys and made.keys[number].column.startswith("f."):
            column = made.columns[number]
            named = replace(column, table="f", name=made.keys[number].column.partition(".")[2])
            where.append(simple(rng, named))
    elif way < 0.85:
        having = (*made.having, f"COUNT(*) >= {rng.choice(_FEW)}")
        return replace(made, where=tuple(where), having=having)
    return replace(made, where=tuple(where))


def _other(rng: Random, made: Grouping) -> Grouping:
    """Groups that look alike: one thing is another."""
    ways = ["aggregate"]
    ways += ["where"] if made.where else ["filter"]
    ways += ["having"] if made.having else []
    ways += ["join"] if "JOIN" in made.source else []
    way = rng.choice(ways)
    if way == "where":
        return replace(made, where=made.where[1:])
    if way == "filter":
        return replace(made, where=(Piece(f"f.f_j {rng.choice(['>', '<>'])} {rng.choice(_FEW)}"),))
    if way == "having":
        return replace(made, having=())
    if way == "join":
        left = "LEFT JOIN" in made.source
        source = made.source.replace("LEFT JOIN", "JOIN") if left else made.source.replace(
            "JOIN", "LEFT JOIN"
        )  # fmt: skip
        return replace(made, source=source)
    others = [Piece("COUNT(f.f_i)"), Piece("COUNT(DISTINCT f.f_j)"), Piece("SUM(f.f_j)")]
    return replace(made, aggregates=(rng.choice(others), *made.aggregates[1:]))
