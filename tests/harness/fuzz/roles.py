"""One table several times in a FROM: a fact joined with itself, a dimension in several roles; and
the same query with its occurrences called otherwise, which only their joins tell apart."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.spec import Join, Piece, Spec
from tests.harness.fuzz.world import Column, World

_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*')")


def self_joins(rng: Random, world: World) -> tuple[tuple[Join, ...], list[Column]]:
    """The fact with one to three copies of itself, each joined by a column of few values."""
    columns, joins = world.columns(["f"]), []
    numbers = [c.name for c in columns if c.type == "int"]
    for number in range(2, rng.choice((2, 2, 3, 3, 4)) + 1):
        alias = f"f{number}"
        other = rng.choice(("f", f"f{number - 1}" if number > 2 else "f"))
        on = [f"{other}.f_j = {alias}.f_j"]
        if number > 2 or rng.random() < 0.3:  # or there would be too many rows
            name = rng.choice(numbers)
            on.append(f"{other}.{name} = {alias}.{name}")
        joins.append(_join(f"f AS {alias}", on, "join.self_join"))
        columns += [replace(c, table=alias) for c in world.tables["f"].columns]
    return tuple(joins), columns


def roles(rng: Random, world: World) -> tuple[tuple[Join, ...], list[Column]]:
    """The fact with a dimension in two to six roles, each by another column if there is one."""
    name = rng.choice([n for n in world.tables if n != "f"])
    columns, joins = world.columns(["f"]), []
    keys = [c.name for c in columns if c.type == "int" and not c.struct]
    rng.shuffle(keys)
    for number in range(1, rng.choice((2, 2, 3, 4, 6)) + 1):
        alias, key = f"r{number}", keys[number % len(keys)]
        kind = "LEFT" if rng.random() < 0.2 else "INNER"
        on = [f"f.{key} = {alias}.{name}_id"]
        joins.append(replace(_join(f"{name} AS {alias}", on, "join.role_playing"), kind=kind))
        columns += [replace(c, table=alias) for c in world.tables[name].columns]
    return tuple(joins), columns


def _join(source: str, on: list[str], tag: str) -> Join:
    table, _, alias = source.partition(" AS ")
    return Join("INNER", table, alias, tuple(Piece(text, tags(tag)) for text in on))


def called_otherwise(rng: Random, spec: Spec) -> Spec:
    """The same SELECT, where a table stands in it several times with its names dealt anew."""
    aliases = [j.alias for j in spec.joins if j.alias != j.table]
    if len(aliases) < 2 or rng.random() < 0.4:
        return spec
    other = dict(zip(aliases, rng.sample(aliases, len(aliases)), strict=True))
    word = re.compile(rf"\b({'|'.join(aliases)})\.")

    def text(written: str) -> str:
        parts = _QUOTED.split(written)
        parts[::2] = [word.sub(lambda m: f"{other[m[1]]}.", part) for part in parts[::2]]
        return "".join(parts)

    def piece(one: Piece) -> Piece:
        return replace(one, text=text(one.text), column=text(one.column))

    joins = tuple(
        replace(j, alias=other.get(j.alias, j.alias), on=tuple(map(piece, j.on)))
        for j in spec.joins
    )
    return replace(
        spec,
        joins=joins,
        where=tuple(map(piece, spec.where)),
        keys=None if spec.keys is None else tuple(map(piece, spec.keys)),
        items=tuple(replace(i, piece=piece(i.piece)) for i in spec.items),
        having=tuple(map(piece, spec.having)),
    )
