"""/api/v1/caches/{name}/layout: which layout of its table a cache's hits speak for."""

from __future__ import annotations

from fastapi import APIRouter

from cachemgr.access.redaction import Discretion
from cachemgr.api import layout_models as models
from cachemgr.api.caches import CacheName, find
from cachemgr.api.dependencies import Operator, State
from cachemgr.statements.layout_advice import Advice, advise

router = APIRouter(prefix="/api/v1/caches", tags=["caches"])
_HIDDEN = "how many values its columns have is told to those who may be answered from it"


@router.get("/{name}/layout", operation_id="reckonLayout")
def layout(state: State, operator: Operator, name: CacheName) -> models.LayoutAdvice:
    """What layouts of a cache's table would have cost by the filters of its hits, which are logged
    without any value. The service's Spark reads the columns that they name."""
    cache = find(state, name)
    if not Discretion(state.metastore, operator.name).may_know(cache):
        return _told(cache.qualified_name, Advice(note=_HIDDEN))
    return _told(cache.qualified_name, advise(state.metastore, cache, state.stored))


def _told(name: str, found: Advice) -> models.LayoutAdvice:
    return models.LayoutAdvice(
        cache=name,
        hits=found.hits,
        local_hits=found.local_hits,
        columns=[models.ColumnUse(column=c, hits=n) for c, n in (found.used or {}).items()],
        layouts=[
            models.Layout(
                clause=each.layout.clause,
                partitioned_by=list(each.layout.partitioned_by),
                cluster_by=list(each.layout.cluster_by),
                files=each.files,
                files_opened=round(each.files_opened, 1),
                bytes_opened=round(each.bytes_opened),
                is_current=each.layout == found.now,
                is_best=each.layout == found.best,
            )
            for each in found.layouts
        ],
        statement=found.statement,
        note=found.note,
    )
