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
    return _captured(spark, _execution(spark, query).analyzed())


@dataclass(frozen=True, slots=True)
class CapturedQuery:
    """A query as it would run, Spark's own kept data in its place, and what Spark plans apart from
    it and leaves no trace of in its plan.

    Args:
        plan: The query.
        scalars: The queries of its scalar subqueries, at any depth, and of EXISTS, where no row
            changes them.
        tests: Those of other EXISTS and IN that filter no rows.
    """

    plan: CapturedPlan
    scalars: tuple[CapturedPlan, ...]
    tests: tuple[CapturedPlan, ...]

    @property
    def is_stream(self) -> bool:
        """Whether it never ends, and so is never rewritten."""
        return any(problem.construct == "STREAMING" for problem in self.plan.problems)


def capture_to_explain(spark: SparkSession, query: str | DataFrame) -> CapturedQuery:
    """As `capture_query`, of all plans that Spark makes for a query."""
    execution = _execution(spark, query)
    analysed = execution.analyzed()
    read = analysed if analysed.isStreaming() else execution.withCachedData()
    scalars, tests = (
        tuple(_captured(spark, plan) for plan in java_class(spark, "Hook").apart(read, scalar))
        for scalar in (True, False)
    )
    return CapturedQuery(_captured(spark, read), scalars, tests)


def _execution(spark: SparkSession, query: str | DataFrame) -> Any:
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
