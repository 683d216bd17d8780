"""/api/v1/explain and /api/v1/decisions: why a query is, or was, answered from a cache or not."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from cachemgr import why as adding
from cachemgr.api import models
from cachemgr.api.caches import CacheName, find
from cachemgr.api.errors import ApiError
from cachemgr.api.state import Principal, State, Viewer
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import ExplainRewrite, SelectText
from cachemgr.metastore.records import DecisionRecord, Outcome
from cachemgr.roles import Role

router = APIRouter(prefix="/api/v1", tags=["queries"])


@router.post("/explain", operation_id="explainQuery")
def explain(state: State, viewer: Viewer, body: models.Query) -> models.Explained:
    """Which cache would answer a query now: every candidate with its reasons and cost."""
    with state.spark_lock:
        rows = state.statements.execute(
            render(ExplainRewrite(SelectText(body.sql), format_json=True)), viewer.name
        )
    found = json.loads(rows.rows[0][0])
    return models.Explained(
        hit=found["hit"],
        caches=found["caches"],
        rewritten_sql=found["rewritten_sql"],
        candidates=found["candidates"],
    )


@router.get("/caches/{name}/why", operation_id="explainCache")
def why(state: State, viewer: Viewer, name: CacheName, since: datetime | None = None) -> models.Why:
    """Why queries were, or were not, answered from a cache: its decisions of the log, added up.
    What reasons say quotes values from queries: it is for operators."""
    _with_zone(since)
    found = adding.why(state.metastore, find(state, name), since=since)
    told = models.Why.model_validate(found)
    if not viewer.role.covers(Role.OPERATOR):
        for reason in told.reasons:
            reason.detail = ""
        for decision in told.latest:
            decision.reasons = [{"code": reason["code"]} for reason in decision.reasons]
    return told


def _with_zone(since: datetime | None) -> None:
    if since is not None and since.tzinfo is None:
        raise ApiError(400, "NO_TIME_ZONE", "since needs a time zone: 2026-01-31T12:00:00Z")


@router.get("/decisions", operation_id="listDecisions")
def list_decisions(
    state: State,
    viewer: Viewer,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    outcome: Outcome | None = None,
    cache: Annotated[str | None, Query(max_length=512)] = None,
    session_id: Annotated[str | None, Query(alias="sessionId", max_length=128)] = None,
    query_hash: Annotated[str | None, Query(alias="queryHash", max_length=64)] = None,
    since: datetime | None = None,
) -> models.DecisionList:
    """The query log, newest first. Viewers see the whole of their own decisions, and of others'
    the outcome and the codes."""
    _with_zone(since)
    found = state.metastore.reader.decisions(
        limit,
        outcome=outcome,
        cache=cache,
        session_id=session_id,
        query_hash=query_hash,
        since=since,
    )
    return models.DecisionList(decisions=[_shown_to(viewer, d) for d in found])


def _shown_to(reader: Principal, record: DecisionRecord) -> models.Decision:
    """Reasons quote values from a query: other people's are for whoever runs the service."""
    decision = models.Decision.model_validate(record)
    if record.principal != reader.name and not reader.role.covers(Role.OPERATOR):
        decision.principal = None
        decision.reasons = [{"code": reason["code"]} for reason in decision.reasons]
    return decision
