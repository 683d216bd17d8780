"""Random caches over a small star schema and random queries near them, from a seed.

The schema has what has caused wrong rows: NULLs in keys, filters and measures, duplicates,
dimension rows that no fact row
meets, decimals, dates. Declared facts hold: `f.k1` always finds its `d1` row; `d2` has gaps, so
its join loses rows and is declared
by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SCHEMA = """
CREATE TABLE f (
  k1 INT NOT NULL, k2 INT, a INT, b BIGINT NOT NULL, c DECIMAL(12,2), q INT NOT NULL, t DATE
);
CREATE TABLE d1 (k INT NOT NULL, g STRING, h INT);
CREATE TABLE d2 (k INT NOT NULL, r STRING, y INT NOT NULL);
"""
JOIN = "CREATE RECORD PRESERVING JOIN f_d1 AS f INNER JOIN d1 ON k1 = k PRESERVES f"
_COLUMNS = {
    "f": ("a", "q", "t", "k2", "k1"),
    "d1": ("g", "h"),
    "d2": ("r", "y"),
}
_ON = {"d1": "f.k1 = d1.k", "d2": "f.k2 = d2.k"}
_MEASURES = (
    "SUM(f.a)",
    "SUM(f.b)",
    "SUM(f.c)",
    "COUNT(*)",
    "COUNT(f.a)",
    "COUNT(f.c)",
    "MIN(f.a)",
    "MAX(f.b)",
    "MIN(f.c)",
    "MAX(f.t)",
    "AVG(f.a)",
    "AVG(f.q)",
    "SUM(f.b - f.q)",
    "SUM(f.a + f.b)",
    "COUNT(DISTINCT f.a)",
    "SUM(f.q)",
    "COUNT(DISTINCT d1.g)",
    "MIN(d1.h)",
    "SUM(f.b * f.q)",
    "SUM(DISTINCT f.q)",
    "COUNT(f.q)",
    "MAX(f.q)",
    "COUNT(*) FILTER (WHERE f.q > 1)",
    "SUM(f.b) FILTER (WHERE d1.g = 'x')",
)


@dataclass(frozen=True)
class Case:
    """A cache's statement and a query, as the text door takes them."""

    cache: str
    query: str


def data(rng: Random) -> list[str]:
    """INSERT statements; one seed in eight leaves the fact empty."""
    rows = []
    for _ in range(0 if rng.random() < 0.125 else rng.randint(1, 40)):
        day = rng.choice(["NULL", "DATE '2020-01-01'", "DATE '2020-01-31'", "DATE '2021-06-15'"])
        cells = [
            str(rng.randint(1, 3)),
            rng.choice(["NULL", "1", "2", "9"]),
            rng.choice(["NULL", "-1", "0", "1", "5"]),
            str(rng.randint(-3, 3)),
            rng.choice(["NULL", "0.00", "1.25", "-7.10"]),
            str(rng.randint(0, 3)),
            day,
        ]
        rows.append(f"({', '.join(cells)})")
    statements = [f"INSERT INTO f VALUES {', '.join(rows)}"] if rows else []
    statements.append(
        "INSERT INTO d1 VALUES (1, 'x', 1), (2, NULL, 2), (3, 'x', NULL), (4, 'z', 4)"
    )
    statements.append("INSERT INTO d2 VALUES (1, 'x', 1), (2, 'y', 1), (7, 'y', 2)")
    return statements


def case(rng: Random) -> Case:
    """One cache and one query that has a fair chance to be answered from it."""
    tables = [t for t in ("d1", "d2") if rng.random() < 0.6]
    columns = [f"{t}.{c}" for t in ("f", *tables) for c in _COLUMNS[t]]
    shared = [_predicate(rng, columns) for _ in range(rng.choice([0, 0, 0, 1]))]
    if rng.random() < 0.15:
        cache = _plain_cache(rng, tables, columns, shared)
        stored = columns
    else:
        stored = rng.sample(columns, rng.randint(1, min(5, len(columns))))
        cache = _aggregated_cache(rng, tables, stored, shared)
    return Case(cache, _query(rng, tables, stored, shared))


def _plain_cache(rng: Random, tables: list[str], columns: list[str], where: list[str]) -> str:
    chosen = [*columns, "f.b", "f.c"]
    items = ", ".join(f"{c} AS {c.replace('.', '_')}" for c in chosen if rng.random() < 0.95)
    return (
        f"CREATE RELATIONAL CACHE c AS SELECT {items or 'f.q AS f_q'} {_from(rng, tables, where)}"
    )


def _aggregated_cache(rng: Random, tables: list[str], keys: list[str], where: list[str]) -> str:
    usable = [m for m in _MEASURES if "d1." not in m or "d1" in tables]
    measures = rng.sample(usable, rng.randint(1, 8))
    items = [f"{k} AS {k.replace('.', '_')}" for k in keys]
    items += [f"{m} AS m{i}" for i, m in enumerate(measures)]
    group = ", ".join(keys)
    if rng.random() < 0.4:
        sets = [rng.sample(keys, rng.randint(0, len(keys))) for _ in range(rng.randint(1, 4))]
        sets.insert(rng.randint(0, len(sets)), keys)
        group += " GROUPING SETS (" + ", ".join("(" + ", ".join(s) + ")" for s in sets) + ")"
    select = f"SELECT {', '.join(items)} {_from(rng, tables, where)} GROUP BY {group}"
    return f"CREATE RELATIONAL CACHE c AS {select}"


def _query(rng: Random, tables: list[str], stored: list[str], shared: list[str]) -> str:
    kept = [t for t in tables if rng.random() < 0.8]
    reachable = [c for c in stored if c.split(".")[0] in ("f", *kept)] or ["f.q"]
    where = [p for p in shared if _reads(p, kept) and rng.random() < 0.85]
    where += [_predicate(rng, reachable) for _ in range(rng.choice([0, 1, 1, 2]))]
    keys = rng.sample(reachable, rng.randint(0, len(reachable)))
    usable = [m for m in _MEASURES if "d1." not in m or "d1" in kept]
    if rng.random() < 0.12:
        items = [f"{k} AS o{i}" for i, k in enumerate(keys or reachable[:1])]
        distinct = "DISTINCT " if rng.random() < 0.5 else ""
        return f"SELECT {distinct}{', '.join(items)} {_from(rng, kept, where)}"
    items = [f"{k} AS o{i}" for i, k in enumerate(keys)]
    measures = rng.sample(usable, rng.randint(1, 3))
    items += [f"{m} AS r{i}" for i, m in enumerate(measures)]
    text = f"SELECT {', '.join(items)} {_from(rng, kept, where)}"
    if keys:
        text += f" GROUP BY {', '.join(keys)}"
    if keys and rng.random() < 0.2:
        text += f" HAVING {rng.choice(measures)} > 0"
    return text


def _reads(predicate: str, tables: list[str]) -> bool:
    return all(f"{t}." not in predicate or t in tables for t in ("d1", "d2"))


def _from(rng: Random, tables: list[str], where: list[str]) -> str:
    conditions = list(where)
    if rng.random() < 0.5:
        text = "FROM f" + "".join(f" JOIN {t} ON {_ON[t]}" for t in tables)
    else:
        text = "FROM " + ", ".join(rng.sample(["f", *tables], len(tables) + 1))
        conditions += [_ON[t] for t in tables]
        rng.shuffle(conditions)
    return text + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


def _predicate(rng: Random, columns: list[str]) -> str:
    numbers = [c for c in columns if c.split(".")[1] in ("a", "q", "k1", "k2", "h", "y")]
    if len(numbers) > 1 and rng.random() < 0.1:
        return " = ".join(rng.sample(numbers, 2))
    if rng.random() < 0.2:
        return (
            f"({_comparison(rng, rng.choice(columns))} OR {_comparison(rng, rng.choice(columns))})"
        )
    return _comparison(rng, rng.choice(columns))


def _comparison(rng: Random, column: str) -> str:
    name = column.split(".")[1]
    kind = rng.random()
    if kind < 0.1:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    values = {
        "g": ["'x'", "'y'", "'z'"], "r": ["'x'", "'y'"],
        "t": ["DATE '2020-01-01'", "DATE '2020-01-31'", "DATE '2021-01-01'"],
    }.get(name, ["-1", "0", "1", "2", "3"])  # fmt: skip
    if kind < 0.25:
        chosen = rng.sample(values, rng.randint(1, len(values)))
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(chosen)})"
    if kind < 0.32:
        return f"NOT ({column} {rng.choice(['=', '<', '>='])} {rng.choice(values)})"
    if kind < 0.4:
        low, high = rng.choice(values), rng.choice(values)
        return f"{column} BETWEEN {low} AND {high}"
    return f"{column} {rng.choice(['=', '=', '<>', '<', '<=', '>', '>='])} {rng.choice(values)}"
