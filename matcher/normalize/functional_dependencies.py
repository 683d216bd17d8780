"""Functional dependencies: what the values of some columns determine, in every row of a join.

A record-preserving join to B says that B's key is unique (each row of A is kept exactly
once). So a row's value of that key, not NULL, determines the row of B and with it every column of
B, and in turn what B's foreign keys determine. Two uses:

- `GROUP BY k` and `GROUP BY k, name` are the same groups where k determines name, so a cache with
  the one answers the other without aggregating again;
- `MAX(name)` stored beside the key k is name itself: all rows of a group have the same.

The dependencies of bucketed times are here too: a month determines its year.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from matcher.model.expr import Agg, Col, Expr, columns
from matcher.model.ir import Measure, RecordPreservingJoin
from matcher.model.types import has_exact_equality
from matcher.predicates.context import PredicateContext
from matcher.predicates.time_buckets import NESTS, WITHIN_A_DAY, TimeFunction, read_time_function
from matcher.predicates.time_zones import fixed_offset, keeps_days

# Of equal values any of these is that value.
VALUE_OF_EQUALS: Final = ("min", "max", "any_value", "first", "last")


class Determined:
    """What `known` expressions determine in rows that satisfy `context`.

    Args:
        context: what the rows' predicates say; its classes are equal columns.
        known: canonical expressions whose values are given.
        tables: number and key of each table occurrence in the join.
        joins: the record-preserving joins that hold.
        zone: the session's time zone.
    """

    def __init__(
        self,
        context: PredicateContext,
        known: Iterable[Expr],
        tables: Sequence[tuple[int, str]],
        joins: Sequence[RecordPreservingJoin],
        zone: str,
    ) -> None:
        self._context = context
        self._known = {expr: expr for expr in known}
        self._zone = zone
        self._rows: set[int] = set()
        self.joins_used: list[str] = []
        left = [(rel, key) for rel, key in tables]
        while left:
            found = [(rel, key, join) for rel, key in left for join in joins
                     if join.right == key and self._has_key(rel, join)]  # fmt: skip
            if not found:
                break
            rel, key, join = found[0]
            self._rows.add(rel)
            self.joins_used.append(join.name)
            left.remove((rel, key))

    def __contains__(self, expr: Expr) -> bool:
        """True if the value of the canonical expression is determined."""
        if expr in self._known or self._context.constant(expr) is not None:
            return True
        if isinstance(expr, Col):
            return any(member.rel in self._rows for member in self._context.members(expr))
        parts = columns(expr)
        # -0.0 and 0.0 are one group, and CAST(… AS STRING) tells them apart
        if parts and all(has_exact_equality(part.type) and part in self for part in parts):
            return True
        return self._in_known_bucket(expr)

    def _has_key(self, rel: int, join: RecordPreservingJoin) -> bool:
        """True if the table's key is given, and is no NULL, of which there may be many."""
        for _, name in join.keys:
            column = self._context.find(Col(rel, name, ""))
            given = self._known.get(column, column)
            exact = given.type == "" or has_exact_equality(given.type)
            if not exact or column not in self or not self._context.never_null(given):
                return False
        return True

    def _in_known_bucket(self, expr: Expr) -> bool:
        wanted = read_time_function(expr, self._zone)
        if wanted is None:
            return False
        within = wanted.unit in WITHIN_A_DAY or wanted.unit == "DAY"
        if within and wanted.expr.type != "date" and fixed_offset(self._zone) is None:
            return False  # a date may have two midnights, and an hour be cut
        given = [read_time_function(k, self._zone) for k in self._known]
        same = [g for g in given if g is not None and g.of == wanted.of]
        return any(wanted.unit in NESTS[unit] for unit in _units(same, self._zone))


def _units(functions: list[TimeFunction], zone: str) -> set[str]:
    """The buckets that these values together name; a month number alone names none."""
    names = {f.expr.op for f in functions if f.expr.type == "int"}
    found = {f.unit for f in functions if f.expr.type == "date"}
    if keeps_days(zone):
        found |= {f.unit for f in functions if f.expr.op == "date_trunc"}
    if "year" in names:
        found.add("YEAR")
        found |= {u for n, u in (("quarter", "QUARTER"), ("month", "MONTH")) if n in names}
    return found


def measure_of_equals(measures: Mapping[Expr, Measure], column: Col) -> Measure | None:
    """A stored measure that is the value of `column` (canonical) where all rows of a group have the
    same."""
    if not has_exact_equality(column.type):
        return None
    for func in VALUE_OF_EQUALS:
        found = measures.get(Agg(func, (column,), column.type))
        if found is not None:
            return found
    return None
