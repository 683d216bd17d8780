"""Random group keys and aggregates, and those near given ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.predicates import raising, simple, true_or_raising
from tests.harness.fuzz.spec import Piece
from tests.harness.fuzz.world import FLOATS, NUMBERS, Column

_BUCKETS = {
    "date": (
        ("year({})", "date_part"), ("month({})", "date_part"), ("quarter({})", "date_part"),
        ("trunc({}, 'MM')", "date_trunc"), ("trunc({}, 'YEAR')", "date_trunc"),
        ("date_trunc('MONTH', {})", "date_trunc"), ("date_trunc('QUARTER', {})", "date_trunc"),
        ("extract(YEAR FROM {})", "extract"), ("extract(MONTH FROM {})", "extract"),
        ("date_format({}, 'yyyy-MM')", "date_format"), ("last_day({})", "date_trunc"),
        ("dayofweek({})", "date_part"), ("date_format({}, 'yyyy')", "date_format"),
        ("date_format({}, 'yyyyMM')", "date_format"), ("date_format({}, 'MMM yy')", "date_format"),
        ("date_format({}, 'y.Q')", "date_format"), ("date_format({}, 'yyyy-MM-dd')", "date_format"),
        ("date_trunc('WEEK', {})", "date_trunc"), ("year({}) * 100 + month({})", "date_part"),
    ),
    "timestamp": (
        *(("to_date({})", "to_date"),) * 5, *(("CAST({} AS DATE)", "to_date"),) * 3,
        ("date_trunc('HOUR', {})", "date_trunc"), ("date_trunc('DAY', {})", "date_trunc"),
        ("date_trunc('MONTH', {})", "date_trunc"), ("date_trunc('YEAR', {})", "date_trunc"),
        ("year({})", "date_part"), ("hour({})", "date_part"), ("month({})", "date_part"),
        ("date_format({}, 'yyyy-MM-dd')", "date_format"), ("extract(HOUR FROM {})", "extract"),
        ("extract(YEAR FROM {})", "extract"), ("date_format({}, 'yyyy-MM')", "date_format"),
        ("date_trunc('MINUTE', {})", "date_trunc"), ("trunc(to_date({}), 'MM')", "date_trunc"),
        ("date_format({}, 'yyyy')", "date_format"), ("date_format({}, 'dd HH')", "date_format"),
        ("date_format(to_date({}), 'E d')", "date_format"),
    ),
    "string": (
        ("upper({})", "expression_of_key"), ("substring({}, 1, 1)", "expression_of_key"),
        ("length({})", "expression_of_key"), ("concat({}, '-')", "expression_of_key"),
        ("coalesce({}, 'none')", "expression_of_key"),
    ),
    "int": (
        ("{} % 3", "expression_of_key"), ("CAST({} AS BIGINT)", "expression_of_key"),
        ("coalesce({}, 0)", "expression_of_key"),
        ("CASE WHEN {} > 1 THEN 'big' WHEN {} IS NULL THEN 'none' ELSE 'small' END",
         "expression_of_key"),
        ("({} > 1)", "expression_of_key"), ("-{}", "expression_of_key"),
    ),
    "decimal(12,2)": (("CAST({} AS DOUBLE)", "expression_of_key"), ("round({})",
                                                                      "expression_of_key")),
    "boolean": (("(NOT {})", "expression_of_key"), ("coalesce({}, false)", "expression_of_key")),
    "double": (("({} > 0)", "expression_of_key"), ("{} + 1", "expression_of_key")),
}  # fmt: skip


def key(column: Column) -> Piece:
    """The column itself as a group key."""
    return Piece(column.ref, column=column.ref)


def bucket(rng: Random, column: Column) -> Piece:
    """A function of the column as a group key; the column where none is known."""
    forms = _BUCKETS.get(column.type)
    if not forms:
        return key(column)
    text, item = rng.choice(forms)
    return Piece(text.replace("{}", column.ref), tags(f"key.{item}"), column.ref)


@dataclass(frozen=True)
class Measure:
    """An aggregate in parts. `args` are texts, `{}`-free; `wrap` is put around the call."""

    func: str
    args: tuple[str, ...]
    tags: frozenset[str]
    columns: tuple[Column, ...] = ()
    distinct: bool = False
    filter: Piece | None = None

    @property
    def piece(self) -> Piece:
        return self.wrapped("{}")

    def wrapped(self, template: str) -> Piece:
        """The call inside an expression."""
        text = f"{self.func}({'DISTINCT ' if self.distinct else ''}{', '.join(self.args)})"
        found = self.tags
        if self.filter is not None:
            text += f" FILTER (WHERE {self.filter.text})"
            found |= tags("rollup.filter_clause")
        first = self.columns[0].ref if self.columns else ""
        return Piece(template.replace("{}", text), found, first)


COUNT_STAR = Measure("COUNT", ("*",), tags("rollup.count_star"))


def measure(rng: Random, columns: list[Column], exotic: float = 0.2) -> Measure:
    """Any aggregate over these columns; `exotic` is the share beyond SUM, COUNT, MIN, MAX, AVG."""
    numbers = [c for c in columns if c.type in NUMBERS or c.type in FLOATS]
    whole = [c for c in columns if c.type in ("int", "bigint", "smallint")]
    if rng.random() < exotic:
        found = _exotic(rng, columns, numbers, whole)
        if found is not None:
            return found
    kind = rng.random()
    column = rng.choice(columns)
    if kind < 0.15 or not numbers:
        return COUNT_STAR if rng.random() < 0.5 or not numbers else _count(column)
    if kind < 0.25:
        return _count(column)
    if kind < 0.45:
        func = rng.choice(["MIN", "MAX"])
        return Measure(func, (column.ref,), tags(f"rollup.{func.lower()}"), (column,))
    number = rng.choice(numbers)
    if kind < 0.75:
        return Measure("SUM", (number.ref,), tags("rollup.sum"), (number,))
    if kind < 0.87:
        return Measure("AVG", (number.ref,), tags("rollup.avg"), (number,))
    if kind < 0.9:
        text = rng.choice(["1", "2", "1.5"])
        return Measure("SUM", (text,), tags("rollup.sum_literal"))
    return plus_minus(rng, numbers)


def plus_minus(rng: Random, numbers: list[Column]) -> Measure:
    """SUM(a ± b), sometimes SUM(a * b)."""
    one, two = rng.choice(numbers), rng.choice(numbers)
    op = rng.choice(["+", "-", "-", "*"])
    found = tags("rollup.sum_plus_minus") if op != "*" else tags("rollup.sum")
    return Measure("SUM", (f"{one.ref} {op} {two.ref}",), found, (one, two))


def _count(column: Column) -> Measure:
    return Measure("COUNT", (column.ref,), tags("rollup.count"), (column,))


def _exotic(
    rng: Random, columns: list[Column], numbers: list[Column], whole: list[Column]
) -> Measure | None:
    column = rng.choice(columns)
    kind = rng.choice(
        ["stddev", "variance", "variance", "variance", "covariance", "covariance", "covariance",
         "correlation", "correlation", "correlation", "bool", "bit", "bit", "any",
         "distinct", "filter", "filter", "case", "case", "set", "hll", "hll", "any", "percentile",
         "percentile", "approx", "approx", "distinct"]
    )  # fmt: skip
    if kind in ("stddev", "variance") and numbers:
        number = rng.choice(numbers)
        func = {"stddev": ["STDDEV", "STDDEV_POP"], "variance": ["VAR_SAMP", "VAR_POP"]}[kind]
        return Measure(rng.choice(func), (number.ref,), tags(f"rollup.{kind}"), (number,))
    if kind in ("covariance", "correlation") and len(numbers) > 1:
        one, two = rng.sample(numbers, 2)
        func = rng.choice(["COVAR_POP", "COVAR_SAMP"]) if kind == "covariance" else "CORR"
        return Measure(func, (one.ref, two.ref), tags(f"rollup.{kind}"), (one, two))
    if kind == "bool":
        condition = simple(rng, column)
        func = rng.choice(["BOOL_AND", "BOOL_OR", "EVERY", "SOME"])
        return Measure(func, (condition.text,), tags("rollup.bool_and_or"), (column,))
    if kind == "bit" and whole:
        number = rng.choice(whole)
        func = rng.choice(["BIT_AND", "BIT_OR", "BIT_XOR"])
        return Measure(func, (number.ref,), tags("rollup.bit_and_or_xor"), (number,))
    if kind == "distinct":
        func = rng.choice(["COUNT", "COUNT", "SUM"]) if column in numbers else "COUNT"
        return Measure(func, (column.ref,), tags("rollup.count_distinct"), (column,), True)
    if kind == "filter" and numbers:
        number = rng.choice(numbers)
        func = rng.choice(["SUM", "COUNT", "MIN", "MAX"])
        found = tags(f"rollup.{func.lower()}")
        return Measure(func, (number.ref,), found, (number,), filter=simple(rng, column))
    if kind == "case" and numbers:
        return case_inside(rng, column, rng.choice(numbers))
    return _gathering(rng, kind, column, columns, numbers)


def _gathering(
    rng: Random, kind: str, column: Column, columns: list[Column], numbers: list[Column]
) -> Measure | None:
    """Sets, sketches and percentiles."""
    if kind == "set":
        return Measure("COLLECT_SET", (column.ref,), tags("rollup.collect_set"), (column,))
    sketched = [c for c in columns if c.type in ("int", "bigint", "string")]
    if kind == "hll" and sketched:
        column = rng.choice(sketched)
        return Measure("HLL_SKETCH_AGG", (column.ref,), tags("rollup.hll"), (column,))
    if kind == "approx":
        found = tags("rollup.approx_count_distinct")
        return Measure("APPROX_COUNT_DISTINCT", (column.ref,), found, (column,))
    if kind == "percentile" and numbers:
        number = rng.choice(numbers)
        return Measure("PERCENTILE", (number.ref, "0.5"), tags("rollup.percentile"), (number,))
    if kind == "any":
        func = rng.choice(["ANY_VALUE", "FIRST", "LAST"])
        return Measure(func, (column.ref,), tags("rollup.any_value"), (column,))
    return None


def case_inside(rng: Random, column: Column, number: Column) -> Measure:
    """An aggregate of a CASE over `column`, which may be a key."""
    condition = simple(rng, column).text
    func = rng.choice(["SUM", "SUM", "COUNT", "MAX"])
    other = rng.choice([" ELSE 0", "", " ELSE NULL"]) if func != "COUNT" else ""
    what = rng.choice([number.ref, number.ref, "1"])
    text = f"CASE WHEN {condition} THEN {what}{other} END"
    return Measure(func, (text,), tags("rollup.case_inside"), (number, column))


def near_measure(rng: Random, stored: list[Measure], keys: list[Column]) -> Piece:
    """An aggregate that follows from what a cache stores, mostly, or just misses to."""
    base = rng.choice(stored) if stored else COUNT_STAR
    kind = rng.random()
    if keys and rng.random() < 0.03 and (near := _raising(rng, base, keys)) is not None:
        return near
    if keys and kind < 0.14:
        return _of_key(rng, rng.choice(keys), base)
    if kind < 0.18:
        return rng.choice([COUNT_STAR.piece, Measure("SUM", ("1",), _LITERAL).piece])
    if kind < 0.30 and base.func in ("SUM", "AVG") and not base.distinct:
        func = rng.choice(["SUM", "AVG", "COUNT"])
        found = tags(f"rollup.{func.lower()}")
        return Measure(func, base.args, found, base.columns, filter=base.filter).piece
    if kind < 0.36 and base.func in ("SUM", "COUNT") and not base.distinct:
        return _arithmetic(rng, base)
    sums = [m for m in stored if m.func == "SUM" and len(m.columns) == 1 and m.filter is None]
    if kind < 0.42 and len(sums) > 1:
        one, two = rng.sample(sums, 2)
        text = f"{one.args[0]} {rng.choice('+-')} {two.args[0]}"
        return Measure("SUM", (text,), tags("rollup.sum_plus_minus"), one.columns).piece
    if kind < 0.50 and keys and base.filter is None and base.func in _FILTERABLE:
        return Measure(
            base.func, base.args, base.tags, base.columns, base.distinct,
            simple(rng, rng.choice(keys)),
        ).piece  # fmt: skip
    if kind < 0.58 and keys and base.func == "SUM" and base.columns:
        return case_inside(rng, rng.choice(keys), base.columns[0]).piece
    if kind < 0.61 and base.columns:
        return shown(measure(rng, list(base.columns), 0.5))
    return shown(base)


_LITERAL = tags("rollup.sum_literal")
_FILTERABLE = frozenset({"SUM", "COUNT", "MIN", "MAX", "AVG"})


def shown(base: Measure) -> Piece:
    """The aggregate as a query shows it: sets sorted, sketches estimated."""
    if base.func == "COLLECT_SET":
        return base.wrapped("sort_array({})")
    if base.func == "HLL_SKETCH_AGG":
        return base.wrapped("hll_sketch_estimate({})")
    return base.piece


def _raising(rng: Random, base: Measure, columns: list[Column]) -> Piece | None:
    """The stored aggregate, or one of what is an error of some rows alone, beside or behind what
    keeps Spark from working it out."""
    piece = raising(rng, columns)
    if piece is None:
        return None
    other = base.columns[0].ref if base.columns else "*"
    kind = rng.choice(["filter", "filter", "count", "product", "several", "behind", "case"])
    if kind == "filter" and base.filter is None and base.func in _FILTERABLE:
        condition = true_or_raising(rng, columns)
        if condition is not None:
            found = base.tags | condition.tags
            return replace(base, tags=found, filter=condition).piece
    if kind == "product" and base.func == "SUM" and base.columns:
        text = f"{other} {rng.choice('*+')} {piece.text}"
        return Measure("SUM", (text,), piece.tags | tags("rollup.sum")).piece
    if kind == "several" and base.columns:
        return Measure("COUNT", (other, piece.text), piece.tags | tags("rollup.count")).piece
    func = rng.choice(["COUNT", "SUM", "MAX"])
    found = piece.tags | tags(f"rollup.{func.lower()}")
    if kind == "behind":
        kept = base.filter or simple(rng, rng.choice(columns))
        return Measure(func, (piece.text,), found | kept.tags, filter=kept).piece
    if kind == "case":
        text = f"CASE WHEN {simple(rng, rng.choice(columns)).text} THEN {piece.text} END"
        found |= tags("rollup.case_inside")
        return Measure(func, (text,), found, distinct=func != "MAX" and rng.random() < 0.4).piece
    return Measure("COUNT", (piece.text,), piece.tags | tags("rollup.count")).piece


def _of_key(rng: Random, column: Column, base: Measure) -> Piece:
    kind = rng.random()
    number = column.type in NUMBERS
    if kind < 0.3:
        tag = tags("rollup.distinct_on_keys", "rollup.count_distinct")
        return Measure("COUNT", (column.ref,), tag, (column,), True).piece
    if kind < 0.4 and number:
        func = rng.choice(["SUM", "AVG"])
        return Measure(func, (column.ref,), tags("rollup.distinct_on_keys"), (column,), True).piece
    if kind < 0.5:
        text = f"sort_array(COLLECT_SET({column.ref}))"
        return Piece(text, tags("rollup.collect_set", "rollup.aggregate_of_key"), column.ref)
    if kind < 0.55:
        func = rng.choice(["BOOL_AND", "BOOL_OR"])
        text = f"{func}({simple(rng, column).text})"
        return Piece(text, tags("rollup.bool_and_or", "rollup.aggregate_of_key"), column.ref)
    if number and kind < 0.85:
        func = rng.choice(["SUM", "AVG", "COUNT", "MIN"])
    else:
        func = rng.choice(["MIN", "MAX", "COUNT"])
    found = tags("rollup.aggregate_of_key", f"rollup.{func.lower()}")
    return Measure(func, (column.ref,), found, (column,)).piece


def _arithmetic(rng: Random, base: Measure) -> Piece:
    template = rng.choice(
        ["{} + 1", "{} * 2", "{} / COUNT(*)", "coalesce({}, 0)", "CAST({} AS DOUBLE)",
         "{} - COUNT(*)", "CASE WHEN {} > 0 THEN 'p' ELSE 'n' END"]
    )  # fmt: skip
    found = base.wrapped(template)
    return Piece(found.text, found.tags | tags("rollup.arithmetic"), found.column)
