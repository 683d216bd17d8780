"""What layouts of a cache's table would have cost by the filters of its hits: a reckoning, without
Spark.

Files are made in memory from the combinations of values that the table holds, as a refresh would
lay them out: one or more for each value of PARTITIONED BY, cut out of the sorted rows by CLUSTER
BY, and mixed without either. For filters like those that were logged it is counted which files
Spark would have to open by each file's least and greatest values, and what they weigh. Which values
were asked for nobody noted: they are drawn, by a fixed seed.

More files let more be left out, but each costs something to open and to write: without that the
best layout would always be the one of most files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil
from random import Random
from typing import Final, TypeAlias

# What opening a file costs, and writing one in a refresh, in bytes that are read meanwhile.
OPEN_BYTES: Final = 100_000
WRITE_BYTES: Final = 500_000
# What Parquet adds for each file: a footer, dictionaries of its own.
FILE_BYTES: Final = 2_000
MOST_PARTITIONS: Final = 2_000
MOST_COLUMNS: Final = 4
# Of a range with an end that nobody noted: the part of a column's values that it holds.
UNKNOWN_SHARE: Final = 0.2
_DRAWS: Final = 300
_SEED: Final = 20_240_229

Value: TypeAlias = float | str | None


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """How one column is compared with constants: `points` values, or a range of a width that may be
    unknown."""

    column: str
    points: int | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class LoggedFilter:
    """Filters that were seen so often."""

    columns: tuple[ColumnFilter, ...]
    hits: int = 1


@dataclass(frozen=True)
class StoredValues:
    """What a cache's table holds.

    Args:
        columns: Those that were looked at.
        combinations: Each combination of their values, and how many rows have it; of a large table
            a sample of them.
        distinct: How many values each column has in all.
        rows: Rows of the table.
        bytes: Bytes of its files.
        files: How many files a refresh writes where nothing says how.
    """

    columns: tuple[str, ...]
    combinations: Sequence[tuple[tuple[Value, ...], int]]
    distinct: Mapping[str, int]
    rows: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What CREATE says of a table's layout; neither where nothing does."""

    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """For people, in the words of the DDL.

        >>> Layout(("day",)).clause, Layout().clause
        ('PARTITIONED BY (day)', 'neither clause')
        """
        if self.partitioned_by:
            return f"PARTITIONED BY ({', '.join(self.partitioned_by)})"
        if self.cluster_by:
            return f"CLUSTER BY ({', '.join(self.cluster_by)})"
        return "neither clause"


NO_LAYOUT: Final = Layout()


@dataclass(frozen=True, slots=True)
class Reckoned:
    """What a layout would have cost a hit, on average.

    Args:
        layout: The layout.
        files: Files of the table.
        files_opened: Those that a hit opens.
        bytes_opened: How large these are.
        cost: All in all, its part of the refreshes included, in bytes.
    """

    layout: Layout
    files: int
    files_opened: float
    bytes_opened: float
    cost: float


@dataclass(frozen=True, slots=True)
class _File:
    """One file: its part of all rows, and the least and greatest rank of each column."""

    share: float
    low: tuple[int, ...]
    high: tuple[int, ...]


_Box: TypeAlias = list[tuple[int, Sequence[int] | tuple[int, int], bool]]


def most_used(filters: Sequence[LoggedFilter]) -> tuple[str, ...]:
    """The columns that most hits compare with constants, at most `MOST_COLUMNS`.

    Args:
        filters: What the log saw.
    """
    used: dict[str, int] = {}
    for one in filters:
        for column in one.columns:
            used[column.column] = used.get(column.column, 0) + one.hits
    return tuple(sorted(used, key=lambda name: (-used[name], name))[:MOST_COLUMNS])


def candidates(
    stored: StoredValues, partitioning: Sequence[str], clustering: Sequence[str]
) -> tuple[Layout, ...]:
    """The layouts that come into question.

    Args:
        stored: What the table holds.
        partitioning: The columns that it may be partitioned by, most used first.
        clustering: Those that it may be clustered by.
    """
    found = [NO_LAYOUT]
    found += [Layout((name,)) for name in partitioning]
    if len(partitioning) > 1:
        found.append(Layout(tuple(partitioning[:2])))
    found += [Layout((), (name,)) for name in clustering]
    found += [Layout((), pair) for pair in permutations(clustering[:3], 2)]
    return tuple(each for each in found if partitions(stored, each) <= MOST_PARTITIONS)


def partitions(stored: StoredValues, layout: Layout) -> int:
    """How many folders the table would have; 1 where it is not partitioned.

    Args:
        stored: What it holds.
        layout: The layout.
    """
    if not layout.partitioned_by:
        return 1
    places = [stored.columns.index(name) for name in layout.partitioned_by]
    seen = len({tuple(values[p] for p in places) for values, _ in stored.combinations})
    if len(places) == 1:
        return max(seen, stored.distinct[layout.partitioned_by[0]])
    most = 1
    for place, name in zip(places, layout.partitioned_by, strict=True):
        alone = len({values[place] for values, _ in stored.combinations})
        # a sample lacks some values of each column alone as well
        most = max(most, ceil(seen * stored.distinct[name] / max(1, alone)))
    return min(stored.rows, most)


def reckon(
    stored: StoredValues,
    filters: Sequence[LoggedFilter],
    layouts: Sequence[Layout],
    refreshes_a_hit: float,
) -> tuple[Reckoned, ...]:
    """What each layout would have cost, the best first.

    Args:
        stored: What the table holds.
        filters: What the log saw.
        layouts: The layouts.
        refreshes_a_hit: How often the table is written for each query that it answers.
    """
    ranked = _Ranked(stored)
    boxes = list(ranked.boxes(filters))
    found = [_of(ranked, layout, boxes, refreshes_a_hit) for layout in layouts]
    # of equals the one that says least
    found.sort(key=lambda r: (r.cost, len(r.layout.partitioned_by) + len(r.layout.cluster_by)))
    return tuple(found)


def _of(
    ranked: _Ranked, layout: Layout, boxes: Sequence[tuple[float, _Box]], refreshes_a_hit: float
) -> Reckoned:
    files, scale = ranked.files(layout)
    count = max(1, round(len(files) * scale))
    size = ranked.stored.bytes + FILE_BYTES * max(0, count - ranked.stored.files)
    weight = opened = read = 0.0
    for hits, box in boxes:
        mine = [file for file in files if _is_opened(file, box)]
        weight += hits
        opened += hits * len(mine) * scale
        read += hits * sum(file.share for file in mine) * size
    opened, read = opened / max(weight, 1e-9), read / max(weight, 1e-9)
    cost = read + opened * OPEN_BYTES + refreshes_a_hit * count * WRITE_BYTES
    return Reckoned(layout, count, opened, read, cost)


def _is_opened(file: _File, box: _Box) -> bool:
    for column, asked, is_range in box:
        low, high = file.low[column], file.high[column]
        if is_range:
            if asked[1] < low or asked[0] > high:
                return False
        elif all(not low <= rank <= high for rank in asked):
            return False
    return True


class _Ranked:
    """Combinations with each value as its place among the column's values; NULL is before them."""

    def __init__(self, stored: StoredValues) -> None:
        self.stored = stored
        self._values: list[list[float | str]] = []
        for place in range(len(stored.columns)):
            held = {values[place] for values, _ in stored.combinations}
            kinds = [value for value in held if value is not None]
            self._values.append(sorted(kinds, key=_order))
        ranks: list[dict[Value, int]] = [
            {value: i for i, value in enumerate(column)} for column in self._values
        ]
        self._rows: list[_Row] = [
            (tuple(rank.get(value, -1) for rank, value in zip(ranks, values, strict=True)), rows)
            for values, rows in stored.combinations
        ]
        self._total = max(1, sum(n for _, n in self._rows))

    def files(self, layout: Layout) -> tuple[list[_File], float]:
        """The files of a layout, and how many real ones each stands for: of a sample more than
        one."""
        each = self._total / max(1, self.stored.files)
        if layout.partitioned_by:
            groups = self._grouped(layout.partitioned_by)
            parts = [self._split(rows, each) for rows in groups.values()]
            scale = partitions(self.stored, layout) / max(1, len(groups))
            return [file for part in parts for file in part], scale
        if layout.cluster_by:
            return self._cut(self._grouped(layout.cluster_by), each), 1.0
        return self._even(self._rows, each), 1.0

    def _grouped(self, names: Sequence[str]) -> dict[tuple[int, ...], list[_Row]]:
        places = [self.stored.columns.index(name) for name in names]
        found: dict[tuple[int, ...], list[_Row]] = {}
        for row in self._rows:
            found.setdefault(tuple(row[0][p] for p in places), []).append(row)
        return found

    def _even(self, rows: Sequence[_Row], each: float) -> list[_File]:
        """Files of rows that are mixed: each holds about all values."""
        if not rows:
            return []
        size = sum(n for _, n in rows)
        count = max(1, round(size / each))
        return [self._file(rows, size / count)] * count

    def _split(self, rows: Sequence[_Row], each: float) -> list[_File]:
        """The files of one partition: a large one is cut where the tasks end that its rows come
        from, into more files than its size asks for."""
        size = sum(n for _, n in rows)
        count = 1 if size <= each else ceil(size / each) + 1
        return [self._file(rows, size / count)] * count

    def _cut(self, groups: Mapping[tuple[int, ...], list[_Row]], each: float) -> list[_File]:
        """Files of sorted rows, equal keys together."""
        found: list[_File] = []
        rows: list[_Row] = []
        done = size = 0
        for key in sorted(groups):
            rows += groups[key]
            size += sum(n for _, n in groups[key])
            if done + size >= each * (len(found) + 1):
                found.append(self._file(rows, size))
                rows, done, size = [], done + size, 0
        return [*found, self._file(rows, size)] if rows else found

    def _file(self, rows: Sequence[_Row], size: float) -> _File:
        columns = list(zip(*(ranks for ranks, _ in rows), strict=True))
        return _File(
            size / self._total, tuple(min(c) for c in columns), tuple(max(c) for c in columns)
        )

    def boxes(self, filters: Sequence[LoggedFilter]) -> Iterator[tuple[float, _Box]]:
        """What might have been asked for, each with its weight."""
        draw = Random(_SEED)
        draws = max(20, _DRAWS // max(1, len(filters)))
        for one in filters:
            known = [c for c in one.columns if c.column in self.stored.columns]
            for _ in range(draws if known else 1):
                box = [self._drawn(column, draw) for column in known]
                yield one.hits / (draws if known else 1), box

    def _drawn(
        self, asked: ColumnFilter, draw: Random
    ) -> tuple[int, Sequence[int] | tuple[int, int], bool]:
        place = self.stored.columns.index(asked.column)
        values = self._values[place]
        if not values:
            return place, (0, 0), True
        if asked.points is not None:
            return place, draw.sample(range(len(values)), min(asked.points, len(values))), False
        return place, _range(values, asked.width, draw), True


_Row: TypeAlias = tuple[tuple[int, ...], int]


def _range(values: Sequence[float | str], width: float | None, draw: Random) -> tuple[int, int]:
    """The first and the last rank of a range."""
    last = values[-1]
    if width is None or isinstance(last, str):
        count = max(1, round(len(values) * UNKNOWN_SHARE))
        start = draw.randint(0, len(values) - count)
        return start, start + count - 1
    begin = draw.randrange(max(1, bisect_right(values, last - width)))
    low = values[begin]
    assert not isinstance(low, str), "text is not among numbers"
    return begin, bisect_right(values, low + width) - 1


def _order(value: float | str) -> tuple[bool, float, str]:
    """Numbers by their size, text by its letters."""
    return (True, 0.0, value) if isinstance(value, str) else (False, value, "")
