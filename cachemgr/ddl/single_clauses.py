"""Clauses of our DDL, as JSON fields and documents hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cachemgr.cache_spec import SPEC_FIELDS, CacheSpec, Freshness, RefreshPolicy
from cachemgr.ddl import parse
from cachemgr.ddl.render_parts import render_freshness, render_refresh
from cachemgr.ddl.statements import (
    AlterRelationalCache,
    QualifiedName,
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


def spec_as_data(spec: CacheSpec) -> dict[str, Any]:
    """The clauses of a cache as a document holds them, by their fields in `CacheSpec`.

    Args:
        spec: What was declared.

    >>> spec_as_data(CacheSpec())["refresh"]
    'ON DEMAND AUTO'
    """
    return {n: _WRITERS.get(n, _as_is)(getattr(spec, n)) for n in SPEC_FIELDS}


def spec_of_data(data: Mapping[str, Any]) -> CacheSpec:
    """The inverse of `spec_as_data`.

    Args:
        data: The clauses, and whatever else stands beside them; what is left out has its default.

    Raises:
        CacheManagerError: A clause is none; names the place.
    """
    found = {n: data[n] for n in SPEC_FIELDS if n in data}
    return CacheSpec(**{n: _READERS.get(n, _as_declared)(value) for n, value in found.items()})


def _as_is(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, Mapping) else value


def _as_declared(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else _as_is(value)


# The clauses that a document holds in the words of the DDL.
_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "refresh": lambda policy: render_refresh(policy).removeprefix("REFRESH "),
    "freshness": render_freshness,
}
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "refresh": read_refresh,
    "freshness": read_freshness,
}
