"""Rows of ours as a DataFrame, like the answer of Spark's own SHOW and DESCRIBE."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.tables import run_select
from cachemgr.statements.results import ResultRows
from matcher.model.expr import Lit
from matcher.render.select import quote, render_literal


def to_frame(spark: SparkSession, result: ResultRows) -> DataFrame:
    """A DataFrame over rows that are known already: collecting it runs no job.

    Args:
        spark: The session.
        result: The rows.
    """
    items = [
        f"CAST({quote(f'v{i}')} AS {kind.upper()}) AS {quote(name)}"
        for i, (name, kind) in enumerate(result.columns)
    ]
    names = ", ".join(quote(f"v{i}") for i in range(len(result.columns)))
    rows = result.rows or ((None,) * len(result.columns),)
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    text = f"SELECT {', '.join(items)} FROM VALUES {values} AS t({names})"
    if not result.rows:
        text += " WHERE FALSE"
    return run_select(spark, text, {})


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return render_literal(Lit(value, "bigint"))
    if isinstance(value, float):
        return render_literal(Lit(value, "double")) if math.isfinite(value) else "NULL"
    if isinstance(value, datetime):
        micros = round(value.astimezone(UTC).timestamp() * 1_000_000)
        return render_literal(Lit(micros, "timestamp"))
    return render_literal(Lit(str(value), "string"))
