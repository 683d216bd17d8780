"""Which of the 13 queries the published 16-set cube would answer by itself, by explain alone."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

import cachemgr
from cachemgr.demo.ssb_cube import PUBLISHED_EXAMPLE, published_ddl, published_view
from cachemgr.demo.ssb_queries import QUERIES

#: How the published example is listed beside the 13.
EXAMPLE = "example"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the published cube would do with one query.

    Args:
        query: `Q1.1` to `Q4.3`, or `example`.
        answered: Whether it would answer it.
        grouping_set: The set that it would read.
        why: Why not, empty if it would.
    """

    query: str
    answered: bool
    grouping_set: str | None
    why: str


def published_cube_coverage(spark: SparkSession) -> tuple[Coverage, ...]:
    """Asks the matcher what the published cube would answer. Nothing is built or stored.

    Args:
        spark: An enabled session in which the SSB tables and the joins are declared.

    Returns:
        One entry a query, the published example last.
    """
    spark.sql(published_view())
    texts = {query.name: query.sql() for query in QUERIES} | {EXAMPLE: PUBLISHED_EXAMPLE}
    explanations = cachemgr.would_answer(spark, published_ddl(), list(texts.values()))
    return tuple(
        _coverage(name, explanation) for name, explanation in zip(texts, explanations, strict=True)
    )


def _coverage(name: str, explanation: cachemgr.Explanation) -> Coverage:
    if explanation.hit:
        return Coverage(name, True, explanation.grouping_set, "")
    reasons = explanation.reasons or tuple(
        reason for candidate in explanation.candidates for reason in candidate.reasons
    )
    parts = (f"{r.detail} ({r.suggestion})" if r.suggestion else r.detail for r in reasons[:2])
    return Coverage(name, False, None, "; ".join(parts) or "no reason was given")
