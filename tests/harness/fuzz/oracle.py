"""The slow exhaustive oracle: could a pair that the matcher refuses have hit?

It knows nothing of the matcher. It writes down every rewrite of a small grammar (the query's
conjuncts over stored columns or left out, its groups over stored columns, each aggregate from
stored ones in every way that could add up, each grouping set, missing tables joined by a stored
key) and runs them beside the query over several random data sets on DuckDB. One that is equal in
all of them, and not empty in most, counts as a hit that was missed. It may be wrong in favour of
"could hit" where the data cannot tell, never against what it has tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product

import duckdb
from sqlglot.errors import SqlglotError

from tests.harness.fuzz.decide import Prepared, Refusal
from tests.harness.fuzz.duck_judge import DuckTables, translate
from tests.harness.fuzz.oracle_grammar import Stored, roll_ups
from tests.harness.fuzz.spec import Spec
from tests.harness.fuzz.world import World, world

# Refused by contract (docs/contract.md) though equal on small data: sums in floating point,
# averages of whole numbers beyond 2^53, sums that may overflow, names that only Spark knows.
_BY_CONTRACT = frozenset(
    {"FLOAT_NOT_EXACT", "AVG_NOT_EXACT", "MAY_OVERFLOW", "OUTPUT_NAME_UNKNOWN"}
)
_DATA_SETS = (1, 2, 3, 4, 5)
_MOST = 24
_NOTHING = (None, 0, False, "[]", "n")  # what a global aggregate says of no row


@dataclass(frozen=True)
class Missed:
    """A refused pair, and a rewrite that gave equal rows on every data set."""

    query: str
    cache: str
    code: str
    reason: str
    rewrite: str
    tags: frozenset[str]


def could_hit(made: World, refusal: Refusal) -> Missed | None:
    """A rewrite that the matcher could have found, or None."""
    codes = {code for code, _ in refusal.reasons}
    if not refusal.reasons or codes & _BY_CONTRACT:
        return None
    spec = replace(refusal.spec, wrap="{}", order=(), limit=None, offset=None)
    if refusal.cache.cache.spec.limit is not None:
        return None
    for text in islice(candidates(made, refusal.cache, spec), _MOST):
        if _equal_everywhere(made, refusal.cache, spec.sql(), text):
            code, detail = refusal.reasons[0]
            return Missed(
                refusal.query, refusal.cache.cache.spec.sql(), code, detail, text, spec.all_tags()
            )
    return None


def candidates(made: World, pair: Prepared, spec: Spec) -> Iterator[str]:
    """Every rewrite of the grammar, likely ones first."""
    stored = Stored(pair)
    joins = stored.compensating(spec)
    if joins is None:
        return
    grouped = spec.keys is not None or spec.distinct
    if pair.cache.spec.keys is not None and not grouped:
        return
    filters = [stored.rewritten(p.text) for p in spec.where]
    where = [f for f in filters if f is not None]
    keys = [stored.rewritten(k.text) for k in spec.keys or ()]
    if any(k is None for k in keys):
        return
    columns = []
    for item in spec.items:
        whole = stored.rewritten(item.piece.text)
        plain = item.key is not None or spec.keys is None
        ways = ([whole] if whole is not None else []) if plain else list(
            islice(roll_ups(stored, item.piece.text), 4)
        )  # fmt: skip
        if not ways:
            return
        columns.append(ways)
    having = [list(islice(roll_ups(stored, p.text), 1)) for p in spec.having]
    if not all(having):
        return
    group = _group(spec, [k for k in keys if k is not None])
    for view in stored.views([*where, *(k for k in keys if k), *(w for c in columns for w in c)]):
        conditions = [*where, *view]
        for chosen in islice(product(*columns), 8):
            items = ", ".join(
                f"{text} AS {item.name}" for text, item in zip(chosen, spec.items, strict=True)
            )
            text = f"SELECT {'DISTINCT ' if spec.distinct else ''}{items} FROM {joins}"
            text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
            text += group
            text += f" HAVING {' AND '.join(h[0] for h in having)}" if having else ""
            yield text


def _group(spec: Spec, keys: list[str]) -> str:
    if not keys:
        return ""
    if spec.sets is None:
        return f" GROUP BY {', '.join(keys)}"
    if spec.sets_style in ("CUBE", "ROLLUP"):
        return f" GROUP BY {spec.sets_style} ({', '.join(keys)})"
    sets = ", ".join("(" + ", ".join(keys[i] for i in s) + ")" for s in spec.sets)
    return f" GROUP BY GROUPING SETS ({sets})"


@lru_cache(maxsize=16)
def _tables(seed: int, rows: int) -> DuckTables:
    return DuckTables(world(seed, rows))


def _equal_everywhere(made: World, pair: Prepared, query: str, text: str) -> bool:
    filled = 0
    for rows in _DATA_SETS:
        tables = _tables(made.seed, rows)
        name = pair.cache.name
        try:
            tables.db.execute(f"CREATE OR REPLACE TABLE {name} AS {translate(pair.stored)}")
            expected, got = tables.rows(query), tables.rows(text)
        except (duckdb.Error, SqlglotError):
            return False
        if Counter(expected) != Counter(got):
            return False
        filled += any(v not in _NOTHING for row in expected for v in row)
    return filled >= 3
