"""A random star or snowflake schema with its rows, from a seed.

The rows hold what has caused wrong rows: NULLs in keys, filters and measures, duplicates, empty
tables, values at the limits of their types, NaN, -0.0 and infinities, the years 1 and 9999, empty
and non-ASCII strings, dimension rows that no fact row meets, fact keys that no dimension row has.
What is declared holds: a FOREIGN KEY … RELY or a record-preserving join is only declared over a
NOT NULL column whose every value is in the other table's primary key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

Cell = str | None

_SMALL: Final[dict[str, tuple[str, ...]]] = {
    "int": ("-1", "0", "1", "2", "3", "5"),
    "smallint": ("-2", "0", "1", "2", "7"),
    "bigint": ("-3", "0", "1", "2", "10", "4000000000"),
    "decimal(12,2)": ("-7.10", "0.00", "1.25", "3.50", "100.01"),
    "decimal(38,4)": ("-7.1000", "0.0001", "12345678901234567890.5000"),
    "double": ("-1.5", "0.0", "0.5", "2.25", "100.125"),
    "float": ("-1.5", "0.0", "0.5", "2.25"),
    "date": ("2019-12-31", "2020-01-01", "2020-01-31", "2020-02-29", "2020-03-01", "2021-06-15"),
    "timestamp": (
        "2019-12-31 23:59:59.999999", "2020-01-01 00:00:00", "2020-01-01 10:30:15",
        "2020-01-31 23:59:59", "2020-02-01 00:00:00", "2021-06-15 12:00:00",
    ),
    "string": ("x", "y", "z", "xa", "xab"),
    "boolean": ("true", "false"),
}  # fmt: skip
_EXTREME: Final[dict[str, tuple[str, ...]]] = {
    "int": ("2147483647", "-2147483648"),
    "smallint": ("32767", "-32768"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "9007199254740993"),
    "decimal(12,2)": ("9999999999.99", "-9999999999.99"),
    "decimal(38,4)": ("9999999999999999999999999999999999.9999",),
    "double": ("NaN", "-0.0", "0.0", "Infinity", "-Infinity", "1e300", "4.9e-324"),
    "float": ("NaN", "-0.0", "0.0", "Infinity", "3.4e38"),
    "date": ("0001-01-01", "9999-12-31", "1582-10-15"),
    "timestamp": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "string": ("", "é", "日本", "X", "x ", "100%", "a_b"),
    "boolean": (),
}
_WITH_STRUCTS: Final = 0.25
# `f_x` as the floating column is called, by which the judge knows what depends on the order of rows
_FIELDS_OF_THE_FACT: Final = (
    ("n", "int"), ("v", "string"), ("t", "date"), ("c", "decimal(12,2)"), ("f_x", "double"),
)  # fmt: skip
_FIELDS_OF_A_DIMENSION: Final = (("n", "int"), ("v", "string"))
_IDS: Final = ("-5", "0", "1", "2", "3", "4", "9", "10", "77")
NUMBERS: Final = frozenset({"int", "smallint", "bigint", "decimal(12,2)", "decimal(38,4)"})
FLOATS: Final = frozenset({"double", "float"})


@dataclass(frozen=True)
class Column:
    """One column, or one field of a struct column, which is named `column.field`; `values` are the
    texts that its cells and the literals near it are drawn from."""

    table: str
    name: str
    type: str
    nullable: bool
    values: tuple[str, ...]

    @property
    def ref(self) -> str:
        return f"{self.table}.{self.name}"

    @property
    def ddl(self) -> str:
        """As CREATE TABLE has it."""
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"

    @property
    def struct(self) -> str:
        """The struct column that it is a field of, or an empty text."""
        return self.name.rpartition(".")[0]

    def literal(self, value: str) -> str:
        """`value` in SQL that Spark and DuckDB read alike."""
        return literal(self.type, value)


def literal(type: str, value: str) -> str:
    """A constant of a type from its text."""
    if type in ("int", "boolean") or (type == "smallint" and not value.startswith("-3")):
        return value if value != "-2147483648" else "CAST('-2147483648' AS INT)"
    if type == "string":
        return f"'{value}'"
    if type == "date":
        return f"DATE '{value}'"
    if type == "timestamp":
        return f"TIMESTAMP '{value}'"
    return f"CAST('{value}' AS {type.upper()})"


@dataclass(frozen=True)
class Link:
    """`left.column` refers to `right.id`; `preserving` if each left row meets exactly one right
    row, `declared` if (and how) that is said: 'fk', 'join' or ''. Of one that is not, 'left' says
    that it meets one or none."""

    left: str
    column: str
    right: str
    preserving: bool
    declared: str

    @property
    def on(self) -> str:
        return f"{self.left}.{self.column} = {self.right}.{self.right}_id"


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    primary: str = ""

    def column(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    def declared(self) -> list[Column]:
        """The columns as they are created: the fields of a struct are one column."""
        found: dict[str, Column] = {}
        for column in self.columns:
            fields = [c for c in self.columns if c.struct and c.struct == column.struct]
            listed = ",".join(f"{c.name.rpartition('.')[2]}:{c.type}" for c in fields)
            whole = Column(self.name, column.struct, f"struct<{listed}>", True, ())
            found[column.struct or column.name] = whole if column.struct else column
        return list(found.values())


@dataclass(frozen=True)
class World:
    """A schema, its rows, and the settings that its caches are matched under."""

    seed: int
    tables: dict[str, Table]
    links: tuple[Link, ...]
    extreme: bool
    approximate: bool

    @property
    def conf(self) -> dict[str, str]:
        conf = {"spark.sql.session.timeZone": "UTC"}
        if not self.extreme:  # over small whole numbers an AVG from SUM and COUNT is exact
            conf["spark.cachemgr.assumeExactAverages"] = "true"
        if self.approximate:
            conf["spark.cachemgr.approximateFloats"] = "true"
        return conf

    @property
    def ddl(self) -> str:
        return ";\n".join(_create(self, t) for t in self.tables.values()) + ";\n" + VIEWS

    @property
    def joins(self) -> str:
        return "".join(
            f"CREATE RECORD PRESERVING JOIN {k.left}_{k.right} AS {k.left} "
            f"{'INNER' if k.preserving else 'LEFT'} JOIN {k.right} ON {k.on} PRESERVES {k.left};\n"
            for k in self.links
            if k.declared in ("join", "left")
        )

    def columns(self, tables: list[str]) -> list[Column]:
        return [c for t in tables for c in self.tables[t].columns]


VIEW_TEXT: Final = "SELECT * FROM f WHERE f.f_j > 0"
VIEWS: Final = f"CREATE VIEW vf AS {VIEW_TEXT};\n"


def world(seed: int, rows: int = 0) -> World:
    """The world of a seed; `rows` gives the same schema other rows."""
    rng = Random(f"world {seed}")
    extreme, approximate = rng.random() < 0.3, rng.random() < 0.25
    maker = _Maker(
        rng,
        Random(f"rows {seed} {rows}"),
        extreme and not approximate,
        150 if rows else 0,
        # of a source of its own, or all other worlds would become others
        Random(f"structs {seed}").random() < _WITH_STRUCTS,
    )
    names = [f"d{i}" for i in range(1, rng.randint(1, 4) + 1)]
    parents: dict[str, str] = {}
    for i, name in enumerate(names):
        chained = i > 0 and rng.random() < 0.4
        parents[name] = rng.choice(names[:i]) if chained else "f"
    if len(names) > 1 and "d2" in parents and rng.random() < 0.5:
        parents["d2"] = "d1"
    links: list[Link] = []
    tables: dict[str, Table] = {}
    ids: dict[str, list[str]] = {}
    for name in reversed(names):  # children first: a dimension refers to rows that exist
        children = [c for c in names if parents[c] == name]
        links += maker.links(name, children)
        tables[name] = maker.dimension(name, [k for k in links if k.left == name], ids)
    top = [c for c in names if parents[c] == "f"]
    links += maker.links("f", top)
    tables["f"] = maker.fact([k for k in links if k.left == "f"], ids)
    ordered = {n: tables[n] for n in [*names, "f"]}
    order = {n: i for i, n in enumerate(["f", *names])}
    links.sort(key=lambda k: (order[k.left], order[k.right]))
    return World(seed, ordered, tuple(links), maker.extreme, approximate)


def _create(world: World, table: Table) -> str:
    lines = [f"  {c.ddl}" for c in table.declared()]
    if table.primary:
        lines.append(f"  PRIMARY KEY ({table.primary})")
    lines += [
        f"  CONSTRAINT {k.left}_{k.right}_fk FOREIGN KEY ({k.column}) "
        f"REFERENCES {k.right} ({k.right}_id) NOT ENFORCED RELY"
        for k in world.links
        if k.left == table.name and k.declared == "fk"
    ]
    return f"CREATE TABLE {table.name} (\n" + ",\n".join(lines) + "\n)"


@dataclass
class _Maker:
    """Draws columns from one source of chance and rows from another."""

    rng: Random
    data: Random
    extreme: bool
    # Rows of the fact, and all that the schema allows in them: what a rewrite may rely on must be
    # declared. 0 leaves the size to chance, and values to the columns' few.
    least: int
    structs: bool

    def links(self, left: str, rights: list[str]) -> list[Link]:
        found = []
        for right in rights:
            preserving = self.rng.random() < 0.7
            ways = ["fk", "fk", "join", ""] if preserving else ["left", ""]
            declared = self.rng.choice(ways)
            found.append(Link(left, f"{left}_k{right[1:]}", right, preserving, declared))
        return found

    def dimension(self, name: str, links: list[Link], ids: dict[str, list[str]]) -> Table:
        kinds = [("g", "string"), ("h", "int"), ("r", "string"), ("z", "date"), ("m", "bigint")]
        chosen = [kinds[0], *self.rng.sample(kinds[1:], self.rng.randint(1, 3))]
        key = Column(name, f"{name}_id", "int", False, ("1", "2", "3", "4"))
        columns = [key, *(self._reference(k) for k in links)]
        columns += [self._column(name, f"{name}_{n}", t) for n, t in chosen]
        columns += self._fields(name, _FIELDS_OF_A_DIMENSION)
        size = 0 if self.data.random() < 0.03 and not self.least else self.data.randint(2, 6)
        if any(k.preserving and not ids[k.right] for k in links):
            size = 0
        mine = [str(i) for i in range(1, size + 1)]
        if self.least:  # nothing is declared of the numbers themselves
            mine = self.data.sample(_IDS, size)
        ids[name] = mine
        rows = []
        for number in mine:
            cells: list[Cell] = [number, *(self._foreign(k, ids) for k in links)]
            rows.append(self._row(cells, columns))
        return Table(name, tuple(columns), tuple(rows), f"{name}_id")

    def fact(self, links: list[Link], ids: dict[str, list[str]]) -> Table:
        kinds = {
            "i": "int", "j": "int", "b": "bigint", "c": "decimal(12,2)", "e": "decimal(12,2)",
            "x": "double", "t": "date", "u": "timestamp", "v": "string", "p": "boolean",
            "s": "smallint", "y": "float", "w": "decimal(38,4)", "q": "int",
        }  # fmt: skip
        always = ["i", "j", "b", "c", "t", "v", *(["u"] if self.rng.random() < 0.8 else [])]
        others = [k for k in kinds if k not in always]
        chosen = always + self.rng.sample(others, self.rng.randint(2, len(others)))
        columns = [self._reference(k) for k in links]
        columns += [self._column("f", f"f_{n}", kinds[n]) for n in sorted(chosen)]
        columns += self._fields("f", _FIELDS_OF_THE_FACT)
        empty = self.data.random() < (0 if self.least else 0.1) or any(
            k.preserving and not ids[k.right] for k in links
        )
        rows: list[tuple[Cell, ...]] = []
        for _ in range(0 if empty else self.data.randint(1, 50) + self.least):
            if rows and self.data.random() < 0.2:
                rows.append(self.data.choice(rows))
                continue
            cells: list[Cell] = [self._foreign(k, ids) for k in links]
            rows.append(self._row(cells, columns))
        return Table("f", tuple(columns), tuple(rows))

    def _fields(self, table: str, fields: tuple[tuple[str, str], ...]) -> list[Column]:
        """Some fields of a struct column, in a world that has any."""
        if not self.structs:
            return []
        chosen = self.rng.sample(fields, self.rng.randint(1, len(fields)))
        made = (self._column(table, f"{table}_st.{n}", t) for n, t in sorted(chosen))
        return [replace(column, nullable=True) for column in made]

    def _row(self, cells: list[Cell], columns: list[Column]) -> tuple[Cell, ...]:
        no_struct = self.structs and self.data.random() < 0.2
        rest = columns[len(cells) :]
        return (*cells, *(None if no_struct and c.struct else self._cell(c) for c in rest))

    def _reference(self, link: Link) -> Column:
        nullable = not link.preserving
        return Column(link.left, link.column, "int", nullable, ("1", "2", "3", "9"))

    def _foreign(self, link: Link, ids: dict[str, list[str]]) -> Cell:
        if link.preserving and (link.declared or not self.least):
            return self.data.choice(ids[link.right])
        if link.preserving:  # nobody says that it is, so it need not be so in other rows
            return self.data.choice(["9", *ids[link.right]])
        return self.data.choice([None, "9", *(ids[link.right] or ["8"])])

    def _column(self, table: str, name: str, type: str) -> Column:
        nullable = self.rng.random() < 0.6 and not name.endswith("_j")
        values = self.rng.sample(_SMALL[type], min(len(_SMALL[type]), self.rng.randint(2, 5)))
        if self.extreme and self.rng.random() < 0.5 and not name.endswith(("_i", "_j", "_e")):
            extremes = _EXTREME[type]
            values += self.rng.sample(extremes, min(len(extremes), self.rng.randint(1, 3)))
        elif type == "string" and self.rng.random() < 0.5:
            values += self.rng.sample(_EXTREME["string"], 2)
        return Column(table, name, type, nullable, tuple(values))

    def _cell(self, column: Column) -> Cell:
        if column.nullable and self.data.random() < 0.25:
            return None
        if self.least and self.data.random() < 0.2:
            wider = _SMALL[column.type] + (("-0.0", "NaN") if column.type in FLOATS else ())
            return self.data.choice(wider)
        return self.data.choice(column.values)
