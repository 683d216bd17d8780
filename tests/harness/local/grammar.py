"""Random queries over one table of edge values, of what is computed over held rows: expressions of
every class on the list, filters, groups, sorts and limits, one over another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

# the columns of the table, by name: type, and values that lie at its edges
COLUMNS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "b": ("BOOLEAN", ("true", "false")),
    "t": ("TINYINT", ("0Y", "1Y", "-1Y", "127Y", "-128Y")),
    "h": ("SMALLINT", ("0S", "7S", "-7S", "32767S", "-32768S")),
    "i": ("INT", ("0", "1", "-1", "12", "2147483647", "-2147483648")),
    "l": ("BIGINT", ("0L", "3L", "-3L", "9223372036854775807L", "-9223372036854775808L", "1000L")),
    "p": ("DECIMAL(10,2)", ("0.00BD", "1.50BD", "-1.50BD", "99999999.99BD", "-99999999.99BD")),
    "q": ("DECIMAL(38,6)", ("0BD", "0.000001BD", "-2.5BD", "99999999999999999999999999999999BD")),
    "d": ("DATE", ("DATE'1970-01-01'", "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'2024-02-29'")),
    "z": ("TIMESTAMP", ("TIMESTAMP'1970-01-01 00:00:00Z'", "TIMESTAMP'2024-03-31 01:30:00Z'",
        "TIMESTAMP'2024-10-27 00:30:00.000001Z'", "TIMESTAMP'1883-11-18 12:00:00Z'")),
    "n": ("TIMESTAMP_NTZ", ("TIMESTAMP_NTZ'2024-03-31 02:30:00'",
        "TIMESTAMP_NTZ'1600-01-01 00:00:00.5'")),
    "s": ("STRING", ("''", "'a'", "'A'", "'ab '", "' b'", "'ß'", "'é'", "'a%_'", "'12'", "'x12'",
        "'2024-02-29'", "'😀'")),
    "f": ("DOUBLE", ("0.0D", "-0.0D", "1.5D", "double('NaN')", "double('Infinity')", "-1e308D")),
}  # fmt: skip
_KEYS: Final = tuple("bthilpqdzns")
_WHOLE: Final = tuple("thil")
_NUMBERS: Final = tuple("thilpqf")


class Grammar:
    """Draws queries.

    Args:
        numbers: What they are drawn by.
    """

    def __init__(self, numbers: Random) -> None:
        self._rng = numbers

    def query(self) -> str:
        """The text of a query over the table `t0`."""
        shape: Callable[[], str] = self._rng.choice(
            (self._rows, self._groups, self._groups, self._groups, self._nested)
        )
        return shape()

    # ---- shapes

    def _rows(self) -> str:
        outputs = [self.any() for _ in range(self._rng.randint(1, 4))]
        text = f"SELECT {self._named(outputs)} FROM t0{self._where()}"
        return f"SELECT COUNT(*) FROM ({text})" if self._rng.random() < 0.2 else text

    def _groups(self) -> str:
        keys = [self._key() for _ in range(self._rng.randint(0, 3))]
        outputs = [*keys, *(self._aggregate() for _ in range(self._rng.randint(1, 3)))]
        if keys and self._rng.random() < 0.3:
            outputs.append(f"coalesce(CAST({keys[0]} AS STRING), '-')")
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING {self._having()}" if self._rng.random() < 0.2 else ""
        text = f"SELECT {self._named(outputs)} FROM t0{self._where()}{group}{having}"
        return self._ordered(text, len(keys))

    def _ordered(self, text: str, keys: int) -> str:
        """Sorted by all keys, so that there is one answer."""
        kind = self._rng.random()
        if kind < 0.4 or not keys:
            return text
        order = [f"c{i} {self._rng.choice(('ASC', 'DESC'))}" for i in range(keys)]
        nulls = self._rng.choice(("", " NULLS FIRST", " NULLS LAST"))
        self._rng.shuffle(order)
        limit = f" LIMIT {self._rng.choice((0, 1, 3, 100))}" if kind < 0.7 else ""
        return f"SELECT * FROM ({text}) ORDER BY {(nulls + ', ').join(order)}{nulls}{limit}"

    def _nested(self) -> str:
        inner = (
            f"SELECT {self._key()} AS i, {self._rng.choice(_WHOLE)} AS l, COUNT(*) AS h, "
            f"MAX(s) AS s, MIN(d) AS d FROM t0{self._where()} GROUP BY 1, 2"
        )
        # no sum of large numbers: whether it overflows hangs on the order of the groups
        aggregate = self._rng.choice(("SUM(h)", "MAX(s)", "MIN(d)", "COUNT(*)", "AVG(h)"))
        where = self._rng.choice(("", " WHERE h > 1", " WHERE s > 'a' OR d IS NULL"))
        key = self._rng.choice(("h", "d", "s"))
        return f"SELECT {key}, {aggregate} FROM ({inner}){where} GROUP BY {key}"

    def _named(self, outputs: list[str]) -> str:
        return ", ".join(f"{text} AS c{i}" for i, text in enumerate(outputs))

    def _where(self) -> str:
        kind = self._rng.random()
        if kind < 0.3:
            return ""
        return f" WHERE {' AND '.join(self.condition() for _ in range(self._rng.randint(1, 3)))}"

    def _having(self) -> str:
        return self._rng.choice(("COUNT(*) > 1", "MAX(i) IS NOT NULL", "SUM(t) >= 0"))

    def _key(self) -> str:
        kind = self._rng.random()
        if kind < 0.6:
            return self._rng.choice(_KEYS)
        return self._rng.choice((self.whole, self.time, self.text, self.condition))()

    def _aggregate(self) -> str:
        kind = self._rng.random()
        if kind < 0.15:
            text = "COUNT(*)"
        elif kind < 0.3:
            text = f"COUNT({self.any()})"
        elif kind < 0.6:
            text = f"{self._rng.choice(('SUM', 'AVG'))}({self.number()})"
        else:
            text = f"{self._rng.choice(('MIN', 'MAX'))}({self._key()})"
        if self._rng.random() < 0.2:
            text += f" FILTER (WHERE {self.condition()})"
        return f"coalesce({text}, {text})" if self._rng.random() < 0.1 else text

    # ---- expressions

    def any(self, depth: int = 2) -> str:
        """An expression of any type."""
        kinds = (self.number, self.whole, self.time, self.text, self.condition)
        return self._rng.choice(kinds)(depth)

    def literal(self, column: str) -> str:
        """A value of a column's type."""
        return "NULL" if self._rng.random() < 0.05 else self._rng.choice(COLUMNS[column][1])

    def condition(self, depth: int = 2) -> str:
        """A boolean."""
        kind = self._rng.random()
        if depth > 0 and kind < 0.3:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return self._rng.choice(
                (f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})")
            )
        column = self._rng.choice(tuple(COLUMNS))
        if kind < 0.4:
            return f"{column} IS {self._rng.choice(('', 'NOT '))}NULL"
        if kind < 0.55:
            values = ", ".join(self.literal(column) for _ in range(self._rng.choice((1, 2, 3, 14))))
            return f"{column} {self._rng.choice(('', 'NOT '))}IN ({values})"
        if kind < 0.65:
            return f"{column} BETWEEN {self.literal(column)} AND {self.literal(column)}"
        if kind < 0.75:
            function = self._rng.choice(("startswith", "endswith", "contains"))
            return f"{function}(s, {self.literal('s')})"
        operator = self._rng.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
        if depth > 0 and kind < 0.9:
            same = self._rng.choice((self.whole, self.text, self.number))
            return f"{same(depth - 1)} {operator} {same(depth - 1)}"
        pair = [column, self.literal(column)]
        self._rng.shuffle(pair)
        return f"{pair[0]} {operator} {pair[1]}"

    def whole(self, depth: int = 2) -> str:
        """A whole number."""
        kind = self._rng.random()
        if depth == 0 or kind < 0.3:
            column = self._rng.choice(_WHOLE)
            return column if self._rng.random() < 0.8 else self.literal(column)
        if kind < 0.5:
            part = self._rng.choice(
                ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear",
                 "weekofyear")
            )  # fmt: skip
            return f"{part}({self.date(depth - 1)})"
        if kind < 0.6:
            return f"{self._rng.choice(('hour', 'minute', 'second'))}({self._rng.choice('zn')})"
        if kind < 0.7:
            return f"length({self.text(depth - 1)})"
        if kind < 0.75:
            return f"datediff({self.date(depth - 1)}, {self.date(depth - 1)})"
        return self._computed(self.whole, depth)

    def number(self, depth: int = 2) -> str:
        """A number of any type."""
        kind = self._rng.random()
        if depth == 0 or kind < 0.4:
            column = self._rng.choice(_NUMBERS)
            return column if self._rng.random() < 0.85 else self.literal(column)
        if kind < 0.5:
            to = self._rng.choice(("INT", "BIGINT", "DECIMAL(20,4)", "DOUBLE", "TINYINT"))
            return f"CAST({self.number(depth - 1)} AS {to})"
        if kind < 0.6:
            function = self._rng.choice(("round", "bround", "ceil", "floor"))
            digits = ", 1" if function.endswith("round") and self._rng.random() < 0.5 else ""
            return f"{function}({self.number(depth - 1)}{digits})"
        return self._computed(self.number, depth)

    def _computed(self, of: Callable[[int], str], depth: int) -> str:
        left, right = of(depth - 1), of(depth - 1)
        kind = self._rng.random()
        if kind < 0.55:
            return f"({left} {self._rng.choice(('+', '-', '*', '/', 'div', '%'))} {right})"
        return self._rng.choice(
            (
                f"-({left})",
                f"abs({left})",
                f"pmod({left}, {right})",
                f"coalesce({left}, {right})",
                f"nullif({left}, {right})",
                f"if({self.condition(depth - 1)}, {left}, {right})",
                f"CASE WHEN {self.condition(depth - 1)} THEN {left} "
                f"WHEN {self.condition(0)} THEN {right} END",
                f"greatest({left}, {right})",
                f"least({left}, {right})",
            )
        )

    def date(self, depth: int = 1) -> str:
        """A date."""
        if depth == 0 or self._rng.random() < 0.5:
            return self._rng.choice(("d", "d", "CAST(z AS DATE)", "CAST(n AS DATE)"))
        inner = self.date(depth - 1)
        return self._rng.choice(
            (
                f"date_add({inner}, {self._rng.choice(('t', '1', '-400'))})",
                f"date_sub({inner}, 30)",
                f"add_months({inner}, {self._rng.choice(('h', '1', '-13'))})",
                f"last_day({inner})",
                f"trunc({inner}, '{self._rng.choice(('YEAR', 'MM', 'WEEK', 'QUARTER', 'no'))}')",
            )
        )

    def time(self, depth: int = 1) -> str:
        """A date or a timestamp."""
        kind = self._rng.random()
        if kind < 0.5:
            return self.date(depth)
        if kind < 0.75:
            return self._rng.choice("zn")
        unit = self._rng.choice(("HOUR", "DAY", "MONTH", "YEAR", "WEEK", "SECOND"))
        return f"date_trunc('{unit}', {self._rng.choice('zn')})"

    def text(self, depth: int = 2) -> str:
        """A string."""
        kind = self._rng.random()
        if depth == 0 or kind < 0.35:
            return "s" if self._rng.random() < 0.7 else self.literal("s")
        if kind < 0.5:
            return f"CAST({self.any(depth - 1)} AS STRING)"
        inner = self.text(depth - 1)
        return self._rng.choice(
            (
                f"upper({inner})",
                f"lower({inner})",
                f"substring({inner}, {self._rng.choice(('1', '2', '-1', 't'))}, 2)",
                f"concat({inner}, {self.text(depth - 1)})",
                f"trim({inner})",
                f"ltrim({inner})",
                f"rtrim({inner})",
                f"coalesce({inner}, 'none')",
            )
        )
