"""Queries near a cache's shape: the same groups or fewer, other measures, filters, more tables."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from tests.harness.fuzz_refresh.layouts import CATS, DAYS, Layout
from tests.harness.fuzz_refresh.shapes import ITEMS, SHOPS, Shape
from tests.harness.fuzz_refresh.steps import Query

# How often a query is one of the fact alone, where its shape joins others.
FACT_ALONE: Final = 0.4
_SUM: Final = re.compile(r"SUM\(s\.\w+\)")
# Conjuncts over an expression of a shape; what is not here is asked for NULL.
_FILTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "s.cat": (*(f"s.cat = '{c}'" for c in CATS), "s.cat IN ('a', 'c')", "s.cat <> 'd'"),
    "s.day": tuple(f"s.day >= DATE'{d}'" for d in DAYS),
    "s.qty": ("s.qty > 5", "s.qty BETWEEN 1 AND 9"),
    "s.amt": ("s.amt < 10",),
    "s.shop": (
        "s.shop = 2",
        "s.shop > 2",
        "EXISTS (SELECT 1 FROM {items} e WHERE e.k = s.shop)",
    ),
    "s.item": (
        "s.item = 1",
        "s.item IN (2, 3)",
        "EXISTS (SELECT 1 FROM {shops} e WHERE e.k = s.item)",
    ),
    "h.grp": ("h.grp = 'north'", "h.grp <> ''"),
    "h.name": ("h.name IN ('n1', 'n2')",),
    "i.label": ("i.label = 'l1'",),
}
_MORE: Final = (
    ("{shops}", "LEFT JOIN {shops} g ON s.item = g.k", "s.item", {"other": "g.grp"}),
    ("{items}", ITEMS, "s.item", {"label": "i.label"}),
    ("{shops}", SHOPS, "s.shop", {"grp": "h.grp"}),
    ("{promos}", "JOIN {promos} p ON s.item = p.k", "s.item", {"promo": "p.promo"}),
)


@dataclass(frozen=True)
class _Parts:
    """A SELECT before it is written down."""

    source: str
    keys: tuple[tuple[str, str], ...]
    measures: tuple[tuple[str, str], ...]
    where: tuple[str, ...]
    sets: bool = False
    having: str = ""

    def text(self) -> str:
        columns = [f"{e} AS {n}" for n, e in (*self.keys, *self.measures)]
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        group = ""
        if self.measures and self.keys:
            keys = ", ".join(e for _, e in self.keys)
            group = f" GROUP BY CUBE ({keys})" if self.sets else f" GROUP BY {keys}"
        if self.having:
            group += f" HAVING {self.having}"
        return f"SELECT {', '.join(columns)} FROM {self.source}{where}{group}"


def draw(rng: random.Random, shape: Shape, layout: Layout, fact_alone: float = FACT_ALONE) -> Query:
    """A query near a shape.

    Args:
        rng: The source of chance.
        shape: A cache's shape.
        layout: The base tables there are.
        fact_alone: How often it is one of the fact alone, where the shape joins others.
    """
    if rng.random() < 0.12:
        return Query(shape.definition, False, _action(rng), shape.name)
    if "LIMIT" in shape.tail:
        return Query(_top(rng, shape), True, "collect", shape.name)
    asked = shape.over_fact() if rng.random() < fact_alone else None
    parts = _parts(rng, asked or shape, layout)
    text = parts.text()
    chance = rng.random()
    if chance < 0.2:
        order = ", ".join(
            f"{i} {rng.choice(('', 'DESC', 'NULLS LAST'))}"
            for i in range(1, len(parts.keys) + len(parts.measures) + 1)
        )
        limit = f" LIMIT {rng.randrange(1, 9)}" if rng.random() < 0.7 else ""
        return Query(f"{text} ORDER BY {order}{limit}", True, "collect", shape.name)
    if chance < 0.35:
        text = _wrapped(rng, text, parts, shape, layout)
    return Query(text, False, _action(rng), shape.name)


def _action(rng: random.Random) -> str:
    return rng.choices(("collect", "count", "show"), (10, 1, 1))[0]


def _top(rng: random.Random, shape: Shape) -> str:
    rest, _, _ = shape.definition.rpartition("LIMIT")
    return f"{rest}LIMIT {rng.randrange(1, 9)}"


def _parts(rng: random.Random, shape: Shape, layout: Layout) -> _Parts:
    source, where = shape.source, [shape.where] if shape.where else []
    keys, measures = dict(shape.keys), dict(shape.measures)
    joined = _extra(rng, shape, layout)
    if joined is not None:
        source += f" {joined[0]}"
    if shape.keys and rng.random() < 0.45:
        where.append(_filter(rng, tuple(keys.values())))
    if not measures:
        return _over_rows(rng, keys, source, where, joined)
    chosen = _some(rng, keys, least=0)
    # of groups that passed HAVING only the very same can be had
    same = shape.having and rng.random() < 0.8
    having = _narrower(rng, shape.having) if same else ""
    if same or rng.random() < 0.35:
        chosen = tuple(keys.items())
    if joined is not None:
        chosen = (*chosen, *joined[1].items())
    found = _measures(rng, measures)
    sets = not same and len(chosen) > 1 and rng.random() < 0.12
    return _Parts(source, chosen, found, tuple(where), sets, having)


def _narrower(rng: random.Random, having: str) -> str:
    return rng.choice((having, having, f"{having} AND SUM(s.amt) IS NOT NULL", "COUNT(*) >= 3"))


def _over_rows(
    rng: random.Random,
    keys: dict[str, str],
    source: str,
    where: list[str],
    joined: tuple[str, Mapping[str, str]] | None,
) -> _Parts:
    more = tuple(joined[1].items()) if joined is not None else ()
    if rng.random() < 0.5:
        columns = (*_some(rng, keys, least=1), *more)
        return _Parts(source, columns, (), tuple(where))
    groups = tuple(i for i in keys.items() if i[0] in ("cat", "grp", "name", "day", "shop"))
    numbers = [e for n, e in keys.items() if n in ("amt", "price", "qty", "id")]
    measures = {"n": "COUNT(*)"}
    for number in numbers:
        name = number.partition(".")[2]
        measures[f"s_{name}"] = f"SUM({number})"
        measures[f"m_{name}"] = f"MAX({number})"
    chosen = _some(rng, dict(groups), least=0)[:2]
    return _Parts(source, (*chosen, *more), _some(rng, measures, least=1)[:3], tuple(where))


def _extra(
    rng: random.Random, shape: Shape, layout: Layout
) -> tuple[str, Mapping[str, str]] | None:
    """A dimension joined by a column that the cache keeps, as the cache does not join it."""
    if rng.random() > 0.3:
        return None
    for table, join, key, columns in rng.sample(_MORE, len(_MORE)):
        there = table.strip("{}") in layout.dims and join not in shape.definition
        alias = join.partition(" ON ")[0].rpartition(" ")[2]
        is_free = f" {alias} ON " not in shape.definition
        if there and is_free and key in shape.keys.values():
            return join, columns
    return None


def _filter(rng: random.Random, expressions: tuple[str, ...]) -> str:
    expression = rng.choice(expressions)
    return rng.choice((*_FILTERS.get(expression, ()), f"{expression} IS NOT NULL"))


def _some(
    rng: random.Random, items: Mapping[str, str], *, least: int
) -> tuple[tuple[str, str], ...]:
    if not items:
        return ()
    chosen = rng.sample(tuple(items), rng.randrange(least, len(items) + 1))
    return tuple(item for item in items.items() if item[0] in chosen)


def _measures(rng: random.Random, stored: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Stored aggregates; averages where their sums are, and what two columns have together, which
    depends on whether one is ever NULL."""
    offered = dict(stored)
    summed = {name: text[4:-1] for name, text in stored.items() if _SUM.fullmatch(text)}
    for name, column in summed.items():
        offered[f"avg_{name}"] = f"AVG({column})"
    together: dict[str, str] = {}
    for (one, left), (other, right) in combinations(summed.items(), 2):
        together[f"n_{one}_{other}"] = f"COUNT({left}, {right})"
        together[f"sum_{one}_{other}"] = f"SUM({left} + {right})"
    chosen = rng.sample(tuple(offered.items()), rng.randrange(1, len(offered) + 1))[:3]
    if together and rng.random() < 0.4:
        chosen.append(rng.choice(tuple(together.items())))
    return tuple(chosen)


def _wrapped(rng: random.Random, text: str, parts: _Parts, shape: Shape, layout: Layout) -> str:
    """The query as one block of a larger one."""
    other = _parts(rng, shape, layout)
    name = (*parts.keys, *parts.measures)[0][0]
    return rng.choice((
        f"WITH a AS ({text}), b AS ({other.text()}) SELECT (SELECT COUNT(*) FROM a) AS x, "
        "(SELECT COUNT(*) FROM b) AS y, COUNT(*) AS z FROM a",
        f"SELECT * FROM ({text}) a UNION ALL SELECT * FROM ({text}) b",
        f"SELECT a.{name}, COUNT(*) AS lines FROM ({text}) a GROUP BY a.{name}",
        f"SELECT a.*, (SELECT COUNT(*) FROM {{sales}}) AS whole_n FROM ({text}) a",
        f"SELECT a.* FROM ({text}) a WHERE a.{name} IS NOT NULL",
    ))  # fmt: skip
