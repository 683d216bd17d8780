"""What is put in place of a part of a query: the SQL over a cache, and what it reads: a set held in
memory, the set's files or its table, and beside it what came since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from cachemgr.config.session_settings import Settings
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import PinnedSet, TableRead, run_select
from cachemgr.refresh.full.layout import LARGE_SET_ROWS
from cachemgr.serving.decision import Decision, Hit
from cachemgr.serving.fresh_hits import base_columns
from cachemgr.serving.served_cache import ServedCache, collapsing_sql
from cachemgr.spark.application import Application
from cachemgr.spark.held.pins import PinKey, holds_floats, in_order, most_selective_first
from cachemgr.spark.held.scan_name import scan_name
from cachemgr.spark.held.tails import TailStore
from cachemgr.spark.hook import Collapsed, LocalBounds, QueryFiles, QueryTable, Replacement
from cachemgr.telemetry import Telemetry
from matcher.catalyst.templates import PlanDocument
from matcher.index.explain import set_names
from matcher.model.ir import GROUPING_ID_COLUMN, GroupingSet
from matcher.render.placeholders import CACHE, STORED, TAIL, bases, joined
from matcher.render.select import quote
from matcher.rules.cost import rows_left

_FEW_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class CheckedReplacement(Replacement):
    """A replacement that may have to stand or fall with the query's others."""

    all_or_none: bool = False


class Replacements:
    """Makes what is put in place of the parts of queries that caches answer.

    Args:
        application: What it holds in memory.
        telemetry: The session's counters.
    """

    def __init__(self, application: Application, telemetry: Telemetry) -> None:
        self._application = application
        self._telemetry = telemetry

    def of(
        self, found: Decision, document: PlanDocument, settings: Settings, *, explain: bool
    ) -> list[Replacement]:
        """What is put in place by a decision; see `CacheSession.replacements`."""
        mixed = any(not hit.exact for hit in found.hits)
        return [
            self._replacement(
                hit, settings, mixed, document.is_sorted_above(hit.path), explain=explain
            )
            for hit in found.hits
        ]

    def _replacement(
        self, hit: Hit, settings: Settings, mixed: bool, is_sorted: bool, *, explain: bool
    ) -> Replacement:
        cache = hit.cache
        assert cache.version is not None
        read = TableRead(cache.location, cache.version)
        never = why_never_pinned(hit, settings)
        pinned = self._pin(hit, read, explain) if never is None else None
        relation: object = pinned if pinned is not None else self._stored(hit, read)
        relations = {CACHE: relation}
        for name, extra in zip(joined(len(hit.rewrite.extra)), hit.rewrite.extra, strict=True):
            relations[name] = QueryTable(extra.relation.key)
        tails = self._application.tails if settings.fresh_tail_max_bytes > 0 else None
        relations |= _read_beside(hit, tails)
        if hit.appended is not None and tails is not None and not explain:
            told = tails.request if hit.appended.files else tails.count_read
            told(cache, hit.rewrite.grouping_set, hit.appended)
        sql = hit.sql
        if is_sorted and pinned is None and _few_of_many(hit):
            sql = f"SELECT /*+ REPARTITION(1) */ * FROM (\n{sql}\n)"
        return CheckedReplacement(
            hit.path,
            sql,
            relations,
            cache.name,
            hit.split,
            scan_name(cache),
            _local_bounds(relations, settings),
            all_or_none=mixed,
        )

    def _pin(self, hit: Hit, read: TableRead, explain: bool) -> object | None:
        chosen = hit.rewrite.grouping_set
        key = pin_key(hit)
        store = self._application.pins
        pinned = store.get(key, to_read=not explain)
        if explain:
            return pinned
        is_often_read = self._application.pin_pace.read(key)
        if pinned is None:
            if is_often_read:
                name = scan_name(hit.cache)
                store.request(key, lambda: self._load(hit.cache, read, chosen), name)
            self._telemetry.count("pin_misses")
        else:
            self._telemetry.count("pin_hits")
        return pinned

    def _files(self, hit: Hit, read: TableRead) -> object:
        """A large set's own files where they are known; a small one is about to be pinned."""
        chosen = hit.rewrite.grouping_set
        if chosen is None or chosen.rows is None or chosen.rows <= LARGE_SET_ROWS:
            return read
        plan = self._application.files.plan(read, chosen.grouping_id)
        return read if plan is None else plan

    def _stored(self, hit: Hit, read: TableRead) -> object:
        """What a hit reads of its cache where that is not pinned: one row a group."""
        relation = self._files(hit, read)
        sql = collapsing_sql(hit.cache, hit.rewrite.grouping_set, STORED, hit.rewrite)
        return relation if sql is None else Collapsed(relation, sql)

    def _load(
        self,
        cache: ServedCache,
        read: TableRead,
        chosen: GroupingSet | None,
    ) -> DataFrame:
        number = None if chosen is None else chosen.grouping_id
        where = "" if number is None else f" WHERE {quote(GROUPING_ID_COLUMN)} = {number}L"
        text = f"SELECT * FROM {CACHE}{where}"
        rows = run_select(self._application.session, text, {CACHE: read})
        sql = collapsing_sql(cache, chosen, CACHE)
        if sql is not None:
            # It is added up as the cache's own settings say, and in the one task that holds the
            # rows: most groups have few partial rows, which a shuffle would only move.
            rows = run_select(
                own_session(self._application.session, dict(cache.settings)),
                sql,
                {CACHE: rows.coalesce(1)},
            )
        every = tuple(key.name for key in cache.plan.keys or ())
        names = set_names(cache.plan, chosen)
        keys = every if names is None else names
        if keys != every:  # of a cube's many keys most are NULL in each set
            others = set(every).difference(keys)
            rows = rows.select(*(quote(name) for name in rows.columns if name not in others))
        orders = self._application.key_orders
        of = (cache.id, number)  # CREATE OR REPLACE makes another id
        order = orders.get(of)
        if order is None:
            order = most_selective_first(rows, keys)
            orders.put(of, order)
        return in_order(rows, order)


def why_never_pinned(hit: Hit, settings: Settings) -> str | None:
    """Why the set that a hit reads is not kept in memory, however often it is read; None if it may
    be.

    Args:
        hit: Of a refreshed cache.
        settings: The session's.
    """
    if not settings.pin_enabled or settings.pin_max_bytes <= 0:
        return "spark.cachemgr.pin.enabled is false, or spark.cachemgr.pin.maxBytes is 0"
    chosen = hit.rewrite.grouping_set
    rows = chosen.rows if chosen is not None else hit.cache.plan.rows
    if rows is None:
        return "it is not known how many rows the set has"
    if rows > settings.pin_max_rows_per_set:
        return (
            f"the set has {rows:,} rows, and spark.cachemgr.pin.maxRowsPerSet is "
            f"{settings.pin_max_rows_per_set:,}"
        )
    if holds_floats(hit.cache.plan):
        return (
            "the cache stores FLOAT or DOUBLE values that may be NaN, and is not kept in memory: "
            "a cache of its own for these leaves the others fast"
        )
    return None


def pin_key(hit: Hit) -> PinKey:
    """What is pinned of the set that a hit reads.

    Args:
        hit: Of a refreshed cache.
    """
    chosen, cache = hit.rewrite.grouping_set, hit.cache
    assert cache.version is not None
    number = None if chosen is None else chosen.grouping_id
    return PinKey(cache.id, cache.version, number, cache.location)


def _local_bounds(relations: Mapping[str, object], settings: Settings) -> LocalBounds | None:
    """What computing the rows in the planning thread may take, where all that is read is held."""
    held = all(isinstance(r, PinnedSet) and r.held_bytes > 0 for r in relations.values())
    if not (held and settings.local_enabled):
        return None
    return LocalBounds(
        settings.local_max_rows,
        settings.local_max_groups,
        settings.local_max_result_bytes,
        settings.local_max_concurrent,
    )


def _read_beside(hit: Hit, tails: TailStore | None) -> dict[str, object]:
    """What a hit reads beside its cache: of the base tables, and a tail."""
    appended = hit.appended
    if appended is None:
        return {}
    found = {} if appended.tail is None else {TAIL: appended.tail.relation}
    if not appended.files:
        return found
    files = QueryFiles(appended.table.location, appended.since, appended.keys)
    tables = zip(hit.block.relations, base_columns(hit.block), strict=True)
    for name, (relation, columns) in zip(bases(len(hit.block.relations)), tables, strict=True):
        table, held = appended.others.get(relation.key), None
        if tails is not None and table is not None:
            held = tails.joined(hit.cache, table, columns)
        other: object = QueryTable(relation.key) if held is None else held
        found[name] = files if relation.key == files.location else other
    return found


def _few_of_many(hit: Hit) -> bool:
    """Few rows that are filtered from a large set, and not grouped again.

    Spark sorts by ranges, whose bounds it finds by running what is below the sort once more:
    reading the set's files twice (half the time of such a hit, measured). Few rows are gathered.
    """
    rewrite, plan = hit.rewrite, hit.cache.plan
    if rewrite.group_keys is not None or rewrite.extra or rewrite.branches or hit.appended:
        return False
    return rows_left(plan, rewrite.grouping_set, rewrite.compensating) <= _FEW_ROWS
