"""A cache's SELECT, analysed by Spark itself: its plan for the matcher, its columns, its tables.

Refuses, with the construct and its place, what cannot be analysed, what would give other rows on
another day or for another user, and what a cache cannot store. Spark resolves all names, so a view
is expanded and a temp view is seen for what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.ddl.statements import SelectText
from cachemgr.definition_advice import instead
from cachemgr.errors import CacheManagerError, DefinitionError, ErrorCode
from cachemgr.jvm.session_conf import unnoticed
from cachemgr.metastore.records import CacheRecord, ColumnRecord
from cachemgr.serving.seen_tables import TableRef
from cachemgr.spark.definitions.nested_caches import AS_KNOWN, FindCache, Stands, expand
from cachemgr.spark.plans import CapturedPlan, capture_query
from cachemgr.spark.texts import analysed_text, readable
from matcher.catalyst.reader import definition_block
from matcher.model.errors import MatcherError
from matcher.model.expr import Col
from matcher.model.ir import Block, CachePlan
from matcher.model.reasons import ReasonCode
from matcher.normalize.kept_order import kept_order
from matcher.normalize.stored_plan import is_grouping_id, plan_definition
from matcher.render.select import NotRenderable, quote, render_stored
from matcher.render.select import readable as readable_expr
from matcher.render.shown_outputs import shown_list

_NO_CACHES: FindCache = lambda namespace, name: None  # noqa: E731
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_WHY = {
    "NON_DETERMINISTIC": "{0} gives another value each time: leave it out of the definition",
    "SESSION_DEPENDENT": "{0} depends on the session or the moment of the query: "
    "use a column or a constant instead",
    "UDF": "{0} is a user-defined function, whose meaning may change unseen: "
    "write it with built-in functions",
    "TEMP_VIEW": "{0} is a temporary view, which other sessions do not have: "
    "use the table or a permanent view",
    "TABLESAMPLE": "{0} reads other rows each time: leave it out",
    "TIME_TRAVEL": "{0} is read at a fixed version: a cache follows its base tables, "
    "name the table alone",
    "STREAMING": "{0} is a stream: caches are made of Delta tables",
    "TABLE_FUNCTION": "{0} makes rows of its own: caches are made of tables, joins and groups",
    "METADATA_COLUMN": "{0} names files that the cache does not have: leave it out",
    "RELATION": "{0} is no Delta table: caches are made of Delta tables",
}
# Operators of Spark that read a table which is none of files.
_OTHER_TABLES = {
    "HiveTableRelation": "what it reads from Hive",
    "DataSourceV2Relation": "what it reads from another catalog or format",
}
# A collation, TIME and intervals, inside of other types as well; a field's name has a colon behind.
_NOT_IN_DELTA = re.compile(r" collate |(?<!\w)(time\(\d\)|interval(?=[ ,>]|$))")
_OPERATOR = ReasonCode.UNSUPPORTED_OPERATOR.value
_EXPRESSION = ReasonCode.UNSUPPORTED_EXPRESSION.value
_LEAVE_OUT = "leave that out, and cache the part below it"


@dataclass(frozen=True)
class Analysis:
    """What Spark and the matcher made of a definition.

    Args:
        plan: What the cache stores.
        columns: The visible columns.
        tables: The base tables.
        reads: Ids of the caches that it names, which are expanded.
        why_not_ordered: See `BlockDefinition`.
    """

    plan: CachePlan
    columns: tuple[ColumnRecord, ...]
    tables: tuple[TableRef, ...]
    reads: tuple[str, ...] = ()
    why_not_ordered: str = ""


def analyse_definition(
    spark: SparkSession,
    name: str,
    select: SelectText,
    find: FindCache = _NO_CACHES,
    accepts: Callable[[CacheRecord], None] = lambda cache: None,
    stands: Stands = AS_KNOWN,
    only: Sequence[str] = (),
) -> Analysis:
    """Analyse the SELECT of a cache.

    Args:
        spark: The session whose names and settings hold.
        name: The matcher's name of the cache.
        select: The SELECT and where it stands in the statement.
        find: The live cache of a namespace and a name, which a FROM may name.
        accepts: Called with each cache that it names; raises if it may not be named.
        stands: What is put in place of a table's name; see `expand`.
        only: The output columns that are wanted, all where it is empty.

    Returns:
        The analysis.

    Raises:
        DefinitionError: Names the construct, its line and column, and what to do.
    """
    try:
        with readable(spark, f"cache {name}"):
            where = partial(_where, select)
            expanded = expand(spark, select.text, find, (name,), accepts, where, stands)
            captured = capture_query(spark, _of(spark, expanded.query, only))
    except PySparkException as error:
        raise _not_analysable(error, name, select) from error
    for construct, detail, line, column in captured.problems:
        if construct == "RELATION" and detail in _OTHER_TABLES:
            raise _no_delta(name, _OTHER_TABLES[detail], _where(select, line, column))
        text = _WHY.get(construct, "{0} is not supported in a cache definition").format(detail)
        raise DefinitionError(construct, f"cache {name}: {text}{_where(select, line, column)}")
    refuse_by_catalog(f"cache {name}", captured.tables)
    for table in captured.tables:
        if table.kind != "delta":
            raise _no_delta(name, table.name)
    if not captured.tables:
        raise DefinitionError(
            ErrorCode.NO_TABLE,
            f"cache {name}: the SELECT reads no table: there is nothing to cache",
        )
    try:
        block = definition_block(captured.document, nested=bool(expanded.reads))
        plan = plan_definition(name, block)
        render_stored(plan, [quote(relation.name) for relation in plan.tables])
        shown_list(plan)
    except NotRenderable as error:
        raise DefinitionError(
            ErrorCode.EXPRESSION_NOT_SUPPORTED,
            f"cache {name}: {error} cannot be stored: leave it to the queries",
        ) from error
    except MatcherError as error:
        place = _where(select, error.line, error.col)
        what = str(error)
        if error.code == _OPERATOR:
            what += f": a cache filters, joins and groups: {instead(what) or _LEAVE_OUT}"
        elif error.code == _EXPRESSION and instead(what):
            what += f": {instead(what)}"
        raise DefinitionError(error.code, f"cache {name}: {what}{place}") from error
    reads = tuple(cache.id for cache in expanded.reads)
    columns = _columns(captured, block, plan, bool(reads))
    _check_types(name, {c.name: c.type for c in columns})
    _check_types(name, {f"{k.name} (a GROUP BY key)": k.expr.type for k in plan.keys or ()})
    beneath = {f"{readable_expr(m.agg)} (beneath an output)": m.agg.type for m in plan.measures}
    _check_types(name, beneath)
    return Analysis(plan, columns, captured.tables, reads, kept_order(block, plan).why_not)


def _of(spark: SparkSession, query: str | DataFrame, only: Sequence[str]) -> str | DataFrame:
    """A query with some of its columns alone."""
    if not only:
        return query
    with unnoticed():
        if not isinstance(query, DataFrame):
            query = DataFrame(analysed_text(spark, query), spark)
        return query.select([quote(column) for column in only])


def refuse_by_catalog(what: str, tables: Iterable[TableRef]) -> None:
    """Refuse tables whose commits go to a catalog before they are in the log.

    Args:
        what: What reads them, for the message.
        tables: The tables.

    Raises:
        DefinitionError: One of them is such a table.
    """
    for table in tables:
        if table.kind == "managed":
            raise DefinitionError(
                ErrorCode.CATALOG_MANAGED_TABLE,
                f"{what}: the commits of {table.name} are managed by a catalog, so that its log "
                "does not tell how it stands: read a table that Delta commits to by itself",
            )


def _columns(
    captured: CapturedPlan, block: Block, plan: CachePlan, nested: bool
) -> tuple[ColumnRecord, ...]:
    """The columns as they are shown. A SUM over a cache's SUM is stored as the SUM of the base
    rows, whose type Spark did not widen twice."""
    named = zip(captured.schema, block.outputs, strict=True)
    found = [column for column, output in named if not is_grouping_id(output.expr)]
    return tuple(
        ColumnRecord(
            name, shown.expr.type if nested and isinstance(shown.expr, Col) else type_, null
        )
        for (name, type_, null), shown in zip(found, plan.as_shown(), strict=True)
    )


def _check_types(name: str, types: Mapping[str, str]) -> None:
    """Refuse a column that no Delta table can have, which the first refresh would fail by."""
    for column, type_ in types.items():
        if _NOT_IN_DELTA.search(type_):
            raise DefinitionError(
                ErrorCode.EXPRESSION_NOT_SUPPORTED,
                f"cache {name}: column {column} is of type {type_}, which Delta tables cannot "
                "have: cast it to another type, or leave it to the queries",
            )


def _no_delta(name: str, table: str, place: str = "") -> DefinitionError:
    return DefinitionError(
        ErrorCode.NOT_A_DELTA_TABLE,
        f"cache {name}: {table} is not a Delta table, so its versions are not known: convert it to "
        f"Delta{place}",
    )


def _not_analysable(error: PySparkException, name: str, select: SelectText) -> CacheManagerError:
    text = str(error)
    place = _PLACE.search(text)
    line, column = (int(place.group(1)), int(place.group(2)) + 1) if place else (None, None)
    message = text.strip().splitlines()[0].split("; line ")[0].strip().rstrip(".:;")
    code = (error.getCondition() or "NOT_ANALYSABLE").split(".")[0]
    if code == "TABLE_OR_VIEW_NOT_FOUND":
        message += ", and no relational cache has that name"
    message = re.sub(rf"^\[{re.escape(error.getCondition() or '-')}\]\s*", "", message)
    return DefinitionError(
        code,
        f"cache {name}: Spark cannot analyse the SELECT: {message}"
        f"{_where(select, line, column)}; correct it and run the statement again",
    )


def _where(select: SelectText, line: int | None, column: int | None) -> str:
    """A place inside the SELECT as one of the whole statement."""
    if line is None or column is None:
        return ""
    shift = select.column - 1 if line == 1 else 0
    return f" (line {line + select.line - 1}, column {column + shift})"
