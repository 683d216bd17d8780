"""Queries and definitions as plain data, seen at the stage of Spark's optimiser at which the hook
sees them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from cachemgr.jvm.loader import java_class, session_of
from cachemgr.serving.seen_tables import TableRef
from cachemgr.spark.texts import analysed_text


class Problem(NamedTuple):
    """A construct that a definition may not hold; line and column count from 1, None where Spark
    does not say."""

    construct: str
    detail: str
    line: int | None
    col: int | None


class SchemaColumn(NamedTuple):
    """A column as Spark resolved it."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class CapturedPlan:
    """A plan as `matcher.catalyst.reader` reads it, its tables, its schema as analysed, and what a
    definition may not hold.

    `problems` constructs: NON_DETERMINISTIC, SESSION_DEPENDENT, UDF, TEMP_VIEW, TABLESAMPLE,
    TIME_TRAVEL, STREAMING, METADATA_COLUMN, TABLE_FUNCTION, RELATION (a leaf that is no table:
    range(), VALUES, cached or local data).
    """

    document: dict[str, Any]
    tables: tuple[TableRef, ...]
    schema: tuple[SchemaColumn, ...]
    problems: tuple[Problem, ...]


def capture_query(spark: SparkSession, query: str | DataFrame) -> CapturedPlan:
    """Analyse a query and take its plan at the hook's stage; no job is run and nothing is
    rewritten.

    Args:
        spark: The session in which names are resolved and whose settings hold.
        query: One SELECT, substituted already where that is to be; or a DataFrame.

    Raises:
        DefinitionError: The text is a statement.
        pyspark.errors.AnalysisException: The query does not analyse.
        pyspark.errors.ParseException: The text does not parse.
    """
    return _captured(spark, execution_of(spark, query).analyzed())


def execution_of(spark: SparkSession, query: str | DataFrame) -> Any:
    """Spark's own QueryExecution of a query; for the arguments and errors see `capture_query`."""
    frame = query._jdf if isinstance(query, DataFrame) else analysed_text(spark, query)
    return frame.queryExecution()


def _captured(spark: SparkSession, analysed: Any) -> CapturedPlan:
    schema = json.loads(java_class(spark, "Problems").schema(analysed))
    problems = json.loads(java_class(spark, "Problems").find(analysed))
    document: dict[str, Any] = json.loads(
        java_class(spark, "Hook").capture(session_of(spark), analysed)
    )
    return CapturedPlan(
        document,
        read_tables(document),
        tuple(SchemaColumn(name, type_, bool(nullable)) for _, _, name, type_, nullable in schema),
        tuple(Problem(*found) for found in problems),
    )


def read_tables(document: dict[str, Any]) -> tuple[TableRef, ...]:
    """The tables of a plan document."""
    return tuple(TableRef(**table) for table in document["tables"])
