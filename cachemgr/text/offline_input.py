"""What offline explain is told: the session's settings, the caches' definitions, the declared
joins.

A setting that would change what a text means in a way that is not modelled is refused, never
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from cachemgr.config.judged.values import as_read, default_in_spark
from cachemgr.config.match_options import match_options, spark_settings
from cachemgr.config.result_settings import changes_results
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting_table import setting
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG
from cachemgr.ddl.statements import CreateRecordPreservingJoin, CreateRelationalCache, JoinKey
from cachemgr.definition_advice import instead
from cachemgr.errors import ConfigurationError, DefinitionError, ErrorCode, NotFoundError
from matcher.model.errors import MatcherError
from matcher.model.ir import Block, CachePlan, MatchOptions, Output, RecordPreservingJoin
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.nested_aggregates import expanded
from matcher.normalize.stored_plan import plan_definition
from matcher.predicates.time_zones import fixed_offset
from matcher.sql.reader import TextQuery, TextSettings, parse_query
from matcher.sql.schema import DEFAULT_SCHEMA, Column, Schema, Table

# Settings that change what a text means; SQL texts are read under these values alone.
FIXED: Final = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.allowNamedFunctionArguments": "true",
}


@dataclass(frozen=True, slots=True)
class Conf:
    """The session settings in the forms that the parts need."""

    text: TextSettings
    options: MatchOptions
    enabled: bool = True


def read_conf(values: Mapping[str, str]) -> Conf:
    """Read `key=value` settings.

    Args:
        values: settings by key; those that do not matter offline are ignored.

    Raises:
        ConfigurationError: a value is not accepted, or a setting changes results in a way that is
        not modelled offline.
    """
    for key, value in values.items():
        if key.startswith("spark.cachemgr."):
            setting(key)
        usual = FIXED.get(key)
        if usual is not None and value.strip().lower() != usual:
            raise ConfigurationError(
                ErrorCode.SETTING_NOT_MODELLED,
                f"{key} is {value!r}: SQL texts are read under {usual!r} alone; "
                "leave it out, or use EXPLAIN REWRITE in a session",
            )
        if key.startswith("spark.sql.legacy.") and not _says_nothing(key, value):
            raise ConfigurationError(
                ErrorCode.SETTING_NOT_MODELLED,
                f"{key}: legacy behaviour of SQL texts is not modelled; "
                "leave it out, or use EXPLAIN REWRITE in a session",
            )
    own = Settings.from_mapping(values)
    spark = spark_settings(values)
    utc = fixed_offset(spark.time_zone) == 0
    major, _, minor = (own.spark_minor or "").partition(".")
    version = (int(major), int(minor)) if minor else None
    text = TextSettings(spark.ansi, spark.decimal_precision_loss, utc, version)
    return Conf(text, match_options(values, own, only_declared=True), own.enabled)


def _says_nothing(key: str, value: str) -> bool:
    """Whether a text means the same with a setting as without it."""
    return not changes_results(key) or as_read(key, value) == default_in_spark(key)


def _cache_name(parts: tuple[str, ...]) -> str:
    kept = parts[1:] if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG else parts
    kept = kept[1:] if len(kept) == 2 and kept[0].lower() == DEFAULT_NAMESPACE else kept
    return ".".join(kept)


def declare(
    statement: CreateRelationalCache, caches: dict[str, CreateRelationalCache], schema: Schema
) -> None:
    """Note one CREATE RELATIONAL CACHE under its name, refusing a name that is taken."""
    parts = statement.name.parts
    name = _cache_name(parts if len(parts) > 1 else (schema.current, *parts))
    taken = next((known for known in caches if known.lower() == name.lower()), None)
    if taken is not None:
        if statement.if_not_exists:
            return
        if not statement.or_replace:
            raise DefinitionError(
                ErrorCode.CACHE_EXISTS,
                f"cache {name} is declared twice: rename one, or say OR REPLACE or IF NOT EXISTS",
            )
        del caches[taken]
    if schema.find(parts) is not None:
        raise DefinitionError(
            ErrorCode.NAME_TAKEN,
            f"cache {name} has the name of a table or view: choose another name",
        )
    caches[name] = statement


def plan(
    name: str,
    cache: CreateRelationalCache,
    schema: Schema,
    settings: TextSettings,
    joins: tuple[RecordPreservingJoin, ...],
    below: Mapping[str, CachePlan],
) -> CachePlan:
    """The stored plan of a cache, over the base tables of the caches `below` that it names; raises
    DefinitionError naming it."""
    try:
        named = {f"cache:{known}": plan for known, plan in below.items()}
        known = _with_caches(schema, below)
        parsed = parse_query(cache.select.text, known, settings, names_matter=False)
        block = expanded(_definition_block(name, parsed), named)
        found = plan_definition(name, block, joins)
        return replace(found, partition_by=cache.spec.partitioned_by)
    except MatcherError as error:
        raise DefinitionError(error.code, f"cache {name}: {error}") from error


def _with_caches(schema: Schema, below: Mapping[str, CachePlan]) -> Schema:
    """`schema` with caches as tables of their visible columns: cubes and caches with a limit, whose
    rows are not all of one kind, are not among them, nor those with a column that no name
    tells from the others."""
    tables = dict(schema.tables)
    for name, plan in below.items():
        if plan.is_cube or plan.holds_some:
            continue
        shown = plan.as_shown()
        if not all(_names_one(output.name, shown) for output in shown):
            continue
        columns = tuple(Column(output.name, output.expr.type) for output in shown)
        key = schema.key_of(name.split("."), DEFAULT_SCHEMA)
        if key is not None:
            tables[key] = Table(f"cache:{name}", name, columns)
    return replace(schema, tables=tables)


def _names_one(name: str, shown: tuple[Output, ...]) -> bool:
    return name != "" and sum(o.name.lower() == name.lower() for o in shown) == 1


def _definition_block(name: str, parsed: TextQuery) -> Block:
    top = parsed.roots[0] if len(parsed.roots) == 1 else None
    whole = parsed.document.root
    while whole is not None and whole.key == "subquery":
        whole = whole.this
    if parsed.reasons or top is None or top.block is None or top.node is not whole:
        reasons = [*parsed.reasons, *(r for b in parsed.roots for r in b.reasons)]
        raise _not_supported(name, reasons[0] if reasons else _SEVERAL)
    if top.split is not None:  # the block is a part of what the text gives
        raise _not_supported(name, _ON_TOP if parsed.document.root.find(exp.Window) else _DISTINCT)
    return top.block


def _lacking(what: str) -> Reason:
    return Reason(ReasonCode.UNSUPPORTED_OPERATOR, what, instead(what))


_SEVERAL: Final = _lacking("several SELECTs")
_ON_TOP: Final = _lacking("a window function")
_DISTINCT: Final = _lacking("DISTINCT above GROUP BY")


def _not_supported(name: str, reason: Reason) -> DefinitionError:
    advice = instead(reason.detail) or reason.suggestion
    return DefinitionError(
        reason.code.value,
        f"cache {name}: {reason.detail} is not supported in a definition"
        + (f": {advice}" if advice else ""),
    )


def join(statement: CreateRecordPreservingJoin, schema: Schema) -> RecordPreservingJoin:
    """A declared join, its keys told apart by the tables' columns."""
    name = str(statement.name)
    left, right = (
        _table(ref.name.parts, name, schema) for ref in (statement.left, statement.right)
    )
    pairs = tuple(_key(key, left, right, name) for key in statement.keys)
    if statement.preserved is not statement.left:
        left, right, pairs = right, left, tuple((b, a) for a, b in pairs)
    return RecordPreservingJoin(
        name, left.key, right.key, pairs, statement.validated, statement.finds_each
    )


def _table(parts: tuple[str, ...], join: str, schema: Schema) -> Table:
    found = schema.find(parts)
    if isinstance(found, Table):
        return found
    near = schema.similar(parts[-1])
    what = "is a view: declare the join on its base table" if found else "is not declared"
    hint = f"; did you mean {near}?" if near and not found else ""
    raise NotFoundError(
        ErrorCode.TABLE_NOT_FOUND, f"join {join}: table {'.'.join(parts)} {what}{hint}"
    )


def _key(key: JoinKey, left: Table, right: Table, join: str) -> tuple[str, str]:
    sides = [(key.left.column, key.right.column)]
    if not key.resolved:
        sides.append((key.right.column, key.left.column))
    for a, b in sides:
        one, two = left.column(a), right.column(b)
        if one is not None and two is not None:
            return one.name, two.name
    raise NotFoundError(
        ErrorCode.COLUMN_NOT_FOUND,
        f"join {join}: {key.left} = {key.right} names a column that "
        f"{left.name} and {right.name} do not have",
    )
