"""/api/v1/joins: the record-preserving joins."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Response

from cachemgr.access.redaction import Discretion
from cachemgr.api import models, responses
from cachemgr.api.dependencies import ApiState, Operator, Principal, State, Viewer
from cachemgr.api.errors import ApiError
from cachemgr.api.responses import path_of
from cachemgr.ddl import parse
from cachemgr.ddl.names import no_join
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import (
    CreateRecordPreservingJoin,
    QualifiedName,
    ValidateRecordPreservingJoin,
)
from cachemgr.errors import ErrorCode
from cachemgr.metastore.records import JoinRecord
from cachemgr.roles import Role

router = APIRouter(prefix="/api/v1/joins", tags=["joins"])
_FORM: Final = "CREATE RECORD PRESERVING JOIN …"
JoinName = Annotated[str, Path(max_length=1024)]


def _find(state: ApiState, name: str) -> JoinRecord:
    found = state.metastore.joins.named(name)
    if found is None:
        names = [known.name for known in state.metastore.joins.all()]
        raise no_join(name, names, "`cachemgr join list` or GET /api/v1/joins")
    return found


def _told(state: ApiState, reader: Principal, join: JoinRecord) -> models.Join:
    """A join; what contradicts it quotes values of its tables, which is for operators."""
    shown = responses.join(Discretion(state.metastore, reader.name).join(join))
    if not reader.role.covers(Role.OPERATOR) and shown.message is not None:
        shown.message = f"record-preserving join {join.name} does not hold: operators are told why"
    return shown


@router.get("", operation_id="listJoins")
def list_joins(state: State, viewer: Viewer) -> models.JoinList:
    """All record-preserving joins by name."""
    return models.JoinList(joins=[_told(state, viewer, j) for j in state.metastore.joins.all()])


@router.post("", status_code=201, operation_id="createJoin")
def create_join(
    state: State, operator: Operator, body: models.NewJoin, response: Response
) -> models.Join:
    """Declare a join by its CREATE RECORD PRESERVING JOIN statement; the data are checked."""
    statement = parse(body.ddl, _FORM)
    if not isinstance(statement, CreateRecordPreservingJoin):
        raise ApiError(400, ErrorCode.NOT_A_CREATE, f"ddl is another statement: expected {_FORM}")
    with state.spark_lock:
        state.statements.execute(body.ddl, operator.name)
    response.headers["Location"] = path_of(router.prefix, str(statement.name))
    return _told(state, operator, _find(state, str(statement.name)))


@router.get("/{name}", operation_id="getJoin")
def get_join(state: State, viewer: Viewer, name: JoinName) -> models.Join:
    """One join."""
    return _told(state, viewer, _find(state, name))


@router.post("/{name}/validate", operation_id="validateJoin")
def validate_join(state: State, operator: Operator, name: JoinName) -> models.Join:
    """Check the join against the data as they are now."""
    found = _find(state, name)
    text = render(ValidateRecordPreservingJoin(QualifiedName((found.name,))))
    with state.spark_lock:
        state.statements.execute(text, operator.name)
    return _told(state, operator, _find(state, name))


@router.delete("/{name}", status_code=204, operation_id="dropJoin")
def drop_join(state: State, operator: Operator, name: JoinName) -> None:
    """Forget a join: no rewrite relies on it any more."""
    state.metastore.joins.drop(_find(state, name).name)
