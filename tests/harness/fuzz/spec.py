"""A SELECT in parts, so that one can be mutated into a near one and shrunk part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

_REFERENCE = re.compile(r"\b([a-z]\w*)\.[a-z]\w*")


@dataclass(frozen=True)
class Piece:
    """A predicate, a key or an aggregate in SQL, and the capability tags that it exercises.

    `column` is the one column it is about, `op` and `value` a simple comparison's parts.
    """

    text: str
    tags: frozenset[str] = frozenset()
    column: str = ""
    op: str = ""
    value: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """The table aliases that it refers to."""
        return frozenset(_REFERENCE.findall(re.sub(r"'[^']*'", "''", self.text)))


@dataclass(frozen=True)
class Item:
    """A column of the select list. `key` is the number of the group key that it shows, or None."""

    piece: Piece
    name: str
    key: int | None = None


@dataclass(frozen=True)
class Join:
    kind: str  # INNER, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI, CROSS
    table: str
    alias: str
    on: tuple[Piece, ...]

    @property
    def source(self) -> str:
        return self.table if self.alias == self.table else f"{self.table} AS {self.alias}"


_EXISTS: Final = {"LEFT SEMI": "EXISTS", "LEFT ANTI": "NOT EXISTS"}


def _exists(join: Join) -> str:
    on = " AND ".join(p.text for p in join.on)
    return f"{_EXISTS[join.kind]} (SELECT 1 FROM {join.source} WHERE {on})"


@dataclass(frozen=True)
class Spec:
    """One SELECT. `keys` is None without aggregation; `style` says how inner joins are written,
    `exists` that SEMI and ANTI joins are EXISTS in WHERE."""

    first: str = "f"
    joins: tuple[Join, ...] = ()
    style: str = "on"
    exists: bool = False
    where: tuple[Piece, ...] = ()
    keys: tuple[Piece, ...] | None = None
    items: tuple[Item, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    sets_style: str = "sets"
    having: tuple[Piece, ...] = ()
    order: tuple[tuple[int, str], ...] = ()
    limit: int | None = None
    offset: int | None = None
    distinct: bool = False
    wrap: str = "{}"
    tags: frozenset[str] = field(default=frozenset())

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset({self.first.split()[-1], *(j.alias for j in self.joins)})

    @property
    def visible(self) -> frozenset[str]:
        """The aliases whose columns can be named above the joins."""
        hidden = (j.alias for j in self.joins if j.kind in ("LEFT SEMI", "LEFT ANTI"))
        return self.aliases - frozenset(hidden)

    def sql(self) -> str:
        """The whole text, with what is wrapped around the SELECT."""
        return self.wrap.replace("{}", self.select())

    def select(self) -> str:
        """The SELECT alone."""
        items = ", ".join(f"{i.piece.text} AS {i.name}" for i in self.items)
        text = f"SELECT {'DISTINCT ' if self.distinct else ''}{items} {self._from()}"
        if self.keys:
            text += " GROUP BY " + self._group()
        elif self.keys is not None and not self._has_aggregate():
            text += " GROUP BY ()"
        if self.having:
            text += " HAVING " + " AND ".join(p.text for p in self.having)
        if self.order:
            text += " ORDER BY " + ", ".join(f"{self.items[i].name} {d}" for i, d in self.order)
        if self.limit is not None:
            text += f" LIMIT {self.limit}"
        if self.offset is not None:
            text += f" OFFSET {self.offset}"
        return text

    def _has_aggregate(self) -> bool:
        return any(i.key is None for i in self.items)

    def _from(self) -> str:
        tests = [j for j in self.joins if self.exists and j.kind in _EXISTS]
        joins = [j for j in self.joins if j not in tests]
        where = [*(p.text for p in self.where), *(_exists(j) for j in tests)]
        if self.style == "comma" and all(j.kind == "INNER" for j in joins):
            text = "FROM " + ", ".join([*(j.source for j in joins), self.first])
            where = [*(p.text for j in joins for p in j.on), *where]
        else:
            text = f"FROM {self.first}" + "".join(
                f" {'' if j.kind == 'INNER' else j.kind + ' '}JOIN {j.source}"
                + (f" ON {' AND '.join(p.text for p in j.on)}" if j.on else "")
                for j in joins
            )
        return text + (f" WHERE {' AND '.join(where)}" if where else "")

    def _group(self) -> str:
        keys = [k.text for k in self.keys or ()]
        if self.sets is None:
            return ", ".join(keys)
        if self.sets_style in ("CUBE", "ROLLUP"):
            return f"{self.sets_style} ({', '.join(keys)})"
        sets = ", ".join("(" + ", ".join(keys[i] for i in s) + ")" for s in self.sets)
        return f"{', '.join(keys)} GROUPING SETS ({sets})"

    def all_tags(self) -> frozenset[str]:
        """Every tag of its parts."""
        pieces = [*self.where, *(self.keys or ()), *(i.piece for i in self.items), *self.having]
        pieces += [p for j in self.joins for p in j.on]
        found = self.tags.union(*(p.tags for p in pieces)) if pieces else self.tags
        if any(p.column.count(".") > 1 for p in pieces):
            found |= {"whole.struct_field"}
        return found | {"join.cross"} if any(j.kind == "CROSS" for j in self.joins) else found


def smaller(spec: Spec) -> Iterator[Spec]:
    """Each spec with one part less, largest parts first, for the shrinker."""
    if spec.wrap != "{}":
        yield replace(spec, wrap="{}")
    if spec.limit is not None or spec.offset is not None:
        yield replace(spec, limit=None, offset=None)
    if spec.order and spec.limit is None:
        yield replace(spec, order=())
    for i, join in enumerate(spec.joins):
        fewer = replace(spec, joins=spec.joins[:i] + spec.joins[i + 1 :])
        if join.alias not in _used(fewer):
            yield fewer
    for name in ("where", "having"):
        parts = getattr(spec, name)
        for i in range(len(parts)):
            yield replace(spec, **{name: parts[:i] + parts[i + 1 :]})
    if spec.distinct:
        yield replace(spec, distinct=False)
    for i in range(len(spec.items) if len(spec.items) > 1 else 0):
        yield replace(spec, items=spec.items[:i] + spec.items[i + 1 :], order=())
    for i in range(len(spec.keys or ()) if spec.sets is None else 0):
        yield _without_key(spec, i)
    if spec.sets is not None:
        yield from _fewer_sets(spec, spec.sets)


def _fewer_sets(spec: Spec, sets: tuple[tuple[int, ...], ...]) -> Iterator[Spec]:
    for i in range(len(sets)):
        if len(sets) > 1:
            yield replace(spec, sets=sets[:i] + sets[i + 1 :], sets_style="sets")
    yield replace(spec, sets=None)


def _used(spec: Spec) -> frozenset[str]:
    pieces = [*spec.where, *(spec.keys or ()), *(i.piece for i in spec.items), *spec.having]
    pieces += [p for j in spec.joins for p in j.on]
    return frozenset().union(*(p.reads for p in pieces)) if pieces else frozenset()


def _without_key(spec: Spec, number: int) -> Spec:
    assert spec.keys is not None
    kept = [i for i in range(len(spec.keys)) if i != number]
    items = tuple(
        replace(i, key=kept.index(i.key)) if i.key in kept else i  # no key, or a constant
        for i in spec.items
        if i.key != number
    )
    keys = tuple(spec.keys[i] for i in kept)
    return replace(spec, keys=keys, items=items or spec.items[:1], order=())
