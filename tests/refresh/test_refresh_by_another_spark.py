"""How a cache is refreshed whose rows another minor of Spark has computed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.refresh.by_change.incremental import Stored
from cachemgr.refresh.by_change.why_full import FullCode
from cachemgr.refresh.other_spark import is_of_another_spark
from cachemgr.refresh.planning.plan import DELTA_WAYS, RefreshRequest
from cachemgr.refresh.planning.planner import plan_refresh
from cachemgr.spark.definitions import replan
from cachemgr.sparks import SPARK
from matcher.model.expr import Call, Col
from matcher.model.ir import CachePlan, StoredColumn
from tests.refresh.test_refresh_plan import GREW, PLAN, PUBLISHED, TABLE

BY_NAME = replace(
    PLAN, keys=(StoredColumn("k", Call("upper", (Col(0, "n", "string"),), "string")),)
)


def _by_another(plan: CachePlan, **more: object) -> RefreshRequest:
    published = replace(
        PUBLISHED, stored=Stored(replace(plan, rows=10, bytes=1000)), sparks=frozenset({"4.1"})
    )
    return replace(GREW, plan=plan, published=published, spark="4.2", **more)


def test_a_change_is_added_to_rows_of_another_spark_where_all_is_alike() -> None:
    assert plan_refresh(_by_another(PLAN)).code is None
    assert plan_refresh(_by_another(PLAN)).mode in DELTA_WAYS


def test_all_is_computed_where_another_spark_may_compute_otherwise() -> None:
    plan = plan_refresh(_by_another(BY_NAME))
    assert plan.mode == "FULL" and plan.code is FullCode.OTHER_SPARK
    for said in ("computed by Spark 4.1, and this is Spark 4.2", "upper otherwise"):
        assert said in str(plan.reason)
    for sparks in ({"4.2"}, {"4.1", "4.2"}):
        request = _by_another(BY_NAME)
        assert request.published is not None
        mine = replace(request.published, sparks=frozenset(sparks))
        found = plan_refresh(replace(request, published=mine)).code
        assert found is (None if sparks == {"4.2"} else FullCode.OTHER_SPARK)


def test_a_definition_that_another_spark_has_read_is_not_compared() -> None:
    plan = plan_refresh(_by_another(PLAN, spec="another spelling"))
    assert plan.mode == "FULL" and plan.code is FullCode.OTHER_SPARK
    request = _by_another(PLAN, spec="another spelling")
    assert request.published is not None
    mine = replace(request.published, sparks=frozenset({"4.2"}))
    assert plan_refresh(replace(request, published=mine)).code is FullCode.DEFINITION_CHANGED


def test_nothing_is_computed_where_no_table_moved() -> None:
    request = replace(_by_another(BY_NAME), tables=(TABLE,), changes={})
    assert plan_refresh(request).mode == "UNCHANGED"


@pytest.mark.parametrize(
    ("said", "is_left"),
    [
        ("[UNRESOLVED_ROUTINE] Cannot resolve routine `KLL_SKETCH_AGG_BIGINT`", True),
        ("[DEFINITION_BROKEN] …: [SETTING_NOT_AVAILABLE] which Spark 4.0.5 does not have", True),
        ("[UNSUPPORTED_FEATURE.TIME_TYPE] The feature is not supported", True),
        ("[OTHER_SPARK] Spark 4.1 makes other columns of the definition of cache c …", True),
        ("[TABLE_UNREADABLE] …: [DELTA_UNSUPPORTED_FEATURES_FOR_READ] …", False),
        ("[TABLE_NOT_FOUND] the table is gone", False),
    ],
)
def test_only_what_this_spark_lacks_is_left_to_another(said: str, is_left: bool) -> None:
    cache: Any = SimpleNamespace(context={SPARK: "4.2"})
    for here, other in (("4.1.4", True), ("4.2.0", False)):
        spark: Any = SimpleNamespace(version=here)
        assert is_of_another_spark(spark, cache, RuntimeError(said)) is (is_left and other)


@pytest.mark.parametrize(
    ("first", "code"), [("4.2", ErrorCode.OTHER_SPARK), ("4.1", ErrorCode.COLUMNS_CHANGED)]
)
def test_other_columns_are_laid_to_the_other_spark(first: str, code: ErrorCode) -> None:
    """Nobody has changed a view where one minor makes a column that another one does not."""
    spark: Any = SimpleNamespace(version="4.1.4")
    one, two = (SimpleNamespace(name=name, type="bigint") for name in ("gid", "n"))
    cache: Any = SimpleNamespace(qualified_name="s.c", columns=(one, two), context={SPARK: first})
    found: Any = SimpleNamespace(columns=(two,), plan=PLAN)
    with pytest.raises(CacheManagerError, match=r"cache s\.c .*: column gid is gone") as caught:
        replan._refuse_other_columns(spark, cache, found, None)
    assert caught.value.code == code
    assert ("Spark 4.2, which has read it first" in caught.value.message) is (first == "4.2")
