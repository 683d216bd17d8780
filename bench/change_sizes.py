"""What each way of a refresh costs after changes of 0.01 % to 50 % of the fact, and whether AUTO
takes the one that costs least.

Caches of few groups, of many, a cube and one without groups, after appends and after updates all
over: eight shapes by five sizes. Apart from them a ninth shape and two more sizes, which nobody
looked at when AUTO was tuned. In each cell, three times over: AUTO first, then each way by force.
What a way takes is the median of all its runs in the cell; what AUTO takes is what the ways took
that it chose.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Final

from pyspark.sql import SparkSession

from bench.incremental_cost import CACHES, FACT, create_fact, fact_version
from bench.plot import Curve, log_plot
from bench.results import Figure
from bench.ssb import SCALE, ssb_session
from cachemgr.errors import CacheManagerError
from cachemgr.refresh.by_change import incremental

PLOT: Final = Path(__file__).parents[1] / "docs" / "refresh_cost.svg"
_ROUNDS: Final = 3
_SIZES: Final = (0.0001, 0.001, 0.01, 0.1, 0.5)
_SIZES_APART: Final = (0.003, 0.3)
_SHAPES: Final = CACHES | {
    "rows": f"SELECT lo_custkey, lo_orderdate, lo_revenue FROM {FACT} WHERE lo_discount > 5",
}
_APART: Final = {
    "extremes": "SELECT lo_suppkey, part, MIN(lo_revenue) AS a, MAX(lo_quantity) AS b, "
    f"COUNT(*) AS n FROM {FACT} GROUP BY lo_suppkey, part",
}
_APPEND: Final = f"INSERT INTO {FACT} SELECT * FROM {FACT} VERSION AS OF {{first}} WHERE {{some}}"
_UPDATE: Final = f"UPDATE {FACT} SET lo_revenue = lo_revenue + 1 WHERE {{some}}"
_CHANGES: Final = {"appended": _APPEND, "updated": _UPDATE}
_SOME: Final = "pmod(hash(lo_orderkey, lo_linenumber, {seed}), 100000) < {part}"
# After a larger change the fact is put back at once; after smaller ones, which leave deletion
# vectors and small files, before the next size.
_LARGE: Final = 0.05
_TARGET: Final = 1.25
_COLOURS: Final = ("#2563eb", "#059669", "#f59e0b", "#dc2626", "#7c3aed")


@dataclass
class _Cell:
    """A shape after a change of one size.

    Args:
        cache: The shape's name.
        change: A key of `_CHANGES`.
        size: The share of the fact's rows.
    """

    cache: str
    change: str
    size: float
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    chosen: list[str] = field(default_factory=list)

    @property
    def is_apart(self) -> bool:
        return self.cache in _APART or self.size in _SIZES_APART

    @property
    def full(self) -> float:
        return median(self.seconds["FULL"])

    @property
    def by_change(self) -> float:
        """What the cheapest way by the change takes; a full refresh where there is none."""
        ways = [median(s) for way, s in self.seconds.items() if way != "FULL"]
        return min(ways, default=self.full)

    @property
    def auto(self) -> float:
        """What the ways take that AUTO chose."""
        return mean(median(self.seconds[way]) for way in self.chosen)

    @property
    def miss(self) -> float:
        """What AUTO takes over what the best way takes."""
        return self.auto / min(median(seconds) for seconds in self.seconds.values())

    def told(self) -> str:
        ways = ", ".join(f"{way} {median(s):.2f} s" for way, s in sorted(self.seconds.items()))
        chosen = "/".join(dict.fromkeys(self.chosen))
        return (
            f"{self.cache}, {self.size:.2%} {self.change}: {ways}; AUTO {chosen}, {self.miss:.2f}"
        )


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module; writes docs/refresh_cost.svg.

    Args:
        scale: SSB scale factor.
    """
    with ssb_session(scale, cube=False) as spark:
        create_fact(spark)
        bench = _Bench(spark)
        cells = [
            cell
            for change in _CHANGES
            for size in sorted((*_SIZES, *_SIZES_APART))
            for cell in bench.cells(change, size)
        ]
    PLOT.write_text(_plot([cell for cell in cells if cell.cache not in _APART], scale))
    grid, apart = ([c for c in cells if c.is_apart == is_apart] for is_apart in (False, True))
    return [
        *_judged(f"of {len(grid)} cells", grid),
        *_judged(f"of {len(apart)} cells apart", apart),
        Figure(
            "the dearest refresh by AUTO over a full one",
            max(c.auto / c.full for c in cells),
            "x",
            1.1,
        ),
        Figure(
            "the dearest refresh by the change over a full one",
            max(c.by_change / c.full for c in cells),
            "x",
        ),
    ]


def _judged(told: str, cells: list[_Cell]) -> list[Figure]:
    wrong = [cell for cell in cells if cell.miss > _TARGET]
    return [
        Figure(
            f"AUTO beyond {_TARGET} x of the best way, {told}", len(wrong) / len(cells), "", 0.1
        ),
        Figure(f"AUTO over the best way, the worst {told}", max(c.miss for c in cells), "x"),
    ]


class _Bench:
    """The caches over the fact.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names = {name: f"s{number}" for number, name in enumerate(_SHAPES | _APART)}
        for name, text in (_SHAPES | _APART).items():
            spark.sql(f"CREATE RELATIONAL CACHE {self._names[name]} AS {text}")
        self._first = fact_version(spark)
        self._seed = 0
        self._full()

    def cells(self, change: str, size: float) -> list[_Cell]:
        """All shapes after changes of one kind and size."""
        found = {name: _Cell(name, change, size) for name in self._names}
        for _ in range(_ROUNDS):
            for mode in ("AUTO", "INCREMENTAL", "REPLACE", "FULL"):
                self._change(change, size)
                for name, cell in found.items():
                    self._measured(name, mode, cell)
                if size > _LARGE:
                    self._put_back()
        self._put_back()
        for cell in found.values():
            print(cell.told(), flush=True)
        return list(found.values())

    def _measured(self, name: str, mode: str, cell: _Cell) -> None:
        try:
            with _by_sets() if mode == "REPLACE" else nullcontext():
                seconds, way = self._refresh(name, "INCREMENTAL" if mode == "REPLACE" else mode)
        except CacheManagerError:  # there is no way by the change
            seconds, way = self._refresh(name, "FULL")
        cell.seconds[way].append(seconds)
        if mode == "AUTO":
            cell.chosen.append(way)

    def _refresh(self, name: str, mode: str) -> tuple[float, str]:
        started = time.perf_counter()
        (row,) = self._spark.sql(f"REFRESH RELATIONAL CACHE {self._names[name]} {mode}").collect()
        return time.perf_counter() - started, str(row["mode"])

    def _change(self, change: str, size: float) -> None:
        self._seed += 1
        some = _SOME.format(seed=self._seed, part=round(size * 100_000))
        self._spark.sql(_CHANGES[change].format(first=self._first, some=some))

    def _put_back(self) -> None:
        self._spark.sql(f"RESTORE TABLE {FACT} TO VERSION AS OF {self._first}")
        self._full()

    def _full(self) -> None:
        for name in self._names:
            self._refresh(name, "FULL")


@contextmanager
def _by_sets() -> Iterator[None]:
    """Sets of any size are written anew, and none is added to."""
    before = incremental.FEW_ROWS
    incremental.FEW_ROWS = 1 << 62  # type: ignore[misc]
    try:
        yield
    finally:
        incremental.FEW_ROWS = before  # type: ignore[misc]


def _plot(cells: list[_Cell], scale: float) -> str:
    names = list(dict.fromkeys(cell.cache for cell in cells))
    curves = [
        Curve(
            f"{name}, {change}",
            _COLOURS[names.index(name)],
            tuple(
                (c.size * 100, c.by_change / c.full)
                for c in cells
                if (c.cache, c.change) == (name, change)
            ),
            is_dashed=change == "updated",
        )
        for change in _CHANGES
        for name in names
    ]
    title = f"What a refresh by the change takes of a full one (SSB {scale:g})"
    return log_plot(
        title, "percent of the fact's rows that changed", curves, (0.01, 50), (0.05, 2), "{:g} x"
    )
