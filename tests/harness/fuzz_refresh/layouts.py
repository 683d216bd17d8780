"""The base tables of the worlds: a fact and its dimensions, and how their Delta tables are kept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

FACT: Final = "sales"
COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    FACT: {
        "id": "BIGINT", "day": "DATE", "cat": "STRING", "shop": "INT", "item": "INT", "qty": "INT",
        "amt": "BIGINT", "price": "DECIMAL(10,2)", "w": "DOUBLE", "flag": "BOOLEAN", "bits": "INT",
        "tiny": "SMALLINT", "spare": "STRING",
    },
    "shops": {"k": "INT", "name": "STRING", "grp": "STRING", "zone": "INT", "spare": "STRING"},
    "items": {"k": "INT", "label": "STRING", "tier": "SMALLINT", "spare": "STRING"},
    "zones": {"k": "INT", "title": "STRING", "spare": "STRING"},
    "promos": {"k": "INT", "promo": "STRING", "spare": "STRING"},
}  # fmt: skip
# A view is part of the queries' texts like a table; by versions it is its own text.
VIEWS: Final[Mapping[str, str]] = {
    "net_sales": "SELECT id, cat, shop, qty, amt, price, "
    "CASE WHEN qty > 3 THEN 'many' ELSE cat END AS band FROM {sales} WHERE qty IS NULL OR qty <> 1",
}
# The record-preserving joins by name, as they are declared at first.
JOINS: Final[Mapping[str, str]] = {
    "rp_shops": "sales INNER JOIN shops ON sales.shop = shops.k PRESERVES sales",
    "rp_items": "sales INNER JOIN items ON sales.item = items.k PRESERVES sales",
    # holds where a row of the fact finds nothing, which breaks the first
    "lp_shops": "sales LEFT JOIN shops ON sales.shop = shops.k PRESERVES sales",
}
# What they may be declared as later: by other keys of the same tables each row finds its own too.
OTHER_JOINS: Final = (
    "sales INNER JOIN shops ON sales.item = shops.k PRESERVES sales",
    "sales LEFT JOIN shops ON sales.item = shops.k PRESERVES sales",
    "sales INNER JOIN items ON sales.shop = items.k PRESERVES sales",
    "sales INNER JOIN shops ON sales.shop = shops.k AND sales.item = shops.zone PRESERVES sales",
)
KEYS: Final[Mapping[str, int]] = {"shops": 6, "items": 5, "zones": 3, "promos": 4}
CATS: Final = ("a", "b", "c", "d", "ä ö")
DAYS: Final = tuple(f"2024-01-0{d}" for d in range(1, 7))
_EXTREMES: Final[Mapping[str, tuple[str, ...]]] = {
    "amt": ("4611686018427387904", "-4611686018427387904", "9007199254740993"),
    "price": ("99999999.99", "-99999999.99", "0.01"),
    "w": ("DOUBLE('NaN')", "DOUBLE('Infinity')", "-1e10D", "1e10D"),
    "qty": ("2147483647", "-2147483648"),
    "bits": ("-1", "2147483647"),
}


@dataclass(frozen=True)
class Layout:
    """How the tables of a world are made.

    Args:
        name: What it is called in a walk.
        dims: Its dimensions.
        partition: The fact's partition column; empty for none.
        properties: Delta properties of the fact.
        dim_properties: Delta properties of the dimensions.
        joins: Whether record-preserving joins are declared, which the first rows then keep.
        tame: Whether no value is NULL or extreme at the start. What a refresh finds to be so ends
            with the rows that come.
        rows: Rows of the fact at the start.
        files: In how many commits they came.
    """

    name: str
    dims: tuple[str, ...] = ("shops", "items")
    partition: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    dim_properties: Mapping[str, str] = field(default_factory=dict)
    joins: bool = False
    tame: bool = False
    rows: int = 60
    files: int = 3

    @property
    def tables(self) -> tuple[str, ...]:
        """Fact and dimensions."""
        return (FACT, *self.dims)


_VECTORS = {"delta.enableDeletionVectors": "true"}
_NO_VECTORS = {"delta.enableDeletionVectors": "false"}
_MAPPING = {"delta.columnMapping.mode": "name"}
_BY_ID = {"delta.columnMapping.mode": "id"}
_FEED = {"delta.enableChangeDataFeed": "true"}
_TIMES = {"delta.enableInCommitTimestamps": "true"}
_WIDENING = {"delta.enableTypeWidening": "true"}
_TRACKING = {"delta.enableRowTracking": "true"}

LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.name: layout
    for layout in (
        Layout("plain", properties=_NO_VECTORS),
        Layout("vectors", properties=_VECTORS, dim_properties=_VECTORS, joins=True),
        Layout("by_cat", partition="cat", properties=_NO_VECTORS, joins=True, tame=True, rows=80),
        Layout(
            "by_day", partition="day", properties=_VECTORS | _FEED, tame=True, rows=120, files=2
        ),
        Layout(
            "mapped", ("shops", "items", "zones"), properties=_MAPPING | _WIDENING | _VECTORS,
            dim_properties=_MAPPING | _WIDENING, joins=True,
        ),
        Layout(
            "mapped_by_cat", partition="cat", properties=_MAPPING | _FEED | _TIMES | _WIDENING,
            dim_properties=_MAPPING, tame=True,
        ),
        Layout(
            "mapped_by_id", ("shops", "items", "zones"), properties=_BY_ID | _VECTORS,
            dim_properties=_BY_ID, joins=True,
        ),
        Layout(
            "snowflake", ("shops", "items", "zones", "promos"), properties=_FEED | _VECTORS,
            dim_properties=_FEED, joins=True, rows=200, files=4,
        ),
        Layout(
            "in_commit", ("shops", "items", "zones"), properties=_TIMES | _TRACKING | _VECTORS,
            tame=True,
        ),
        Layout("empty", properties=_VECTORS, joins=True, rows=0),
        Layout("empty_by_cat", ("shops", "items", "promos"), partition="cat", rows=0),
    )
}  # fmt: skip


def value(
    rng: random.Random, column: str, type_: str, number: int, *, wild: bool, tame: bool = False
) -> str:
    """A literal for a column.

    Args:
        rng: The source of chance.
        column: The column's name, which says what it is about.
        type_: Its type, for columns that came later.
        number: The row's number.
        wild: Whether NULL keys, keys that no dimension has, and extreme values may come.
        tame: Whether no NULL may come.
    """
    if column == "id":
        return str(number)
    is_key = column in ("shop", "item", "zone")
    if rng.random() < 0.12 and (wild or not is_key) and not tame:
        return f"CAST(NULL AS {type_})"
    if wild and column in _EXTREMES and rng.random() < 0.02:
        return rng.choice(_EXTREMES[column])
    if is_key:
        most = KEYS["zones" if column == "zone" else column + "s"]
        return str(rng.randrange(1, most + (2 if wild and rng.random() < 0.25 else 0) + 1))
    literal = {
        "cat": lambda: f"'{rng.choice(CATS)}'",
        "day": lambda: f"DATE'{rng.choice(DAYS)}'",
        "price": lambda: f"{rng.randrange(-500, 2000) / 100:.2f}",
        # sums of these are exact in every order
        "w": lambda: f"{rng.randrange(-40, 80) / 4}D",
        "flag": lambda: rng.choice(("true", "false")),
        "name": lambda: f"'n{rng.randrange(6)}'",
        "grp": lambda: rng.choice(("'north'", "'south'", "''")),
        "label": lambda: f"'l{rng.randrange(4)}'",
    }.get(column)
    return literal() if literal is not None else _of_type(rng, type_)


def _of_type(rng: random.Random, type_: str) -> str:
    if type_.upper() in ("SMALLINT", "INT", "BIGINT"):
        return str(rng.randrange(-5, 20))
    if type_.upper() == "STRING":
        return f"'t{rng.randrange(9)}'"
    return f"CAST({rng.randrange(9)} AS {type_})"


def insert(
    rng: random.Random,
    table: str,
    columns: Mapping[str, str],
    numbers: range,
    *,
    wild: bool,
    tame: bool = False,
) -> str:
    """An INSERT of some rows; a dimension's rows are numbered by their keys."""
    rows = []
    for number in numbers:
        cells = [
            str(number)
            if column == "k"
            else value(rng, column, type_, number, wild=wild, tame=tame)
            for column, type_ in columns.items()
        ]
        rows.append(f"({', '.join(cells)})")
        if wild and rng.random() < 0.1:
            rows.append(rows[-1])  # a duplicate
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join(rows)}"


def statements(layout: Layout) -> Iterator[str]:
    """What makes the tables of a layout, always the same rows."""
    rng = random.Random(layout.name)
    for table in layout.tables:
        yield create(layout, table)
        if table != FACT:
            yield insert(rng, table, COLUMNS[table], range(1, KEYS[table] + 1), wild=False)
            continue
        for number in range(layout.files if layout.rows else 0):
            share = layout.rows // layout.files
            numbers = range(number * share + 1, (number + 1) * share + 1)
            wild = not layout.joins and not layout.tame
            yield insert(rng, FACT, COLUMNS[FACT], numbers, wild=wild, tame=layout.tame)


def create(layout: Layout, table: str, suffix: str = "") -> str:
    """CREATE TABLE of one table.

    Args:
        layout: The layout.
        table: Which table.
        suffix: What stands after the names of table and provider.
    """
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS[table].items())
    is_fact = table == FACT
    parts = f" PARTITIONED BY ({layout.partition})" if is_fact and layout.partition else ""
    given = layout.properties if is_fact else layout.dim_properties
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in given.items())
    told = f" TBLPROPERTIES ({properties})" if properties else ""
    return f"CREATE TABLE {table} ({columns}) USING delta{suffix}{parts}{told}"
