"""Generated tables and the queries that are asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Final

FIRST_DAY: Final = date(2024, 1, 1)
CACHE: Final = (
    "SELECT day, shop, kind, town, item, SUM(amt) AS s, COUNT(*) AS n FROM facts "
    "GROUP BY day, shop, kind, town, item"
)


@dataclass(frozen=True)
class Workload:
    """One table, and the conditions that queries put on it.

    Args:
        rows: Of the base table.
        days: How many days it has.
        shops: How many shops.
        kinds: How many kinds.
        towns: How many towns.
        ordered: Whether the shop follows from the day's place in the year.
        conditions: One for each query.
    """

    rows: int
    days: int
    shops: int
    kinds: int
    towns: int
    ordered: bool
    conditions: tuple[str, ...]

    @property
    def table(self) -> str:
        """The statement that makes the base table."""
        shop = (
            f"(pmod(hash(id, 1), {self.days}) * {self.shops}) DIV {self.days}"
            if self.ordered
            else f"pmod(hash(id, 2), {self.shops})"
        )
        return (
            "CREATE TABLE facts USING delta AS SELECT "
            f"date_add(DATE'{FIRST_DAY}', pmod(hash(id, 1), {self.days})) AS day, "
            f"CAST({shop} AS INT) AS shop, pmod(hash(id, 3), {self.kinds}) AS kind, "
            f"concat('town', pmod(hash(id, 4), {self.towns})) AS town, "
            "pmod(hash(id, 6), 3000) AS item, "
            f"CAST(pmod(hash(id, 5), 100000) AS BIGINT) AS amt FROM range({self.rows})"
        )


def workload(seed: int, rows: int, queries: int) -> Workload:
    """Draw one.

    Args:
        seed: Its number.
        rows: About how many rows its table has.
        queries: How many queries are asked.
    """
    draw = Random(seed)
    drawn = Workload(
        int(rows * draw.uniform(0.5, 1.0)),
        *(draw.choice((12, 60, 180, 365)), draw.choice((8, 40, 300))),
        *(draw.choice((3, 10)), draw.choice((5, 50))),
        ordered=draw.random() < 0.25,
        conditions=(),
    )
    kinds = draw.sample(range(len(_PATTERNS)), draw.choice((1, 2, 2, 3)))
    while len({name for kind in kinds for name in _NAMES[kind]}) < 2:
        # of one column there are no five layouts
        kinds = draw.sample(range(len(_PATTERNS)), 2)
    weights = [draw.choice((1, 2, 5)) for _ in kinds]
    asked = draw.choices(kinds, weights, k=queries)
    conditions = tuple(_PATTERNS[kind](drawn, draw) for kind in asked)
    return Workload(**{**vars(drawn), "conditions": conditions})


def _day(of: Workload, draw: Random) -> str:
    return f"day = DATE'{FIRST_DAY + timedelta(draw.randrange(of.days))}'"


def _week(of: Workload, draw: Random) -> str:
    first = FIRST_DAY + timedelta(draw.randrange(max(1, of.days - 7)))
    return f"day BETWEEN DATE'{first}' AND DATE'{first + timedelta(6)}'"


def _shop(of: Workload, draw: Random) -> str:
    return f"shop = {draw.randrange(of.shops)}"


def _shops(of: Workload, draw: Random) -> str:
    return f"shop IN ({_some(of.shops, 3, draw)})"


def _kind(of: Workload, draw: Random) -> str:
    return f"kind = {draw.randrange(of.kinds)}"


def _town(of: Workload, draw: Random) -> str:
    return f"town = 'town{draw.randrange(of.towns)}'"


def _some(of: int, many: int, draw: Random) -> str:
    return ", ".join(map(str, draw.sample(range(of), min(many, of))))


def _both(first, second):  # type: ignore[no-untyped-def]
    return lambda of, draw: f"{first(of, draw)} AND {second(of, draw)}"


_NAMES: Final = (
    *(("day",), ("day",), ("shop",), ("shop",), ("kind",), ("town",)),
    *(("day", "kind"), ("day", "shop"), ("shop", "town"), ("day", "town")),
)
_PATTERNS: Final[Sequence] = (  # type: ignore[type-arg]
    *(_day, _week, _shop, _shops, _kind, _town),
    *(_both(_week, _kind), _both(_day, _shop), _both(_shop, _town), _both(_week, _town)),
)
