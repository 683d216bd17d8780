"""RESTRICT, UNRESTRICT and SHOW RESTRICTED BASE TABLES: from names to the marks that are kept."""

from __future__ import annotations

from cachemgr.ddl.render_parts import render_name
from cachemgr.ddl.statements import QualifiedName
from cachemgr.errors import DefinitionError, ErrorCode, NotFoundError
from cachemgr.metastore.records import RestrictedTable
from cachemgr.metastore.tables import Tables
from cachemgr.secrets import refuse_secrets
from cachemgr.statements.columns import RESTRICTED
from cachemgr.statements.engine import Engine
from cachemgr.statements.results import ResultRows, done, table


def restrict(tables: Tables, engine: Engine, name: QualifiedName, principal: str) -> ResultRows:
    """Mark the table that a name stands for now.

    Args:
        tables: Where marks are kept.
        engine: Resolves the name.
        name: The table.
        principal: Who marks it.

    Raises:
        ConfigurationError: The name holds a credential.
        DefinitionError: It is no Delta table.
    """
    refuse_secrets("RESTRICT BASE TABLE", {"the table's name": render_name(name)}, {})
    found = engine.resolve_table(render_name(name))
    tables.restrict(found.name, found.location, found.table_id, by=principal)
    return done(found.name, "restricted")


def unrestrict(tables: Tables, engine: Engine, name: QualifiedName) -> ResultRows:
    """Take the mark of a table away.

    Args:
        tables: Where marks are kept.
        engine: Resolves the name.
        name: The table; where it is gone, the name or the place that the mark shows.

    Raises:
        NotFoundError: It is not restricted.
    """
    marks = tables.restricted()
    found = [mark for mark in marks if mark.location == name.last] or _named(marks, engine, name)
    # and those of the tables that it took the name of, or that took its own
    names = {mark.name.lower() for mark in found}
    places = {mark.location for mark in found}
    found = [m for m in marks if m.name.lower() in names or m.location in places]
    if not found:
        raise NotFoundError(
            ErrorCode.TABLE_NOT_RESTRICTED,
            f"{name} is not restricted: SHOW RESTRICTED BASE TABLES lists those that are",
        )
    for mark in found:
        tables.unrestrict(mark.id)
    return done(found[0].name, "not restricted any more")


def _named(
    marks: tuple[RestrictedTable, ...], engine: Engine, name: QualifiedName
) -> list[RestrictedTable]:
    try:
        state = engine.resolve_table(render_name(name))
    except DefinitionError:  # it is gone: what the mark was called must do
        return [mark for mark in marks if mark.name.lower() == str(name).lower()]
    return [m for m in marks if m.location == state.location or m.table_id == state.table_id]


def rows(tables: Tables) -> ResultRows:
    """SHOW RESTRICTED BASE TABLES."""
    return table(
        RESTRICTED,
        [
            (m.name, m.location, m.table_id, m.restricted_by, m.restricted_at.isoformat(" "))
            for m in tables.restricted()
        ],
    )
