"""Runs original and rewritten query over the same small data and compares the rows, on DuckDB.

DuckDB is the fast first judge: whatever it finds wrong is looked at on Spark. Values are compared,
not types (its SUM of
whole numbers is wider than Spark's).
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import sqlglot
from fuzz_cases import JOIN, SCHEMA, Case, data

from cachemgr.offline import explain_query, prepare

CONF = {"spark.cachemgr.assumeExactAverages": "true"}


def accepted(case: Case) -> dict[str, Any] | None:
    """What offline explain says of a hit, None for a miss."""
    workspace = prepare(SCHEMA, f"{JOIN};\n{case.cache}", CONF)
    result = explain_query(workspace, case.query)
    return result if result["hit"] else None


def differing_rows(case: Case, result: dict[str, Any], seed: int) -> str | None:
    """How the rewritten query's rows differ from the original's; None if they are equal."""
    with duckdb.connect() as db:
        for statement in SCHEMA.split(";")[:-1]:
            db.execute(_translate(statement))
        for statement in data(Random(seed)):
            db.execute(statement)
        db.execute(f"CREATE TABLE c AS {_translate(result['stored']['c'])}")
        expected = Counter(map(_comparable, db.execute(_translate(case.query)).fetchall()))
        got = Counter(map(_comparable, db.execute(_translate(result["rewritten_sql"])).fetchall()))
    if expected == got:
        return None
    return f"missing {dict(expected - got)}, too many {dict(got - expected)}"


def _translate(text: str) -> str:
    """Spark SQL as DuckDB's; its GROUPING SETS take no list before them, its GROUPING_ID needs
    one."""
    sets = re.search(r"GROUP BY (.*)\s+GROUPING SETS", text)
    if sets is not None:
        text = text.replace(sets[0], "GROUP BY GROUPING SETS")
        text = text.replace("GROUPING_ID()", f"GROUPING_ID({sets[1]})")
    return sqlglot.transpile(text, read="spark", write="duckdb")[0]


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        float(v) if isinstance(v, float) else Decimal(v) if isinstance(v, int | Decimal) else v
        for v in row
    )
