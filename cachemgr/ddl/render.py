"""Statements back to canonical text, the inverse of `parse`.

Upper-case keywords, clauses in the grammar's order, defaults of a cache spelled out, names quoted
only where they must be.
"""

from __future__ import annotations

import re
from typing import Final

from cachemgr.ddl.joins import as_name
from cachemgr.ddl.statements import (
    AlterAction,
    AlterRelationalCache,
    ColumnRef,
    CreateRecordPreservingJoin,
    CreateRelationalCache,
    DescribeRelationalCache,
    DropRecordPreservingJoin,
    DropRelationalCache,
    ExplainCreate,
    ExplainRefresh,
    ExplainRewrite,
    Freshness,
    GrantUse,
    Properties,
    QualifiedName,
    RefreshPolicy,
    RefreshRelationalCache,
    RenameTo,
    RestrictBaseTable,
    RevokeUse,
    SetFreshness,
    SetPaused,
    SetProperties,
    SetRefresh,
    SetRewriteEnabled,
    ShowCreateRelationalCache,
    ShowRecordPreservingJoins,
    ShowRelationalCaches,
    ShowRestrictedBaseTables,
    Statement,
    TableRef,
    UnrestrictBaseTable,
    ValidateRecordPreservingJoin,
)
from cachemgr.vocabulary import FreshnessKind, RefreshMode, kind_of_join
from matcher.render.select import quote as quote_name
from scheduler.triggers import Cron, Every, OnCommit, OnDemand, TargetLag, Trigger

# Each class's heading in docs/ddl.md; a test holds the two equal.
STATEMENTS: dict[type, str] = {
    CreateRelationalCache: "CREATE RELATIONAL CACHE",
    AlterRelationalCache: "ALTER RELATIONAL CACHE",
    RefreshRelationalCache: "REFRESH RELATIONAL CACHE",
    DropRelationalCache: "DROP RELATIONAL CACHE",
    ShowRelationalCaches: "SHOW RELATIONAL CACHES",
    ShowCreateRelationalCache: "SHOW CREATE RELATIONAL CACHE",
    DescribeRelationalCache: "DESCRIBE RELATIONAL CACHE",
    ExplainRewrite: "EXPLAIN REWRITE",
    ExplainRefresh: "EXPLAIN REFRESH",
    ExplainCreate: "EXPLAIN CREATE RELATIONAL CACHE",
    CreateRecordPreservingJoin: "CREATE RECORD PRESERVING JOIN",
    DropRecordPreservingJoin: "DROP RECORD PRESERVING JOIN",
    ShowRecordPreservingJoins: "SHOW RECORD PRESERVING JOINS",
    ValidateRecordPreservingJoin: "VALIDATE RECORD PRESERVING JOIN",
    GrantUse: "GRANT USE ON RELATIONAL CACHE",
    RevokeUse: "REVOKE USE ON RELATIONAL CACHE",
    RestrictBaseTable: "RESTRICT BASE TABLE",
    UnrestrictBaseTable: "UNRESTRICT BASE TABLE",
    ShowRestrictedBaseTables: "SHOW RESTRICTED BASE TABLES",
}

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words with a meaning somewhere near a name: quoted, a reader never has to wonder either.
_KEYWORDS = frozenset(
    """ALL AND ANTI AS AT AUTO BY CLUSTER COMMENT CREATE CROSS DISABLE DISTINCT DROP ENABLE EXISTS
    EXTENDED FALSE FOR FORMAT FROM FULL FUNCTION GROUP IF IN INCREMENTAL INNER IS JOIN LEFT LIKE
    LOCATION MAX NATURAL NOT NULL ON OR ORDER OUTER PARTITIONED PAUSE PRESERVES REFRESH RELATIONAL
    RENAME RESUME RIGHT SELECT SEMI SET STRICT TABLE TBLPROPERTIES TO TRUE UNION USING VALUES WHERE
    WITH""".split()
)
_UNITS = ((86400, "DAY"), (3600, "HOUR"), (60, "MINUTE"), (1, "SECOND"))


def render(statement: Statement) -> str:
    """Write a statement as text.

    Args:
        statement: Any statement.

    Returns:
        Text that `parse` turns into an equal statement.

    >>> render(DropRelationalCache(QualifiedName(("s", "a b")), if_exists=True))
    'DROP RELATIONAL CACHE IF EXISTS s.`a b`'
    """
    match statement:
        case CreateRelationalCache():
            return _create(statement)
        case ExplainCreate(inner):
            return f"EXPLAIN {_create(inner)}"
        case CreateRecordPreservingJoin():
            return _create_join(statement)
        case ExplainRewrite(query, format_json):
            return f"EXPLAIN REWRITE {'FORMAT JSON ' if format_json else ''}{query.text}"
        case ShowRelationalCaches(pattern):
            return "SHOW RELATIONAL CACHES" + ("" if pattern is None else f" LIKE {quote(pattern)}")
        case ShowRecordPreservingJoins():
            return "SHOW RECORD PRESERVING JOINS"
        case ShowRestrictedBaseTables():
            return "SHOW RESTRICTED BASE TABLES"
        case _:
            return _short(statement)


def render_name(name: QualifiedName) -> str:
    """Write a name, quoted where it must be.

    Args:
        name: The name.

    Returns:
        Its text.
    """
    return _dotted(name.parts)


def quote(text: str) -> str:
    """Write a string literal.

    Args:
        text: The string.

    Returns:
        The literal in single quotes.

    >>> quote("it's")
    "'it\\\\'s'"
    """
    # A backslash before % or _ belongs to a LIKE pattern and is kept by Spark as it stands.
    escaped = re.sub(r"\\(?![%_])", r"\\\\", text).replace("'", "\\'")
    return f"'{escaped}'"


def render_refresh(policy: RefreshPolicy) -> str:
    """Write a REFRESH clause, its mode included.

    Args:
        policy: When and how.

    Returns:
        The clause.

    >>> render_refresh(RefreshPolicy(Every(3600)))
    'REFRESH EVERY 1 HOUR AUTO'
    """
    return f"REFRESH {_trigger(policy.trigger)} {policy.mode.words}"


def render_freshness(freshness: Freshness) -> str:
    """Write a freshness clause.

    Args:
        freshness: The promise.

    Returns:
        The clause.
    """
    if freshness.kind is FreshnessKind.STRICT:
        return "STRICT"
    if freshness.max_staleness_seconds is None:
        return "MAX STALENESS UNLIMITED"
    return f"MAX STALENESS INTERVAL {_duration(freshness.max_staleness_seconds)}"


def _short(statement: Statement) -> str:
    """A statement of one line."""
    match statement:
        case DropRelationalCache(name, if_exists) | DropRecordPreservingJoin(name, if_exists):
            return f"{_VERBS[type(statement)]} {_if_exists(if_exists)}{render_name(name)}"
        case RefreshRelationalCache(name, mode) | ExplainRefresh(name, mode):
            return f"{_VERBS[type(statement)]} {render_name(name)}{_mode(mode)}"
        case AlterRelationalCache(name, action):
            return f"ALTER RELATIONAL CACHE {render_name(name)} {_action(action)}"
        case DescribeRelationalCache(name, extended):
            option = "EXTENDED " if extended else ""
            return f"DESCRIBE RELATIONAL CACHE {option}{render_name(name)}"
        case GrantUse(name, principal):
            return f"GRANT USE ON RELATIONAL CACHE {render_name(name)} TO {_part(principal)}"
        case RevokeUse(name, principal):
            return f"REVOKE USE ON RELATIONAL CACHE {render_name(name)} FROM {_part(principal)}"
        case (
            ShowCreateRelationalCache(name)
            | ValidateRecordPreservingJoin(name)
            | RestrictBaseTable(name)
            | UnrestrictBaseTable(name)
        ):
            return f"{_VERBS[type(statement)]} {render_name(name)}"
        case _:
            raise TypeError(f"not a statement: {statement!r}")


# What is written before the name.
_VERBS: Final[dict[type[Statement], str]] = {
    DropRelationalCache: "DROP RELATIONAL CACHE",
    DropRecordPreservingJoin: "DROP RECORD PRESERVING JOIN",
    RefreshRelationalCache: "REFRESH RELATIONAL CACHE",
    ExplainRefresh: "EXPLAIN REFRESH",
    ShowCreateRelationalCache: "SHOW CREATE RELATIONAL CACHE",
    ValidateRecordPreservingJoin: "VALIDATE RECORD PRESERVING JOIN",
    RestrictBaseTable: "RESTRICT BASE TABLE",
    UnrestrictBaseTable: "UNRESTRICT BASE TABLE",
}


def _create(statement: CreateRelationalCache) -> str:
    replace = "OR REPLACE " if statement.or_replace else ""
    condition = "IF NOT EXISTS " if statement.if_not_exists else ""
    lines = [f"CREATE {replace}RELATIONAL CACHE {condition}{render_name(statement.name)}"]
    if statement.comment is not None:
        lines.append(f"COMMENT {quote(statement.comment)}")
    if statement.partitioned_by:
        lines.append(f"PARTITIONED BY ({_columns(statement.partitioned_by)})")
    if statement.cluster_by:
        lines.append(f"CLUSTER BY ({_columns(statement.cluster_by)})")
    if statement.location is not None:
        lines.append(f"LOCATION {quote(statement.location)}")
    if statement.properties:
        lines.append(_properties(statement.properties))
    lines.append(render_refresh(statement.refresh))
    lines.append(render_freshness(statement.freshness))
    lines.append("ENABLE REWRITE" if statement.rewrite_enabled else "DISABLE REWRITE")
    return "\n  ".join(lines) + f"\nAS {statement.select.text}"


def _create_join(join: CreateRecordPreservingJoin) -> str:
    condition = "IF NOT EXISTS " if join.if_not_exists else ""
    keys = " AND ".join(f"{_column(key.left)} = {_column(key.right)}" for key in join.keys)
    return (
        f"CREATE RECORD PRESERVING JOIN {condition}{render_name(join.name)} AS\n"
        f"  {_table(join.left)} {kind_of_join(join.finds_each)} JOIN {_table(join.right)}"
        f" ON {keys}\n"
        f"  PRESERVES {render_name(as_name(join.preserved))}"
        f"{'' if join.validated else ' NOT VALIDATED'}"
    )


def _action(action: AlterAction) -> str:
    match action:
        case SetRewriteEnabled(enabled):
            return "ENABLE REWRITE" if enabled else "DISABLE REWRITE"
        case SetPaused(paused):
            return "PAUSE" if paused else "RESUME"
        case RenameTo(name):
            return f"RENAME TO {render_name(name)}"
        case SetRefresh(policy):
            return f"SET {render_refresh(policy)}"
        case SetFreshness(freshness):
            return f"SET {render_freshness(freshness)}"
        case SetProperties(found):
            return f"SET {_properties(found)}"


def _trigger(trigger: Trigger) -> str:
    match trigger:
        case OnDemand():
            return "ON DEMAND"
        case OnCommit(None):
            return "ON COMMIT"
        case OnCommit(seconds) if seconds is not None:
            return f"ON COMMIT AT MOST EVERY {_duration(seconds)}"
        case TargetLag(seconds):
            return f"TARGET LAG {_duration(seconds)}"
        case Every(seconds):
            return f"EVERY {_duration(seconds)}"
        case Cron(expression, zone):
            suffix = "" if zone is None else f" AT TIME ZONE {quote(zone)}"
            return f"CRON {quote(expression)}{suffix}"
        case _:
            raise TypeError(f"not a trigger: {trigger!r}")


def _duration(seconds: int) -> str:
    size, unit = next(each for each in _UNITS if seconds % each[0] == 0)
    number = seconds // size
    return f"{number} {unit}{'' if number == 1 else 'S'}"


def _mode(mode: RefreshMode | None) -> str:
    return "" if mode is None else f" {mode.words}"


def _if_exists(if_exists: bool) -> str:
    return "IF EXISTS " if if_exists else ""


def _properties(found: Properties) -> str:
    pairs = ", ".join(f"{quote(key)} = {quote(value)}" for key, value in found)
    return f"TBLPROPERTIES ({pairs})"


def _table(table: TableRef) -> str:
    return render_name(table.name) + ("" if table.alias is None else f" {_part(table.alias)}")


def _column(ref: ColumnRef) -> str:
    return _dotted((*ref.qualifier, ref.column))


def _columns(columns: tuple[str, ...]) -> str:
    return ", ".join(map(_part, columns))


def _dotted(parts: tuple[str, ...]) -> str:
    return ".".join(map(_part, parts))


def _part(part: str) -> str:
    if _PLAIN.fullmatch(part) and part.upper() not in _KEYWORDS:
        return part
    return quote_name(part)
