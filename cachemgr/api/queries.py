"""/api/v1/rewrite, /explain and /decisions: whether a query is, or was, answered from a cache, and
why not."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query

from cachemgr.api import query_models as models
from cachemgr.api.caches import CacheName, find
from cachemgr.api.dependencies import ApiState, Principal, RecentViewer, State, Viewer
from cachemgr.api.errors import ApiError
from cachemgr.api.timestamps import Moment
from cachemgr.errors import ErrorCode
from cachemgr.metastore.records import DecisionRecord
from cachemgr.reason_text import masked_reasons
from cachemgr.roles import Role
from cachemgr.serving import why as adding
from cachemgr.serving.explain import Explanation
from cachemgr.serving.shown_reasons import ShownReasons
from cachemgr.text.door import TextAnswer, TextRequest
from cachemgr.vocabulary import Outcome

router = APIRouter(prefix="/api/v1", tags=["queries"])


@router.post("/rewrite", operation_id="rewriteQuery")
async def rewrite(state: State, viewer: RecentViewer, body: models.Query) -> models.Rewritten:
    """The SQL to run instead of a query, from the text alone: no Spark is asked."""
    found = await _answer(state, viewer, body)
    return models.Rewritten.model_validate(
        {
            "hit": found.sql is not None,
            "sql": found.sql,
            "caches": found.caches,
            "exact": found.exact,
            "tables": found.tables,
            "reasons": masked_reasons(found.reasons),
            "settings": found.settings,
        }
    )


@router.post("/explain", operation_id="explainQuery")
async def explain(state: State, viewer: Viewer, body: models.QueryToExplain) -> models.Explained:
    """Which cache would answer a query now, and the nearest candidates with reasons and cost."""
    found = await _answer(state, viewer, body, body.candidates)
    explanation = found.explanation or Explanation(hit=False, reasons=masked_reasons(found.reasons))
    return models.Explained.model_validate(
        {
            **explanation.as_data(),
            "exact": found.exact,
            "tables": found.tables,
            "settings": found.settings,
        }
    )


async def _answer(
    state: ApiState, viewer: Principal, body: models.Query, explain: int | None = None
) -> TextAnswer:
    texts = state.texts
    if texts is None:
        raise ApiError(
            503,
            ErrorCode.NO_TEXT_DOOR,
            "SQL rewriting is not enabled in this process: ask another one",
        )
    request = TextRequest(body.sql, viewer.name, body.catalog, body.schema_name, body.settings)
    work = partial(texts.answer, request, explain=explain)
    quick = partial(texts.quick, request, explain=explain)
    soon = partial(texts.soon, request, explain=explain)
    return await state.lanes.run(work, len(body.sql), quick, soon)


@router.get("/caches/{name}/why", operation_id="explainCache")
def why(state: State, viewer: Viewer, name: CacheName, since: Moment | None = None) -> models.Why:
    """Why queries were, or were not, answered from a cache: its decisions of the log, added up.
    What reasons say quotes values from queries: it is for operators."""
    shown = ShownReasons(state.metastore, viewer.name)
    found = adding.why(state.metastore, find(state, name), since=since, shown=shown)
    told = models.Why.model_validate(found)
    if not viewer.role.covers(Role.OPERATOR):
        for reason in told.reasons:
            reason.detail = ""
        for decision in told.latest:
            decision.reasons = [{"code": reason["code"]} for reason in decision.reasons]
            if decision.principal != viewer.name:
                decision.principal = None
    return told


@router.get("/decisions", operation_id="listDecisions")
def list_decisions(
    state: State,
    viewer: Viewer,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    outcome: Outcome | None = None,
    cache: Annotated[str | None, Query(max_length=512)] = None,
    session_id: Annotated[str | None, Query(alias="sessionId", max_length=128)] = None,
    query_hash: Annotated[str | None, Query(alias="queryHash", max_length=64)] = None,
    since: Moment | None = None,
) -> models.DecisionList:
    """The query log, newest first. Viewers see the whole of their own decisions, and of others'
    the outcome and the codes."""
    found = state.metastore.decisions.latest(
        limit,
        outcome=outcome,
        cache=cache,
        session_id=session_id,
        query_hash=query_hash,
        since=since,
    )
    shown = ShownReasons(state.metastore, viewer.name)
    return models.DecisionList(decisions=[_shown_to(viewer, shown.decision(d)) for d in found])


def _shown_to(reader: Principal, record: DecisionRecord) -> models.Decision:
    """Reasons quote values from a query: other people's are for whoever runs the service."""
    decision = models.Decision.model_validate(record)
    if record.principal != reader.name and not reader.role.covers(Role.OPERATOR):
        decision.principal = None
        decision.reasons = [{"code": reason["code"]} for reason in decision.reasons]
    return decision
