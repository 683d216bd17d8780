"""/api/v1/definitions: all that is defined as one document, and applying such a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter

from cachemgr.access.grants import role_needed
from cachemgr.api import document_models as models
from cachemgr.api.dependencies import ApiState, Operator, Principal, State, Viewer, require
from cachemgr.roles import Role
from cachemgr.statements import apply as applying
from cachemgr.statements import export as exporting
from cachemgr.statements.apply import Applied, Context
from cachemgr.statements.results import ResultRows

router = APIRouter(prefix="/api/v1/definitions", tags=["definitions"])


@router.get("", operation_id="exportDefinitions")
def export(state: State, viewer: Viewer) -> models.Definitions:
    """All caches with every clause, and joins, by name. No state. Grants for admins."""
    found = exporting.export(state.metastore)
    if not viewer.role.covers(Role.ADMIN):
        caches = tuple(replace(cache, grants=None) for cache in found.caches)
        found = replace(found, caches=caches)
    return models.Definitions(
        caches=[_cache_out(c) for c in found.caches],
        joins=[models.JoinDefinition(name=j.name, ddl=j.ddl) for j in found.joins],
    )


@router.post("/plan", operation_id="planDefinitions")
def plan(state: State, viewer: Viewer, body: models.Wanted) -> models.ChangeList:
    """What apply would change; nothing is. A document with grants is for admins."""
    wanted = _allowed(body.definitions, viewer)
    changes = applying.plan(state.metastore, wanted, prune=body.prune)
    return _told([Applied(change, "PLANNED") for change in changes])


@router.post("/apply", operation_id="applyDefinitions")
def apply(state: State, operator: Operator, body: models.Wanted) -> models.ChangeList:
    """Make the definitions true. All of them are checked before anything is changed; should a
    change fail then, those behind it are not tried. A second time there is nothing to change.
    Grants, and caches to be made at a location, are for admins."""
    wanted = _allowed(body.definitions, operator)
    changes = applying.plan(state.metastore, wanted, prune=body.prune)
    for statement in applying.statements(changes, wanted):
        require(operator, role_needed(statement))
    with state.spark_lock:
        execute = _execute(state, operator)
        applying.check(changes, wanted, execute)
        return _told(applying.apply(state.metastore, changes, wanted, execute))


def _allowed(body: models.Definitions, principal: Principal) -> exporting.Definitions:
    """The document, if it says nothing of grants or an admin sends it."""
    if any(cache.grants is not None for cache in body.caches):
        require(principal, Role.ADMIN)
    return _read(body)


def _execute(state: ApiState, principal: Principal) -> applying.Execute:
    def execute(text: str, context: Context | None) -> ResultRows:
        if context is None:
            return state.statements.execute(text, principal.name)
        return state.statements.execute_in(text, principal.name, context)

    return execute


def _cache_out(cache: exporting.CacheDefinition) -> models.CacheDefinition:
    values = exporting.as_data(cache)
    values[_SCHEMA] = values.pop("schema")
    lists = {k: list(v) for k, v in values.items() if isinstance(v, tuple)}
    return models.CacheDefinition(**{**values, **lists})


_SCHEMA = "catalog_schema"  # pydantic keeps the plain name for itself


def _read(body: models.Definitions) -> exporting.Definitions:
    caches = []
    for cache in body.caches:
        values = {f: getattr(cache, f) for f in type(cache).model_fields}
        values["schema"] = values.pop(_SCHEMA)
        values["grants"] = None if cache.grants is None else tuple(cache.grants)
        caches.append(exporting.of_data(values))
    joins = tuple(exporting.JoinDefinition(j.name, j.ddl) for j in body.joins)
    return exporting.Definitions(tuple(caches), joins)


def _told(found: Sequence[Applied]) -> models.ChangeList:
    changes = [
        models.Change.model_validate(
            {**vars(a.change), "fields": [vars(f) for f in a.change.fields],
             "outcome": a.outcome, "message": a.message}
        )
        for a in found
    ]  # fmt: skip
    return models.ChangeList(changes=changes)
