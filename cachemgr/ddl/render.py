"""Statements back to canonical text, the inverse of `parse`.

Upper-case keywords, clauses in the grammar's order, defaults of a cache spelled out, names quoted
only where they must be.
"""

from __future__ import annotations

from typing import Final

from cachemgr.ddl.cache_clauses import render_clauses
from cachemgr.ddl.joins import as_name
from cachemgr.ddl.render_parts import (
    dotted,
    part,
    quote,
    render_freshness,
    render_name,
    render_properties,
    render_refresh,
)
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
    GrantSelect,
    GrantUse,
    RefreshRelationalCache,
    RenameTo,
    RestrictBaseTable,
    RevokeSelect,
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
    ShowSelectGrants,
    Statement,
    TableRef,
    UnrestrictBaseTable,
    ValidateRecordPreservingJoin,
)
from cachemgr.vocabulary import RefreshMode, kind_of_join

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
    GrantSelect: "GRANT SELECT ON BASE TABLE",
    RevokeSelect: "REVOKE SELECT ON BASE TABLE",
    ShowSelectGrants: "SHOW SELECT GRANTS",
}


def render(statement: Statement) -> str:
    """Write a statement as text.

    Args:
        statement: Any statement.

    Returns:
        Text that `parse` turns into an equal statement.

    >>> from cachemgr.ddl.statements import QualifiedName
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
        case ExplainRewrite(query, format_json, files):
            words = ("FILES " if files else "") + ("FORMAT JSON " if format_json else "")
            return f"EXPLAIN REWRITE {words}{query.text}"
        case ShowRelationalCaches(pattern):
            return "SHOW RELATIONAL CACHES" + ("" if pattern is None else f" LIKE {quote(pattern)}")
        case ShowRecordPreservingJoins():
            return "SHOW RECORD PRESERVING JOINS"
        case ShowRestrictedBaseTables():
            return "SHOW RESTRICTED BASE TABLES"
        case ShowSelectGrants(name, principal):
            of = "" if name is None else f" ON BASE TABLE {render_name(name)}"
            return f"SHOW SELECT GRANTS{of}" + (
                "" if principal is None else f" TO {part(principal)}"
            )
        case _:
            return _short(statement)


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
        case GrantUse(name, principal) | GrantSelect(name, principal):
            return f"{_VERBS[type(statement)]} {render_name(name)} TO {part(principal)}"
        case RevokeUse(name, principal) | RevokeSelect(name, principal):
            return f"{_VERBS[type(statement)]} {render_name(name)} FROM {part(principal)}"
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
    GrantUse: "GRANT USE ON RELATIONAL CACHE",
    RevokeUse: "REVOKE USE ON RELATIONAL CACHE",
    GrantSelect: "GRANT SELECT ON BASE TABLE",
    RevokeSelect: "REVOKE SELECT ON BASE TABLE",
}


def _create(statement: CreateRelationalCache) -> str:
    replace = "OR REPLACE " if statement.or_replace else ""
    condition = "IF NOT EXISTS " if statement.if_not_exists else ""
    lines = [f"CREATE {replace}RELATIONAL CACHE {condition}{render_name(statement.name)}"]
    lines += render_clauses(statement.spec)
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
            return f"SET {render_properties(found)}"


def _mode(mode: RefreshMode | None) -> str:
    return "" if mode is None else f" {mode.words}"


def _if_exists(if_exists: bool) -> str:
    return "IF EXISTS " if if_exists else ""


def _table(table: TableRef) -> str:
    return render_name(table.name) + ("" if table.alias is None else f" {part(table.alias)}")


def _column(ref: ColumnRef) -> str:
    return dotted((*ref.qualifier, ref.column))
