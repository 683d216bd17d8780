"""Random predicates on a column, and predicates near a given one."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.spec import Piece
from tests.harness.fuzz.world import FLOATS, Column

_CLASS = {
    "int": "number", "smallint": "number", "bigint": "number", "decimal(12,2)": "decimal",
    "decimal(38,4)": "decimal", "double": "float", "float": "float", "date": "date",
    "timestamp": "timestamp", "string": "string", "boolean": "number",
}  # fmt: skip
_DIVISORS = ("int", "smallint", "bigint")
_OPS = ("=", "=", "<>", "<", "<=", ">", ">=")


def predicate(rng: Random, columns: list[Column]) -> Piece:
    """Any predicate over these columns."""
    column = rng.choice(columns)
    kind = rng.random()
    if kind < 0.12 and len(columns) > 1:
        other = rng.choice(columns)
        one, two = simple(rng, column), simple(rng, other)
        where = "predicate.or_one_column" if other == column else "predicate.or_columns"
        extra = simple(rng, rng.choice(columns)) if rng.random() < 0.3 else None
        text = f"({one.text} OR {two.text})"
        if extra is not None:
            text = f"({one.text} OR ({two.text} AND {extra.text}))"
        return Piece(text, one.tags | two.tags | tags(where), column.ref)
    if kind < 0.17:
        same = [c for c in columns if c.type == column.type and c != column]
        if same:
            other = rng.choice(same)
            op = rng.choice(["=", "=", "<=>", "<", "<>"])
            tag = "predicate.null_safe_equal" if op == "<=>" else "predicate.equal_columns"
            return Piece(f"{column.ref} {op} {other.ref}", tags(tag), column.ref)
    if kind < 0.22:
        inner = simple(rng, column)
        text = rng.choice(
            [
                f"CASE WHEN {inner.text} THEN true ELSE false END",
                f"CASE WHEN {inner.text} THEN 1 ELSE 0 END = 1",
                f"coalesce({inner.text}, false)",
            ]
        )
        return Piece(text, inner.tags | tags("predicate.case"), column.ref)
    return simple(rng, column)


def and_of_ors(rng: Random, columns: list[Column]) -> list[Piece]:
    """Several ORs that must all hold, each of two or three conditions on any columns."""
    found = []
    for _ in range(rng.choice((2, 2, 3, 4, 8))):
        parts = [simple(rng, rng.choice(columns)) for _ in range(rng.choice((2, 2, 3)))]
        more = tags("predicate.and_of_ors", "predicate.or_columns")
        text = "(" + " OR ".join(p.text for p in parts) + ")"
        found.append(Piece(text, more.union(*(p.tags for p in parts)), parts[0].column))
    return found


def deep_case(rng: Random, columns: list[Column]) -> Piece | None:
    """A comparison of CASEs in each other, whose branches are columns."""
    numbers = [c for c in columns if c.type in ("int", "bigint")]
    if not numbers:
        return None
    inner, found = (column := rng.choice(numbers)).ref, tags("predicate.deep_case")
    for _ in range(rng.choice((2, 2, 3, 4, 6))):
        test = simple(rng, rng.choice(columns))
        other = rng.choice((rng.choice(numbers).ref, "0", "NULL"))
        pair = (inner, other) if rng.random() < 0.5 else (other, inner)
        inner, found = f"CASE WHEN {test.text} THEN {pair[0]} ELSE {pair[1]} END", found | test.tags
    text = f"{inner} {rng.choice(_OPS)} {column.literal(rng.choice(column.values))}"
    return Piece(text, found, column.ref)


def simple(rng: Random, column: Column) -> Piece:
    """A predicate on one column alone."""
    if column.type == "boolean":
        return _boolean(rng, column)
    if column.struct and rng.random() < 0.06:
        negated = rng.choice(["", "NOT "])
        found = tags("predicate.is_not_null" if negated else "predicate.is_null")
        return Piece(f"{column.table}.{column.struct} IS {negated}NULL", found, column.ref)
    kind, ref = rng.random(), column.ref
    ranged = f"predicate.range_{_CLASS[column.type]}"
    if kind < 0.06:
        return Piece(f"{ref} IS NULL", tags("predicate.is_null"), ref)
    if kind < 0.13:
        return Piece(f"{ref} IS NOT NULL", tags("predicate.is_not_null"), ref)
    if kind < 0.26:
        chosen = rng.sample(column.values, rng.randint(1, min(3, len(column.values))))
        negated = "NOT " if rng.random() < 0.2 else ""
        listed = ", ".join(spelled(rng, column, v)[0] for v in chosen)
        found = tags("predicate.in_list", *(["predicate.not"] if negated else []))
        return Piece(f"{ref} {negated}IN ({listed})", found, ref)
    if kind < 0.36:
        low, high = sorted(rng.choices(column.values, k=2), key=lambda v: order(column, v))
        text = f"{ref} BETWEEN {spelled(rng, column, low)[0]} AND {spelled(rng, column, high)[0]}"
        return Piece(text, tags("predicate.between", ranged), ref)
    if kind < 0.42:
        inner = comparison(rng, column)
        return Piece(f"NOT ({inner.text})", inner.tags | tags("predicate.not"), ref)
    if kind < 0.47:
        text = f"{ref} <=> {spelled(rng, column, rng.choice(column.values))[0]}"
        return Piece(text, tags("predicate.null_safe_equal"), ref)
    if kind < 0.55:
        one, two = comparison(rng, column), comparison(rng, column)
        second = f"{ref} IS NULL" if rng.random() < 0.3 else two.text
        text = f"({one.text} OR {second})"
        return Piece(text, one.tags | tags("predicate.or_one_column"), ref)
    if column.type == "string" and kind < 0.72:
        pattern = rng.choice(["x%", "xa%", "%", "y%", "%a", "_a%", "x", "é%"])
        negated = "NOT " if rng.random() < 0.15 else ""
        return Piece(f"{ref} {negated}LIKE '{pattern}'", tags("predicate.like_prefix"), ref)
    return comparison(rng, column)


def guard(rng: Random, columns: list[Column]) -> Piece | None:
    """A predicate that keeps a division by its column, or a cast of it, from raising."""
    fit = [c for c in columns if c.type in _DIVISORS or c.type == "string"]
    if not fit:
        return None
    column = rng.choice(fit)
    if column.type == "string":
        return Piece(f"{column.ref} IN ('1', '2')", tags("predicate.in_list"), column.ref)
    ranged = tags(f"predicate.range_{_CLASS[column.type]}")
    return Piece(f"{column.ref} <> 0", ranged, column.ref, "<>", "0")


def guarded(rng: Random, piece: Piece, others: list[Column]) -> Piece | None:
    """`piece`, where it is a guard, and behind it what it keeps from raising, compared with some
    other column; what stands in one place keeps its order."""
    numbers = [c for c in others if c.type in _DIVISORS and c.ref != piece.column]
    right = rng.choice(numbers).ref if numbers and rng.random() < 0.7 else "1"
    op = rng.choice([">", "<=", "<>"])
    if piece.text == f"{piece.column} <> 0":
        raising = rng.choice([f"10 / {piece.column}", f"7 % {piece.column}"])
    elif piece.text == f"{piece.column} IN ('1', '2')":
        raising = f"CAST({piece.column} AS INT)"
    else:
        return None
    text = f"{piece.text} AND {raising} {op} {right}"
    return Piece(text, piece.tags | tags("predicate.guard"), piece.column)


def raising(rng: Random, columns: list[Column]) -> Piece | None:
    """What is an error of some values of its column, and never NULL of another."""
    fit = [c for c in columns if c.type in _DIVISORS or c.type == "string"]
    if not fit:
        return None
    ref, kind = (column := rng.choice(fit)).ref, rng.choice(["10 / {}", "7 % {}"])
    text = f"CAST({ref} AS INT)" if column.type == "string" else kind.replace("{}", ref)
    return Piece(text, tags("predicate.raising"), ref)


def true_or_raising(rng: Random, columns: list[Column]) -> Piece | None:
    """A condition that is true of all rows, or of all with no NULL, but those of which it is an
    error."""
    piece = raising(rng, columns)
    if piece is None:
        return None
    text = rng.choice(
        ["{0} IS NULL OR {0} IS NOT NULL", "{0} > 1 OR {0} <= 1 OR {0} IS NULL", "{0} IS NOT NULL"]
    )
    return Piece(text.format(piece.text), piece.tags, piece.column)


def comparison(rng: Random, column: Column) -> Piece:
    """`column op literal`, the literal in any spelling."""
    if column.type == "boolean":
        return _boolean(rng, column)
    value, op = rng.choice(column.values), rng.choice(_OPS)
    text, found = spelled(rng, column, value)
    ranged = tags(f"predicate.range_{_CLASS[column.type]}")
    if rng.random() < 0.1:
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
        return Piece(f"{text} {flipped} {column.ref}", ranged | found, column.ref, op, value)
    return Piece(f"{column.ref} {op} {text}", ranged | found, column.ref, op, value)


def near(rng: Random, piece: Piece, column: Column) -> list[Piece]:
    """Predicates on the same column that imply `piece`, mostly, or just miss to."""
    kind = rng.random()
    if kind < 0.3:
        return [piece]
    if kind < 0.45 or not piece.op or column.type == "boolean":
        return [piece, simple(rng, column)] if kind < 0.8 else [simple(rng, column)]
    inside = [v for v in column.values if _holds(column, v, piece.op, piece.value)]
    if not inside or kind > 0.92:
        return [simple(rng, column)]
    ranged = tags(f"predicate.range_{_CLASS[column.type]}")
    value = rng.choice(inside)
    text, found = spelled(rng, column, value)
    if kind < 0.6 or piece.op in ("=", "<>"):
        return [Piece(f"{column.ref} = {text}", ranged | found, column.ref, "=", value)]
    if kind < 0.7:
        listed = ", ".join(spelled(rng, column, v)[0] for v in inside)
        return [Piece(f"{column.ref} IN ({listed})", tags("predicate.in_list"), column.ref)]
    if kind < 0.8:
        low, high = sorted(rng.choices(inside, k=2), key=lambda v: order(column, v))
        text = f"{column.ref} BETWEEN {column.literal(low)} AND {column.literal(high)}"
        return [Piece(text, ranged | tags("predicate.between"), column.ref)]
    op = rng.choice([piece.op, piece.op[0]])
    return [Piece(f"{column.ref} {op} {text}", ranged | found, column.ref, op, value)]


def spelled(rng: Random, column: Column, value: str) -> tuple[str, frozenset[str]]:
    """The literal, three times in four as usual, else in another spelling of the same value."""
    usual = column.literal(value)
    if rng.random() < 0.72:
        return usual, frozenset()
    other = tags("predicate.literal_spelling")
    folded = tags("predicate.constant_folded")
    if column.type == "date":
        forms = [(f"'{value}'", other), (f"CAST('{value}' AS DATE)", other)]
        if value.startswith("20"):
            forms.append((f"(DATE '{value}' + INTERVAL 0 DAY)", folded))
            forms.append((f"add_months(DATE '{value}', 0)", folded))
            forms.append((f"TIMESTAMP '{value} 00:00:00'", other))
        if value == "2020-03-01":
            forms.append(("DATE '2020-02-01' + INTERVAL 1 MONTH", folded))
            forms.append(("date_add(DATE '2020-02-29', 1)", folded))
        return rng.choice(forms)
    if column.type == "timestamp":
        return rng.choice([(f"'{value}'", other), (f"CAST('{value}' AS TIMESTAMP)", other)])
    if column.type == "string":
        return f"concat('{value[:1]}', '{value[1:]}')", folded
    if column.type in FLOATS or abs(float(value)) > 1e6:
        return usual, frozenset()
    if column.type in ("int", "smallint", "bigint"):
        number = int(value)
        forms = [(f"{number}.0", other), (f"'{number}'", other), (f"({number - 1} + 1)", folded)]
        return rng.choice([*forms, (f"{number}L", other)])
    return rng.choice([(value, other), (f"({value} + 0.00)", folded), (f"{value}0", other)])


def order(column: Column, value: str) -> Any:
    """A sort key that orders a column's values as SQL does, NaN last."""
    if column.type in FLOATS:
        number = float(value)
        return (number != number, number)
    if column.type in ("date", "timestamp", "string", "boolean"):
        return value
    return Decimal(value)


def _holds(column: Column, value: str, op: str, other: str) -> bool:
    a, b = order(column, value), order(column, other)
    return bool({"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def _boolean(rng: Random, column: Column) -> Piece:
    ref = column.ref
    forms = (ref, f"NOT {ref}", f"{ref} = true", f"{ref} IS TRUE", f"{ref} IS NOT FALSE",
             f"{ref} <> true", f"{ref} IS NULL", f"{ref} = false", f"{ref} <=> true")  # fmt: skip
    return Piece(rng.choice(forms), tags("predicate.boolean_column"), ref)
