"""GRANT, REVOKE and SHOW of SELECT on base tables: from names to the places that are granted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cachemgr.ddl.names import namespace_of
from cachemgr.ddl.render_parts import render_name
from cachemgr.ddl.statements import GrantSelect, QualifiedName, RevokeSelect, ShowSelectGrants
from cachemgr.errors import CacheManagerError, ErrorCode, NotFoundError
from cachemgr.metastore.select_grants import SelectGrants
from cachemgr.metastore.statement_records import SelectGrant
from cachemgr.roles import check_principal
from cachemgr.secrets import refuse_secrets
from cachemgr.statements.columns import SELECT_GRANTED, SELECT_GRANTS
from cachemgr.statements.engine import Engine
from cachemgr.statements.results import DONE, ResultRows, table


def grant(grants: SelectGrants, engine: Engine, statement: GrantSelect) -> ResultRows:
    """Let the service read the table that a name stands for now, for a principal.

    Args:
        grants: Where grants are kept.
        engine: Resolves the name.
        statement: The table and the principal.

    Raises:
        ConfigurationError: The name holds a credential, or that is no principal.
        DefinitionError: It is no Delta table.
    """
    text = render_name(statement.name)
    refuse_secrets("GRANT SELECT ON BASE TABLE", {"the table's name": text}, {})
    principal = check_principal(statement.principal)
    found = engine.resolve_table(text)
    is_new = grants.add(found.location, principal, found.name)
    said = f"granted to {principal}" if is_new else "was granted already"
    return table(SELECT_GRANTED, [(found.name, said, found.location)])


def revoke(grants: SelectGrants, engine: Engine, statement: RevokeSelect) -> ResultRows:
    """Take a principal's grants on a table back.

    Args:
        grants: Where grants are kept.
        engine: Resolves the name.
        statement: The principal, and the table; where it is gone, the name or the place that the
            grant shows.

    Raises:
        NotFoundError: He has none on it.
    """
    principal = statement.principal.strip()
    his = [each for each in grants.all() if each.principal == principal]
    found = _on(his, engine, statement.name)
    if not found:
        raise NotFoundError(
            ErrorCode.GRANT_NOT_FOUND,
            f"{principal} was not granted SELECT on {statement.name}: SHOW SELECT GRANTS lists "
            "what was granted",
        )
    for each in found:
        grants.remove(each.place, principal)
    return table(DONE, [(each.table_name, f"revoked from {principal}") for each in found])


def rows(
    grants: SelectGrants,
    engine: Engine,
    statement: ShowSelectGrants,
    may_see: Callable[[str], bool],
) -> ResultRows:
    """SHOW SELECT GRANTS.

    Args:
        grants: Where grants are kept.
        engine: Resolves the name.
        statement: Which of them.
        may_see: Whether whoever asks may be shown those of a principal.
    """
    found = [each for each in grants.all() if may_see(each.principal)]
    if statement.principal is not None:
        found = [each for each in found if each.principal == statement.principal.strip()]
    if statement.name is not None:
        found = _on(found, engine, statement.name)
    return table(
        SELECT_GRANTS,
        [(each.principal, each.table_name, each.place, each.granted_at) for each in found],
    )


def _on(grants: Sequence[SelectGrant], engine: Engine, name: QualifiedName) -> list[SelectGrant]:
    """Those on a table: at the place that is written, or else at the place of the table that has
    the name now, and those that were given under that name."""
    found = [each for each in grants if each.place == name.last]
    if found or not grants:
        return found
    try:
        place = engine.resolve_table(render_name(name)).location
    except CacheManagerError:  # it is gone or cannot be read: what the grant shows must do
        place = None
    whole = f"{namespace_of(name, *engine.current())}.{name.last}"
    names = (str(name).lower(), whole.lower())
    return [each for each in grants if each.place == place or each.table_name.lower() in names]
