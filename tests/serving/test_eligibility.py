"""What a cache's state says of a valid rewrite, on plain data: one reason each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.config.result_settings import SettingsComparer
from cachemgr.delta.base_commits import BaseCommit, CommitRange, FileAction
from cachemgr.delta.changes import DataFile
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.serving.appended import FreshLimits
from cachemgr.serving.eligibility import Behind, Checks, Cleared, Eligibility, Moved, QueryState
from cachemgr.serving.freshness import Histories
from cachemgr.serving.served_cache import ServedCache
from cachemgr.spark.hook import HookContext
from cachemgr.spark.session import _exact_only
from cachemgr.vocabulary import FreshnessKind, JoinState
from matcher.catalyst.reader import LocatedBlock
from matcher.model.ir import Block, CachePlan, ExtraJoin, Relation, Rewrite
from matcher.model.reasons import Reason, ReasonCode

CACHE = ServedCache(
    id="c",
    name="c",
    plan=CachePlan("c", (), (), None),
    location="",
    version=1,
    snapshot={},
    freshness=FreshnessKind.STRICT,
    max_staleness_seconds=None,
    rewrite_enabled=True,
    settings=frozenset(),
    principals=None,
    unvalidated=frozenset(),
    reads=frozenset(),
)
QUERY = QueryState(seen={}, settings=frozenset(), principal="ann", now_ms=0, stamp=5)
REWRITE = Rewrite("c", None, (), None, ())


def checks(cache: ServedCache | None, restricted: Mapping[str, str] | None = None) -> Checks:
    return Checks(
        lambda name: cache,
        SettingsComparer(lambda key: None),
        Histories(lambda table, version, *, columns_then: UNKNOWN_PAST),
        lambda: restricted or {},
    )


def code(cache: ServedCache | None, query: QueryState = QUERY) -> ReasonCode | None:
    block = Block((), (), ())
    found = Eligibility(query, checks(cache)).clear(LocatedBlock((), block), block, REWRITE)
    return None if isinstance(found, Cleared) else found.code


def test_a_cache_in_order_may_serve() -> None:
    assert code(CACHE) is None


@pytest.mark.parametrize(
    ("cache", "wanted"),
    [
        (None, ReasonCode.REGISTRY_LOADING),
        (replace(CACHE, stamp=6), ReasonCode.REGISTRY_LOADING),
        (replace(CACHE, rewrite_enabled=False), ReasonCode.CACHE_DISABLED),
        (replace(CACHE, version=None), ReasonCode.CACHE_NOT_REFRESHED),
        (replace(CACHE, principals=frozenset({"bob"})), ReasonCode.NOT_GRANTED),
    ],
)
def test_what_is_not_in_order(cache: ServedCache | None, wanted: ReasonCode) -> None:
    assert code(cache) is wanted


def test_the_hint_names_other_caches() -> None:
    assert code(CACHE, replace(QUERY, only=frozenset({"d"}))) is ReasonCode.HINT
    assert code(CACHE, replace(QUERY, only=frozenset({"c"}))) is None


def test_a_write_and_a_subquery_take_exact_answers_only() -> None:
    context = HookContext("s", {}, (), is_write=False, hints=frozenset())
    assert _exact_only(context) is None
    write = _exact_only(replace(context, is_write=True))
    assert write is not None and write.code is ReasonCode.NOT_STRICT_FOR_WRITE
    inside = _exact_only(replace(context, in_subquery=True))
    assert inside is not None and inside.code is ReasonCode.MIXED_SNAPSHOTS


GROWN = TableAt("s.t", "file:/t", "id-t", 6, 50, "txn:6")
NO_COLUMNS = '{"type": "struct", "fields": []}'


def grown(cache: ServedCache, appended: bool = True, removed: bool = False) -> Eligibility:
    """Of a query that sees the table one commit after the cache's snapshot."""
    file = (FileAction(DataFile("f", "", 10, 7), True),)
    commit = BaseCommit(
        6, "txn:6", 60, added=file if appended else (), removed=file if removed else ()
    )
    histories = Histories(
        lambda table, version, *, columns_then: Past("txn:5", 50, 60, NO_COLUMNS),
        lambda table, version: CommitRange("txn:5", 50, (commit,)),
    )
    query = replace(QUERY, seen={"file:/t": [GROWN]}, fresh=FreshLimits(10, 10, 10))
    return Eligibility(query, replace(checks(cache), histories=histories))


def strict(**fields: object) -> ServedCache:
    plan = CachePlan("c", (Relation("file:/t", "s.t"),), (), None)
    read = {"file:/t": BaseState("id-t", 5, "txn:5", 50)}
    return replace(CACHE, plan=plan, snapshot=read, columns={"file:/t": "{}"}, **fields)


def test_a_session_that_reads_no_appended_rows_is_told_of_its_setting() -> None:
    block = reading("file:/t")
    asked = grown(strict())
    asked.query = replace(asked.query, fresh=FreshLimits(0, 10, 10))
    found = asked.clear(LocatedBlock((), block), block, REWRITE)
    assert isinstance(found, Reason) and found.code is ReasonCode.STALE
    assert "spark.cachemgr.freshHits=false" in found.detail
    assert found.suggestion.endswith("c, or SET spark.cachemgr.freshHits=true")


def test_a_cache_whose_property_keeps_appended_rows_away_is_stale() -> None:
    block = reading("file:/t")
    located = LocatedBlock((), block)
    assert isinstance(grown(strict()).clear(located, block, REWRITE), Behind)
    switched = strict(fresh_hits=False)
    found = grown(switched).clear(located, block, REWRITE)
    assert isinstance(found, Reason) and found.code is ReasonCode.STALE
    assert "its property cachemgr.freshHits is false" in found.detail
    assert "SET TBLPROPERTIES ('cachemgr.freshHits' = 'true')" in found.suggestion
    # another cache of the query may be read with appended rows: not this one
    again = grown(switched).clear_with_appended(block, REWRITE)
    assert isinstance(again, Reason) and again.code is ReasonCode.STALE
    assert isinstance(grown(strict()).clear_with_appended(block, REWRITE), Cleared)
    lagging = strict(fresh_hits=False, freshness=FreshnessKind.UNLIMITED)
    assert isinstance(grown(lagging).clear(located, block, REWRITE), Cleared)
    refused = grown(lagging).clear_with_appended(block, REWRITE)
    assert isinstance(refused, Reason) and refused.code is ReasonCode.STALE


def test_the_property_does_not_matter_where_no_row_changed() -> None:
    block = reading("file:/t")
    found = grown(strict(fresh_hits=False), appended=False)
    assert isinstance(found.clear(LocatedBlock((), block), block, REWRITE), Cleared)


def test_a_cache_that_may_lag_behind_is_not_exact_beside_appended_rows() -> None:
    """It is asked where another cache of the query may be read with such rows."""
    block = reading("file:/t")
    located = LocatedBlock((), block)
    lagging = strict(freshness=FreshnessKind.UNLIMITED)
    after_delete = grown(lagging, appended=False, removed=True)
    assert isinstance(after_delete.clear(located, block, REWRITE), Cleared), "its own bound allows"
    found = after_delete.clear_with_appended(block, REWRITE)
    assert isinstance(found, Reason) and found.code is ReasonCode.STALE
    why = Reason(ReasonCode.NOT_STRICT_FOR_WRITE, "a write", "")
    assert after_delete.in_a_try((), why).clear_with_appended(block, REWRITE) == why
    same = grown(lagging, appended=False).clear_with_appended(block, REWRITE)
    assert isinstance(same, Cleared) and same.exact


PAY = {"file:/pay": "hr.pay", "id-pay": "hr.pay"}
SEEN = TableAt("hr.pay", "file:/pay", "id-pay", 3, None)


def restricted_code(
    cache: ServedCache, block: Block, rewrite: Rewrite = REWRITE, seen: TableAt = SEEN
) -> ReasonCode | None:
    query = replace(QUERY, seen={seen.location: [seen]})
    reason = Eligibility(query, checks(cache, PAY))._access(block, rewrite, cache)
    return None if reason is None else reason.code


def reading(*places: str) -> Block:
    return Block(tuple(Relation(p, p) for p in places), (), ())


def test_a_restricted_table_in_the_cache_or_in_the_block() -> None:
    over = replace(CACHE, reads=frozenset({"file:/sales", "file:/pay"}))
    assert restricted_code(over, reading("file:/sales")) is ReasonCode.TABLE_RESTRICTED
    # the rewrite left it out, as a record-preserving join allows: the user may not read it
    left_out = reading("file:/sales", "file:/pay")
    assert restricted_code(CACHE, left_out) is ReasonCode.TABLE_RESTRICTED
    moved = replace(SEEN, location="file:/moved")
    assert restricted_code(CACHE, reading("file:/moved"), seen=moved) is (
        ReasonCode.TABLE_RESTRICTED
    )
    granted = replace(over, principals=frozenset({"ann"}))
    assert restricted_code(granted, left_out) is None
    assert restricted_code(CACHE, reading("file:/sales")) is None


def test_a_restricted_table_that_spark_itself_joins_to_the_cache_is_read_by_the_user() -> None:
    extra = ExtraJoin(Relation("file:/pay", "hr.pay"))
    rewrite = replace(REWRITE, extra=(extra,))
    assert restricted_code(CACHE, reading("file:/sales", "file:/pay"), rewrite) is None


JOIN = JoinRecord(
    name="j",
    definition="",
    left=JoinSide("sales", "file:/sales", "id-sales"),
    right=JoinSide("hr.pay", "file:/pay", "id-pay"),
    keys=(("who", "who"),),
    state=JoinState.VALID,
    validated_versions={
        "file:/sales": BaseState("id-sales", 1),
        "file:/pay": BaseState("id-pay", 3),
    },
)


@pytest.mark.parametrize(
    ("version", "used", "moved"),
    [(3, ("j",), False), (4, ("j",), True), (4, ("other",), False)],
)
def test_a_promised_key_of_a_table_that_moved(
    version: int, used: tuple[str, ...], moved: bool
) -> None:
    seen = {"file:/pay": [replace(SEEN, version=version)]}
    eligibility = Eligibility(replace(QUERY, seen=seen), checks(CACHE), (JOIN,))
    block = reading("file:/pay")
    found = eligibility.clear(LocatedBlock((), block), block, replace(REWRITE, joins_used=used))
    if moved:
        assert isinstance(found, Moved)
        assert found.reason.code is ReasonCode.EXTRA_TABLE_NOT_PRESERVING
    else:
        assert isinstance(found, Cleared)
