"""The shapes of caches: what each is defined as, and what queries are drawn near it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.harness.fuzz_refresh.layouts import COLUMNS, FACT, VIEWS

_NAME: Final = re.compile(r"\{(\w+)\}")
_DIMENSION: Final = re.compile(r"\b[ghiz]\.")

SALES: Final = "{sales} s"
SHOPS: Final = "JOIN {shops} h ON s.shop = h.k"
ITEMS: Final = "JOIN {items} i ON s.item = i.k"
ZONES: Final = "JOIN {zones} z ON h.zone = z.k"


@dataclass(frozen=True)
class Shape:
    """A cache.

    Args:
        name: The cache's name.
        source: FROM, with joins, table names in braces.
        keys: Output name to expression: the columns of a cache without groups, else its group keys.
        measures: Output name to aggregate; none for a cache without groups.
        where: Conjunct of WHERE; empty for none.
        grouping: GROUP BY's text where it is not the plain list of keys.
        groups: Group keys where the keys shown are computed from them.
        having: The condition of HAVING; empty for none.
        clauses: Clauses of CREATE.
        tail: What stands at the end of the SELECT.
        over: The SELECT over another shape's cache that defines it, and that shape; its own text is
            then the same over the base tables.
        written: The SELECT by which it is created, where that is another text of the same.
    """

    name: str
    source: str
    keys: Mapping[str, str]
    measures: Mapping[str, str]
    where: str = ""
    grouping: str = ""
    groups: tuple[str, ...] = ()
    having: str = ""
    clauses: str = ""
    tail: str = ""
    over: tuple[str, str] | None = None
    written: str = ""

    @property
    def definition(self) -> str:
        """Its SELECT over base tables and views, in braces."""
        columns = [f"{e} AS {n}" for n, e in {**self.keys, **self.measures}.items()]
        if self.grouping and self.keys:
            columns.append("GROUPING_ID() AS gid")
        where = f" WHERE {self.where}" if self.where else ""
        group = ""
        if self.measures and self.keys:
            plain = ", ".join(self.groups or self.keys.values())
            group = f" GROUP BY {self.grouping or plain}"
        if self.having:
            group += f" HAVING {self.having}"
        return f"SELECT {', '.join(columns)} FROM {self.source}{where}{group}{self.tail}"

    @property
    def tables(self) -> frozenset[str]:
        """The base tables that it reads."""
        return tables_of(self.definition)

    def over_fact(self) -> Shape | None:
        """What it has of the fact alone, over the fact alone: where its joins preserve records, it
        answers that too. None where it joins nothing, or nothing is left."""
        keys, measures = (
            {name: text for name, text in columns.items() if not _DIMENSION.search(text)}
            for columns in (self.keys, self.measures)
        )
        joins = self.source.startswith(f"{SALES} ") and not self.over and not self.having
        if not joins or not (measures if self.measures else keys):
            return None
        return replace(self, source=SALES, keys=keys, measures=measures, grouping="")

    def create(self, freshness: str, *, replace: bool = False) -> str:
        """CREATE RELATIONAL CACHE.

        Args:
            freshness: Its freshness clause; empty for the default.
            replace: OR REPLACE.
        """
        text = self.over[1] if self.over else named(self.definition)
        if self.written and not replace:  # then a table may have other columns
            text = self.written
        words = " ".join(w for w in (self.name, self.clauses, freshness) if w)
        return f"CREATE {'OR REPLACE ' if replace else ''}RELATIONAL CACHE {words} AS {text}"


def named(text: str) -> str:
    """A text with table names in braces as SQL over the tables as they are."""
    return _NAME.sub(r"\1", text)


def tables_of(text: str) -> frozenset[str]:
    """The base tables of a text, those of its views included."""
    found: set[str] = set()
    for name in _NAME.findall(text):
        found |= tables_of(VIEWS[name]) if name in VIEWS else {name}
    return frozenset(found)


def at_versions(text: str, versions: Mapping[str, int]) -> str:
    """A text over the tables at versions; over those that are not named, as they are."""

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name in VIEWS:
            return f"({at_versions(VIEWS[name], versions)})"
        return f"{name} VERSION AS OF {versions[name]}" if name in versions else name

    return _NAME.sub(one, text)


_SUMS: Final = {"amt": "SUM(s.amt)", "n": "COUNT(*)", "n_amt": "COUNT(s.amt)"}
_CAT: Final = {"cat": "s.cat"}
_BY_SHOP: Final = (
    "SELECT b.shop, COUNT(*) AS m, SUM(b.amt) AS total FROM {sales} b WHERE b.cat <> 'b' "
    "GROUP BY b.shop"
)
_CUBE_KEYS: Final = {"cat": "s.cat", "grp": "h.grp", "label": "i.label"}
_CUBE_SETS: Final = (
    "GROUPING SETS ((s.cat, h.grp, i.label), (s.cat, h.grp), (h.grp, i.label), (h.grp), ())"
)

SHAPES: Final[Mapping[str, Shape]] = {
    shape.name: shape
    for shape in (
        Shape(
            "plain_rows", SALES,
            {c: f"s.{c}" for c in ("id", "day", "cat", "shop", "qty", "amt", "price")}, {},
        ),
        Shape(
            "filtered_rows", SALES, {c: f"s.{c}" for c in ("id", "cat", "item", "amt", "flag")}, {},
            where="s.qty > 2 AND s.cat <> 'b'",
        ),
        Shape(
            "joined_rows", f"{SALES} {SHOPS}",
            {"id": "s.id", "cat": "s.cat", "amt": "s.amt", "name": "h.name", "grp": "h.grp"}, {},
        ),
        Shape(  # the columns that there are when it is created
            "every_column", SALES, {c: f"s.{c}" for c in COLUMNS[FACT]}, {},
            written="SELECT * FROM sales",
        ),
        Shape("by_cat", SALES, _CAT, {**_SUMS, "qty": "SUM(s.qty)", "price": "SUM(s.price)"}),
        Shape("whole", SALES, {}, {**_SUMS, "most": "MAX(s.qty)", "price": "SUM(s.price)"}),
        Shape(
            "by_grp", f"{SALES} {SHOPS}", {"grp": "h.grp", "cat": "s.cat"},
            {**_SUMS, "price": "SUM(s.price)", "low": "MIN(s.qty)"},
        ),
        Shape(
            "by_grp_of_item", f"{SALES} JOIN {{shops}} g ON s.item = g.k",
            {"grp": "g.grp", "cat": "s.cat"}, {**_SUMS, "price": "SUM(s.price)"},
        ),
        Shape(
            "by_grp_and_item", f"{SALES} {SHOPS}", {"grp": "h.grp", "item": "s.item"},
            {**_SUMS, "price": "SUM(s.price)"},
        ),
        Shape(
            "by_both", f"{SALES} {SHOPS} JOIN {{shops}} g ON s.item = g.k",
            {"grp": "h.grp", "other": "g.grp", "cat": "s.cat"}, _SUMS,
        ),
        Shape(
            "cube", f"{SALES} {SHOPS} {ITEMS}", _CUBE_KEYS, {**_SUMS, "price": "SUM(s.price)"},
            grouping=_CUBE_SETS,
        ),
        Shape(
            "rolled", SALES, {"cat": "s.cat", "shop": "s.shop"}, {**_SUMS, "high": "MAX(s.amt)"},
            grouping="ROLLUP (s.cat, s.shop)",
        ),
        Shape(
            "extremes", SALES, {"cat": "s.cat", "item": "s.item"},
            {
                "low": "MIN(s.amt)", "high": "MAX(s.price)", "last": "MAX(s.day)",
                "all_set": "BOOL_AND(s.flag)", "some_set": "BOOL_OR(s.flag)",
                "b_and": "BIT_AND(s.bits)", "b_or": "BIT_OR(s.bits)", "b_xor": "BIT_XOR(s.bits)",
            },
        ),
        Shape(
            "averages", SALES, {"cat": "s.cat", "shop": "s.shop"},
            {
                "mean_price": "AVG(s.price)", "mean_qty": "AVG(s.qty)", "price": "SUM(s.price)",
                "qty": "SUM(s.qty)", "n_price": "COUNT(s.price)", "n_qty": "COUNT(s.qty)",
            },
        ),
        Shape(
            "expressions", SALES, {"cat": "s.cat", "month": "date_trunc('MONTH', s.day)"},
            {
                "worth": "SUM(s.price * s.tiny)", "both": "SUM(CAST(s.qty AS BIGINT) + s.tiny)",
                "flagged": "COUNT(CASE WHEN s.flag THEN 1 END)", "n_qty": "COUNT(s.qty)",
                "big": "SUM(CASE WHEN s.qty > 4 THEN s.price ELSE 0 END)", "n": "COUNT(*)",
            },
        ),
        Shape(
            "left_join", f"{SALES} LEFT {SHOPS}", {"name": "h.name", "cat": "s.cat"},
            {**_SUMS, "known": "COUNT(h.k)"},
        ),
        Shape(
            "semi", SALES, _CAT, {**_SUMS, "qty": "SUM(s.qty)"},
            where="EXISTS (SELECT 1 FROM {shops} h WHERE h.k = s.shop AND h.grp <> 'south')",
        ),
        Shape(  # of which only what is appended to the shops can be added
            "beside_groups", f"{{shops}} h JOIN ({_BY_SHOP}) g ON h.k = g.shop",
            {"name": "h.name", "grp": "h.grp", "m": "g.m", "total": "g.total"}, {},
        ),
        Shape(
            "left_of_groups", f"{SALES} LEFT JOIN ({_BY_SHOP}) g ON s.shop = g.shop",
            {"cat": "s.cat", "m": "g.m"}, {**_SUMS, "known": "COUNT(g.shop)"},
        ),
        Shape(
            "groups_of_groups", f"({_BY_SHOP}) g", {"m": "g.m"},
            {"shops": "COUNT(*)", "total": "SUM(g.total)"},
        ),
        Shape(
            "groups_filtered", f"{{shops}} h JOIN ({_BY_SHOP}) g ON h.k = g.shop",
            {"grp": "h.grp"}, {"n": "COUNT(*)", "total": "SUM(g.total)"}, where="g.m > 1",
        ),
        Shape(
            "having", SALES, {"cat": "s.cat", "shop": "s.shop"},
            {**_SUMS, "price": "SUM(s.price)"}, having="COUNT(*) > 1",
        ),
        Shape(
            "ratios", SALES, {"cat": "s.cat", "shop": "s.shop"},
            {
                "rate": "SUM(s.price) / COUNT(*)", "more": "COUNT(*) + 1", "n": "COUNT(*)",
                "mean": "ROUND(AVG(s.price), 2)", "amt": "SUM(s.amt)",
                "some": "CASE WHEN COUNT(*) > 2 THEN SUM(s.amt) END",
            },
        ),
        Shape(
            "computed_keys", SALES,
            {"cat": "s.cat", "next": "s.shop + 2", "unknown": "s.item IS NULL"}, _SUMS,
            groups=("s.cat", "s.shop", "s.item"),
        ),
        Shape("ordered", SALES, {"cat": "s.cat", "day": "s.day"}, _SUMS, tail=" ORDER BY 2, 1"),
        Shape(
            "viewed", "{net_sales} s", {"cat": "s.cat", "band": "s.band"},
            {"amt": "SUM(s.amt)", "n": "COUNT(*)", "qty": "MAX(s.qty)"},
        ),
        Shape(
            "nested", SALES, _CAT, {"amt": "SUM(s.amt)", "n": "COUNT(*)"}, where="s.cat <> 'c'",
            over=(
                "by_cat",
                "SELECT cat, SUM(amt) amt, SUM(n) n FROM by_cat WHERE cat <> 'c' GROUP BY ALL",
            ),
        ),
        Shape(
            "partitioned", SALES, {"cat": "s.cat", "day": "s.day"}, {**_SUMS, "w": "MAX(s.w)"},
            clauses="PARTITIONED BY (day)",
        ),
        Shape(
            "top", SALES, {c: f"s.{c}" for c in ("amt", "id", "cat")}, {},
            tail=" ORDER BY s.amt DESC, s.id, s.cat LIMIT 7",
        ),
        Shape(
            "distinct_shops", SALES, _CAT, {"shops": "COUNT(DISTINCT s.shop)", "n": "COUNT(*)"}
        ),
        Shape("floats", SALES, _CAT, {"w": "SUM(s.w)", "mean_w": "AVG(s.w)", "n": "COUNT(*)"}),
        Shape(
            "zoned", f"{SALES} {SHOPS} {ZONES}", {"title": "z.title", "cat": "s.cat"},
            {**_SUMS, "price": "SUM(s.price)"},
        ),
    )
}  # fmt: skip
