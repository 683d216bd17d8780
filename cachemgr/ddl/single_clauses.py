"""Single clauses of our DDL, as JSON fields and documents hold them."""

from __future__ import annotations

from cachemgr.ddl import parse
from cachemgr.ddl.statements import (
    AlterRelationalCache,
    Freshness,
    QualifiedName,
    RefreshPolicy,
    SetFreshness,
    SetRefresh,
    ShowCreateRelationalCache,
)
from cachemgr.errors import ConfigurationError, ErrorCode


def read_refresh(clause: str) -> RefreshPolicy:
    """A REFRESH clause without that word: `EVERY 1 HOUR AUTO`.

    Raises:
        CacheManagerError: It is none; names the place.
    """
    statement = parse(f"ALTER RELATIONAL CACHE c SET REFRESH {clause}")
    if isinstance(statement, AlterRelationalCache) and isinstance(statement.action, SetRefresh):
        return statement.action.refresh
    raise ConfigurationError(ErrorCode.NOT_A_CLAUSE, f"{clause!r} is not a REFRESH clause")


def read_freshness(clause: str) -> Freshness:
    """A freshness clause: `MAX STALENESS INTERVAL 1 HOUR`.

    Raises:
        CacheManagerError: It is none; names the place.
    """
    statement = parse(f"ALTER RELATIONAL CACHE c SET {clause}")
    if isinstance(statement, AlterRelationalCache) and isinstance(statement.action, SetFreshness):
        return statement.action.freshness
    raise ConfigurationError(ErrorCode.NOT_A_CLAUSE, f"{clause!r} is not a freshness clause")


def read_name(text: str) -> QualifiedName:
    """A cache's name as a statement would hold it.

    Raises:
        CacheManagerError: It is none; names the place.
    """
    statement = parse(f"SHOW CREATE RELATIONAL CACHE {text}")
    assert isinstance(statement, ShowCreateRelationalCache)
    return statement.name
